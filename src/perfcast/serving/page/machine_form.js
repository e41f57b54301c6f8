// Form, shareable link and predictions of the page. All content comes from the server of the page.

import { copyText, fetchAnswer, formatCurl, listEstimates, post, saveCsv } from "./answer_tools.js";
import { formatNumber } from "./charts.js";
import { BOTH, readMeasured, readSuite, restoreDecision, setNamedField } from "./decisions.js";
import { restoreFleet } from "./fleet.js";
import { createBasis, createCurves, createElement, createPrediction, describeBasis, setEstimateLabel } from "./prediction_view.js";

const EXAMPLES = { processor: "AMD EPYC 9654", chips: "2", cores: "96", memory: "24 x 64 GB DDR5-4800", os: "SLES 15 SP4", compiler: "AOCC 4.0", storage: "1 x 960 GB NVMe SSD" };
const LABELS = { cores: "Cores of each processor", chips: "Chips (processors)", gpu: "GPU" };
const OPTIONS = ["level", "when", "neighbors", "suite"];
const MEASURED = "measured";
const RANGE = ["vary", "from", "to", "step"];
const MAX_STEPS = 40;
const MAX_VARIED = 10;
const getElement = (id) => document.getElementById(id);
const form = getElement("machine");
const range = getElement("range");
const state = { known: { fields: [], columns: [] }, health: null, answer: null, curves: null };

function showProblem(id, text) {
  getElement(id).textContent = text;
  getElement(id).hidden = !text;
}

// Form

// Return the field whose names the server completes.
const namedField = () => state.health.named_field;

const findEntry = (name) => [...state.known.fields, ...state.known.columns].find((entry) => entry.name === name);

// Return the label and the meaning of a field or a column.
const describeName = (name) => findEntry(name) ?? { label: name.replaceAll("_", " "), meaning: name };

const capitalize = (text) => text[0].toUpperCase() + text.slice(1);

function createField(name) {
  const match = findEntry(name);
  const input = createElement("input", { name: `m.${name}`, placeholder: EXAMPLES[name] ?? match?.example ?? match?.unit ?? "", title: match ? match.meaning : name });
  if (name === namedField()) input.setAttribute("list", "cpu-models");
  if (name === "chips" || name === "cores") input.setAttribute("inputmode", "numeric");
  const label = LABELS[name] ?? capitalize(describeName(name).label.replaceAll("-", " "));
  return createElement("label", { class: name === namedField() ? "wide" : "" }, `${label} `, input);
}

// Put the texts of the dataset in place of those about servers.
function showTexts(texts) {
  if (texts.question) {
    document.title = `perfcast: ${texts.question}`;
    document.querySelector("h1").textContent = texts.question;
  }
  if (texts.marks) getElement("marks").textContent = texts.marks;
  if (texts.estimate) setEstimateLabel(texts.estimate);
  if (texts.measured) form.elements.measured.placeholder = texts.measured;
  for (const name of ["machines", "targets"]) if (texts[name]) getElement("choose").elements[name].placeholder = texts[name];
  if (texts.machines) for (const name of ["fleet", "onto", "mix"]) getElement("size").elements[name].placeholder = "";
  if (texts.measured_machines) getElement("choose").elements.measured.placeholder = texts.measured_machines;
}

function addCharacteristic(field = "", value = "") {
  const name = createElement("input", { class: "field", list: "field-names", placeholder: "tdp" });
  const cell = createElement("input", { class: "cell", placeholder: "400 W" });
  const drop = createElement("button", { type: "button", "aria-label": "Remove this characteristic" }, "×");
  const row = createElement("fieldset", { class: "pair" }, createElement("label", {}, "Characteristic ", name), createElement("label", {}, "Value ", cell), drop);
  drop.addEventListener("click", () => row.remove());
  name.addEventListener("change", () => {
    const match = findEntry(readName(name));
    cell.placeholder = match ? (match.example ?? match.unit) || match.meaning : "";
  });
  name.value = field;
  cell.value = value;
  getElement("further").append(row);
  return name;
}

// Return the name of a typed name or label.
function readName(input) {
  const text = input.value.trim();
  const isNamed = (entry) => entry.label.toLowerCase() === text.toLowerCase();
  return findEntry(text) ? text : (state.known.fields.find(isNamed) ?? state.known.columns.find(isNamed))?.name ?? text;
}

