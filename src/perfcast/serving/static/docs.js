// The API's own description as a page.

import { made, tableOf } from "./tell.js";

function typeOf(schema) {
  if (schema.$ref) {
    const name = schema.$ref.split("/").at(-1);
    return made("a", { href: `#${name}` }, name);
  }
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return made("span", {}, ...several.flatMap((one, place) => (place ? [" or ", typeOf(one)] : [typeOf(one)])));
  if (schema.type === "array") return made("span", {}, "list of ", typeOf(schema.items ?? {}));
  if (schema.enum) return made("span", {}, schema.enum.join(", "));
  return made("span", {}, schema.const ?? schema.type ?? "anything");
}

function routeOf(path, method, told) {
  const parts = [made("h2", {}, made("code", {}, `${method.toUpperCase()} ${path}`)), made("p", {}, told.summary ?? "")];
  const body = told.requestBody?.content["application/json"]?.schema;
  if (body) parts.push(made("p", {}, "Body: ", typeOf(body)));
  if (told.parameters?.length) parts.push(tableOf("Options, in the query", ["name", "type", "meaning"], told.parameters.map((one) => [one.name, typeOf(one.schema), one.description ?? ""])));
  const answers = Object.entries(told.responses).map(([status, one]) => {
    const schema = one.content?.["application/json"]?.schema;
    return [status, one.description ?? "", schema && Object.keys(schema).length ? typeOf(schema) : "text"];
  });
  parts.push(tableOf("Answers", ["status", "meaning", "content"], answers));
  return made("section", {}, ...parts);
}

function modelOf(name, schema) {
  const rows = Object.entries(schema.properties ?? {}).map(([field, one]) => [field, typeOf(one), one.description ?? ""]);
  return made("section", { id: name }, made("h3", {}, name), made("p", {}, schema.description ?? ""), rows.length ? tableOf(name, ["name", "type", "meaning"], rows) : "");
}

const told = await (await fetch("/openapi.json")).json();
document.getElementById("about").textContent = told.info.description;
document.getElementById("example").textContent = `curl ${location.origin}/forecast \\\n  -H 'Content-Type: application/json' \\\n  -d '{"processor": "EPYC 9654", "chips": 2}'`;
const routes = Object.entries(told.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, one]) => routeOf(path, method, one)));
const models = Object.entries(told.components.schemas).map(([name, schema]) => modelOf(name, schema));
document.getElementById("routes").append(...routes, made("h2", {}, "Models"), ...models);
document.body.dataset.ready = "yes";
