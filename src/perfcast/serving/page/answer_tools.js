// Requests, and files and commands of their answers: CSV of tables, and curl of the request.

export async function fetchAnswer(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch {
    throw new Error("The server does not answer. Check that `perfcast serve` is running.");
  }
  if (response.headers.get("content-type")?.startsWith("text/csv")) return response.text();
  const payload = await response.json();
  if (!response.ok) throw new Error(payload.error);
  return payload;
}

export const post = (address, value, form = "application/json") => fetchAnswer(address, { method: "POST", headers: { "Content-Type": "application/json", Accept: form }, body: JSON.stringify(value) });

const FORMULA = /^[=+\-@\t\r]/;

function quoteCell(cell) {
  const text = cell === null || cell === undefined ? "" : String(cell);
  // a spreadsheet would compute a text that begins like a formula
  const safe = typeof cell === "string" && FORMULA.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const formatCsv = (header, rows) => [header, ...rows].map((row) => row.map(quoteCell).join(",")).join("\n") + "\n";

export const saveCsv = (name, header, rows) => saveText(name, formatCsv(header, rows));

export function saveText(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

export const formatCurl = (address, body) => `curl '${address.replaceAll("'", "%27")}' -H 'Content-Type: application/json' -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`;

// Copy a text, and return what to tell the visitor.
export async function copyText(text, name) {
  try {
    await navigator.clipboard.writeText(text);
    return `${name} copied.`;
  } catch {
    return `Copying failed: ${text}`;
  }
}

export function listEstimates(machines) {
  const header = ["machine", "suite", "estimate", "low", "high", "level", "unit", "trust", "published results", "published median"];
  const rows = machines.flatMap((machine) =>
    machine.estimates.map((each) => [machine.machine, each.task, each.median, each.low, each.high, each.level, each.unit, each.trust, each.published?.count ?? 0, each.published?.median ?? null]),
  );
  return { header, rows };
}
