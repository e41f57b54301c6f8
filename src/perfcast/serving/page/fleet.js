// Size of a fleet: a table pasted from a spreadsheet, and the machines that may replace it.

import { copyText, formatCurl, post, saveText } from "./answer_tools.js";
import { drawSteps, formatNumber } from "./charts.js";
import { formatPercent, readLines, readSuite } from "./decisions.js";
import { createElement, createFigures, createTable, formatInterval } from "./prediction_view.js";

const NUMBERS = ["sure", "headroom", "growth", "years", "spare", "electricity_price", "carbon"];
const MAX_REFUSED = 12;
const getElement = (id) => document.getElementById(id);
const form = getElement("size");
const output = getElement("sizing");
const state = { body: null };

const show = (value) => (value === null ? "" : Number(formatNumber(value)).toLocaleString("en"));
const share = (value) => `${Number((100 * value).toPrecision(4))}\u00a0%`;
const showInterval = (low, high) => formatInterval({ low, high });

// Return a typed number: 0.3, 0,3 or 30 %.
function readNumber(name) {
  const text = form.elements[name].value.trim();
  const value = Number(text.replace(",", ".").replace(/\s*%$/, ""));
  if (!Number.isFinite(value)) throw new Error(`${name}: "${text}" is not a number. Type one such as 0.3 or 30 %.`);
  return text.endsWith("%") ? value / 100 : value;
}

function readRequest() {
  const { fleet, onto, mix } = form.elements;
  if (!fleet.value.trim()) throw new Error("fleet: empty. Paste a table with a header, such as count, processor, chips.");
  const body = { fleet: fleet.value, onto: readLines(onto.value), ...readSuite(form.elements) };
  if (!body.onto.length) throw new Error("onto: empty. Write one machine a line, such as 2 x EPYC 9755.");
  if (mix.value.trim()) body.mix = mix.value.trim();
  for (const name of NUMBERS) if (form.elements[name].value.trim()) body[name] = readNumber(name);
  return body;
}

function thousands(value) {
  return show(value === null ? null : value / 1000);
}

// Return the targets as a table, without the columns that are empty in every row.
function createTargets({ targets, level, options }) {
  const totals = [...new Set(targets.flatMap((target) => Object.keys(target.totals)))];
  const interval = `${share(level)} interval`;
  const header = ["onto", `needed (${share(options.sure)})`, "limited by", interval, "for each new one", interval, ...totals, "watts", "watts from", "load", "MWh a year", interval, "t CO2 a year", "cost a year", "scores", "trust"];
  const rows = targets.map((each) => [
    each.name,
    show(each.needed),
    Object.keys(each.needs).length > 1 ? each.limiting : "",
    showInterval(each.low, each.high),
    show(each.ratio),
    showInterval(each.ratio_low, each.ratio_high),
    ...totals.map((name) => show(each.totals[name] ?? null)),
    show(each.watts),
    each.watts_basis ?? "",
    each.watts === null ? "" : formatPercent(each.load),
    thousands(each.energy),
    each.energy === null ? "" : showInterval(each.energy_low / 1000, each.energy_high / 1000),
    thousands(each.carbon),
    show(each.cost),
    each.measured,
    each.trust,
  ]);
  const filled = header.map((_, column) => rows.some((row) => row[column]));
  const keep = (cells) => cells.filter((_, column) => filled[column]);
  return createTable("Machines that replace the fleet", keep(header), rows.map(keep));
}

// Return the picture of a target, and what stands below its line in the text of the command.
function createTarget(target, sure, width) {
  const { counts, needed } = target;
  const near = [counts.findLast(({ count }) => count < needed), ...counts.filter(({ count }) => count === needed), counts.find(({ count }) => count > needed)].filter(Boolean);
  const chances = `${near.map((each) => `${show(each.count)} with ${formatPercent(each.suffices)}`).join(", ")} ${needed === 1 ? "suffices" : "suffice"}`;
  const speedups = Object.entries(target.speedups).map(([task, value]) => `${task} ${value.toFixed(2)}`);
  const dimensions = Object.entries(target.needs).map(([name, value]) => `${name} ${show(value)}`);
  const limits = dimensions.length > 1 ? [`${target.limiting} runs out first; machines needed for ${dimensions.join(", ")}`] : [];
  const known = target.narrowed_by.map((each) => `its number if the scores of ${each.machine} were known: ${each.low} to ${each.high}, ${Math.round(100 * each.width)} % of the width`);
  return createElement(
    "div",
    {},
    drawSteps(counts, width, `${target.name}: ${needed} needed, interval ${target.low} to ${target.high}; ${chances}`, { needed, sure }),
    createElement("p", {}, `${chances}; scores over the fleet's: ${speedups.join(", ")}`),
    createElement("ul", {}, ...[...limits, ...known, ...target.notes].map((line) => createElement("li", {}, line))),
  );
}

