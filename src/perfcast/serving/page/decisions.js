// Comparison, ranking and nearest machines of a list, one machine a line.

import { copyText, formatCurl, post, saveCsv } from "./answer_tools.js";
import { drawRows, formatNumber } from "./charts.js";
import { countResults, createElement, createFigures, createLegend, createTable, formatInterval } from "./prediction_view.js";

export const BOTH = "both";
const form = document.getElementById("choose");
const output = document.getElementById("decision");
const state = { address: "", body: null, table: null, prices: [] };
let namedField = "processor";

// Set the field of a name, which may have a number before it.
export function setNamedField(name) {
  namedField = name;
}

// Return the chosen suites as a field of a request, nothing where the server has one dataset.
export const readSuite = ({ suite }) => (suite.options.length > 1 ? { suite: suite.value } : {});

// Return the machine of a line such as `2 x EPYC 9654; price=18000`.
export function readLine(line) {
  const [name, ...fields] = line.split(";").map((piece) => piece.trim());
  const machine = {};
  if (name.includes("=")) fields.unshift(name);
  else machine[namedField] = name;
  for (const field of fields.filter(Boolean)) {
    const at = field.indexOf("=");
    if (at < 1) throw new Error(`${field}: not name=value. Write for example price=18000.`);
    machine[field.slice(0, at).trim()] = field.slice(at + 1).trim();
  }
  return machine;
}

export const readLines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean).map(readLine);

// Return own measurements: lines such as `CINT2017rate = 1650`, or machines with task and score.
export function readMeasured(text) {
  return text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
    const match = /^([^=;]+?)\s*=\s*([\d.]+)$/.exec(line);
    return match ? { task: match[1], score: match[2] } : readLine(line);
  });
}

export const formatPercent = (share) => (share === null ? "" : share > 0 && share < 0.01 ? "< 1 %" : share > 0.99 && share < 1 ? "> 99 %" : `${Math.round(100 * share)} %`);
const letter = (place) => String.fromCharCode(65 + place);

function readRequest(action) {
  const machines = readLines(form.elements.machines.value);
  if (!machines.length) throw new Error("machines: empty. Write one machine a line, such as 2 x EPYC 9654.");
  const body = { machines, ...readSuite(form.elements) };
  state.prices = machines.map((machine) => machine.price ?? "");
  const measured = readMeasured(form.elements.measured.value);
  if (measured.length && action !== "similar") body.measured = measured;
  if (action === "rank") {
    body.by = form.elements.by.value.trim() || "score";
    body.targets = form.elements.targets.value.split("\n").map((line) => line.trim()).filter(Boolean);
    for (const name of ["electricity_price", "years"]) {
      const text = form.elements[name].value.trim();
      if (text && !Number.isFinite(Number(text))) throw new Error(`${name}: "${text}" is not a number. Type a number.`);
      if (text) body[name] = Number(text);
    }
  } else {
    // price, watts, racks and name are of the ranking alone
    body.machines = machines.map((machine) => Object.fromEntries(Object.entries(machine).filter(([name]) => !["price", "watts", "racks", "name"].includes(name))));
  }
  if (action === "similar") body.count = 3;
  return body;
}

function showComparison(answer) {
  const machines = answer.machines;
  const tasks = [...new Set(machines.flatMap((machine) => machine.estimates.map((each) => each.task)))];
  const scores = tasks.map((task) => [
    task,
    ...machines.map((machine) => {
      const each = machine.estimates.find((estimate) => estimate.task === task);
      return each ? `${formatNumber(each.median)} (${formatInterval(each)})${each.published?.median ? `; published ${formatNumber(each.published.median)}, ${countResults(each.published.count)}` : ""}` : "";
    }),
  ]);
  const prices = machines.map((machine) => state.prices[machine.line - 1]);
  if (prices.some(Boolean)) scores.push(["price", ...prices]);
  const figures = createFigures(tasks, output.clientWidth, (task, width) => {
    const rows = machines.map((machine, place) => ({ name: letter(place), estimate: machine.estimates.find((each) => each.task === task) })).filter((row) => row.estimate);
    return drawRows(rows, width, `${task}: ${rows.map(({ name, estimate }) => `${name} ${formatNumber(estimate.median)}`).join(", ")}`);
  });
  const names = machines.map((machine, place) => `${letter(place)}: ${machine.machine}`);
  const header = ["suite", ...names];
  const groups = [...new Set(answer.pairs.flatMap((pair) => pair.drivers.map((driver) => driver.group)))].sort();
  const pairHeader = ["pair", "suite", "ratio", "interval", "first is higher", ...groups];
  const pairs = answer.pairs.map((pair) => [
    `${pair.first} / ${pair.second}`,
    pair.task,
    pair.ratio.toFixed(3),
    pair.low === null ? "" : `${pair.low.toFixed(2)} to ${pair.high.toFixed(2)}`,
    formatPercent(pair.probability),
    ...groups.map((group) => `× ${(pair.drivers.find((driver) => driver.group === group)?.factor ?? 1).toFixed(2)}`),
  ]);
  state.table = { name: "comparison.csv", header: pairHeader, rows: pairs };
  const pairTable = createTable("Pairs: ratio of scores, probability that the first is higher, and drivers of the difference", pairHeader, pairs);
  const legend = createLegend(answer.level, { marks: machines.some((machine) => machine.estimates.some((each) => each.published)) && "published median" });
  return [createElement("p", {}, names.join("; ")), legend, figures, createTable("Scores with intervals; not official results", header, scores), createElement("details", {}, createElement("summary", {}, `All ${pairs.length} pairs`), pairTable)];
}

