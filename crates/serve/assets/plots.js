// The charts of a run, over one axis of time.

import { Board, Chart } from "./chart.js";
import { START, meanBetween, perSecond } from "./history.js";
import { bitRate, frameRate, percent, time } from "./units.js";

export const L1_OVERHEAD_BYTES = 24;
// Bursts of a tenth of a second are not what a rate of now is; the screen in a terminal has the same columns.
const COLUMN_NS = 500e6;
const GAP_NS = 3e9;
const MOST_PAUSES = 200;

const LINES = {
  offered: { name: "offered", colour: "intended", dash: [2, 4], shape: "diamond", width: 1.6 },
  sent: { name: "sent", colour: "sent", shape: "square", width: 4, alpha: 0.6 },
  received: { name: "received", colour: "received", shape: "circle", width: 1.8 },
  lost: { name: "lost", colour: "lost", shape: "cross", width: 2 },
};
const TIMES = [
  ["mean of now", "s2", [], "diamond", null],
  ["p50", "s0", [], "circle", 0],
  ["p99", "s1", [8, 3], "triangle", 1],
  ["p99.9", "s3", [5, 3], "square", 2],
  ["max", "s5", [2, 3], "cross", 3],
];
const SHAPES = ["circle", "square", "triangle", "diamond", "cross"];
const DASHES = [[], [8, 3], [3, 3], [8, 3, 2, 3]];
const several = (names, points, short = names) =>
  names.map((name, n) => ({ name, short: short[n], colour: `s${n % 7}`, shape: SHAPES[n % SHAPES.length], dash: DASHES[n % DASHES.length], points: points(n) }));

export class Plots {
  constructor(changed) {
    // Times in which the run was paused: from, to, whether it still is.
    Object.assign(this, { board: new Board(changed), span: Infinity, unit: "frames", pauses: [], snapshot: null, top: [] });
    const chart = (title, about, more) => new Chart(this.board, { title, about, ...more });
    this.plots = {
      rates: chart("Rates", "offered, sent and received over time; the figures are in the table below.", { tell: (v) => this.tell(v) }),
      loss: chart("Loss", "frames lost a second over time.", { tell: (v) => this.tell(v) }),
      latency: chart("Latency", "percentiles since the start, and the mean of now, over time.", { scale: "log", tell: time }),
      lateness: chart("Lateness", "how long after their time frames left.", { scale: "log", tell: time }),
      streams: chart("Streams received", "frames received a second of single streams, over time.", { tell: frameRate }),
      losses: chart("Streams lost", "frames lost a second of single streams, over time.", { tell: frameRate }),
      cores: chart("Cores", "share of time that the cores of this host were busy.", { tell: percent }),
      workers: chart("Workers", "frames a second of each sending thread.", { tell: frameRate }),
    };
    this.plots.cores.least = 1;
    for (const plot of Object.values(this.plots)) plot.element.hidden = true;
  }

  tell(v) {
    return this.unit === "frames" && !this.snapshot?.endpoint ? frameRate(v) : bitRate(v);
  }

  get elements() {
    return this.board.charts.map((chart) => chart.element);
  }

  close() {
    this.board.close();
  }

  // What a snapshot says of pauses.
  moment({ phase, elapsed_ns: t }) {
    const last = this.pauses.at(-1);
    if (phase === "paused" && last?.[2]) last[1] = t;
    else if (phase === "paused") this.pauses.push([t, t, true]), this.pauses.splice(0, this.pauses.length - MOST_PAUSES);
    else if (last?.[2]) (last[1] = t), (last[2] = false);
  }

