// The page: a form, its link, and what the server answers. Everything comes from this page's own server.

import { number } from "./draw.js";
import { basisOf, curvesOf, forecastOf, made } from "./tell.js";

const FIRST = { processor: "AMD EPYC 9654", chips: "2", cores: "96", memory: "24 x 64 GB DDR5-4800", os: "SLES 15 SP4", compiler: "AOCC 4.0", storage: "1 x 960 GB NVMe SSD" };
const ASKED = ["level", "when", "neighbours"];
const VARIED = ["vary", "from", "to", "step"];
const MOST_STEPS = 40;
const at = (id) => document.getElementById(id);
const form = at("machine");
const range = at("range");
const state = { words: { fields: [], columns: [] }, health: null, answer: null, curves: null };

async function ask(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch {
    throw new Error("the server must answer, however: it cannot be reached; is `perfcast serve` still running?");
  }
  const told = await response.json();
  if (!response.ok) throw new Error(told.error);
  return told;
}

const post = (address, value) => ask(address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) });

function problem(id, text) {
  at(id).textContent = text;
  at(id).hidden = !text;
}

// The form

function field(name) {
  const meant = state.words.fields.find((one) => one.name === name) ?? state.words.columns.find((one) => one.name === name);
  const input = made("input", { name: `m.${name}`, placeholder: FIRST[name] ?? meant?.unit ?? "", title: meant ? meant.meaning : name });
  if (name === "processor") input.setAttribute("list", "parts");
  if (name === "chips" || name === "cores") input.setAttribute("inputmode", "numeric");
  const label = name === "cores" ? "Cores of each processor" : name === "os" ? "Operating system" : name === "chips" ? "Chips (processors)" : name[0].toUpperCase() + name.slice(1);
  return made("label", { class: name === "processor" ? "wide" : "" }, `${label} `, input);
}

function further(word = "", value = "") {
  const name = made("input", { class: "word", list: "words", placeholder: "tdp" });
  const cell = made("input", { class: "cell", placeholder: "400 W" });
  const drop = made("button", { type: "button", "aria-label": "Remove this characteristic" }, "×");
  const row = made("fieldset", { class: "pair" }, made("label", {}, "Characteristic ", name), made("label", {}, "Value ", cell), drop);
  drop.addEventListener("click", () => row.remove());
  name.addEventListener("change", () => {
    const meant = [...state.words.fields, ...state.words.columns].find((one) => one.name === name.value.trim());
    cell.placeholder = meant ? (meant.example ?? meant.unit) || meant.meaning : "";
  });
  name.value = word;
  cell.value = value;
  at("further").append(row);
  return name;
}

// What was said, in the order of the page; an empty field says nothing.
function said() {
  const pairs = [...form.querySelectorAll("#fields input")].map((input) => [input.name.slice(2), input.value.trim()]);
  for (const row of form.querySelectorAll(".pair")) {
    const word = row.querySelector(".word").value.trim();
    const value = row.querySelector(".cell").value.trim();
    if (word || value) pairs.push([word, value]);
  }
  const found = {};
  for (const [word, value] of pairs) {
    if (!value) continue;
    if (!word) throw new Error(`a characteristic must have a name, however: the value ${value} has none; choose one of the list`);
    if (word in found) throw new Error(`a machine must say a thing once, however: ${word} is there twice; remove one`);
    found[word] = value;
  }
  return found;
}

function query(extra = {}) {
  const asked = new URLSearchParams();
  for (const name of ASKED) {
    const value = form.elements[name].value.trim();
    if (value) asked.set(name, value);
  }
  for (const [name, value] of Object.entries(extra)) asked.set(name, value);
  return asked;
}

// The link

function remember() {
  const link = new URLSearchParams();
  for (const [word, value] of Object.entries(said())) link.set(`m.${word}`, value);
  for (const [name, value] of query()) if (form.elements[name].value !== form.elements[name].dataset.first) link.set(name, value);
  if (state.curves) for (const name of VARIED) link.set(name, range.elements[name].value.trim());
  history.replaceState(null, "", link.size ? `?${link}` : location.pathname);
}

function restore() {
  const link = new URLSearchParams(location.search);
  let asked = false;
  for (const [name, value] of link) {
    // a link that was typed may leave the m. out
    const own = [...form.querySelectorAll("#fields input")].find((input) => [name, `m.${name}`].includes(input.name));
    asked ||= Boolean(own) || name.startsWith("m.");
    if (own) own.value = value;
    else if (name.startsWith("m.")) further(name.slice(2), value);
    else if (ASKED.includes(name)) form.elements[name].value = value;
    else if (VARIED.includes(name)) range.elements[name].value = value;
    if (!own && !VARIED.includes(name)) at("more").open = true;
  }
  return { asked, varied: link.has("vary") };
}

// Forecasts

async function forecast() {
  problem("problem", "");
  at("busy").textContent = "Forecasting …";
  try {
    const machine = said();
    if (!Object.keys(machine).length) throw new Error("a machine must be described, however: nothing was said; start with its processor");
    state.answer = await post(`/forecast?${query({ explain: "true" })}`, machine);
    state.curves = null;
    remember();
    show();
    return true;
  } catch (error) {
    at("answer").hidden = true;
    problem("problem", error.message);
    return false;
  } finally {
    at("busy").textContent = "";
  }
}

function show() {
  const section = at("answer");
  section.hidden = false;
  const machine = state.answer.machines[0];
  at("forecast").replaceChildren(...forecastOf(machine, section.clientWidth));
  at("basis").replaceChildren(...basisOf(machine, state.health.origins));
  if (!state.curves) at("curves").replaceChildren();
  else {
    const wide = at("curves").clientWidth;
    const width = wide >= 730 ? Math.floor((wide - 26) / 2) : wide;
    at("curves").replaceChildren(...curvesOf(state.curves.answer, state.curves.values, state.curves.along, width));
  }
  suggest();
}

