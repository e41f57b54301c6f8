// Page elements of a response: text, tables and charts. Text from the server is never parsed as HTML.

import { createShape, drawAxis, drawCurve, formatNumber } from "./charts.js";

export function createElement(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const formatPercent = (level) => `${Number((100 * level).toPrecision(4))} %`;

export const countResults = (count) => `${count.toLocaleString("en")} ${count === 1 ? "result" : "results"}`;

let estimateLabel = "estimate";

// Set the name of estimates that stands beside every figure, where their publisher asks for another.
export function setEstimateLabel(text) {
  estimateLabel = text;
}

export function describeTrust(estimate) {
  const advice = estimate.trust.startsWith("low") ? " Rely on the interval rather than on the estimate." : "";
  const label = estimateLabel === "estimate" ? "" : ` An ${estimateLabel}.`;
  return `Trust: ${estimate.trust || "unknown"}.${advice}${label}`;
}

export function createTable(caption, header, rows) {
  const isText = (cell) => typeof cell !== "string" || /[a-z]{3}/i.test(cell);
  const isLong = (cell) => typeof cell !== "string" || cell.length > 20;
  const kinds = header.map((_, index) => (rows.some((row) => isText(row[index])) ? `text${rows.some((row) => isLong(row[index])) ? " long" : ""}` : ""));
  const head = createElement("tr", {}, ...header.map((name, index) => createElement("th", { scope: "col", class: kinds[index] }, name)));
  const lines = rows.map((row) =>
    createElement("tr", {}, ...row.map((cell, index) => (index ? createElement("td", { class: kinds[index] }, cell) : createElement("th", { scope: "row" }, cell)))),
  );
  const table = createElement("table", {}, createElement("caption", {}, caption), createElement("thead", {}, head), createElement("tbody", {}, ...lines));
  return createElement("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table);
}

// Return the legend of a chart; `marks` names its diamonds, `published` is whether it has the strip of published results.
export function createLegend(level, { marks, published, unit }) {
  const item = (text, ...shapes) => {
    const svg = createShape("svg", { viewBox: "0 0 26 14", "aria-hidden": "true" });
    svg.append(...shapes);
    return createElement("li", {}, svg, text);
  };
  const bar = createShape("line", { class: "interval", x1: 5, x2: 21, y1: 7, y2: 7 });
  const items = [item(estimateLabel, createShape("circle", { class: "median", cx: 13, cy: 7, r: 6 })), item(`${formatPercent(level)} interval`, bar)];
  if (marks) items.push(item(marks, createShape("path", { class: "near", d: "M13 0l6 7l-6 7l-6 -7z" })));
  if (published) items.unshift(item("published results, median", createShape("rect", { class: "measured", x: 3, y: 1, width: 20, height: 12 }), createShape("line", { class: "measured-median", x1: 13, x2: 13, y1: 1, y2: 13 })));
  if (unit) items.push(createElement("li", {}, `unit: ${unit}`));
  return createElement("ul", { class: "legend" }, ...items);
}

export function formatInterval(estimate) {
  return estimate.low === null ? "no interval" : `${formatNumber(estimate.low)} to ${formatNumber(estimate.high)}`;
}

// Return a published result with its id, tester and month, so that it can be found.
const nameResult = (each) => [each.result, each.tester && `tested by ${each.tester}`, each.published].filter(Boolean).join(", ");

// Return the published results as a table, with their sources, nothing without any.
function createPublished(estimates, suites) {
  const found = estimates.filter((each) => each.published);
  const isExact = found.every(({ published }) => !published.differs.length);
  const rows = found.map(({ task, published }) => {
    const which = published.differs.length ? `the nearest machine; its newest results have ${published.differs.join("; ")}` : "this machine";
    const range = published.low === published.high ? formatNumber(published.low) : `${formatNumber(published.low)} to ${formatNumber(published.high)}`;
    return [task, String(published.count), formatNumber(published.median), range, nameResult(published.results[0]), ...(isExact ? [] : [which])];
  });
  const [caption, header] = [`Published results${isExact ? " of this machine" : ""}`, ["suite", "results", "median", "range", "newest", ...(isExact ? [] : ["of"])]];
  const sources = suites.filter(({ basis }) => basis.source && found.some(({ task }) => basis.tasks.includes(task))).map(({ basis }) => `${basis.source}${basis.retrieved ? `, retrieved ${basis.retrieved}` : ""}`);
  const source = sources.length ? [createElement("p", { class: "quiet" }, `Source: ${sources.join("; ")}.`)] : [];
  return rows.length ? [createElement("div", { class: "published" }, createTable(caption, header, rows), ...source)] : [];
}

// Return the measured results behind the answers of a suite, and the suite whose estimates it rests on.
export function describeBasis({ results, until, bridged_from: base }, suites) {
  const from = base ? `bridged from ${suites.find((suite) => suite.basis.dataset === base)?.title ?? base}; ` : "";
  return `${from}${countResults(results)}${until ? ` to ${until}` : ""}`;
}

const createNotice = ({ notice }) => (notice ? [createElement("p", { class: "quiet" }, `${notice}.`)] : []);

// Return the heading, the chart, the trust and the ratio of one estimate.
function createEstimate(estimate, { ratio, heading, width, unit }) {
  const nearest = estimate.neighbors.map((near) => `${near.machine} ${formatNumber(near.score)}`).join(", ");
  const label = `${estimate.task}: estimate ${formatNumber(estimate.median)}, ${formatPercent(estimate.level)} interval ${formatInterval(estimate)}${nearest ? `; nearest measured: ${nearest}` : ""}`;
  return createElement(
    "div",
    {},
    createElement(heading, { class: "suite" }, `${estimate.task} `, createElement("strong", {}, formatNumber(estimate.median)), " ", createElement("small", {}, `${formatInterval(estimate)}${unit && ` ${unit}`}`)),
    drawAxis(estimate, width, label),
    createElement("p", { class: "trust" }, describeTrust(estimate)),
    ratio ? createElement("p", { class: "ratio" }, `Ratio to ${ratio.base_task}: `, createElement("strong", {}, formatNumber(ratio.median)), `, ${formatInterval(ratio)}`) : "",
  );
}

// Return published results, then a heading, a chart and a text for every estimate by suite, and the same as tables.
export function createPrediction(machine, width, suites, words) {
  const parts = [createElement("p", {}, createElement("strong", {}, machine.machine))];
  for (const note of machine.notes) parts.push(createElement("p", { class: "problem note" }, `Note: ${note}.`));
  const { estimates } = machine;
  const ratios = Object.fromEntries((machine.ratios ?? []).map((each) => [each.task, each]));
  const hasNearest = estimates.some((estimate) => estimate.neighbors.length);
  const units = [...new Set(estimates.map((estimate) => estimate.unit))].filter(Boolean);
  parts.push(...createPublished(estimates, suites));
  parts.push(createLegend(estimates[0].level, { marks: hasNearest && "nearest measured machines", published: estimates.some((estimate) => estimate.published), unit: units.length === 1 ? units[0] : "" }));
  const answered = suites.map((suite) => ({ ...suite, estimates: estimates.filter((estimate) => suite.basis.tasks.includes(estimate.task)) })).filter((suite) => suite.estimates.length);
  const isSplit = answered.length > 1 && width >= 730;
  for (const suite of answered) suite.width = isSplit ? Math.floor((width - 32) / 2) : width;
  const sections = answered.map((suite) => {
    const title = answered.length > 1 ? [createElement("div", {}, createElement("h3", { class: "dataset" }, suite.title), createElement("p", { class: "quiet" }, describeBasis(suite.basis, suites)), ...createNotice(suite.basis))] : createNotice(suite.basis);
    const blocks = suite.estimates.map((estimate) => createEstimate(estimate, { ratio: ratios[estimate.task], heading: answered.length > 1 ? "h4" : "h3", width: suite.width, unit: units.length > 1 ? estimate.unit : "" }));
    const section = createElement("section", {}, ...title, ...blocks);
    section.style.gridRow = `span ${title.length + blocks.length}`;
    return section;
  });
  parts.push(createElement("div", { class: isSplit ? "suites split" : "suites" }, ...sections));
  const most = (machine.basis?.assumptions ?? []).slice(0, 3).map((each) => `${words(each.field).label} (${(100 * each.spread).toFixed(1)} %)`);
  if (most.length) parts.push(createElement("p", {}, `Assumed, what changes the estimates most: ${most.join(", ")}. Stating them narrows the intervals.`));
  const rows = estimates.map((estimate) => [estimate.task, formatNumber(estimate.median), estimate.low === null ? "" : formatNumber(estimate.low), estimate.high === null ? "" : formatNumber(estimate.high), estimate.trust]);
  const tables = [createTable(`Estimates with ${formatPercent(estimates[0].level)} intervals; not official results`, ["suite", "estimate", "low", "high", "trust"], rows)];
  if (machine.derived.length) {
    const derivedRows = machine.derived.map((each) => [each.name, formatNumber(each.median), each.low === null ? "" : formatNumber(each.low), each.high === null ? "" : formatNumber(each.high), each.unit, each.formula]);
    parts.push(createTable("Derived from the estimates, as if their errors were fully correlated", ["derived", "estimate", "low", "high", "unit", "formula"], derivedRows));
  }
  if (hasNearest) {
    const nearestRows = estimates.flatMap((estimate) => estimate.neighbors.map((near) => [estimate.task, near.machine, formatNumber(near.score), near.published, near.distance.toFixed(3)]));
    tables.push(createTable("Nearest measured machines; a distance of 0.05 adds about 5 % of error", ["suite", "machine", "measured", "published", "distance"], nearestRows));
  }
  parts.push(createElement("details", {}, createElement("summary", {}, "As tables, with the nearest measured machines by name"), ...tables));
  return parts;
}

// Return the drivers by group and all inputs by their origin; `words` returns the label and the meaning of a name.
export function createBasis(machine, { origins, suites }, words) {
  const parts = [];
  const driven = machine.estimates.filter((estimate) => estimate.typical_machine);
  if (driven.length) {
    const groups = [...new Set(driven.flatMap((estimate) => estimate.drivers.map((driver) => driver.group)))].sort();
    const rows = driven.map((estimate) => {
      const factors = Object.fromEntries(estimate.drivers.map((driver) => [driver.group, driver.factor]));
      return [estimate.task, ...groups.map((group) => `× ${(factors[group] ?? 1).toFixed(2)}`), `${estimate.typical_machine.machine} (measured ${formatNumber(estimate.typical_machine.score)})`];
    });
    parts.push(createTable("Drivers: factors on the prediction of a typical machine of the last year", ["suite", ...groups, "typical machine"], rows));
  }
  if (machine.basis) parts.push(...createFoundation(machine.basis, suites, words));
  for (const [origin, meaning] of Object.entries(origins)) {
    const values = machine.values.filter((value) => value.origin === origin);
    if (!values.length) continue;
    const cells = values.map((value) => {
      const unit = value.unit && value.unit !== "month" && value.unit !== "quarter" ? ` ${value.unit}` : "";
      const shown = typeof value.value === "number" ? Number(value.value.toPrecision(6)).toString() : value.value;
      const { label, meaning } = words(value.column);
      return createElement("li", { title: `${value.column}: ${meaning}` }, createElement("span", {}, `${label} `), `${shown}${unit}`);
    });
    const title = createElement("h3", {}, origin[0].toUpperCase() + origin.slice(1), " ", createElement("small", {}, meaning));
    parts.push(createElement("div", { class: `origin ${origin.replace(" ", "-")}` }, title, createElement("ul", { class: "cells" }, ...cells)));
  }
  return parts;
}

// Return data, errors and facts with their dates, and how to check the answer.
function createFoundation(basis, suites, words) {
  const parts = [createElement("p", {}, `Basis: ${suites.map((suite) => `${suite.title}, ${describeBasis(suite.basis, suites)}`).join(". ")}.`)];
  if (basis.later_results) parts.push(createElement("p", {}, `${basis.later_results}.`));
  if (basis.errors.length) parts.push(createTable("Errors in backtests at this distance from measured machines", ["suite", "half are below", "nine tenths are below"], basis.errors.map((each) => [each.task, `${(100 * each.median).toFixed(1)} %`, `${(100 * each.p90).toFixed(1)} %`])));
  for (const each of basis.facts) parts.push(createElement("p", {}, createElement("strong", {}, `Facts of ${each.subject}`), `, public from ${each.known_from || "an unknown day"} (${each.source}): ${each.facts.map((fact) => fact.replace(/^\w+/, (name) => words(name).label)).join(", ")}.`));
  if (basis.checks.length) {
    const checks = basis.checks.flatMap((each) => [createElement("h4", {}, each.task), createElement("pre", {}, `${each.command}\n\n${each.configuration}`)]);
    parts.push(createElement("details", {}, createElement("summary", {}, "How to measure it"), ...checks));
  }
  if (basis.moves.length) {
    const moves = basis.moves.map((each) => `${each.task} ${each.factor >= 1 ? "+" : ""}${(100 * (each.factor - 1)).toFixed(1)} % (${Math.round(100 * each.width)} % of its width remain)`);
    parts.push(createElement("p", {}, `One own result of ${basis.measured_task}, 10 % above its estimate, would move ${moves.join(", ")}.`));
  }
  return parts;
}

// Return a figure for every suite or name, in as many columns as fit the width.
export function createFigures(tasks, available, draw) {
  const width = available >= 730 && tasks.length > 1 ? Math.floor((available - 26) / 2) : available;
  return createElement("div", { class: "charts" }, ...tasks.map((task, place) => createElement("figure", {}, createElement("figcaption", {}, task), draw(task, width, place))));
}

// Return a curve for every suite over the values with a prediction, and the same as a table.
export function createCurves(answer, values, label, width) {
  const curves = new Map();
  for (const machine of answer.machines) {
    for (const estimate of machine.estimates) {
      const curve = [estimate.task, ...machine.others].join(", ");
      const points = curves.get(curve) ?? [];
      points.push({ x: values[machine.line - 1], median: estimate.median, low: estimate.low, high: estimate.high, hypothetical: Boolean(machine.base_entity) });
      curves.set(curve, points);
    }
  }
  const charts = createFigures([...curves.keys()], width, (task, each) => {
    const points = curves.get(task);
    const first = points[0];
    const last = points.at(-1);
    const description = `${task} by ${label}: ${formatNumber(first.median)} at ${formatNumber(first.x)}, ${formatNumber(last.median)} at ${formatNumber(last.x)}`;
    return drawCurve(points, each, description, label);
  });
  const rows = values.flatMap((value) => {
    const found = [...curves.values()].map((points) => points.find((point) => point.x === value));
    return found.some(Boolean) ? [[formatNumber(value), ...found.map((point) => (point ? `${formatNumber(point.median)} (${formatInterval(point)})` : ""))]] : [];
  });
  const parts = [charts, ...answer.notes.map((note) => createElement("p", { class: "quiet" }, `Note: ${note}.`))];
  if (answer.machines.some((machine) => machine.base_entity)) parts.push(createElement("p", { class: "quiet" }, "Hollow points: a hypothetical CPU model like the described one."));
  if (rows.length) parts.push(createElement("details", {}, createElement("summary", {}, "As a table"), createTable(`Estimates by ${label}`, [label, ...curves.keys()], rows)));
  if (answer.refused.length) {
    const missing = answer.refused.map((each) => createElement("li", {}, `${formatNumber(values[each.line - 1])}: ${each.message.replaceAll(/\bmachine \d+\b/g, "this machine")}`));
    parts.push(createElement("p", {}, `No prediction for ${answer.refused.length} of ${values.length}:`), createElement("ul", {}, ...missing));
  }
  return parts;
}
