// Reference page of the API, built from openapi.json.

import { createElement, createTable } from "./prediction_view.js";

function describeType(schema) {
  if (schema.$ref) {
    const name = schema.$ref.split("/").at(-1);
    return createElement("a", { href: `#${name}` }, name);
  }
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return createElement("span", {}, ...several.flatMap((option, index) => (index ? [" or ", describeType(option)] : [describeType(option)])));
  if (schema.type === "array") return createElement("span", {}, "list of ", describeType(schema.items ?? {}));
  if (schema.enum) return createElement("span", {}, schema.enum.join(", "));
  return createElement("span", {}, schema.const ?? schema.type ?? "anything");
}

function describeRoute(path, method, route) {
  const parts = [createElement("h2", {}, createElement("code", {}, `${method.toUpperCase()} ${path}`)), createElement("p", {}, route.summary ?? "")];
  const body = route.requestBody?.content["application/json"]?.schema;
  if (body) parts.push(createElement("p", {}, "Body: ", describeType(body)));
  if (route.parameters?.length) parts.push(createTable("Query options", ["name", "type", "meaning"], route.parameters.map((option) => [option.name, describeType(option.schema), option.description ?? ""])));
  const responses = Object.entries(route.responses).map(([status, response]) => {
    const schema = response.content?.["application/json"]?.schema;
    return [status, response.description ?? "", schema && Object.keys(schema).length ? describeType(schema) : "text"];
  });
  parts.push(createTable("Responses", ["status", "meaning", "content"], responses));
  return createElement("section", {}, ...parts);
}

function describeModel(name, schema) {
  const rows = Object.entries(schema.properties ?? {}).map(([field, property]) => [field, describeType(property), property.description ?? ""]);
  return createElement("section", { id: name }, createElement("h3", {}, name), createElement("p", {}, schema.description ?? ""), rows.length ? createTable(name, ["name", "type", "meaning"], rows) : "");
}

const openapi = await (await fetch("/openapi.json")).json();
document.getElementById("about").textContent = openapi.info.description;
document.getElementById("example").textContent = `curl ${location.origin}/predict \\\n  -H 'Content-Type: application/json' \\\n  -d '{"processor": "EPYC 9654", "chips": 2}'`;
const routes = Object.entries(openapi.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, route]) => describeRoute(path, method, route)));
const models = Object.entries(openapi.components.schemas).map(([name, schema]) => describeModel(name, schema));
document.getElementById("routes").append(...routes, createElement("h2", {}, "Models"), ...models);
document.body.dataset.ready = "yes";