// Return the filled fields in the order of the page.
function readMachine() {
  const pairs = [...form.querySelectorAll("#fields input")].map((input) => [input.name.slice(2), input.value.trim()]);
  for (const row of form.querySelectorAll(".pair")) {
    const name = readName(row.querySelector(".field"));
    const value = row.querySelector(".cell").value.trim();
    if (name || value) pairs.push([name, value]);
  }
  const machine = {};
  for (const [name, value] of pairs) {
    if (!value) continue;
    if (!name) throw new Error(`Characteristic: the value ${value} has no name. Choose a name from the list.`);
    if (name in machine) throw new Error(`${name}: given twice. Remove one.`);
    machine[name] = value;
  }
  return machine;
}

function buildQuery(extra = {}) {
  const query = new URLSearchParams();
  for (const name of OPTIONS) {
    const value = form.elements[name].value.trim();
    if (value && value !== BOTH) query.set(name, value);
  }
  for (const [name, value] of Object.entries(extra)) query.set(name, value);
  return query;
}

// Link

function updateLink() {
  const link = new URLSearchParams();
  for (const [name, value] of Object.entries(readMachine())) link.set(`m.${name}`, value);
  for (const [name, value] of buildQuery()) if (form.elements[name].value !== form.elements[name].dataset.initial) link.set(name, value);
  if (form.elements.measured.value.trim()) link.set("measured", form.elements.measured.value.trim());
  for (const [name, value] of new URLSearchParams(location.search)) if (name === "decide" || name.startsWith("d.")) link.set(name, value);
  if (state.curves) for (const name of RANGE) link.set(name, range.elements[name].value.trim());
  history.replaceState(null, "", (link.size ? `?${link}` : location.pathname) + location.hash);
}

function restoreLink() {
  const link = new URLSearchParams(location.search);
  let described = false;
  for (const [name, value] of link) {
    // a typed link can omit the prefix m.
    const input = [...form.querySelectorAll("#fields input")].find((candidate) => [name, `m.${name}`].includes(candidate.name));
    described ||= Boolean(input) || name.startsWith("m.");
    if (input) input.value = value;
    else if (name.startsWith("m.")) addCharacteristic(name.slice(2), value);
    else if (OPTIONS.includes(name) || name === MEASURED) form.elements[name].value = value;
    else if (RANGE.includes(name)) {
      if (name === "vary" && listNumericFields().some((entry) => entry.name === value)) addVaried(value);
      range.elements[name].value = value;
    }
    if (!input && !RANGE.includes(name) && name !== "decide" && !name.startsWith("d.")) getElement("more").open = true;
  }
  return { described, varied: link.has("vary") };
}

// Predictions

// Return the address and the body of a prediction, corrected by own measurements where there are some.
function buildRequest(machine) {
  const shared = readShared();
  if (!shared.measured) return { address: `/predict?${buildQuery({ explain: "true" })}`, body: machine };
  return { address: "/predict-measured", body: { machines: [machine], ...shared } };
}

// Return level, month and own measurements as fields of a request.
function readShared() {
  const { level, when } = Object.fromEntries(buildQuery());
  const measured = readMeasured(form.elements.measured.value);
  return { level: Number(level), ...(when ? { when } : {}), ...readSuite(form.elements), ...(measured.length ? { measured } : {}) };
}

async function predict() {
  showProblem("problem", "");
  getElement("busy").textContent = "Predicting …";
  try {
    const machine = readMachine();
    if (!Object.keys(machine).length) throw new Error(`Describe the machine first, for example its ${namedField()}.`);
    state.request = buildRequest(machine);
    state.answer = await post(state.request.address, state.request.body);
    state.curves = null;
    updateLink();
    showAnswer();
    return true;
  } catch (error) {
    getElement("answer").hidden = true;
    showProblem("problem", error.message);
    return false;
  } finally {
    getElement("busy").textContent = "";
  }
}

