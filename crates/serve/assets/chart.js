// Line charts on a canvas: an axis of time that all charts of a page share, a linear or logarithmic scale, gaps, and a cursor that stands
// in all of them. Lines differ by colour, dashes and the shape of their marks.

import { clock, tickTime } from "./units.js";
import { make, say } from "./dom.js";

const LEFT = 76, RIGHT = 12, TOP = 8, BOTTOM = 22, HEIGHT = 176;
// Marks stand so far from each other, in pixels.
const MARKS = 90;

// Colours by name, read from the style sheet, anew when the system turns dark or light.
const colours = new Map();
const colour = (name) => {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return colours.get(name);
};
const dark = matchMedia("(prefers-color-scheme: dark)");

const SHAPES = {
  circle: (c, x, y, r) => c.arc(x, y, r, 0, 7),
  square: (c, x, y, r) => c.rect(x - r, y - r, 2 * r, 2 * r),
  triangle: (c, x, y, r) => (c.moveTo(x, y - r * 1.2), c.lineTo(x + r * 1.2, y + r), c.lineTo(x - r * 1.2, y + r), c.closePath()),
  diamond: (c, x, y, r) => (c.moveTo(x, y - r * 1.4), c.lineTo(x + r * 1.4, y), c.lineTo(x, y + r * 1.4), c.lineTo(x - r * 1.4, y), c.closePath()),
  cross: (c, x, y, r) => (c.moveTo(x - r, y - r), c.lineTo(x + r, y + r), c.moveTo(x + r, y - r), c.lineTo(x - r, y + r)),
  none: () => {},
};
const mark = (c, shape, x, y, r) => {
  c.beginPath();
  SHAPES[shape](c, x, y, r);
  if (shape === "cross") c.stroke();
  else c.fill();
};

// A round step with `about` ticks up to `most`.
const roundStep = (most, about) => {
  const raw = most / about, power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 5, 10].find((n) => n * power >= raw * 0.999);
};
// The next of 1, 2, 5 of a decade, below or above.
const roundLog = (v, way) => {
  const power = 10 ** Math.floor(Math.log10(v) + 1e-9), parts = [1, 2, 5, 10];
  return power * (way < 0 ? parts.findLast((part) => part * power <= v * 1.0001) : parts.find((part) => part * power >= v * 0.9999));
};
const TIME_STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000];

// What all charts of a page have in common: the axis of time, and the cursor.
export class Board {
  constructor(changed) {
    Object.assign(this, { changed, from: 0, to: 1, cursor: null, charts: [] });
    this.turn = () => (colours.clear(), changed());
    dark.addEventListener("change", this.turn);
    this.sizes = new ResizeObserver(() => changed());
  }

  close() {
    dark.removeEventListener("change", this.turn);
    this.sizes.disconnect();
  }

  point(t) {
    if (t === this.cursor) return;
    this.cursor = t;
    this.changed();
  }

  // Nanoseconds that a pixel and a half stand for: finer points are not seen.
  grain() {
    const width = Math.max(200, (this.charts.find((c) => c.canvas.clientWidth)?.canvas.clientWidth ?? 600) - LEFT - RIGHT);
    return ((this.to - this.from) / width) * 1.5;
  }
}

export class Chart {
  // `tell` writes a value with its unit; `scale` is "linear" or "log".
  constructor(board, { title, about, scale = "linear", tell }) {
    Object.assign(this, { board, title, scale, tell, lines: [], hidden: new Set(), pauses: [] });
    this.canvas = make("canvas", { tabindex: "0", role: "img", "aria-label": `${title}: ${about} Arrow keys move the cursor.` });
    this.output = make("output", { "aria-live": "off" });
    this.legend = make("div", { class: "legend" });
    this.element = make("figure", {}, make("figcaption", {}, make("h3", {}, title), this.output), this.legend, this.canvas);
    board.charts.push(this);
    board.sizes.observe(this.canvas);
    this.listen();
  }