// Return the refused rows and targets; the name of a target is its line in the form.
function createRefused(refused) {
  const lines = refused.slice(0, MAX_REFUSED).map((each) => `${each.name}: refused, ${each.message}`.replaceAll(/\bmachine (\d+)\b/g, "target $1"));
  if (refused.length > MAX_REFUSED) lines.push(`and ${refused.length - MAX_REFUSED} more, see the CSV`);
  return lines.map((line) => createElement("p", { class: "problem note" }, line));
}

function showSizing(answer) {
  const { targets, options } = answer;
  const mix = Object.entries(answer.mix).map(([task, value]) => `${task} ${share(value)}`);
  const machines = `${answer.machines.toLocaleString("en")} ${answer.machines === 1 ? "machine" : "machines"}`;
  const today = answer.energy === null ? "" : `; today ${thousands(answer.energy)} MWh a year, ${showInterval(answer.energy_low / 1000, answer.energy_high / 1000)}`;
  const steps = targets.flatMap((target) => target.counts.map((each) => [target.name, show(each.count), formatPercent(each.suffices)]));
  const shares = answer.drivers.map((each) => [each.machine, show(each.count), formatPercent(each.share), each.measured]);
  output.replaceChildren(
    createElement("p", {}, `Fleet: ${machines}${today}; mix of its time: ${mix.join(", ")}. All numbers are ${answer.kind}.`),
    createTargets(answer),
    ...createRefused(answer.refused),
    createElement("h3", {}, "Probability that a number suffices"),
    createFigures(targets.map((target) => target.name), output.clientWidth, (_, width, place) => createTarget(targets[place], options.sure, width)),
    createElement("details", {}, createElement("summary", {}, "As a table"), createTable("Probability that a number suffices", ["onto", "machines", "suffice"], steps)),
    createTable("The need: machines of the fleet with the largest shares", ["machine", "count", "share", "scores"], shares),
    ...answer.notes.map((note) => createElement("p", { class: "quiet" }, `Note: ${note}.`)),
  );
}

async function size() {
  const [problem, busy] = ["size-problem", "busy-sizing"].map(getElement);
  problem.hidden = true;
  busy.textContent = "Sizing …";
  try {
    state.body = readRequest();
    showSizing(await post("/size", state.body));
    getElement("sizing-tools").hidden = false;
    updateLink();
  } catch (error) {
    output.replaceChildren();
    getElement("sizing-tools").hidden = true;
    problem.textContent = error.message;
    problem.hidden = false;
  } finally {
    busy.textContent = "";
  }
}

// The link holds the request behind #, which browsers do not send: a fleet is long, and none of the server's log.
function updateLink() {
  const filled = [...form.elements].filter((input) => input.name && input.value.trim());
  history.replaceState(null, "", `${location.pathname}${location.search}#${new URLSearchParams(filled.map((input) => [input.name, input.value]))}`);
}

// Fill the form from the link, and repeat its request.
export async function restoreFleet() {
  const link = new URLSearchParams(location.hash.slice(1));
  if (!link.has("fleet")) return;
  for (const input of form.elements) if (input.name && link.has(input.name)) input.value = link.get(input.name);
  getElement("sizer").open = true;
  await size();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  size();
});
addEventListener("hashchange", restoreFleet);
getElement("size-csv").addEventListener("click", async () => saveText("size.csv", await post("/size", state.body, "text/csv")));
getElement("size-curl").addEventListener("click", async () => {
  getElement("busy-sizing").textContent = await copyText(formatCurl(`${location.origin}/size`, state.body), "Command");
});
getElement("size-link").addEventListener("click", async () => {
  updateLink();
  getElement("busy-sizing").textContent = await copyText(location.href, "Link");
});