function showAnswer() {
  const section = getElement("answer");
  section.hidden = false;
  getElement("csv").hidden = false;
  const machine = state.answer.machines[0];
  getElement("prediction").replaceChildren(...state.answer.machines.flatMap((each) => createPrediction(each, section.clientWidth, state.health.suites, describeName)));
  getElement("basis").replaceChildren(...createBasis(machine, state.health, describeName));
  if (!state.curves) getElement("curves").replaceChildren();
  else getElement("curves").replaceChildren(...createCurves(state.curves.answer, state.curves.values, state.curves.label, getElement("curves").clientWidth));
  suggestRange();
}

const listNumericFields = () => [...state.known.fields, ...state.known.columns].filter((entry) => entry.number);

// Return the names to vary first: those of fields, then of columns that no field stands for and that are more than flags.
function listVaried() {
  const [fields, columns] = [state.known.fields, state.known.columns].map((entries) => entries.filter((entry) => entry.number));
  const own = new Set(fields.flatMap((entry) => [entry.name, ...entry.columns]));
  return [...fields, ...columns.filter((entry) => !own.has(entry.name) && !(entry.low === 0 && entry.high === 1))].slice(0, MAX_VARIED).map((entry) => entry.name);
}

function addVaried(name) {
  const { vary } = range.elements;
  if ([...vary.options].some((option) => option.value === name)) return;
  const words = listNumericFields().find((entry) => entry.name === name).meaning || name;
  vary.append(createElement("option", { value: name }, capitalize(words)));
}

// Suggest a range around the value of the machine, unless a range was typed.
function suggestRange() {
  const { vary, from, to, step } = range.elements;
  if (from.value || to.value || step.value) return;
  const match = listNumericFields().find((entry) => entry.name === vary.value);
  if (!match) return;
  const values = Object.fromEntries(state.answer.machines[0].values.map((value) => [value.column, value.value]));
  const column = match.columns ? match.columns[0] : match.name;
  // the CPU model bounds its sockets, cores and channels
  const most = values[match.capacity];
  const own = values[column] ?? most;
  if (!(own > 0)) return;
  const top = most > 0 ? most : own;
  const size = Number(formatNumber(Number.isInteger(top) ? Math.max(1, Math.ceil(top / 8)) : top / 8));
  const steps = most > 0 ? Math.floor((top - 1e-9) / size) : 4;
  const low = state.known.columns.find((entry) => entry.name === column)?.low ?? 0;
  step.value = String(size);
  from.value = formatNumber(Math.max(low || size, top - Math.min(steps, 7) * size));
  to.value = formatNumber(most > 0 ? top : Number(from.value) + 8 * size);
}

function readRange() {
  const [from, to, step] = ["from", "to", "step"].map((name) => {
    const text = range.elements[name].value.trim();
    if (!text || !Number.isFinite(Number(text))) throw new Error(`${name}: ${text ? `"${text}" is not a number` : "empty"}. Type a number.`);
    return Number(text);
  });
  if (step <= 0) throw new Error(`step: ${step} is not above 0. Type a larger number.`);
  if (to < from) throw new Error(`from: ${from} is more than the ${to} of to. Correct one of them.`);
  const count = Math.floor((to - from) / step + 1e-9) + 1;
  if (count > MAX_STEPS) throw new Error(`step: ${count} steps are more than ${MAX_STEPS}. Type a larger step.`);
  return Array.from({ length: count }, (_, index) => Number((from + index * step).toPrecision(12)));
}

async function predictRange() {
  showProblem("vary-problem", "");
  getElement("varying").textContent = "Predicting …";
  try {
    const varied = range.elements.vary.value;
    const match = listNumericFields().find((entry) => entry.name === varied);
    const values = readRange();
    const body = { machine: readMachine(), vary: [`${varied}=${values.join("|")}`], ...readShared() };
    const grid = await post("/what-if", body);
    const describeOthers = (each) => Object.entries(each.values).filter(([name]) => name !== varied).map((pair) => pair.join(" "));
    const combinations = grid.combinations.map((each) => ({ ...each, others: describeOthers(each), line: values.findIndex((value) => String(value) === each.values[varied]) + 1 }));
    const answer = {
      machines: combinations.filter((each) => !each.violation),
      refused: combinations.filter((each) => each.violation).map((each) => ({ line: each.line, message: each.violation })),
      notes: grid.notes,
    };
    state.curves = { answer, values, label: `${match.meaning || varied}${match.unit ? ` (${match.unit})` : ""}` };
    updateLink();
    showAnswer();
  } catch (error) {
    state.curves = null;
    getElement("curves").replaceChildren();
    showProblem("vary-problem", error.message);
  } finally {
    getElement("varying").textContent = "";
  }
}

