// Line and area charts over time, in SVG. The legend of a chart shows the values at
// the moment that is selected in any chart, or else the newest ones.
import { clock, minute, none } from "./format.js";

const margin = { left: 60, right: 10, top: 10, bottom: 22 };
const height = 190;
const gap = 3500; // maximum ms between two samples that a line connects

function svg(name, attributes, parent) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (parent) parent.append(e);
  return e;
}

function html(name, className, parent, text) {
  const e = document.createElement(name);
  if (className) e.className = className;
  if (text) e.textContent = text;
  if (parent) parent.append(e);
  return e;
}

// ticks returns up to five round values from 0 to max or a little more.
function ticks(max, binary) {
  const raw = max / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = binary ? 2 ** Math.ceil(Math.log2(raw) - 1e-9) : [1, 2, 2.5, 5, 10].find((s) => s * power >= raw * 0.999) * power;
  const values = [];
  for (let v = 0; v < max + step * 0.999; v += step) values.push(v);
  return values;
}

// decades returns the powers of ten around min and max.
function decades(min, max) {
  const values = [];
  const last = Math.ceil(Math.log10(max) - 1e-9);
  let e = Math.min(Math.floor(Math.log10(min) + 1e-9), last - 1);
  for (; e <= last; e++) values.push(10 ** e);
  return values;
}

export class Chart {
  // spec: title, format, axis (the format of the marks), series [{label, style,
  // value(row), line}], stacked, log, binary, least (minimum for the top of the scale),
  // limit {label, value(row)}, nothing (the text of an empty chart).
  constructor(parent, spec, shared) {
    this.spec = spec;
    this.shared = shared;
    this.width = 0;
    const figure = html("figure", "card chart", parent);
    const head = html("figcaption", "", figure);
    html("h2", "", head, spec.title);
    this.when = html("span", "when", head);
    const legend = html("ul", "legend", figure);
    this.values = spec.series.map((s) => this.legendItem(legend, s.label, s.style));
    if (spec.limit) this.limitValue = this.legendItem(legend, spec.limit.label, "limit");
    this.plot = html("div", "plot", figure);
    this.plot.tabIndex = 0;
    this.plot.setAttribute("role", "img");
    this.root = svg("svg", { height, "aria-hidden": "true" }, this.plot);
    this.empty = html("p", "empty", this.plot, "no data yet");
    this.build();
    this.listen();
    new ResizeObserver((entries) => {
      const width = Math.floor(entries[0].contentRect.width);
      if (width === this.width) return;
      this.width = width;
      this.root.setAttribute("width", width);
      this.draw();
    }).observe(this.plot);
  }

  legendItem(legend, label, style) {
    const item = html("li", style, legend);
    html("span", "swatch", item).setAttribute("aria-hidden", "true");
    html("span", "", item, label);
    return html("b", "", item, none);
  }

  build() {
    this.bands = svg("g", { class: "bands" }, this.root);
    this.grid = svg("g", { class: "grid" }, this.root);
    this.paths = this.spec.series.map((s) =>
      svg("path", { class: `${this.spec.stacked && !s.line ? "area" : "line"} ${s.style}` }, this.root));
    // Stacked areas are drawn from the top one down, and lines over areas.
    if (this.spec.limit) this.limit = svg("path", { class: "line limit" }, this.root);
    this.cross = svg("line", { class: "cross", y1: margin.top, y2: height - margin.bottom }, this.root);
  }

  listen() {
    this.plot.addEventListener("pointermove", (e) => this.point(e.clientX));
    this.plot.addEventListener("pointerdown", (e) => this.point(e.clientX));
    this.plot.addEventListener("pointerleave", () => this.shared.hover(null));
    this.plot.addEventListener("blur", () => this.shared.hover(null));
    this.plot.addEventListener("keydown", (e) => this.key(e));
  }

