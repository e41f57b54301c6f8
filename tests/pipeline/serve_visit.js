// What a person would do, step by step; each step's words are kept.
const said = {};
const at = (selector) => document.querySelector(selector);
const form = at("#machine");
const hear = (name, selector) => { said[name] = [...document.querySelectorAll(selector)].map((one) => one.textContent); };
const until = async (true_) => { for (let i = 0; i < 1200 && !true_(); i += 1) await new Promise((go) => setTimeout(go, 50)); };
const idle = () => !at("#busy").textContent && !at("#varying").textContent;
const press = async (selector) => { at(selector).click(); await until(idle); };
const type = (input, text) => { input.value = text; input.dispatchEvent(new Event("input", { bubbles: true })); };

async function visit() {
  await until(() => document.body.dataset.ready);
  said.restored = [form.elements["m.processor"].value, form.elements["m.chips"].value, at("#range").elements.from.value];
  hear("at first", "#answer:not([hidden]) .suite");
  hear("curves at first", "#answer:not([hidden]) #curves figcaption");
  if (location.search) return;
  await press("#machine .main");
  hear("nothing said", "#problem:not([hidden])");
  type(form.elements["m.processor"], "gold 6");
  const offered = () => [...document.querySelectorAll("#parts option")].map((one) => one.value);
  await until(() => offered().length && offered().every((name) => name.includes("gold 6")));
  said.offered = offered();
  type(form.elements["m.processor"], "Zeus 1");
  await press("#machine .main");
  hear("unknown", "#problem:not([hidden])");
  type(form.elements["m.processor"], "Xeon Gold 6148");
  type(form.elements["m.chips"], "2");
  at("#add").click();
  const row = at(".pair");
  row.querySelector(".word").value = "tdp";
  row.querySelector(".cell").value = "150 W";
  await press("#machine .main");
  hear("problem", "#problem:not([hidden])");
  hear("suites", "#answer:not([hidden]) .suite");
  hear("support", ".support");
  hear("origins", ".origin h3");
  hear("given", ".origin.given li");
  said.drawings = [...document.querySelectorAll("#forecast > svg")].map((one) => [one.getAttribute("aria-label"), one.querySelectorAll("path.near").length]);
  hear("tables", "#answer table caption");
  at("#range").elements.vary.value = "tdp";
  for (const [name, value] of [["from", "100"], ["to", "200"], ["step", "x"]]) at("#range").elements[name].value = value;
  await press("#range .main");
  hear("bad range", "#vary-problem:not([hidden])");
  at("#range").elements.step.value = "25";
  await press("#range .main");
  hear("curves", "#curves figcaption");
  said.points = [...document.querySelectorAll("#curves svg")].map((one) => one.querySelectorAll("circle").length);
  said.link = location.search;
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  said.wide = document.documentElement.scrollWidth - innerWidth;
}

visit().catch((error) => { said.failed = String(error); }).finally(() => {
  const told = document.createElement("pre");
  told.id = "visit";
  told.textContent = JSON.stringify(said);
  document.body.append(told);
});