// Suggestions of CPU models

let requests = 0;
async function suggestNames(text) {
  const number = (requests += 1);
  const payload = await fetchAnswer(`/cpu-models?q=${encodeURIComponent(text)}`);
  if (number === requests) getElement("cpu-models").replaceChildren(...payload.cpu_models.map((name) => createElement("option", { value: name })));
}

function addListeners() {
  let timer = 0;
  form.elements[`m.${namedField()}`]?.addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => suggestNames(event.target.value).catch(() => {}), 120);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await predict()) getElement("answer").scrollIntoView({ block: "start" });
  });
  range.addEventListener("submit", (event) => {
    event.preventDefault();
    predictRange();
  });
  range.elements.vary.addEventListener("change", () => {
    for (const name of ["from", "to", "step"]) range.elements[name].value = "";
    suggestRange();
  });
  getElement("add").addEventListener("click", () => addCharacteristic().focus());
  getElement("clear").addEventListener("click", () => location.assign(location.pathname));
  getElement("copy").addEventListener("click", async () => {
    try {
      updateLink();
      await navigator.clipboard.writeText(location.href);
      getElement("busy").textContent = "Link copied.";
    } catch {
      getElement("busy").textContent = "Copying failed; the link is in the address bar.";
    }
  });
  getElement("curl").addEventListener("click", async () => {
    try {
      const { address, body } = buildRequest(readMachine());
      getElement("busy").textContent = await copyText(formatCurl(location.origin + address, body), "Command");
    } catch (error) {
      showProblem("problem", error.message);
    }
  });
  getElement("csv").addEventListener("click", () => {
    const { header, rows } = listEstimates(state.answer.machines);
    saveCsv("prediction.csv", header, rows);
  });
  let lastWidth = innerWidth;
  addEventListener("resize", () => {
    if (state.answer && !getElement("answer").hidden && innerWidth !== lastWidth) showAnswer();
    lastWidth = innerWidth;
  });
}

async function initialize() {
  try {
    [state.health, state.known] = await Promise.all([fetchAnswer("/health"), fetchAnswer("/fields")]);
  } catch (error) {
    showProblem("problem", error.message);
    return;
  }
  setNamedField(state.health.named_field);
  showTexts(state.health.page_texts);
  const asked = state.health.form.length ? state.health.form : state.known.columns.slice(0, 8).map((entry) => entry.name);
  getElement("fields").append(...asked.map(createField));
  const all = [...state.known.fields, ...state.known.columns.filter((entry) => !state.known.fields.some((other) => other.name === entry.name))];
  getElement("field-names").append(...all.map((entry) => createElement("option", { value: entry.name }, `${entry.label}: ${entry.meaning}`)));
  listVaried().forEach(addVaried);
  if (all.some((entry) => entry.name === "memory.channels")) range.elements.vary.value = "memory.channels";
  const { suites } = state.health;
  if (suites.length > 1) {
    for (const { suite } of [form, getElement("choose"), getElement("size")].map((each) => each.elements)) suite.append(...suites.map((each) => createElement("option", { value: each.basis.dataset }, each.title)));
    // a fleet has one suite: that of most results, as in the command
    getElement("size").elements.suite.value = suites.find((each) => !each.basis.bridged_from).basis.dataset;
    for (const label of document.querySelectorAll(".of-suites")) label.hidden = false;
  }
  for (const name of OPTIONS) form.elements[name].dataset.initial = form.elements[name].value;
  getElement("champion").textContent = `${suites.map((each) => `${each.title}: ${each.champion}, ${describeBasis(each.basis, suites)} (training preset: ${each.preset})`).join(". ")}. perfcast ${state.health.version}.`;
  addListeners();
  suggestNames("").catch(() => {});
  const { described, varied: hasCurves } = restoreLink();
  if (described && (await predict()) && hasCurves) await predictRange();
  await restoreDecision();
  await restoreFleet();
  document.body.dataset.ready = "yes";
}

initialize();