  listen() {
    const { board, canvas } = this;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      const share = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
      board.point(share < 0 || share > 1 ? null : board.from + share * (board.to - board.from));
    };
    canvas.addEventListener("pointermove", at);
    canvas.addEventListener("pointerdown", at);
    canvas.addEventListener("pointerleave", () => board.point(null));
    canvas.addEventListener("blur", () => board.point(null));
    canvas.addEventListener("keydown", (event) => {
      const step = (board.to - board.from) / 50;
      const moved = { ArrowLeft: -step, ArrowRight: step, Home: -Infinity, End: Infinity }[event.key];
      if (event.key === "Escape") board.point(null);
      else if (moved === undefined) return;
      else board.point(Math.min(board.to, Math.max(board.from, (board.cursor ?? board.to) + moved)));
      event.preventDefault();
    });
  }

  rename(title) {
    say(this.element.querySelector("h3"), title);
  }

  // Lines: {name, colour, dash, shape, width, points: [[t, value or null], ...]}.
  show(lines) {
    const names = lines.map((line) => `${line.name}/${line.colour}`).join("\n");
    this.lines = lines;
    this.element.hidden = lines.length === 0;
    if (names === this.names) return;
    this.names = names;
    this.legend.replaceChildren(...lines.map((line) => this.key(line)));
  }

  key(line) {
    const sign = make("canvas", { class: "sign", "aria-hidden": "true" });
    line.sign = sign;
    const button = make("button", { type: "button", class: "key", "aria-pressed": "true" }, sign, line.name);
    button.addEventListener("click", () => {
      const hide = !this.hidden.has(line.name);
      this.hidden[hide ? "add" : "delete"](line.name);
      button.setAttribute("aria-pressed", String(!hide));
      this.board.changed();
    });
    button.setAttribute("aria-pressed", String(!this.hidden.has(line.name)));
    return button;
  }

  stroke(c, line) {
    c.strokeStyle = c.fillStyle = colour(line.colour);
    c.lineWidth = line.width ?? 1.8;
    c.setLineDash(line.dash ?? []);
    c.lineJoin = "round";
    c.globalAlpha = line.alpha ?? 1;
  }

  signs() {
    [...this.legend.children].forEach((button, n) => {
      const line = this.lines[n], sign = button.firstChild;
      const c = fitted(sign, 28, 12);
      this.stroke(c, line);
      c.beginPath(), c.moveTo(0, 6), c.lineTo(28, 6), c.stroke();
      c.setLineDash([]), (c.globalAlpha = 1), (c.lineWidth = 1.6);
      mark(c, line.shape, 14, 6, 3.2);
    });
  }

  bounds(shown) {
    let least = Infinity, most = -Infinity;
    for (const line of shown) {
      for (const [t, v] of line.points) {
        if (v === null || t < this.board.from || (this.scale === "log" && v <= 0)) continue;
        if (v < least) least = v;
        if (v > most) most = v;
      }
    }
    if (this.scale === "log") {
      if (least > most) return [1e3, 1e6];
      return [roundLog(least, -1), Math.max(roundLog(most * 1.001, 1), roundLog(least * 5, 1))];
    }
    return [0, most > 0 ? most * 1.06 : this.least ?? 1];
  }

  draw() {
    const { board, canvas } = this;
    if (this.element.hidden || !canvas.clientWidth) return;
    const width = canvas.clientWidth;
    const c = fitted(canvas, width, HEIGHT);
    const right = width - RIGHT, bottom = HEIGHT - BOTTOM;
    const shown = this.lines.filter((line) => !this.hidden.has(line.name));
    const [least, most] = this.bounds(shown);
    const x = (t) => LEFT + ((t - board.from) / (board.to - board.from)) * (right - LEFT);
    const log = this.scale === "log";
    const y = log
      ? (v) => bottom - (Math.log(Math.max(v, least) / least) / Math.log(most / least)) * (bottom - TOP)
      : (v) => bottom - ((v - least) / (most - least)) * (bottom - TOP);
    c.font = '12px system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
    this.grid(c, { x, y, least, most, right, bottom, width });
    c.save();
    c.beginPath(), c.rect(LEFT, TOP - 4, right - LEFT, bottom - TOP + 6), c.clip();
    for (const line of shown) this.line(c, line, x, y, log);
    c.restore();
    this.cursor(c, shown, x, y, bottom);
    this.signs();
  }

  grid(c, { x, y, least, most, right, bottom, width }) {
    const { board } = this;
    c.fillStyle = colour("rule");
    c.globalAlpha = 0.5;
    for (const [from, to] of this.pauses) {
      const a = Math.max(LEFT, x(from)), b = Math.min(right, x(to));
      if (b > a) c.fillRect(a, TOP, b - a, bottom - TOP);
    }
    c.globalAlpha = 1;
    c.strokeStyle = colour("rule");
    c.lineWidth = 1;
    c.fillStyle = colour("soft");
    c.textAlign = "right", (c.textBaseline = "middle");
    const ticks = [];
    if (this.scale === "log") {
      // Of few decades the twos and fives have room, too.
      const parts = most / least <= 1001 ? [1, 2, 5] : [1];
      for (let v = 10 ** Math.floor(Math.log10(least) + 1e-9); v <= most; v *= 10) ticks.push(...parts.map((part) => part * v).filter((tick) => tick >= least * 0.999 && tick <= most * 1.001));
    }
    else for (let step = roundStep(most, 4), v = 0; v <= most; v += step) ticks.push(v);
    // Decades that have no room for their labels keep their lines.
    const every = Math.ceil(ticks.length / 9);
    ticks.forEach((v, n) => {
      const at = Math.round(y(v)) + 0.5;
      c.beginPath(), c.moveTo(LEFT, at), c.lineTo(right, at), c.stroke();
      if (n % every === 0) c.fillText(this.scale === "log" ? tickTime(v) : this.tick(v, most), LEFT - 7, at);
    });
    c.textAlign = "center", (c.textBaseline = "top");
    const span = (board.to - board.from) / 1e9, about = Math.max(2, Math.floor((right - LEFT) / 90));
    const step = (TIME_STEPS.find((s) => span / s <= about) ?? 864000) * 1e9;
    for (let t = Math.ceil(board.from / step) * step; t <= board.to; t += step) {
      const at = Math.round(x(t)) + 0.5, text = step < 1e9 ? `${(t / 1e9).toFixed(1)}s` : clock(t);
      c.beginPath(), c.moveTo(at, bottom), c.lineTo(at, bottom + 4), c.stroke();
      const half = c.measureText(text).width / 2;
      if (at + half <= width) c.fillText(text, at, bottom + 6);
    }
  }

  // A label of the axis, without zeros that say nothing.
  tick(v) {
    return this.tell(v).replace(/(\.\d*?)0+(?= |$)/, "$1").replace(/\.(?= |$)/, "");
  }

  line(c, line, x, y, log) {
    this.stroke(c, line);
    const isThere = (v) => v !== null && Number.isFinite(v) && (!log || v > 0);
    let pen = false;
    c.beginPath();
    for (const [t, v] of line.points) {
      if (!isThere(v)) pen = false;
      else if (pen) c.lineTo(x(t), y(v));
      else c.moveTo(x(t), y(v)), (pen = true);
    }
    c.stroke();
    c.setLineDash([]), (c.globalAlpha = 1), (c.lineWidth = 1.6);
    let before = -Infinity;
    line.points.forEach(([t, v], n) => {
      // Alone between two gaps it would not be seen.
      const alone = !isThere(line.points[n - 1]?.[1] ?? null) && !isThere(line.points[n + 1]?.[1] ?? null);
      if (isThere(v) && (alone || x(t) - before >= MARKS)) mark(c, line.shape, x(t), y(v), 3.2), (before = x(t));
    });
  }

  cursor(c, shown, x, y, bottom) {
    const { cursor } = this.board;
    const values = shown.map((line) => [line, nearest(line.points, cursor ?? Infinity)]).filter(([, point]) => point);
    const told = values.map(([line, point]) => `${line.short ?? line.name} ${this.tell(point[1])}`).join("  ");
    const moment = cursor === null ? "" : `${clock(cursor)}: `;
    say(this.output, values.length ? moment + told : "");
    if (cursor === null) return;
    c.strokeStyle = colour("ink");
    c.globalAlpha = 0.6;
    c.lineWidth = 1;
    const at = Math.round(x(cursor)) + 0.5;
    c.beginPath(), c.moveTo(at, TOP), c.lineTo(at, bottom), c.stroke();
    c.globalAlpha = 1;
    for (const [line, [t, v]] of values) {
      c.fillStyle = c.strokeStyle = colour(line.colour);
      mark(c, line.shape === "none" ? "circle" : line.shape, x(t), y(v), 4);
    }
  }
}

const nearest = (points, t) => {
  let best = null;
  for (const point of points) {
    if (point[1] === null || !Number.isFinite(point[1])) continue;
    if (!best || Math.abs(point[0] - t) <= Math.abs(best[0] - t)) best = point;
  }
  return best;
};

// A canvas with as many pixels as the screen has for it.
const fitted = (canvas, width, height) => {
  const scale = devicePixelRatio || 1, [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const c = canvas.getContext("2d");
  c.setTransform(scale, 0, 0, scale, 0, 0);
  c.clearRect(0, 0, width, height);
  return c;
};