function showRanking(answer) {
  const money = (value) => (value === null ? "" : formatNumber(value));
  // the column that it ranks by, where no other shows it
  const isShown = ["score", "cost", "price", "watts", "watt"].includes(answer.by) || (answer.by === "probability" && answer.targets.length === 1);
  const ranked = isShown ? [] : [answer.by, "its interval"];
  const header = ["rank", "machine", "score", "interval", ...ranked, ...answer.targets, "watts", answer.price_head, "cost", "per score-year"];
  const rows = answer.candidates.map((each) => [
    String(each.rank),
    each.name,
    formatNumber(each.score),
    each.score_low === null ? "" : `${formatNumber(each.score_low)} to ${formatNumber(each.score_high)}`,
    ...(isShown ? [] : [formatNumber(each.value), each.value_low === null ? "" : `${formatNumber(each.value_low)} to ${formatNumber(each.value_high)}`]),
    ...each.probabilities.map(formatPercent),
    money(each.watts),
    money(each.price),
    money(each.cost),
    money(each.cost_per_score_year),
  ]);
  state.table = { name: "ranking.csv", header, rows: [...rows] };
  const missed = answer.candidates.findIndex((each) => each.sure === false);
  if (missed >= 0) rows.splice(missed, 0, ["", `does not reach the target (below ${formatPercent(answer.sure)})`, ...header.slice(2).map(() => "")]);
  const refused = answer.refused.map((each) => createElement("p", { class: "problem note" }, `${each.name}: ${each.message}`));
  return [createTable(`Ranking by ${answer.by}`, header, rows), ...refused];
}

function showSimilar(answer) {
  const header = ["described", "suite", "measured machine", "score", "published", "distance", "differs in"];
  const rows = answer.machines.flatMap((machine) =>
    machine.similar.map((each) => [machine.machine, each.task, each.measured.machine, formatNumber(each.measured.score), each.measured.published, each.measured.distance.toFixed(3), each.differences.map((one) => one.label).join(", ")]),
  );
  state.table = { name: "similar.csv", header, rows };
  return [createTable("Nearest measured results; a distance of 0.05 adds about 5 % of error", header, rows)];
}

const VIEWS = { compare: showComparison, rank: showRanking, similar: showSimilar };

async function decide(action) {
  const problem = document.getElementById("choose-problem");
  const busy = document.getElementById("choosing");
  problem.hidden = true;
  busy.textContent = "Predicting …";
  try {
    state.address = `${location.origin}/${action}`;
    state.body = readRequest(action);
    const answer = await post(`/${action}`, state.body);
    const views = VIEWS[action](answer);
    const notes = (answer.notes ?? []).map((note) => createElement("p", { class: "quiet" }, `Note: ${note}.`));
    output.replaceChildren(...views, ...notes);
    document.getElementById("decision-tools").hidden = false;
    updateLink(action);
  } catch (error) {
    output.replaceChildren();
    document.getElementById("decision-tools").hidden = true;
    problem.textContent = error.message;
    problem.hidden = false;
  } finally {
    busy.textContent = "";
  }
}

function updateLink(action) {
  const link = new URLSearchParams(location.search);
  link.set("decide", action);
  for (const input of form.elements) if (input.name) (input.value.trim() && input.value !== BOTH ? link.set(`d.${input.name}`, input.value.trim()) : link.delete(`d.${input.name}`));
  history.replaceState(null, "", `?${link}${location.hash}`);
}

// Fill the form from the link, and repeat its decision.
export async function restoreDecision() {
  const link = new URLSearchParams(location.search);
  for (const input of form.elements) if (input.name && link.has(`d.${input.name}`)) input.value = link.get(`d.${input.name}`);
  const action = link.get("decide");
  if (!(action in VIEWS)) return;
  document.getElementById("chooser").open = true;
  await decide(action);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  decide(event.submitter?.value ?? "compare");
});
document.getElementById("decision-csv").addEventListener("click", () => saveCsv(state.table.name, state.table.header, state.table.rows));
document.getElementById("decision-curl").addEventListener("click", async () => {
  document.getElementById("choosing").textContent = await copyText(formatCurl(state.address, state.body), "Command");
});
document.getElementById("decision-link").addEventListener("click", async () => {
  document.getElementById("choosing").textContent = await copyText(location.href, "Link");
});