const numeric = () => [...state.words.fields, ...state.words.columns].filter((one) => one.number);

// Propose a range around what the machine has, where none was typed.
function suggest() {
  const { vary, from, to, step } = range.elements;
  if (from.value || to.value || step.value) return;
  const meant = numeric().find((one) => one.name === vary.value);
  const known = meant && state.answer.machines[0].values.find((value) => value.column === (meant.columns ? meant.columns[0] : meant.name));
  if (!known || !(known.value > 0)) return;
  const whole = Number.isInteger(known.value);
  const size = whole ? Math.max(1, Math.round(known.value / 8)) : known.value / 8;
  step.value = number(size);
  from.value = number(Math.max(Number(step.value), known.value - 4 * Number(step.value)));
  to.value = number(Number(from.value) + 8 * Number(step.value));
}

function values() {
  const [from, to, step] = ["from", "to", "step"].map((name) => {
    const text = range.elements[name].value.trim();
    if (!text || !Number.isFinite(Number(text))) throw new Error(`${name} must be a number, however: it is ${text ? `"${text}"` : "empty"}`);
    return Number(text);
  });
  if (step <= 0) throw new Error(`step must be more than 0, however: it is ${step}`);
  if (to < from) throw new Error(`from must be at most to, however: ${from} is more than ${to}`);
  const count = Math.floor((to - from) / step + 1e-9) + 1;
  if (count > MOST_STEPS) throw new Error(`at most ${MOST_STEPS} steps are shown, however: these are ${count}; take larger ones`);
  return Array.from({ length: count }, (_, place) => Number((from + place * step).toPrecision(12)));
}

async function varied() {
  problem("vary-problem", "");
  at("varying").textContent = "Forecasting …";
  try {
    const word = range.elements.vary.value;
    const meant = numeric().find((one) => one.name === word);
    const machine = said();
    const same = new Set([word, ...(meant.columns ?? []), ...(meant.aliases ?? [])]);
    // another word for the very same column would contradict every value
    for (const other of Object.keys(machine)) {
      const field = state.words.fields.find((one) => one.name === other || one.aliases.includes(other));
      if (same.has(other) || (field && field.columns.length === 1 && same.has(field.columns[0]))) delete machine[other];
    }
    const along = values();
    const answer = await post(`/forecast?${query({ explain: "false", neighbours: "0", partial: "true" })}`, { machines: along.map((value) => ({ ...machine, [word]: value })) });
    if (!answer.machines.length) throw new Error(answer.errors[0].error);
    state.curves = { answer, values: along, along: `${word}${meant.unit ? ` (${meant.unit})` : ""}` };
    remember();
    show();
  } catch (error) {
    state.curves = null;
    at("curves").replaceChildren();
    problem("vary-problem", error.message);
  } finally {
    at("varying").textContent = "";
  }
}

// Names while they are typed

let typed = 0;
async function offer(text) {
  const own = (typed += 1);
  const told = await ask(`/parts?q=${encodeURIComponent(text)}`);
  if (own === typed) at("parts").replaceChildren(...told.parts.map((name) => made("option", { value: name })));
}

function wire() {
  let later = 0;
  form.elements["m.processor"]?.addEventListener("input", (event) => {
    clearTimeout(later);
    later = setTimeout(() => offer(event.target.value).catch(() => {}), 120);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await forecast()) at("answer").scrollIntoView({ block: "start" });
  });
  range.addEventListener("submit", (event) => {
    event.preventDefault();
    varied();
  });
  range.elements.vary.addEventListener("change", () => {
    for (const name of ["from", "to", "step"]) range.elements[name].value = "";
    suggest();
  });
  at("add").addEventListener("click", () => further().focus());
  at("clear").addEventListener("click", () => location.assign(location.pathname));
  at("copy").addEventListener("click", async () => {
    try {
      remember();
      await navigator.clipboard.writeText(location.href);
      at("busy").textContent = "The link is copied.";
    } catch {
      at("busy").textContent = "The link is in the address bar.";
    }
  });
  let wide = innerWidth;
  addEventListener("resize", () => {
    if (state.answer && !at("answer").hidden && innerWidth !== wide) show();
    wide = innerWidth;
  });
}

async function begin() {
  try {
    [state.health, state.words] = await Promise.all([ask("/health"), ask("/vocabulary")]);
  } catch (error) {
    problem("problem", error.message);
    return;
  }
  const known = Object.keys(FIRST).filter((name) => state.words.fields.some((one) => one.name === name) || name === "chips");
  at("fields").append(...(known.includes("processor") ? known : state.words.columns.slice(0, 8).map((one) => one.name)).map(field));
  const all = [...state.words.fields, ...state.words.columns.filter((one) => !state.words.fields.some((other) => other.name === one.name))];
  at("words").append(...all.map((one) => made("option", { value: one.name }, one.meaning)));
  range.elements.vary.append(...all.filter((one) => one.number).map((one) => made("option", { value: one.name }, `${one.name}: ${one.meaning}`)));
  if (all.some((one) => one.name === "memory.channels")) range.elements.vary.value = "memory.channels";
  for (const name of ASKED) form.elements[name].dataset.first = form.elements[name].value;
  at("who").textContent = `Answers come from ${state.health.champion}, the best predictor of ${state.health.dataset} here (${state.health.schedule} schedule); perfcast ${state.health.version}.`;
  wire();
  offer("").catch(() => {});
  const { asked, varied: curves } = restore();
  if (asked && (await forecast()) && curves) await varied();
  document.body.dataset.ready = "yes";
}

begin();
