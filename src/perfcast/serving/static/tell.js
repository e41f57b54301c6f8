// An answer as elements of the page: words, tables and drawings. All text from the server is set as text.

import { axisOf, curveOf, number, shape } from "./draw.js";

export function made(name, attributes = {}, ...inside) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inside);
  return element;
}

const per = (level) => `${Number((100 * level).toPrecision(4))} %`;
const GROUPS = { audit: "dates" };
const named = (group) => GROUPS[group] ?? group;

export function supportOf(estimate) {
  if (estimate.support === null) return "How well measured machines support it is not known.";
  const share = ` (support ${estimate.support.toFixed(2)})`;
  const unlike = estimate.unlike ? `; least like anything measured: ${named(estimate.unlike)}` : "";
  if (estimate.support >= 0.75) return `The like was measured${share}${unlike}.`;
  if (estimate.support >= 0.4) return `Machines somewhat like it were measured${share}${unlike}.`;
  return `Nothing much like it was measured${share}${unlike}. Trust the interval more than the number.`;
}

export function tableOf(caption, header, rows) {
  const words = (cell) => typeof cell !== "string" || /[a-z]{3}/i.test(cell);
  const kinds = header.map((_, place) => (rows.some((row) => words(row[place])) ? "text" : ""));
  const head = made("tr", {}, ...header.map((name, place) => made("th", { scope: "col", class: kinds[place] }, name)));
  const lines = rows.map((row) =>
    made("tr", {}, ...row.map((cell, place) => (place ? made("td", { class: kinds[place] }, cell) : made("th", { scope: "row" }, cell)))),
  );
  const table = made("table", {}, made("caption", {}, caption), made("thead", {}, head), made("tbody", {}, ...lines));
  return made("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table);
}

function legend(level, neighbours) {
  const item = (text, ...shapes) => {
    const svg = shape("svg", { viewBox: "0 0 26 14", "aria-hidden": "true" });
    svg.append(...shapes);
    return made("li", {}, svg, text);
  };
  const bar = shape("line", { class: "interval", x1: 5, x2: 21, y1: 7, y2: 7 });
  const items = [item("estimate", shape("circle", { class: "median", cx: 13, cy: 7, r: 6 })), item(`${per(level)} interval`, bar)];
  if (neighbours) items.push(item("nearest measured machines", shape("path", { class: "near", d: "M13 0l6 7l-6 7l-6 -7z" })));
  return made("ul", { class: "legend" }, ...items);
}

export function rangeOf(estimate) {
  return estimate.low === null ? "no interval" : `${number(estimate.low)} to ${number(estimate.high)}`;
}

// What is forecast: a heading, an axis and words for every suite, and the same as tables.
export function forecastOf(machine, width) {
  const parts = [made("p", {}, made("strong", {}, machine.machine))];
  for (const note of machine.notes) parts.push(made("p", { class: "problem note" }, `Note: ${note}.`));
  const estimates = machine.estimates;
  const some = estimates.some((one) => one.neighbours.length);
  parts.push(legend(estimates[0].level, some));
  for (const one of estimates) {
    const near = one.neighbours.map((other) => `${other.machine} ${number(other.score)}`).join(", ");
    const label = `${one.task}: estimate ${number(one.median)}, ${per(one.level)} interval ${rangeOf(one)}${near ? `; nearest measured: ${near}` : ""}`;
    parts.push(
      made("h3", { class: "suite" }, `${one.task} `, made("strong", {}, number(one.median)), " ", made("small", {}, `${rangeOf(one)}${one.unit ? ` ${one.unit}` : ""}`)),
      axisOf(one, width, label),
      made("p", { class: "support" }, supportOf(one)),
    );
  }
  const rows = estimates.map((one) => [one.task, number(one.median), one.low === null ? "" : number(one.low), one.high === null ? "" : number(one.high), one.support === null ? "" : one.support.toFixed(2)]);
  const tables = [tableOf(`Estimates with ${per(estimates[0].level)} intervals; not official results`, ["suite", "estimate", "low", "high", "support"], rows)];
  if (some) {
    const nearest = estimates.flatMap((one) => one.neighbours.map((near) => [one.task, near.machine, number(near.score), near.published, near.distance.toFixed(3)]));
    tables.push(tableOf("Nearest measured machines; 0.05 says that what differs is worth an error of about 5 % more", ["suite", "machine", "measured", "published", "distance"], nearest));
  }
  parts.push(made("details", {}, made("summary", {}, "As tables, with the nearest measured machines by name"), ...tables));
  return parts;
}

// What a forecast rests on: drivers by group, and every value by its origin.
export function basisOf(machine, origins) {
  const parts = [];
  const driven = machine.estimates.filter((one) => one.typical);
  if (driven.length) {
    const groups = [...new Set(driven.flatMap((one) => one.drivers.map((driver) => driver.group)))].sort();
    const rows = driven.map((one) => {
      const factors = Object.fromEntries(one.drivers.map((driver) => [driver.group, driver.factor]));
      return [one.task, ...groups.map((group) => `× ${(factors[group] ?? 1).toFixed(2)}`), `${one.typical.machine} (measured ${number(one.typical.score)})`];
    });
    parts.push(tableOf("What drove it: the forecast of a typical machine of the last year, times", ["suite", ...groups.map(named), "typical machine"], rows));
  }
  for (const [origin, meaning] of Object.entries(origins)) {
    const values = machine.values.filter((value) => value.origin === origin);
    if (!values.length) continue;
    const cells = values.map((value) => {
      const unit = value.unit && value.unit !== "month" && value.unit !== "quarter" ? ` ${value.unit}` : "";
      const shown = typeof value.value === "number" ? Number(value.value.toPrecision(6)).toString() : value.value;
      return made("li", {}, made("span", {}, `${value.column} `), `${shown}${unit}`);
    });
    const title = made("h3", {}, origin[0].toUpperCase() + origin.slice(1), " ", made("small", {}, meaning));
    parts.push(made("div", { class: `origin ${origin.replace(" ", "-")}` }, title, made("ul", { class: "cells" }, ...cells)));
  }
  return parts;
}

// How the forecast moves: a curve for every suite over the values that could be forecast, and the same as a table.
export function curvesOf(answer, values, along, width) {
  const found = new Map();
  for (const machine of answer.machines) {
    for (const one of machine.estimates) {
      const points = found.get(one.task) ?? [];
      points.push({ x: values[machine.line - 1], median: one.median, low: one.low, high: one.high });
      found.set(one.task, points);
    }
  }
  const charts = [...found].map(([task, points]) => {
    const first = points[0];
    const last = points.at(-1);
    const label = `${task} against ${along}: ${number(first.median)} at ${number(first.x)}, ${number(last.median)} at ${number(last.x)}`;
    return made("figure", {}, made("figcaption", {}, task), curveOf(points, width, label, along));
  });
  const rows = values.flatMap((value, place) => {
    const machine = answer.machines.find((one) => one.line === place + 1);
    return machine ? [[number(value), ...machine.estimates.map((one) => `${number(one.median)} (${rangeOf(one)})`)]] : [];
  });
  const parts = [made("div", { class: "charts" }, ...charts)];
  if (rows.length) parts.push(made("details", {}, made("summary", {}, "As a table"), tableOf(`Estimates by ${along}`, [along, ...found.keys()], rows)));
  if (answer.errors.length) {
    const missing = answer.errors.map((one) => made("li", {}, `${number(values[one.line - 1])}: ${one.error.replaceAll(/\bmachine \d+\b/g, "it")}`));
    parts.push(made("p", {}, `No forecast for ${answer.errors.length} of ${values.length}:`), made("ul", {}, ...missing));
  }
  return parts;
}
