// Charts of predictions: SVG in pixels of its container, so that the text keeps its size.

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
// Least width of a chart: its container has none while it is hidden.
const MIN_WIDTH = 160;

export function formatNumber(value) {
  if (value === null) return "-";
  const size = Math.abs(value);
  if (size >= 1000) return value.toFixed(0);
  return size === 0 ? "0" : Number(value.toPrecision(3)).toString();
}

export function createShape(name, attributes, text) {
  const element = document.createElementNS(SVG_NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// Return round numbers that divide a range into about `count` intervals.
export function computeTicks(low, high, count) {
  const rough = (high - low) / Math.max(1, count) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const values = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at += 1) values.push(Number((at * step).toPrecision(12)));
  return values;
}

// Return the ends of a scale: it starts at zero where the values fill half of it.
function padRange(values, share) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const more = (high - low || Math.abs(high) || 1) * share;
  return [low < 0 ? low - more : low <= high / 2 ? 0 : low - more, high + more];
}

const noteStart = (low, at) => (low === 0 ? [] : [createShape("text", at, `scale starts at ${formatNumber(low)}, not at 0`)]);

// Draw ticks and the line of a horizontal scale, and say where it starts.
function drawScale(svg, x, [low, high], [left, right, base]) {
  for (const at of computeTicks(low, high, (right - left) / 90)) {
    svg.append(createShape("line", { class: "grid", x1: x(at), x2: x(at), y1: 6, y2: base }));
    svg.append(createShape("text", { x: x(at), y: base + 15, "text-anchor": "middle" }, formatNumber(at)));
  }
  svg.append(createShape("line", { class: "axis", x1: left, x2: right, y1: base, y2: base }), ...noteStart(low, { x: left, y: base + 32 }));
}

const createMarker = (x, y, title) => {
  const mark = createShape("path", { class: "near", d: `M${x} ${y - 7}l6 7l-6 7l-6 -7z` });
  mark.append(createShape("title", {}, title));
  return mark;
};

