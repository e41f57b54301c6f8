// The plot of single results: decodes the compact columns, filters, draws, and describes one result at a time.
(() => {
  const NO_INTERVAL = 65535;
  const SHAPES = ["circle", "triangle", "square", "diamond", "down", "cross"];
  const number = (value) =>
    value >= 100 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(3)).toString();
  const percent = (value, digits = 1) => `${value.toFixed(digits)} %`.replace("-", "−");
  const signed = (value) => (value > 0 ? "+" : "") + percent(value);

  function unfront({ shared, rest }) {
    let before = "";
    return rest.split("\n").map((text, at) => (before = before.slice(0, shared[at]) + text));
  }
  function unstep(steps) {
    let value = 0;
    return Int32Array.from(steps, (step) => (value += step));
  }
  function uncode(coded) {
    const values = unfront(coded.values);
    const codes = unstep(coded.codes);
    return (at) => values[codes[at]];
  }
  function unpack(script) {
    const bytes = Uint8Array.from(atob(script.textContent), (letter) => letter.charCodeAt(0));
    const packed = new ReadableStream({ start: (stream) => (stream.enqueue(bytes), stream.close()) });
    return new Response(packed.pipeThrough(new DecompressionStream("deflate")));
  }
  async function read(root) {
    const data = await unpack(root.querySelector("script.points")).json();
    data.row = unfront(data.row);
    data.name = uncode(data.name);
    data.block = data.block && uncode(data.block);
    for (const split of data.splits) split.items = unstep(split.items);
    for (const filter of data.filters) filter.codes = Uint8Array.from(filter.codes);
    const runs = new Map();
    // The logarithms of one run: errors, and half-widths of intervals. A run is decoded when it is first chosen.
    data.run = async (split, predictor) => {
      const key = `${split}-${predictor}`;
      if (!runs.has(key)) {
        const script = root.querySelector(`script[data-run="${key}"]`);
        const buffer = script && (await unpack(script).arrayBuffer());
        const count = buffer && buffer.byteLength / 4;
        runs.set(key, buffer && {
          error: new Int16Array(buffer, 0, count),
          half: new Uint16Array(buffer, 2 * count, count),
        });
      }
      return runs.get(key);
    };
    let searched = null;
    // Text in which a machine is looked for, in small letters.
    data.searched = (item) => {
      searched ??= data.row.map((row, at) =>
        [row, data.name(at), data.block && data.block(at)].filter(Boolean).join(" ").toLowerCase());
      return searched[item];
    };
    return data;
  }
  function shape(pen, kind, x, y, r) {
    pen.beginPath();
    if (kind === "circle") pen.arc(x, y, r, 0, 7);
    else if (kind === "square") pen.rect(x - r * 0.85, y - r * 0.85, r * 1.7, r * 1.7);
    else if (kind === "cross") {
      pen.rect(x - r, y - r * 0.35, r * 2, r * 0.7);
      pen.rect(x - r * 0.35, y - r, r * 0.7, r * 2);
    } else {
      const corners = {
        triangle: [[0, -1.1], [1, 0.8], [-1, 0.8]],
        down: [[0, 1.1], [1, -0.8], [-1, -0.8]],
        diamond: [[0, -1.2], [1, 0], [0, 1.2], [-1, 0]],
      }[kind];
      corners.forEach(([dx, dy], at) => pen[at ? "lineTo" : "moveTo"](x + dx * r, y + dy * r));
      pen.closePath();
    }
    pen.fill();
  }

  // Ticks at 1, 2 and 5 times powers of ten.
  function decades(low, high) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
      for (const step of [1, 2, 5]) found.push(step * 10 ** power);
    const inside = found.filter((value) => value >= low && value <= high);
    return inside.length > 8 ? inside.filter((value) => /^0?\.?0*1/.test(String(value))) : inside;
  }
  const BEND = 5;
  const bend = (error) => Math.asinh(error / BEND);

  async function start(root) {
    const data = await read(root);
    const form = root.querySelector("form");
    const [marks, focus] = root.querySelectorAll("canvas");
    const tip = root.querySelector(".tip");
    const readout = root.querySelector(".readout");
    const spoken = root.querySelector("p.spoken");
    const stats = root.querySelector(".stats");
    const task = data.filters.find((filter) => filter.label === "task");
    const anchor = `#${root.id}?`;
    const box = { left: 62, right: 24, top: 10, bottom: 40, width: 0, height: 0 };
    let shown = [];
    let at = -1;
    let scale = null;
    let groups = [];
    let waiting = 0;
    let turns = 0;

    root.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", (event) => event.target.name === "find" || chosen());
    form.addEventListener("reset", () => setTimeout(chosen));
    form.elements.find.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(chosen, 120);
    });
    root.querySelector("button.save").addEventListener("click", save);
    addEventListener("hashchange", () => readAddress() && choose());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { legend(); draw(); });
    focus.addEventListener("pointermove", (event) => event.pointerType === "mouse" && point(event, false));
    focus.addEventListener("pointerdown", (event) => point(event, true));
    focus.addEventListener("pointerleave", () => { tip.hidden = true; });
    focus.addEventListener("keydown", (event) => {
      const last = shown.length - 1;
      const to = {
        ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1,
        PageDown: at + 10, PageUp: at - 10, Home: 0, End: last,
      }[event.key];
      if (event.key === "Escape") clearSelection();
      else if (to !== undefined) step(Math.max(0, Math.min(last, to)));
      else return;
      event.preventDefault();
    });
    for (const button of root.querySelectorAll("[data-step]"))
      button.addEventListener("click", () =>
        step(Math.max(0, Math.min(shown.length - 1, at + Number(button.dataset.step)))));
    root.addEventListener("perfcast:show", async ({ detail }) => {
      form.reset();
      form.elements.split.value = detail.split;
      await chosen();
      const found = shown.findIndex((one) => data.row[one.item] === detail.row);
      root.scrollIntoView({ block: "start" });
      focus.focus({ preventScroll: true });
      if (found >= 0) step(found);
    });
    readAddress();
    await choose();
    // drawing sets the height, so it waits for the next frame
    new ResizeObserver(() => requestAnimationFrame(draw)).observe(root.querySelector(".stage"));

    function chosen() {
      writeAddress();
      return choose();
    }
    // The view in the address: what differs from the first view, by name, so that it outlives a new order of the lists.
    function writeAddress() {
      const view = new URLSearchParams();
      const split = form.elements.split.value;
      if (split !== "0") view.set("split", data.splits[split].name);
      if (form.elements.predictor.value !== "0") view.set("predictor", data.predictors[form.elements.predictor.value]);
      if (form.elements.view.selectedIndex) view.set("plot", form.elements.view.value);
      if (form.elements.find.value) view.set("find", form.elements.find.value);
      if (form.elements.whiskers.checked) view.set("intervals", "all");
      const color = form.elements.color;
      if (color && !color.options[color.selectedIndex].defaultSelected) view.set("color", data.filters[color.value].label);
      data.filters.forEach((filter, place) => {
        const value = form.elements[`filter${place}`].value;
        if (value !== "") view.set(`is ${filter.label}`, filter.values[value]);
      });
      const text = view.toString();
      history.replaceState(null, "", text ? anchor + text : location.pathname + location.search);
    }
    function readAddress() {
      if (!location.hash.startsWith(anchor)) return false;
      const view = new URLSearchParams(location.hash.slice(anchor.length));
      form.reset();
      const pick = (name, place) => { if (place >= 0) form.elements[name].value = String(place); };
      if (view.has("split")) pick("split", data.splits.findIndex((split) => split.name === view.get("split")));
      if (view.has("predictor")) pick("predictor", data.predictors.indexOf(view.get("predictor")));
      if ([...form.elements.view.options].some((option) => option.value === view.get("plot")))
        form.elements.view.value = view.get("plot");
      form.elements.find.value = view.get("find") ?? "";
      form.elements.whiskers.checked = view.get("intervals") === "all";
      data.filters.forEach((filter, place) => {
        if (view.get("color") === filter.label) form.elements.color.value = String(place);
        pick(`filter${place}`, filter.values.indexOf(view.get(`is ${filter.label}`)));
      });
      root.scrollIntoView({ block: "start" });
      return true;
    }
    // The values of the coloring column with the most shown results have a color each; the others share gray.
    function group() {
      const filter = form.elements.color && data.filters[form.elements.color.value];
      if (!filter) return { of: () => 0, lines: [] };
      const found = new Int32Array(filter.values.length);
      for (const one of shown) found[filter.codes[one.item]]++;
      const ordered = [...found.keys()].filter((code) => found[code]).sort((a, b) => found[b] - found[a] || a - b);
      const own = ordered.slice(0, SHAPES.length).sort((a, b) => a - b);
      const places = new Map(own.map((code, place) => [code, place]));
      const others = ordered.slice(SHAPES.length).reduce((sum, code) => sum + found[code], 0);
      return {
        of: (item) => places.get(filter.codes[item]) ?? SHAPES.length,
        lines: [
          ...own.map((code) => [filter.values[code], found[code]]),
          ...(others ? [[`other: ${ordered.length - own.length} values`, others]] : []),
        ],
      };
    }
    function legend() {
      const list = root.querySelector(".legend");
      list.replaceChildren();
      if (groups.lines.length < 2) return;
      groups.lines.forEach(([value, count], place) => {
        const line = document.createElement("li");
        const mark = document.createElement("canvas");
        mark.width = mark.height = 24;
        mark.setAttribute("aria-hidden", "true");
        const pen = mark.getContext("2d");
        pen.fillStyle = color(place);
        shape(pen, SHAPES[place] ?? "circle", 12, 12, 8);
        const text = document.createElement("span");
        text.textContent = `${value} (${count.toLocaleString("en")})`;
        line.append(mark, text);
        list.append(line);
      });
    }
    function color(place) {
      return ink(place < SHAPES.length ? `--mark${place}` : "--muted");
    }
    async function choose() {
      const turn = ++turns;
      const split = data.splits[form.elements.split.value];
      const run = await data.run(form.elements.split.value, form.elements.predictor.value);
      // a later choice came first
      if (turn !== turns) return;
      const wanted = data.filters.map((_, place) => form.elements[`filter${place}`].value);
      const conditions = wanted.flatMap((value, place) =>
        value === "" ? [] : [{ place, codes: data.filters[place].codes, code: Number(value) }]);
      const words = form.elements.find.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = data.filters.map((filter) => new Int32Array(filter.values.length));
      shown = [];
      split.items.forEach((item, place) => {
        if (!run || !words.every((word) => data.searched(item).includes(word))) return;
        // a filter counts what the other filters leave
        const failed = conditions.filter(({ codes, code }) => codes[item] !== code);
        if (failed.length < 2)
          found.forEach((counts, filter) => {
            if (!failed.length || failed[0].place === filter) counts[data.filters[filter].codes[item]]++;
          });
        if (failed.length) return;
        const log = run.error[place] / data.scale;
        const half = run.half[place] === NO_INTERVAL ? null : run.half[place] / data.scale;
        const measured = data.measured[item];
        shown.push({
          item, measured, half, ends: half === null ? null : [Math.exp(-half), Math.exp(half)],
          predicted: measured * Math.exp(log), error: 100 * Math.expm1(log),
          size: Math.abs(log), inside: half !== null && Math.abs(log) <= half,
        });
      });
      shown.sort((a, b) => b.size - a.size || a.item - b.item);
      offer(found, wanted);
      groups = group();
      legend();
      // start with the largest error
      at = shown.length ? 0 : -1;
      tip.hidden = true;
      showStatistics(split.items.length);
      draw();
      describe(false);
    }
    // Number of results for each choice; a choice without results is not offered unless it is the chosen one.
    function offer(found, wanted) {
      data.filters.forEach((filter, place) => {
        for (const option of form.elements[`filter${place}`].options) {
          if (option.value === "") continue;
          const count = found[place][option.value];
          option.textContent = `${filter.values[option.value]} (${count.toLocaleString("en")})`;
          option.hidden = option.disabled = count === 0 && option.value !== wanted[place];
        }
      });
    }
    // The shown results as a file, the largest error first.
    function save() {
      const cell = (value) => {
        const text = String(value).replace(/^[=+@]/, "'$&");
        return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
      };
      const six = (value) => Number(value.toPrecision(6));
      const head = ["row", "machine", ...(data.block ? ["submission"] : []), ...data.filters.map((filter) => filter.label),
        "measured", "predicted (estimate)", "error in %", "interval low", "interval high"];
      const lines = shown.map((one) => [
        data.row[one.item], data.name(one.item), ...(data.block ? [data.block(one.item)] : []),
        ...data.filters.map((filter) => filter.values[filter.codes[one.item]]),
        six(one.measured), six(one.predicted), six(one.error),
        ...[0, 1].map((end) => (one.ends === null ? "" : six(one.predicted * one.ends[end]))),
      ]);
      const text = [head, ...lines].map((line) => line.map(cell).join(",") + "\r\n").join("");
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
      const [split, predictor] = [data.splits[form.elements.split.value].name, data.predictors[form.elements.predictor.value]];
      link.download = `${data.dataset}-${split}-${predictor}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      return text;
    }
    function showStatistics(total) {
      const count = `${shown.length.toLocaleString("en")} of ${total.toLocaleString("en")} results`;
      if (!shown.length) {
        stats.textContent = `${count}: choose fewer filters, or another word.`;
        return;
      }
      const errors = shown.map((one) => Math.abs(one.error)).sort((a, b) => a - b);
      const middle = (errors[Math.floor((errors.length - 1) / 2)] + errors[Math.ceil((errors.length - 1) / 2)]) / 2;
      const mean = errors.reduce((sum, error) => sum + error, 0) / errors.length;
      const known = shown.filter((one) => one.half !== null);
      const widths = known.map((one) => one.ends[1] - one.ends[0]).sort((a, b) => a - b);
      const wide = 100 * widths[Math.floor(widths.length / 2)];
      const coverage = (100 * known.filter((one) => one.inside).length) / known.length;
      stats.textContent =
        `${count}: MAPE ${percent(mean, 2)}, MedAPE ${percent(middle, 2)}` +
        (known.length ? `; ${data.level} % intervals contain ${percent(coverage)}, half of them are narrower than ${percent(wide)}` : "") +
        ` (all chosen results together)`;
    }
    function ink(name) {
      return getComputedStyle(root).getPropertyValue(name).trim();
    }
    function fit(canvas, width, height) {
      const ratio = window.devicePixelRatio || 1;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
      const pen = canvas.getContext("2d");
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.font = "12px system-ui, sans-serif";
      return pen;
    }
    function scales() {
      const time = form.elements.view.value === "time";
      if (time) {
        const months = data.month.since;
        const dated = shown.filter((one) => months[one.item] >= 0);
        const first = Math.min(...minmax(dated.map((one) => months[one.item]))) - 1;
        const last = Math.max(...minmax(dated.map((one) => months[one.item]))) + 1;
        const [low, high] = minmax(shown.map((one) => one.error));
        const [bottom, top] = [bend(Math.min(low * 1.1, -6)), bend(Math.max(high * 1.1, 6))];
        // results of one month stand side by side inside it, always at the same place
        const aside = (item) => ((item * 0.618034) % 1 - 0.5) * 0.7;
        const x = (one) => box.left + ((months[one.item] + aside(one.item) - first) / (last - first)) * box.width;
        const y = (error) => box.top + ((top - bend(error)) / (top - bottom)) * box.height;
        return {
          time, first, last, low: Math.sinh(bottom) * BEND, high: Math.sinh(top) * BEND, dated, x,
          y: (one) => y(one.error),
          level: y,
          bar: (one) => one.ends.map((end) => y(100 * ((one.predicted / one.measured) * end - 1))),
        };
      }
      const [low, high] = minmax(shown.flatMap((one) => [one.measured, one.predicted]));
      const [bottom, top] = [Math.log(low) - 0.15, Math.log(high) + 0.15];
      const along = (value) => (Math.log(value) - bottom) / (top - bottom);
      const y = (value) => box.top + (1 - along(value)) * box.height;
      return {
        time, low: Math.exp(bottom), high: Math.exp(top), dated: shown,
        x: (one) => box.left + along(one.measured) * box.width,
        across: (value) => box.left + along(value) * box.width,
        y: (one) => y(one.predicted),
        level: y,
        bar: (one) => one.ends.map((end) => y(one.predicted * end)),
      };
    }
    function minmax(values) {
      let [low, high] = [Infinity, -Infinity];
      for (const value of values) {
        if (value < low) low = value;
        if (value > high) high = value;
      }
      return [low, high];
    }
    function draw() {
      const width = root.querySelector(".stage").clientWidth;
      if (!width) return;
      const height = Math.round(Math.max(300, Math.min(540, width * 0.8)));
      box.width = width - box.left - box.right;
      box.height = height - box.top - box.bottom;
      const pen = fit(marks, width, height);
      fit(focus, width, height);
      pen.clearRect(0, 0, width, height);
      scale = null;
      if (!shown.length) return;
      scale = scales();
      axes(pen);
      pen.save();
      pen.beginPath();
      pen.rect(box.left, box.top, box.width, box.height);
      pen.clip();
      if (form.elements.whiskers.checked) {
        pen.strokeStyle = ink("--muted");
        pen.globalAlpha = Math.max(0.1, Math.min(0.6, 200 / shown.length));
        pen.beginPath();
        for (const one of scale.dated) {
          if (one.ends === null) continue;
          const [low, high] = scale.bar(one);
          pen.moveTo(scale.x(one), low);
          pen.lineTo(scale.x(one), high);
        }
        pen.stroke();
      }
      pen.globalAlpha = Math.max(0.4, Math.min(0.85, 900 / shown.length));
      const colors = [...SHAPES, "other"].map((_, place) => color(place));
      const size = shown.length > 3000 ? 2.6 : shown.length > 300 ? 3.4 : 4.6;
      for (const one of scale.dated) {
        const place = groups.of(one.item);
        pen.fillStyle = colors[place];
        shape(pen, SHAPES[place] ?? "circle", scale.x(one), scale.y(one), size);
      }
      pen.restore();
      ring();
    }
    function axes(pen) {
      const [line, text] = [ink("--line"), ink("--ink")];
      const bottom = box.top + box.height;
      pen.lineWidth = 1;
      pen.strokeStyle = line;
      pen.fillStyle = text;
      const rule = (x1, y1, x2, y2) => { pen.beginPath(); pen.moveTo(x1, y1); pen.lineTo(x2, y2); pen.stroke(); };
      const heads = scale.time ? ["month of publication", "error of the estimate"] : ["measured", "predicted (estimate)"];
      if (scale.time) {
        pen.textAlign = "center";
        const start = data.month.first;
        const years = Math.floor((start + scale.last) / 12) - Math.ceil((start + scale.first) / 12) + 1;
        const every = Math.max(1, Math.ceil(years / (box.width / 60)));
        for (let month = Math.ceil(scale.first); month <= scale.last; month++) {
          const [year, of] = [Math.floor((start + month) / 12), (start + month) % 12];
          if (of !== 0 && !(years <= 2 && of % 3 === 0)) continue;
          if (of === 0 && year % every) continue;
          const x = box.left + ((month - scale.first) / (scale.last - scale.first)) * box.width;
          rule(x, box.top, x, bottom);
          pen.fillText(of === 0 ? year : `${year}-${String(of + 1).padStart(2, "0")}`, x, bottom + 15);
        }
        pen.textAlign = "right";
        let before = Infinity;
        for (const error of [-90, -70, -50, -30, -20, -10, -5, -2, 0, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000]) {
          if (error < scale.low || error > scale.high) continue;
          const y = scale.level(error);
          if (before - y < 15 && error !== 0) continue;
          before = y;
          rule(box.left, y, box.left + box.width, y);
          pen.fillText(`${error > 0 ? "+" : ""}${error} %`.replace("-", "−"), box.left - 6, y + 4);
        }
      } else {
        for (const value of decades(scale.low, scale.high)) {
          const [x, y] = [scale.across(value), scale.level(value)];
          const label = value >= 1000 ? value.toLocaleString("en") : String(Number(value.toPrecision(2)));
          pen.textAlign = "center";
          rule(x, box.top, x, bottom);
          pen.fillText(label, x, bottom + 15);
          pen.textAlign = "right";
          rule(box.left, y, box.left + box.width, y);
          pen.fillText(label, box.left - 6, y + 4);
        }
      }
      pen.strokeStyle = ink("--muted");
      pen.lineWidth = 1.5;
      if (scale.time) rule(box.left, scale.level(0), box.left + box.width, scale.level(0));
      else rule(box.left, bottom, box.left + box.width, box.top);
      pen.textAlign = "center";
      pen.fillStyle = ink("--muted");
      pen.fillText(heads[0], box.left + box.width / 2, bottom + 33);
      pen.save();
      pen.translate(12, box.top + box.height / 2);
      pen.rotate(-Math.PI / 2);
      pen.fillText(heads[1], 0, 0);
      pen.restore();
    }
    function ring() {
      const pen = focus.getContext("2d");
      pen.clearRect(0, 0, focus.width, focus.height);
      if (at < 0 || !scale) return;
      const one = shown[at];
      const [x, y] = [scale.x(one), scale.y(one)];
      pen.strokeStyle = ink("--ink");
      pen.lineWidth = 2;
      if (one.ends !== null) {
        const [low, high] = scale.bar(one);
        pen.beginPath();
        pen.moveTo(x, low);
        pen.lineTo(x, high);
        for (const end of [low, high]) {
          pen.moveTo(x - 6, end);
          pen.lineTo(x + 6, end);
        }
        pen.stroke();
      }
      pen.beginPath();
      pen.arc(x, y, 7, 0, 7);
      pen.stroke();
    }
    function point(event, speak) {
      if (!scale) return;
      const [x, y] = [event.offsetX, event.offsetY];
      let [nearest, found] = [event.pointerType === "mouse" ? 400 : 1600, -1];
      shown.forEach((one, place) => {
        const far = (scale.x(one) - x) ** 2 + (scale.y(one) - y) ** 2;
        if (far < nearest) [nearest, found] = [far, place];
      });
      if (found >= 0 && (found !== at || speak)) {
        at = found;
        ring();
        describe(speak);
      }
      tip.hidden = found < 0;
      if (found >= 0) label();
    }
    function label() {
      const one = shown[at];
      tip.textContent = `${data.name(one.item)}: ${signed(one.error)}`;
      tip.hidden = false;
      const [x, y] = [scale.x(one), scale.y(one)];
      const most = box.left + box.width + box.right - tip.offsetWidth;
      tip.style.left = `${Math.max(0, Math.min(most, x + 12))}px`;
      tip.style.top = `${Math.max(0, y - tip.offsetHeight - 12)}px`;
    }
    function step(to) {
      if (!shown.length) return;
      at = to;
      ring();
      describe(true);
      if (scale) label();
    }
    function clearSelection() {
      at = -1;
      tip.hidden = true;
      ring();
      describe(false);
      spoken.textContent = "Nothing selected.";
    }
    function describe(speak) {
      readout.replaceChildren();
      if (at < 0) {
        tip.hidden = true;
        const hint = document.createElement("dd");
        hint.className = "note";
        hint.textContent = "Nothing selected: point at a mark, tap one, or step through them.";
        readout.append(hint);
        return;
      }
      const one = shown[at];
      const kinds = data.filters.map((filter) => `${filter.label} ${filter.values[filter.codes[one.item]]}`).join(", ");
      const span = one.ends && one.ends.map((end) => number(one.predicted * end));
      const verdict = one.inside ? "contains the measured score" : "misses the measured score";
      const lines = [
        ["machine", data.name(one.item)],
        ["result", [data.row[one.item], data.block && data.block(one.item)].filter(Boolean).join(" · ")],
        ["of", kinds],
        ["measured", number(one.measured)],
        ["predicted", number(one.predicted) + (span ? `, ${data.level} % interval ${span[0]} to ${span[1]} (${verdict})` : "")],
        ["error", `${signed(one.error)}; number ${(at + 1).toLocaleString("en")} of ${shown.length.toLocaleString("en")} by size`],
      ];
      for (const [term, text] of lines) {
        const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
        dt.textContent = term;
        dd.textContent = text;
        readout.append(dt, dd);
      }
      if (speak) {
        const interval = span ? `, ${data.level} % interval ${span[0]} to ${span[1]} ${verdict}` : "";
        spoken.textContent =
          `${data.name(one.item)}, ${task ? task.values[task.codes[one.item]] : ""}: measured ${number(one.measured)}, ` +
          `predicted ${number(one.predicted)}${interval}, error ${signed(one.error)}. ${at + 1} of ${shown.length}.`;
      }
    }
  }

  for (const root of document.querySelectorAll(".explorer")) setTimeout(() => start(root));
  for (const button of document.querySelectorAll("button.show")) {
    button.hidden = false;
    button.addEventListener("click", () =>
      document.getElementById(button.dataset.plot).dispatchEvent(new CustomEvent("perfcast:show", { detail: button.dataset })));
  }
})();
