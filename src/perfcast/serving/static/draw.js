// Drawings of forecasts: plain SVG, sized in pixels of the place they are drawn in, so that letters keep their size.

const SPACE = "http://www.w3.org/2000/svg";

export function number(value) {
  const size = Math.abs(value);
  if (size >= 1000) return value.toFixed(0);
  return size === 0 ? "0" : Number(value.toPrecision(3)).toString();
}

export function shape(name, attributes, text) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Round numbers that divide a range into about `count` parts.
export function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}

function padded(values, share) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const more = (high - low || Math.abs(high) || 1) * share;
  return [low > 0 ? Math.max(0, low - more) : low - more, high + more];
}

function drawing(width, height, label) {
  return shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

// One suite: its interval and estimate on an axis, the nearest measured machines below it.
export function axisOf(estimate, width, label) {
  const scores = estimate.neighbours.map((near) => near.score);
  const ends = [estimate.low, estimate.high].filter((value) => value !== null);
  const [low, high] = padded([estimate.median, ...ends, ...scores], 0.08);
  const left = 12;
  const right = width - 12;
  const x = (value) => left + ((value - low) / (high - low)) * (right - left);
  const below = 34;
  const base = below + (scores.length ? 22 : 2);
  const svg = drawing(width, base + 20, label);
  for (const at of ticks(low, high, width / 90)) {
    svg.append(shape("line", { class: "grid", x1: x(at), x2: x(at), y1: 6, y2: base }));
    svg.append(shape("text", { x: x(at), y: base + 15, "text-anchor": "middle" }, number(at)));
  }
  svg.append(shape("line", { class: "axis", x1: left, x2: right, y1: base, y2: base }));
  if (ends.length) svg.append(shape("line", { class: "interval", x1: x(estimate.low), x2: x(estimate.high), y1: 18, y2: 18 }));
  svg.append(shape("circle", { class: "median", cx: x(estimate.median), cy: 18, r: 6.5 }));
  for (const near of estimate.neighbours) {
    const at = x(near.score);
    const mark = shape("path", { class: "near", d: `M${at} ${below - 1}l6 7l-6 7l-6 -7z` });
    mark.append(shape("title", {}, `${near.machine}: measured ${number(near.score)}`));
    svg.append(mark);
  }
  return svg;
}

// One suite against what is varied: points are [{ x, median, low, high }], at least one.
export function curveOf(points, width, label, along) {
  const height = Math.round(Math.min(230, Math.max(170, width * 0.5)));
  const box = { left: 46, right: width - 12, top: 10, bottom: height - 36 };
  const [low, high] = padded(points.flatMap((one) => [one.median, one.low ?? one.median, one.high ?? one.median]), 0.06);
  const from = points[0].x;
  const to = points.at(-1).x;
  const x = (value) => (to === from ? (box.left + box.right) / 2 : box.left + ((value - from) / (to - from)) * (box.right - box.left));
  const y = (value) => box.bottom - ((value - low) / (high - low)) * (box.bottom - box.top);
  const svg = drawing(width, height, label);
  for (const at of ticks(low, high, 4)) {
    svg.append(shape("line", { class: "grid", x1: box.left, x2: box.right, y1: y(at), y2: y(at) }));
    svg.append(shape("text", { x: box.left - 6, y: y(at) + 4, "text-anchor": "end" }, number(at)));
  }
  const few = points.length <= Math.max(4, width / 45);
  for (const at of few ? points.map((one) => one.x) : ticks(from, to, width / 80)) {
    svg.append(shape("text", { x: x(at), y: box.bottom + 16, "text-anchor": "middle" }, number(at)));
  }
  svg.append(shape("text", { x: (box.left + box.right) / 2, y: height - 3, "text-anchor": "middle" }, along));
  svg.append(shape("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  if (points.every((one) => one.low !== null)) {
    const there = points.map((one) => `${x(one.x)},${y(one.high)}`);
    const back = points.map((one) => `${x(one.x)},${y(one.low)}`).reverse();
    svg.append(shape("polygon", { class: "band", points: [...there, ...back].join(" ") }));
  }
  svg.append(shape("polyline", { class: "curve", points: points.map((one) => `${x(one.x)},${y(one.median)}`).join(" ") }));
  for (const one of points) {
    const dot = shape("circle", { class: "median", cx: x(one.x), cy: y(one.median), r: 4 });
    dot.append(shape("title", {}, `${number(one.x)}: ${number(one.median)}`));
    svg.append(dot);
  }
  return svg;
}