function createChart(width, height, label) {
  return createShape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

// Draw the interval and the estimate of one suite on an axis, with the nearest measured machines below.
export function drawAxis(estimate, available, label) {
  const width = Math.max(available, MIN_WIDTH);
  const measured = estimate.neighbors.filter((near) => near.score !== null);
  const scores = measured.map((near) => near.score);
  const ends = [estimate.low, estimate.high].filter((value) => value !== null);
  const { published } = estimate;
  const range = published?.median ? [published.low, published.high] : [];
  const [low, high] = padRange([estimate.median, ...ends, ...scores, ...range], 0.08);
  const left = 12;
  const right = width - 12;
  const x = (value) => left + ((value - low) / (high - low)) * (right - left);
  const below = 34;
  const base = below + (scores.length ? 22 : 2);
  const svg = createChart(width, base + (low === 0 ? 20 : 37), label);
  drawScale(svg, x, [low, high], [left, right, base]);
  if (published?.median) {
    const strip = createShape("rect", { class: "measured", x: x(published.low) - 1, y: 6, width: x(published.high) - x(published.low) + 2, height: base - 6 });
    strip.append(createShape("title", {}, `${published.count} published results: ${formatNumber(published.low)} to ${formatNumber(published.high)}`));
    svg.append(strip, createShape("line", { class: "measured-median", x1: x(published.median), x2: x(published.median), y1: 6, y2: base }));
  }
  if (ends.length) svg.append(createShape("line", { class: "interval", x1: x(estimate.low), x2: x(estimate.high), y1: 18, y2: 18 }));
  svg.append(createShape("circle", { class: "median", cx: x(estimate.median), cy: 18, r: 6.5 }));
  for (const near of measured) svg.append(createMarker(x(near.score), below + 6, `${near.machine}: measured ${formatNumber(near.score)}`));
  return svg;
}

// Draw the estimates of one suite for several machines, on one scale from zero; rows are [{ name, estimate }].
export function drawRows(rows, available, label) {
  const width = Math.max(available, MIN_WIDTH);
  const high = 1.05 * Math.max(...rows.flatMap(({ estimate }) => [estimate.median, estimate.high ?? 0, estimate.published?.median ?? 0]));
  const [left, right, base] = [26, width - 12, 24 * rows.length + 8];
  const x = (value) => left + (value / high) * (right - left);
  const svg = createChart(width, base + 20, label);
  drawScale(svg, x, [0, high], [left, right, base]);
  rows.forEach(({ name, estimate }, place) => {
    const y = 24 * place + 18;
    svg.append(createShape("text", { class: "value", x: 4, y: y + 4 }, name));
    if (estimate.low !== null) svg.append(createShape("line", { class: "interval", x1: x(estimate.low), x2: x(estimate.high), y1: y, y2: y }));
    svg.append(createShape("circle", { class: "median", cx: x(estimate.median), cy: y, r: 6.5 }));
    if (estimate.published?.median) svg.append(createMarker(x(estimate.published.median), y, `${name}: published median ${formatNumber(estimate.published.median)}`));
  });
  return svg;
}

// Draw one suite over a varied characteristic; points are [{ x, median, low, high }], at least one.
export function drawCurve(points, available, label, xLabel) {
  const width = Math.max(available, MIN_WIDTH);
  const height = Math.round(Math.min(230, Math.max(170, width * 0.5)));
  const box = { left: 46, right: width - 12, top: 22, bottom: height - 36 };
  const [low, high] = padRange(points.flatMap((point) => [point.median, point.low ?? point.median, point.high ?? point.median]), 0.06);
  const from = points[0].x;
  const to = points.at(-1).x;
  const x = (value) => (to === from ? (box.left + box.right) / 2 : box.left + ((value - from) / (to - from)) * (box.right - box.left));
  const y = (value) => box.bottom - ((value - low) / (high - low)) * (box.bottom - box.top);
  const svg = createChart(width, height, label);
  svg.append(...noteStart(low, { x: 0, y: 10 }));
  for (const at of computeTicks(low, high, 4)) {
    svg.append(createShape("line", { class: "grid", x1: box.left, x2: box.right, y1: y(at), y2: y(at) }));
    svg.append(createShape("text", { x: box.left - 6, y: y(at) + 4, "text-anchor": "end" }, formatNumber(at)));
  }
  const labelEach = points.length <= Math.max(4, width / 45);
  for (const at of labelEach ? points.map((point) => point.x) : computeTicks(from, to, width / 80)) {
    svg.append(createShape("text", { x: x(at), y: box.bottom + 16, "text-anchor": "middle" }, formatNumber(at)));
  }
  svg.append(createShape("text", { x: (box.left + box.right) / 2, y: height - 3, "text-anchor": "middle" }, xLabel));
  svg.append(createShape("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  if (points.every((point) => point.low !== null)) {
    const upper = points.map((point) => `${x(point.x)},${y(point.high)}`);
    const lower = points.map((point) => `${x(point.x)},${y(point.low)}`).reverse();
    svg.append(createShape("polygon", { class: "band", points: [...upper, ...lower].join(" ") }));
  }
  svg.append(createShape("polyline", { class: "curve", points: points.map((point) => `${x(point.x)},${y(point.median)}`).join(" ") }));
  for (const point of points) {
    const dot = createShape("circle", { class: point.hypothetical ? "median hollow" : "median", cx: x(point.x), cy: y(point.median), r: 4 });
    dot.append(createShape("title", {}, `${formatNumber(point.x)}: ${formatNumber(point.median)}`));
    svg.append(dot);
  }
  return svg;
}

// Draw the probability that a number suffices as steps, with the number that is needed for the wanted probability.
export function drawSteps(counts, available, label, { needed, sure }) {
  const width = Math.max(available, MIN_WIDTH);
  const height = 200;
  const box = { left: 46, right: width - 12, top: 10, bottom: height - 36 };
  const step = counts.length > 1 ? counts[1].count - counts[0].count : 1;
  const [from, to] = [counts[0].count - step, counts.at(-1).count + step];
  const x = (count) => box.left + ((count - from) / (to - from)) * (box.right - box.left);
  const y = (share) => box.bottom - share * (box.bottom - box.top);
  const svg = createChart(width, height, label);
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(createShape("line", { class: share ? "grid" : "axis", x1: box.left, x2: box.right, y1: y(share), y2: y(share) }));
    svg.append(createShape("text", { x: box.left - 6, y: y(share) + 4, "text-anchor": "end" }, `${100 * share} %`));
  }
  for (const at of computeTicks(from, to, width / 70).filter(Number.isInteger)) svg.append(createShape("text", { x: x(at), y: box.bottom + 16, "text-anchor": "middle" }, formatNumber(at)));
  svg.append(createShape("text", { x: (box.left + box.right) / 2, y: height - 3, "text-anchor": "middle" }, "machines"));
  const steps = `${counts.map((each) => `H${x(each.count)}V${y(each.suffices)}`).join("")}H${box.right}`;
  svg.append(createShape("path", { class: "band", d: `M${box.left} ${box.bottom}${steps}V${box.bottom}Z` }), createShape("path", { class: "curve", d: `M${box.left} ${box.bottom}${steps}` }));
  for (const each of counts) {
    const dot = createShape("circle", { class: each.count === needed ? "median" : "median hollow", cx: x(each.count), cy: y(each.suffices), r: each.count === needed ? 6 : 3.5 });
    dot.append(createShape("title", {}, `${each.count} suffice with ${(100 * each.suffices).toFixed(1)} %`));
    svg.append(dot);
  }
  const isLate = x(needed) > (box.left + box.right) / 2;
  svg.append(createShape("line", { class: "measured-median", x1: box.left, x2: box.right, y1: y(sure), y2: y(sure) }));
  svg.append(createShape("text", { class: "near", x: box.left + 6, y: y(sure) + (sure > 0.85 ? 15 : -6) }, `wanted: ${Number((100 * sure).toPrecision(4))} %`));
  svg.append(createShape("line", { class: "axis", x1: x(needed), x2: x(needed), y1: y(sure), y2: box.bottom, "stroke-dasharray": "3 2" }));
  svg.append(createShape("text", { class: "value", x: x(needed) + (isLate ? -6 : 6), y: box.bottom - 8, "text-anchor": isLate ? "end" : "start" }, `${needed} needed`));
  return svg;
}