  // point selects the sample that is nearest to a position on the screen.
  point(clientX) {
    const rows = this.rows;
    if (!rows || !rows.length) return;
    const x = clientX - this.plot.getBoundingClientRect().left;
    const t = this.from + ((x - margin.left) / this.inner()) * (this.to - this.from);
    let best = rows[0];
    for (const r of rows) if (Math.abs(r[0] - t) < Math.abs(best[0] - t)) best = r;
    this.shared.hover(best[0]);
  }

  key(e) {
    const rows = this.rows || [];
    const last = rows.length - 1;
    if (last < 0) return;
    let i = rows.findIndex((r) => r[0] === this.shared.at);
    if (e.key === "ArrowLeft") i = i < 0 ? last : Math.max(i - (e.shiftKey ? 10 : 1), 0);
    else if (e.key === "ArrowRight") i = i < 0 ? last : Math.min(i + (e.shiftKey ? 10 : 1), last);
    else if (e.key === "Home") i = 0;
    else if (e.key === "End") i = last;
    else if (e.key === "Escape") return this.shared.hover(null);
    else return;
    e.preventDefault();
    this.shared.hover(rows[i][0]);
    this.shared.say(this.describe(rows[i]));
  }

  describe(row) {
    const parts = this.spec.series.map((s) => `${s.label} ${this.spec.format(s.value(row))}`);
    return `${this.spec.title}, ${clock(row[0])}: ${parts.join(", ")}`;
  }

  inner() {
    return Math.max(this.width - margin.left - margin.right, 10);
  }

  // update shows the rows between two times. Their first column is the time in ms.
  update(rows, from, to) {
    this.rows = rows;
    this.from = from;
    this.to = to;
    this.draw();
  }

  draw() {
    const rows = this.rows;
    if (!rows || this.width < 40) return;
    const layers = this.layers(rows);
    this.empty.hidden = layers.some((l) => l.some((p) => p[2] != null));
    this.empty.textContent = rows.length ? this.spec.nothing || "no data yet" : "no data yet";
    this.scale(layers, rows);
    this.axes();
    const x = (t) => margin.left + ((t - this.from) / (this.to - this.from)) * this.inner();
    layers.forEach((points, i) => {
      // A series that is always zero needs no line: a red one on the axis
      // would look like trouble.
      if (!points.some((p) => p[2] > p[1])) return this.paths[i].setAttribute("d", "");
      const area = this.spec.stacked && !this.spec.series[i].line;
      this.paths[i].setAttribute("d", area ? areaPath(points, x, this.y) : linePath(points, x, this.y));
    });
    if (this.limit) this.limit.setAttribute("d", linePath(rows.map((r) => [r[0], 0, this.spec.limit.value(r)]), x, this.y));
    this.drawBands(rows, x);
    this.x = x;
    this.showMoment();
    const newest = rows[rows.length - 1];
    this.plot.setAttribute("aria-label", newest ? this.describe(newest) : `${this.spec.title}: no data yet`);
  }

  // layers returns for each series [time, bottom, top]; top is null where there
  // is no value.
  layers(rows) {
    const below = new Map();
    return this.spec.series.map((s) => rows.map((r) => {
      const v = s.value(r);
      if (!this.spec.stacked || s.line) return [r[0], 0, v];
      const bottom = below.get(r[0]) || 0;
      below.set(r[0], bottom + (v || 0));
      return [r[0], bottom, v == null ? null : bottom + v];
    }));
  }

  // scale sets y, which converts a value to a position, and the marks of the axis.
  scale(layers, rows) {
    const tops = layers.flatMap((l) => l.map((p) => p[2])).filter((v) => v != null);
    if (this.spec.limit) tops.push(...rows.map((r) => this.spec.limit.value(r)).filter((v) => v != null));
    let max = this.spec.least, min = Infinity;
    for (const v of tops) {
      if (v > max) max = v;
      if (v > 0 && v < min) min = v;
    }
    const bottom = height - margin.bottom, span = bottom - margin.top;
    if (this.spec.log) {
      this.marks = decades(Math.min(min, max), max);
      const low = Math.log10(this.marks[0]), high = Math.log10(this.marks[this.marks.length - 1]);
      this.y = (v) => bottom - (Math.max(Math.log10(Math.max(v, 1e-12)) - low, 0) / (high - low)) * span;
      return;
    }
    this.marks = ticks(max, this.spec.binary);
    const top = this.marks[this.marks.length - 1];
    this.y = (v) => bottom - (Math.min(v, top) / top) * span;
  }

