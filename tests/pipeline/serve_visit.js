// Steps of a visitor; the texts of every step are recorded.
const texts = {};
const at = (selector) => document.querySelector(selector);
const form = at("#machine");
const record = (name, selector) => { texts[name] = [...document.querySelectorAll(selector)].map((one) => one.textContent); };
const until = async (condition) => { for (let i = 0; i < 1200 && !condition(); i += 1) await new Promise((resolve) => setTimeout(resolve, 50)); };
const idle = () => !at("#busy").textContent && !at("#varying").textContent;
const press = async (selector) => { at(selector).click(); await until(idle); };
const type = (input, text) => { input.value = text; input.dispatchEvent(new Event("input", { bubbles: true })); };

async function visit() {
  await until(() => document.body.dataset.ready);
  texts.restored = [form.elements["m.processor"].value, form.elements["m.chips"].value, at("#range").elements.from.value];
  record("at first", "#answer:not([hidden]) .suite");
  record("curves at first", "#answer:not([hidden]) #curves figcaption");
  record("decision at first", "#decision caption");
  record("titles", ".dataset, .dataset + p");
  record("ratios", ".ratio");
  record("published", ".published caption, .published tbody th");
  texts.chosen = [...document.querySelectorAll(".of-suites:not([hidden]) select")].map((one) => one.value);
  texts.wide = document.documentElement.scrollWidth - innerWidth;
  if (location.search) return;
  await press("#machine .main");
  record("empty form", "#problem:not([hidden])");
  type(form.elements["m.processor"], "gold 6");
  const suggested = () => [...document.querySelectorAll("#cpu-models option")].map((one) => one.value);
  await until(() => suggested().length && suggested().every((name) => name.includes("gold 6")));
  texts.suggested = suggested();
  type(form.elements["m.processor"], "Zeus 1");
  await press("#machine .main");
  record("unknown", "#problem:not([hidden])");
  type(form.elements["m.processor"], "Xeon Gold 6148");
  type(form.elements["m.chips"], "2");
  at("#add").click();
  const row = at(".pair");
  row.querySelector(".field").value = "tdp";
  row.querySelector(".cell").value = "150 W";
  await press("#machine .main");
  record("problem", "#problem:not([hidden])");
  record("suites", "#answer:not([hidden]) .suite");
  record("trust", ".trust");
  record("origins", ".origin h3");
  record("given", ".origin.given li");
  texts.meanings = [...document.querySelectorAll(".origin.given li")].map((one) => one.title);
  texts.drawings = [...document.querySelectorAll("#prediction .suites svg")].map((one) => [one.getAttribute("aria-label"), one.querySelectorAll("path.near").length]);
  record("tables", "#answer table caption");
  record("published", ".published caption, .published tbody th");
  record("assumed", "#prediction > p");
  record("basis", "#basis pre");
  texts.varied = [...at("#range").elements.vary.options].map((one) => one.textContent);
  texts.starts = [...document.querySelectorAll("#prediction .suites svg")].map((one) => [one.textContent.includes("scale starts at "), [...one.querySelectorAll("text")].some((text) => text.textContent === "0")]);
  texts.ranges = {};
  for (const name of ["sockets", "cores", "memory.channels"]) {
    at("#range").elements.vary.value = name;
    at("#range").elements.vary.dispatchEvent(new Event("change"));
    await press("#range .main");
    texts.ranges[name] = [at("#curves svg") !== null, document.querySelectorAll("#curves li").length];
  }
  at("#range").elements.vary.value = "tdp";
  for (const [name, value] of [["from", "100"], ["to", "200"], ["step", "x"]]) at("#range").elements[name].value = value;
  await press("#range .main");
  record("bad range", "#vary-problem:not([hidden])");
  at("#range").elements.step.value = "25";
  await press("#range .main");
  record("curves", "#curves figcaption");
  texts.points = [...document.querySelectorAll("#curves svg")].map((one) => one.querySelectorAll("circle").length);
  texts.link = location.search;
  const decide = async (action) => { at(`#choose [value=${action}]`).click(); await until(() => !at("#choosing").textContent); };
  await decide("compare");
  record("no machines", "#choose-problem:not([hidden])");
  at("#choose").elements.machines.value = "2 x Xeon Gold 6148; price=3000\n1 x Xeon Gold 6148; price=2000";
  at("#choose").elements.by.value = "score/cost";
  at("#choose").elements.years.value = "4";
  texts.decisions = {};
  for (const action of ["compare", "rank", "similar"]) {
    await decide(action);
    if (action === "compare") texts.compared = [document.querySelectorAll("#decision figure svg circle").length, [...document.querySelectorAll("#decision tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent)).find((row) => row[0] === "price")];
    texts.decisions[action] = [...document.querySelectorAll("#decision caption, #decision thead th, #choose-problem:not([hidden])")].map((one) => one.textContent);
  }
  texts.decided = location.search;
  form.elements.measured.value = "CINT2017rate = 150";
  await press("#machine .main");
  record("measured", "#answer:not([hidden]) .suite");
  for (const details of document.querySelectorAll("details")) details.open = true;
  texts.wide = document.documentElement.scrollWidth - innerWidth;
}

visit().catch((error) => { texts.failed = String(error); }).finally(() => {
  const element = document.createElement("pre");
  element.id = "visit";
  element.textContent = JSON.stringify(texts);
  document.body.append(element);
});
