"use strict";
const STEP = 200;
const { names, trusts, rows } = JSON.parse(document.getElementById("data").textContent);
const form = document.querySelector("form"), body = document.querySelector("tbody"), more = document.getElementById("more");
const heads = [...document.querySelectorAll("th[data-column]")];
const FIELDS = ["name", "units", "output", "estimate", "low", "high", "trust", "count", "q1", "median", "q3", "from", "to"];
const LEVELS = ["", "low", "fair", "high"];
const all = rows.map((row) => Object.fromEntries(FIELDS.map((field, place) => [field, row[place]])));
for (const row of all) {
  row.trust = trusts[row.trust] ?? "";
  row.level = LEVELS.indexOf(row.trust.split(":")[0]);
  row.width = row.low === null ? null : row.high / row.low;
  row.words = names[row.name].join(" ").toLowerCase();
  row.count ||= null;
}
const order = { key: "months", down: true };
let limit = STEP;
const shown = (value) => value === null ? "" : value >= 1000 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
const range = (low, high) => low === null ? "" : `${shown(low)} to ${shown(high)}`;
// The numbers of the names are in the order of the alphabet.
const KEYS = { interval: "width", trust: "level", quartiles: "q1", months: "to" };
const CELLS = {
  units: (row) => row.units, estimate: (row) => shown(row.estimate), interval: (row) => range(row.low, row.high),
  trust: (row) => row.trust, median: (row) => shown(row.median), quartiles: (row) => range(row.q1, row.q3),
  count: (row) => row.count ?? "", months: (row) => row.from === row.to ? row.to ?? "" : `${row.from} to ${row.to}`,
};
function add(parent, tag, text = "") {
  parent.append(Object.assign(document.createElement(tag), { textContent: text }));
  return parent.lastChild;
}
function draw() {
  const { q, output, units, published, trust } = Object.fromEntries(new FormData(form));
  const words = q.toLowerCase().split(/\s+/), least = LEVELS.indexOf(trust), key = KEYS[order.key] ?? order.key;
  const found = all.filter((row) => String(row.output) === output && (!units || String(row.units) === units)
    && (!published || (row.count !== null) === (published === "1")) && row.level >= least && words.every((word) => row.words.includes(word)));
  // What has no value comes last in both orders.
  found.sort(({ [key]: x }, { [key]: y }) => {
    if (x === null || y === null) return (x === null) - (y === null);
    return (x < y ? -1 : x > y ? 1 : 0) * (order.down ? -1 : 1);
  });
  body.replaceChildren(...found.slice(0, limit).map((row) => {
    const line = document.createElement("tr"), [name, groups] = names[row.name];
    const first = add(line, "th", name);
    first.scope = "row";
    if (groups) add(first, "small", groups);
    for (const { dataset } of heads.slice(1)) add(line, "td", CELLS[dataset.column](row)).className = dataset.column === "trust" ? "text" : "";
    return line;
  }));
  for (const head of heads) head.setAttribute("aria-sort", head.dataset.column !== order.key ? "none" : order.down ? "descending" : "ascending");
  document.getElementById("count").textContent = `${Math.min(limit, found.length)} of ${found.length} rows`;
  more.hidden = found.length <= limit;
}
function keep() {
  limit = STEP;
  draw();
  const state = new URLSearchParams([...new FormData(form), ["sort", (order.down ? "-" : "") + order.key]].filter(([, value]) => value));
  history.replaceState(null, "", `#${state}`);
}
function restore() {
  const state = new URLSearchParams(location.hash.slice(1));
  for (const field of form.elements) {
    const given = state.get(field.name);
    if (given !== null && (field.name === "q" || [...field.options].some((one) => one.value === given))) field.value = given;
  }
  const key = (state.get("sort") ?? "").replace(/^-/, "");
  if (heads.some((head) => head.dataset.column === key)) Object.assign(order, { key, down: state.get("sort").startsWith("-") });
  draw();
}
for (const head of heads) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const key = head.dataset.column;
    Object.assign(order, { key, down: order.key === key ? !order.down : !["name", "units", "interval"].includes(key) });
    keep();
  });
}
form.addEventListener("input", keep);
form.addEventListener("submit", (event) => event.preventDefault());
more.addEventListener("click", () => { limit += 5 * STEP; draw(); });
addEventListener("hashchange", restore);
restore();