  // Draws what `history` has; `top` are the numbers and names of the streams that are drawn.
  draw(history, snapshot, top) {
    Object.assign(this, { history, snapshot, top });
    const { board, plots } = this;
    const end = history.newest.t;
    board.to = Math.max(end, 1e9);
    board.from = Math.max(0, board.to - this.span);
    if (board.cursor !== null && board.cursor < board.from) board.cursor = null;
    const points = history.sampled(board.from, Math.max(COLUMN_NS, board.grain()));
    // A rate of the first few milliseconds is none.
    if (points.length > 1 && points[0].t < COLUMN_NS / 2) points.shift();
    // What is missing between two points is left out of the lines.
    const gap = Math.max(GAP_NS, 4 * history.step, 2.5 * board.grain());
    const pairs = [];
    for (let n = 0; n < points.length; n++) {
      const before = points[n - 1] ?? (points[n].t < 2e9 ? START : null);
      if (before && points[n].t > before.t) pairs.push([points[n], before, points[n].t - before.t > gap]);
    }
    // A value that is null is a gap; of one that is undefined nothing new is known.
    const series = (of) => pairs.flatMap(([now, before, isGap]) => {
      const value = of(now, before);
      if (value === undefined) return [];
      return isGap ? [[before.t, null], [now.t, value]] : [[now.t, value]];
    });
    const shaded = this.pauses.map(([from, to]) => [from, to]);
    for (const plot of Object.values(plots)) plot.pauses = shaded;
    this.plotRates(series);
    for (const of of ["latency", "lateness"]) {
      const lines = pairs.some(([now]) => now[of]) ? TIMES.map(([name, colour, dash, shape, place]) => ({
        name, short: name.replace(" of now", ""), colour, dash, shape, width: place === null ? 2.6 : 1.7,
        points: series((now, before) => (place === null ? meanBetween(now[of], before[of]) : now[of]?.[place] ?? null)),
      })) : [];
      plots[of].show(lines);
    }
    this.plotStreams(series);
    this.plotCores(series);
    for (const plot of board.charts) plot.draw();
  }

  plotRates(series) {
    const { plots, unit, snapshot } = this;
    const known = this.history.newest;
    if (snapshot?.endpoint) {
      const of = (key) => series((now, before) => { const is = perSecond(now, before, (p) => p[key]); return is === null ? null : is * 8; });
      plots.rates.show([{ ...LINES.sent, points: of("endpointSent") }, { ...LINES.received, points: of("endpointReceived") }]);
      return plots.loss.show([]);
    }
    const measure = (frames, octets) => (now, before) => {
      const is = perSecond(now, before, (p) => p[frames]);
      if (unit === "frames" || is === null) return is;
      // Frames that were due, or were lost, have the mean size of those that were sent.
      const size = octets ? null : (now.sent ?? now.received) ? (now.sentBytes ?? now.receivedBytes) / (now.sent ?? now.received) : 0;
      const perBytes = octets ? perSecond(now, before, (p) => p[octets]) : is * size;
      return 8 * (perBytes + (unit === "l1" ? is * L1_OVERHEAD_BYTES : 0));
    };
    const lines = [["offered", "intended", null], ["sent", "sent", "sentBytes"], ["received", "received", "receivedBytes"]].filter(([, key]) => known[key] !== null);
    plots.rates.show(lines.map(([name, key, octets]) => ({ ...LINES[name], points: series(measure(key, octets)) })));
    plots.loss.show(known.lost === null ? [] : [{ ...LINES.lost, points: series(measure("lost", null)) }]);
  }

  plotStreams(series) {
    const { plots, top } = this;
    // A single stream is the whole.
    const shown = top.length > 1 ? top : [];
    const names = shown.map(([n, name]) => `${n}${name ? ` ${name.slice(0, 40)}` : ""}`);
    // Streams are looked at more seldom than the rest: a rate is one from look to look.
    const of = (place) => (n) => {
      let then = null;
      return series((now, before) => {
        then ??= before;
        const key = shown[n][0], a = now.streams[key], b = then.streams[key] ?? (then === START ? [0, 0] : null);
        const span = now.streamsAt - then.streamsAt;
        if (!a || (b && span <= 0)) return undefined;
        then = now;
        return b ? (Math.max(0, a[place] - b[place]) * 1e9) / span : undefined;
      });
    };
    const numbers = shown.map(([n]) => `${n}:`);
    plots.streams.show(several(names, of(0), numbers));
    plots.losses.show((this.snapshot?.streams ?? []).some((s) => s.lost_frames > 0) ? several(names, of(1), numbers) : []);
  }

  plotCores(series) {
    const { plots } = this, { cores, workers } = this.history.newest;
    const share = (n) => series((now, before) => {
      const [a, b] = [now.cores[n], before.cores[n]];
      return a && b && a[1] > b[1] ? 1 - (a[2] - b[2]) / (a[1] - b[1]) : undefined;
    });
    plots.cores.show(several(cores.map(([n]) => `cpu${n}`), share));
    const frames = (n) => series((now, before) => {
      const [a, b] = [now.workers[n], before === START ? [null, 0] : before.workers[n]];
      return a && b && now.t > before.t ? (Math.max(0, a[1] - b[1]) * 1e9) / (now.t - before.t) : null;
    });
    plots.workers.show(workers.length > 1 ? several(workers.map(([cpu], n) => `worker ${n}${cpu === null ? "" : ` (cpu${cpu})`}`), frames) : []);
  }
}
