"""What-if grid: predictions of a machine with some fields varied, in all combinations, and their plot."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from perfcast.decisions.criteria import Output
from perfcast.decisions.variants import VariedField, make_variants
from perfcast.inference.champion import Champion
from perfcast.inference.derived import DerivedValue
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.predict import PredictOptions, batches, predict_draws
from perfcast.inference.prediction import ESTIMATE, Answer, Estimate, Prediction, name_tasks
from perfcast.inference.user_measurements import UserMeasurements
from perfcast.utils.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LINES = 8
"""Most lines of a plot."""
_MAX_BARS = 24
_LEGEND_LETTERS, _LABEL_LETTERS = 118, 14
"""Letters of a row of legend labels, and of a line of the label of a bar."""


@dataclass(frozen=True)
class Combination:
    """One combination: values by varied field, and its estimates by task, or the reason why it is impossible.

    `numbers` has the values of numerical fields in the units of their columns. `base_entity` names the entity whose
    facts a hypothetical one has, "" for a real one. `derived` has what follows from the estimates of several tasks.
    """

    values: dict[str, str]
    numbers: dict[str, float]
    estimates: tuple[Estimate, ...] = ()
    violation: str = ""
    base_entity: str = ""
    derived: tuple[DerivedValue, ...] = ()


@dataclass(frozen=True, repr=False)
class Grid(Answer):
    """All combinations, the last field's values changing fastest. `units`: by varied numerical field."""

    dataset: str
    champion: str
    preset: str
    machine: str
    level: float
    units: dict[str, str]
    combinations: tuple[Combination, ...]
    notes: tuple[str, ...]
    kind: str = ESTIMATE

    @property
    def names(self) -> list[str]:
        """The varied fields."""
        return list(self.combinations[0].values)

    @property
    def possible(self) -> list[Combination]:
        """The combinations that break no limit."""
        return [combination for combination in self.combinations if not combination.violation]

    @property
    def outputs(self) -> dict[Output, str]:
        """The predicted outputs and their titles: the task, with the target where the task has several."""
        outputs = dict.fromkeys(Output.of(estimate) for each in self.possible for estimate in each.estimates)
        tasks = [output.task for output in outputs]
        return {
            output: output.task if tasks.count(output.task) == 1 else f"{output.task} {output.target}"
            for output in outputs
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per combination and task or derived quantity; one for an impossible combination."""
        rows: list[dict[str, Any]] = []
        for each in self.combinations:
            row = {**each.values, "base_entity": each.base_entity, "violation": each.violation}
            cells = [*(one.cells() for one in each.estimates), *(one.cells() for one in each.derived)]
            rows += [row | one for one in cells or [{}]]
        return pd.DataFrame(rows)


def predict_grid(
    entry: MachineEntry,
    varied: Sequence[VariedField],
    champion: Champion,
    tasks: Sequence[str] = (),
    options: PredictOptions | None = None,
    *,
    measurements: UserMeasurements | None = None,
    progress: bool = False,
) -> Grid:
    """Predict every combination; see `make_variants` for what stays constant.

    User measurements correct every prediction, see `predict_machines`.
    Raises: UserError when the machine cannot be used, or every combination is impossible.
    """
    if not varied:
        raise UserError("something must be varied", "there is no --vary", "such as --vary cores=64..192:16")
    options = replace(options or PredictOptions(), tasks=tuple(tasks), neighbors=0, explain=False)
    made = make_variants(entry, varied, champion, assume=options.assume)
    predictions: dict[int, Prediction] = {}
    violations: dict[int, str] = {}
    for numbers in batches(len(made.variants), progress=progress):
        drawn, reasons = made.draw(numbers, assume=options.assume)
        violations |= reasons
        if drawn is not None:
            predictions |= {each.line: each for each in predict_draws(drawn, champion, options, measurements)}
    if not predictions:
        raise UserError("at least one combination must be possible", f"none is: {next(iter(violations.values()))}")
    combinations = []
    for number, variant in enumerate(made.variants):
        pairs, made_one = list(zip(made.varied, variant.points, strict=True)), predictions.get(number)
        numbers_of = (
            (field.name, next(iter(point.cells.values()))) for field, point in pairs if field.unit is not None
        )
        combinations.append(
            Combination(
                values={field.name: point.text for field, point in pairs},
                numbers={name: float(number) for name, number in numbers_of},
                estimates=made_one.estimates if made_one else (),
                violation=violations.get(number, ""),
                base_entity=variant.base_entity,
                derived=made_one.derived if made_one else (),
            )
        )
    names = [field.name for field in made.varied]
    measurement_notes = measurements.notes if measurements else ()
    return Grid(
        dataset=champion.dataset,
        champion=champion.name,
        preset=champion.preset,
        machine=entry.label if entry.values else "",
        level=options.level,
        units={field.name: field.unit for field in made.varied if field.unit is not None},
        combinations=name_tasks(tuple(combinations), champion.rules.task_titles),
        notes=(*made.notes, *measurement_notes, *note_unchanged(combinations, names)),
    )


def note_unchanged(combinations: Sequence[Combination], names: Sequence[str]) -> list[str]:
    """Return a note for every field whose values change no estimate."""
    notes = []
    for name in names:
        groups: dict[tuple[str, ...], list[tuple[float, ...]]] = {}
        for combination in combinations:
            if not combination.violation:
                others = tuple(value for other, value in combination.values.items() if other != name)
                medians = tuple(round(estimate.median, 9) for estimate in combination.estimates)
                groups.setdefault(others, []).append(medians)
        varies = any(len(medians) > 1 for medians in groups.values())
        if varies and all(len(set(medians)) == 1 for medians in groups.values()):
            notes.append(f"{name} changes no estimate here: another limit hides it, or no model reads it")
    return notes


def draw_grid(grid: Grid) -> str:
    """Return the estimates with their intervals as SVG: lines over numbers with a shaded band, else bars.

    There is a panel per task, the field with most numbers on the x axis, and a color per combination of the others.
    Raises: UserError when there are more lines or bars than can be told apart.
    """
    import matplotlib

    from perfcast.report.plots.drawing import STYLE, panels, plain_axis, predictor_styles, to_svg

    numbers = {name: len({combination.numbers[name] for combination in grid.combinations}) for name in grid.units}
    along = max(numbers, key=lambda name: numbers[name]) if numbers else None
    x = along or grid.names[0]
    others = [name for name in grid.names if name != x]
    lines: dict[str, list[Combination]] = {}
    for combination in grid.possible:
        label = ", ".join(f"{name} {combination.values[name]}" for name in others)
        lines.setdefault(label, []).append(combination)
    if len(lines) > MAX_LINES:
        fact = f"{' x '.join(others)} are {len(lines)}"
        raise UserError(f"a plot must have at most {MAX_LINES} lines", fact, "vary fewer values, or write .csv")
    ticks = list(dict.fromkeys(combination.values[x] for combination in grid.combinations))
    if along is None and len(ticks) * len(lines) > _MAX_BARS:
        fact = f"{len(ticks)} of {x} x {len(lines)} are {len(ticks) * len(lines)}"
        raise UserError(f"a plot must have at most {_MAX_BARS} bars", fact, "vary fewer values, or write .csv")
    with matplotlib.rc_context(STYLE):
        figure, axes = panels(len(grid.outputs), columns=2, height=2.9)
        looks = predictor_styles([f"{place}" for place in range(len(lines))])
        for axis, (output, title) in zip(axes, grid.outputs.items(), strict=True):
            for place, (label, combinations) in enumerate(lines.items()):
                pairs = [(each, one) for each in combinations for one in each.estimates if Output.of(one) == output]
                if along is None:
                    width = 0.8 / len(lines)
                    shift = (place - (len(lines) - 1) / 2) * width
                    at = [ticks.index(each.values[x]) + shift for each, _ in pairs]
                    _draw_bars(
                        axis, at, [one for _, one in pairs], width, label=label, color=looks[str(place)]["color"]
                    )
                else:
                    pairs.sort(key=lambda pair: pair[0].numbers[x])
                    at = [each.numbers[x] for each, _ in pairs]
                    _draw_line(axis, at, [one for _, one in pairs], label, looks[str(place)])
            axis.set_title(title)
            axis.set_ylabel(
                next(one.unit for each in grid.possible for one in each.estimates if Output.of(one) == output)
            )
            plain_axis(axis, "y")
            if along is not None:
                plain_axis(axis, "x")
                axis.set_xlabel(f"{x} ({grid.units[x]})" if grid.units[x] else x)
                continue
            slanted: dict[str, Any] = {"rotation": 30, "ha": "right"} if len(ticks) > 4 else {}
            axis.set_xticks(range(len(ticks)), map(_break_lines, ticks), **slanted)
            axis.grid(visible=False, axis="x")
        if others:
            columns = max(1, _LEGEND_LETTERS // (max(map(len, lines)) + 8))
            figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=columns)
        heading = f"estimates by {grid.champion}, {100 * grid.level:g} % intervals"
        if bases := sorted({combination.base_entity for combination in grid.possible if combination.base_entity}):
            heading += f"; hypothetical ones like {', '.join(bases)}"
        if impossible := len(grid.combinations) - len(grid.possible):
            heading += f"; {impossible} of {len(grid.combinations)} combinations are impossible"
        figure.suptitle(heading, fontsize=8, x=0.01, ha="left")
        return to_svg(figure, f"Predictions over {', '.join(grid.names)}")


def _draw_line(axis: Axes, at: list[float], estimates: list[Estimate], label: str, look: dict[str, Any]) -> None:
    axis.plot(at, [estimate.median for estimate in estimates], label=label, markersize=3.5, **look)
    known = [(place, one.low, one.high) for place, one in zip(at, estimates, strict=True) if one.low is not None]
    if known:
        places, low, high = zip(*known, strict=True)
        axis.fill_between(places, low, high, color=look["color"], alpha=0.15, linewidth=0)


def _draw_bars(axis: Axes, at: list[float], estimates: list[Estimate], width: float, *, label: str, color: str) -> None:
    from perfcast.report.plots.drawing import INK

    axis.bar(at, [estimate.median for estimate in estimates], width * 0.92, color=color, alpha=0.75, label=label)
    for where, estimate in zip(at, estimates, strict=True):
        if estimate.low is not None and estimate.high is not None:
            axis.plot([where, where], [estimate.low, estimate.high], color=INK, linewidth=1)


def _break_lines(text: str) -> str:
    """Return the label of a bar, with line breaks between words where it is long."""
    return "\n".join(textwrap.wrap(text, _LABEL_LETTERS, break_long_words=False, break_on_hyphens=False))