  axes() {
    this.grid.replaceChildren();
    const right = this.width - margin.right;
    for (const v of this.marks) {
      const y = Math.round(this.y(v)) + 0.5;
      svg("line", { x1: margin.left, x2: right, y1: y, y2: y }, this.grid);
      svg("text", { x: margin.left - 8, y: y + 4, "text-anchor": "end" }, this.grid).textContent = (this.spec.axis || this.spec.format)(v);
    }
    // Round clock times, as close together as their labels allow.
    const span = this.to - this.from;
    const step = [15, 30, 60, 120, 300, 600].map((s) => s * 1000).find((s) => (s / span) * this.inner() >= (s < 60000 ? 72 : 46)) || span;
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const x = margin.left + ((t - this.from) / span) * this.inner();
      svg("line", { x1: x, x2: x, y1: height - margin.bottom, y2: height - margin.bottom + 4 }, this.grid);
      if (x > margin.left + 18 && x < right - 18) {
        svg("text", { x, y: height - 5, "text-anchor": "middle" }, this.grid).textContent = step < 60000 ? clock(t) : minute(t);
      }
    }
  }

  // drawBands marks the times at which the gateway was not ready.
  drawBands(rows, x) {
    this.bands.replaceChildren();
    let begin = null;
    rows.forEach((r, i) => {
      const bad = !this.shared.ready(r);
      if (bad && begin == null) begin = i ? Math.max(rows[i - 1][0], r[0] - 1000) : r[0];
      const last = i === rows.length - 1 || rows[i + 1][0] - r[0] > gap;
      if (begin != null && (!bad || last)) {
        const from = x(begin), to = x(r[0]);
        svg("rect", { x: from, width: Math.max(to - from, 1), y: margin.top, height: height - margin.top - margin.bottom }, this.bands);
        begin = null;
      }
    });
  }

  // showMoment fills the legend, and draws a line at the selected moment.
  showMoment() {
    const rows = this.rows || [];
    const at = this.shared.at;
    const row = at == null ? rows[rows.length - 1] : rows.find((r) => r[0] === at);
    this.spec.series.forEach((s, i) => { this.values[i].textContent = row ? this.spec.format(s.value(row)) : none; });
    if (this.limitValue) this.limitValue.textContent = row ? this.spec.format(this.spec.limit.value(row)) : none;
    this.when.textContent = at != null && row ? clock(row[0]) : "";
    const shown = at != null && row && this.x;
    this.cross.setAttribute("visibility", shown ? "visible" : "hidden");
    if (shown) {
      this.cross.setAttribute("x1", this.x(row[0]));
      this.cross.setAttribute("x2", this.x(row[0]));
    }
  }
}

// runs splits points at gaps and at unknown values.
function runs(points) {
  const all = [];
  let run = [];
  for (const p of points) {
    if (run.length && (p[2] == null || p[0] - run[run.length - 1][0] > gap)) {
      all.push(run);
      run = [];
    }
    if (p[2] != null) run.push(p);
  }
  if (run.length) all.push(run);
  return all;
}

const place = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;

function linePath(points, x, y) {
  // A run of one point is a dot, thanks to round line caps.
  return runs(points).map((run) =>
    "M" + run.map((p) => place(x(p[0]), y(p[2]))).join("L") + (run.length === 1 ? "h0.01" : "")).join("");
}

function areaPath(points, x, y) {
  return runs(points).map((run) => {
    const top = run.map((p) => place(x(p[0]), y(p[2])));
    const bottom = run.map((p) => place(x(p[0]), y(p[1]))).reverse();
    return "M" + top.concat(bottom).join("L") + "Z";
  }).join("");
}
