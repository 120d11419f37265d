// Small drawings that do not move: how one figure went from run to run, and how latencies are distributed.

import { percent, tickTime, time } from "./units.js";

const SIZE = { width: 720, height: 180, left: 90, right: 20, top: 12, bottom: 26 };
const base = SIZE.height - SIZE.bottom;

const part = (name, attributes, text) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
};

// The frame of a drawing, with lines at shares of `most`.
const framed = (label, most, tell) => {
  const { width, height, left, right, top } = SIZE;
  const svg = part("svg", { class: "drawing", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const share of [0, 0.5, 1]) {
    const y = base - (share / 1.08) * (base - top);
    svg.append(part("line", { x1: left, x2: width - right, y1: y, y2: y }), part("text", { x: left - 8, y: y + 4, class: "end" }, tell(most * share)));
  }
  return [svg, (v) => base - (v / (most * 1.08 || 1)) * (base - top)];
};

// One figure of several runs, in their order.
export const trend = (ids, values, name, tell) => {
  const { width, height, left, right } = SIZE;
  const told = ids.map((id, n) => `${id} ${values[n] === null ? "-" : tell(values[n])}`).join(", ");
  const [svg, y] = framed(`${name}: ${told}`, Math.max(...values.filter((value) => value !== null), 0), tell);
  const x = (n) => left + (n / Math.max(1, ids.length - 1)) * (width - left - right);
  const points = ids.flatMap((_, n) => (values[n] === null ? [] : [[x(n), y(values[n])]]));
  svg.append(part("polyline", { points: points.map((point) => point.join(",")).join(" ") }), ...points.map(([cx, cy]) => part("circle", { cx, cy, r: 4 })));
  ids.forEach((id, n) => svg.append(part("text", { x: x(n), y: height - 8, class: "mid" }, id)));
  return svg;
};

const BARS = 60;

// Which share of all values lies in each of equal parts of a logarithmic axis; `of` is a distribution with a histogram.
export const distribution = (of, name) => {
  const { width, height, left, right } = SIZE;
  const least = Math.max(1, of.min), most = Math.max(of.max, least * 1.01);
  const place = (v) => Math.log(Math.max(v, least) / least) / Math.log(most / least);
  const bars = Array(BARS).fill(0);
  for (const { from, to, count } of of.histogram) {
    // A bucket that is wider than a bar is spread over those that it covers.
    const first = Math.min(BARS - 1, Math.floor(place(from) * BARS)), last = Math.max(first, Math.min(BARS - 1, Math.ceil(place(Math.min(to + 1, most)) * BARS) - 1));
    for (let bar = first; bar <= last; bar++) bars[bar] += count / (last - first + 1) / of.count;
  }
  const [svg, y] = framed(`${name}: half within ${time(of.p50)}, 99 % within ${time(of.p99)}, all within ${time(of.max)}`, Math.max(...bars), percent);
  const x = (share) => left + share * (width - left - right), each = (width - left - right) / BARS;
  bars.forEach((share, n) => share > 0 && svg.append(part("rect", { x: x(n / BARS), width: Math.max(1, each - 1), y: Math.min(y(share), base - 1), height: Math.max(1, base - y(share)) })));
  const parts = most / least > 200 ? [1] : [1, 2, 5];
  for (let power = 10 ** Math.floor(Math.log10(least)); power <= most; power *= 10) {
    for (const n of parts) {
      const at = place(n * power);
      if (n * power >= least && n * power <= most && at < 0.97) svg.append(part("text", { x: x(at), y: height - 8, class: "mid" }, tickTime(n * power)));
    }
  }
  for (const [text, v] of [["p50", of.p50], ["p99", of.p99]]) {
    const at = x(place(v));
    svg.append(part("line", { class: "mark", x1: at, x2: at, y1: SIZE.top, y2: base }), part("text", { x: at + 4, y: SIZE.top + 10 }, text));
  }
  return svg;
};
