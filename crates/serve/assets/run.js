// The view of one run: how it stands, its charts, what can be done to it, and at the end its verdict.

import { Events, download, get, hasToken, send } from "./api.js";
import { Board, Chart } from "./chart.js";
import { commandOf, settings } from "./command.js";
import { $, fill, make, say, table } from "./dom.js";
import { History, START, meanBetween, perSecond } from "./history.js";
import { ahead, bitRate, bytes, clock, count, frameRate, percent, rate, time } from "./units.js";

const L1_OVERHEAD_BYTES = 24;
// At most ten pictures a second.
const FRAME_MS = 100;
// Charts and long tables have a point each half a second; a cursor that moves is followed at once.
const CHART_MS = 400;
const MOST_NOTES = 200;
const MOST_ROWS = 50;
const SPANS = [["1 min", 60e9], ["10 min", 600e9], ["all", Infinity]];
const ORDERS = ["loss", "rate", "number"];
const OVER = ["done", "short", "failed", "aborted"];
// Bursts of a tenth of a second are not what a rate of now is; the screen in a terminal has the same columns.
const COLUMN_NS = 500e6;
const GAP_NS = 3e9;

export const isOver = (state) => OVER.includes(state);
export const stateClass = (state) => (state === "done" ? "done" : state === "failed" || state === "aborted" ? "failed" : state === "short" || state === "paused" ? "short" : "going");
export const title = (run) => run.job?.name ?? `netdyno ${run.kind}`;

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

export class RunView {
  constructor(place, id, { speak, connection }) {
    Object.assign(this, { place, id, speak, connection, history: new History(), notes: [], order: 0, span: Infinity, unit: "frames" });
    this.snapshot = null;
    this.run = null;
    this.build();
    this.visible = () => document.hidden || this.board.changed();
    document.addEventListener("visibilitychange", this.visible);
    this.keys = (event) => this.key(event);
    document.addEventListener("keydown", this.keys);
    settings().then(() => this.changed(), () => {});
    this.listen();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
    this.events.close();
    this.board.close();
    document.removeEventListener("visibilitychange", this.visible);
    document.removeEventListener("keydown", this.keys);
    this.place.replaceChildren();
  }

  listen() {
    this.events?.close();
    this.events = new Events(`runs/${this.id}/events`, {
      on: (name, data) => this.on(name, data),
      state: (text, alive) => this.connection(text, alive),
      gone: (status) => this.gone(status),
    });
  }

  on(name, data) {
    if (name === "hello") {
      // A server that was started anew counts its runs from one again.
      if (this.run && data.run.started_at !== this.run.started_at) {
        this.history.clear();
        this.tell("another run: the server was started anew");
      }
      this.notes = data.notes.slice(-MOST_NOTES);
      this.put(data.run);
      for (const moment of data.history) this.moment(moment.snapshot);
    } else if (name === "moment") this.moment(data.snapshot);
    else if (name === "notice") {
      this.notes.push(data);
      this.notes.splice(0, this.notes.length - MOST_NOTES);
    } else if (name === "end") {
      this.put(data.run);
      this.finish();
    }
    this.changed();
  }

  async gone(status) {
    if (status === 401 || status === 403) return this.connection("not permitted", false, status);
    try {
      const run = await get(`runs/${this.id}`);
      if (this.closed) return;
      if (run.snapshot) this.moment(run.snapshot);
      this.put(run);
      this.connection("connected", true);
      this.finish();
    } catch (error) {
      if (this.closed) return;
      if (error.status === 0) return void setTimeout(() => this.closed || this.gone(status), 2000);
      this.connection("connected", true);
      say(this.parts.state, this.run ? "gone" : "no such run");
      this.tell(this.run ? "The server no longer has this run: what is shown is what it last said." : "There is no such run.");
      this.lost = true;
      this.controls();
    }
    this.changed();
  }

  moment(snapshot) {
    // A greeting after a break tells what is known already.
    if (!this.history.push(snapshot)) return;
    this.snapshot = snapshot;
    const last = this.pauses.at(-1);
    if (snapshot.phase === "paused") {
      if (last && last[2]) last[1] = snapshot.elapsed_ns;
      else this.pauses.push([snapshot.elapsed_ns, snapshot.elapsed_ns, true]), this.pauses.splice(0, this.pauses.length - 200);
    } else if (last?.[2]) (last[1] = snapshot.elapsed_ns), (last[2] = false);
    if (this.run && !isOver(this.run.state)) {
      const state = { running: "running", paused: "paused", settling: "ending", ended: "ending" }[snapshot.phase] ?? snapshot.phase;
      if (state !== this.run.state) this.put({ ...this.run, state });
    }
  }

  put(run) {
    const before = this.run?.state;
    this.run = run;
    document.title = `${run.state} · ${title(run)} · netdyno`;
    if (run.state !== before) this.speak(`${title(run)}: ${run.state}`);
    this.controls();
  }

  // Figures of a run that is over come from its report.
  async finish() {
    if (!isOver(this.run.state)) return;
    const { verdict } = this.parts;
    const reasons = this.run.verdict?.reasons ?? [];
    const words = { done: "Done", short: "It fell short", failed: "Failed", aborted: "Aborted: there is no result" };
    verdict.className = `verdict ${stateClass(this.run.state)}`;
    verdict.hidden = false;
    verdict.replaceChildren(make("h2", {}, words[this.run.state]));
    const { error } = this.run;
    if (error) verdict.append(make("p", {}, error.message), ...(error.remedy ? [make("p", {}, error.remedy)] : []));
    const told = reasons.map((reason) => make("li", {}, typeof reason === "string" ? reason : reason.text ?? JSON.stringify(reason)));
    if (told.length) verdict.append(make("ul", {}, ...told));
    if (this.run.state === "aborted" || this.run.state === "failed") return;
    const links = ["html", "json", "csv"].map((kind) => this.reportLink(kind));
    verdict.append(make("p", { class: "links" }, "Report: ", ...links.flatMap((link, n) => (n ? [" · ", link] : [link]))),
      make("p", { class: "links" }, make("a", { href: `#/new?like=${this.id}` }, "Use this job for a new one")));
    try {
      const report = await get(`runs/${this.id}/report.json?wait=10s`);
      if (!this.closed) this.report(report);
    } catch {
      // The links say the same.
    }
  }

  reportLink(kind) {
    const path = `runs/${this.id}/report.${kind}`;
    if (!hasToken()) return make("a", { href: `/api/v1/${path}`, target: kind === "html" ? "_blank" : null, rel: "noopener" }, kind.toUpperCase());
    const fetched = () => download(path, `${this.id}.${kind}`).catch((error) => this.tell(error.message));
    return make("button", { type: "button", class: "link", click: fetched }, kind.toUpperCase());
  }

  report(report) {
    const { result } = report;
    const { tx, rx, loss } = result, now = this.snapshot ?? { run: { command: report.command }, elapsed_ns: tx?.duration_ns ?? 0 };
    const counted = (part) => (part ? { frames: part.frames, bytes: part.bytes } : null);
    this.snapshot = {
      ...now, elapsed_ns: tx?.duration_ns || rx?.duration_ns || now.elapsed_ns, intended_frames: tx?.intended_frames ?? now.intended_frames,
      tx: counted(tx) ?? now.tx, rx: counted(rx) ?? now.rx, lost_frames: loss?.frames ?? now.lost_frames,
      latency_ns: result.latency_ns ?? now.latency_ns, lateness_ns: result.lateness_ns ?? now.lateness_ns,
    };
    // A page that was opened after the end, or has seen nothing else than that.
    if (this.history.points.length < 3 && report.intervals?.length) {
      this.history.clear();
      for (const point of intervals(report)) this.history.push(point);
      this.plots.latency.rename("Latency of each interval");
    }
    this.changed();
  }

  // --- what can be done

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input, select, textarea, summary")) return;
    // Space on a button presses it, and nothing else.
    if (event.key === " " && event.target.closest("button, a")) return;
    const act = {
      " ": () => this.toggle(), "+": () => this.nudge(10), "=": () => this.nudge(10), "-": () => this.nudge(-10), 0: () => this.percent(100),
      s: () => this.reorder(), q: () => this.stop(), "?": () => $("help").showModal(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  tell(text) {
    say(this.parts.answer, text);
    if (text) this.speak(text);
  }

  async ask(method, path, body, done) {
    this.tell("");
    try {
      const said = await send(method, `runs/${this.id}${path}`, body);
      if (this.closed) return;
      if (said?.run) this.put(said);
      done?.(said);
    } catch (error) {
      if (!this.closed) this.tell(error.message);
    }
  }

  may() {
    return this.run && !this.lost && !isOver(this.run.state);
  }

  toggle() {
    if (!this.may()) return this.tell("The run is over: nothing can be changed any more.");
    return this.ask("POST", this.run.state === "paused" ? "/resume" : "/pause");
  }

  nudge(by) {
    const now = this.asked ?? this.snapshot?.rate_percent ?? 100;
    this.percent(Math.min(1000, Math.max(10, now + by)));
  }

  percent(percent) {
    if (!this.may()) return this.tell("The run is over: nothing can be changed any more.");
    this.asked = percent;
    return this.ask("PATCH", "", { percent }, (said) => this.tell(`The rate is ${said?.percent ?? percent} % of what was asked for.`)).finally(() => (this.asked = null));
  }

  rate(text) {
    const share = /^\s*(\d+)\s*%\s*$/.exec(text);
    if (share) return this.percent(Number(share[1]));
    return this.ask("PATCH", "", { rate: text.trim() }, (said) => this.tell(`The rate is ${said?.percent} % of what was asked for.`));
  }

  async stop() {
    if (!this.may()) return this.tell("The run is over already.");
    if (await ask("End this run?", "Its result is of what was done until then.")) return this.ask("POST", "/stop");
  }

  async abort() {
    if (this.may() && (await ask("Abort this run?", "There will be no result."))) return this.ask("POST", "/abort");
  }

  reorder() {
    this.order = (this.order + 1) % ORDERS.length;
    say(this.parts.order, `by ${ORDERS[this.order]}`);
    this.board.changed();
  }

  controls() {
    const { pause, tools, rateForm } = this.parts;
    const may = Boolean(this.may());
    tools.hidden = rateForm.hidden = !may;
    say(pause, this.run?.state === "paused" ? "Resume" : "Pause");
  }

  // --- how it looks

  build() {
    const button = (text, click, more = {}) => make("button", { type: "button", click, ...more }, text);
    this.pauses = [];
    const parts = (this.parts = {
      title: make("h1", { id: "run-title" }, this.id),
      state: make("b", { class: "badge" }, "connecting"),
      clock: make("span", { class: "mono" }),
      way: make("p", { class: "soft" }),
      command: make("pre", { class: "command" }),
      verdict: make("div", { class: "verdict", hidden: true }),
      answer: make("p", { class: "answer" }),
      tiles: make("div", { class: "tiles" }),
      pause: button("Pause", () => this.toggle(), { "aria-keyshortcuts": "Space" }),
      rateText: make("input", { id: "rate-by-hand", autocomplete: "off", spellcheck: "false", placeholder: "2mpps or 50 %", size: "12" }),
      streams: make("h3", {}, "Streams"),
      order: button("by loss", () => this.reorder(), { class: "small", "aria-keyshortcuts": "s" }),
      warnings: make("div", { class: "warnings", hidden: true }, make("h3", {}, "Warnings"), make("ul")),
      notes: make("ol", { class: "notes" }),
    });
    parts.tools = make("div", { class: "buttons" }, parts.pause, button("−10 %", () => this.nudge(-10), { "aria-label": "slower, by 10 %" }),
      button("+10 %", () => this.nudge(10), { "aria-label": "faster, by 10 %" }), button("100 %", () => this.percent(100)),
      button("Stop", () => this.stop(), { class: "strong" }), button("Abort", () => this.abort()), button("Keys", () => $("help").showModal(), { class: "keys" }));
    const set = (event) => {
      event.preventDefault();
      if (parts.rateText.value.trim()) this.rate(parts.rateText.value);
    };
    parts.rateForm = make("form", { class: "inline", submit: set }, make("label", { for: "rate-by-hand" }, "Rate by hand"), parts.rateText, make("button", { type: "submit" }, "Set"));
    this.tables();
    this.charts();
    const windows = make("div", { class: "buttons", role: "group", "aria-label": "Time that the charts show" }, ...SPANS.map(([text, span]) =>
      button(text, (event) => this.window(span, event.currentTarget), { class: "small", "aria-pressed": String(span === this.span) })));
    const units = make("select", { id: "unit", change: (event) => ((this.unit = event.target.value), this.board.changed()) },
      ...[["frames", "frames"], ["l2", "bits, layer 2"], ["l1", "bits, layer 1"]].map(([value, text]) => make("option", { value }, text)));
    const { figures, latency } = this.sheets;
    this.place.replaceChildren(
      make("div", { class: "head" }, make("div", { class: "line" }, parts.title, parts.state, parts.clock), parts.way,
        make("div", { class: "line" }, parts.tools, parts.rateForm), parts.answer),
      parts.verdict, parts.tiles, parts.warnings, this.sheets.search.card, this.sheets.trials.card,
      make("div", { class: "line bar" }, make("h2", {}, "Over time"), windows, make("label", { for: "unit", class: "soft" }, "in "), units),
      make("div", { class: "charts" }, ...this.board.charts.map((chart) => chart.element)),
      make("h2", {}, "Figures"), figures.card, latency.card,
      ...["streams", "passages", "other", "cores", "workers", "queues", "counters"].map((name) => this.sheets[name].card),
      make("details", { open: true }, make("summary", {}, "Notes"), make("div", { class: "long", tabindex: "0", role: "region", "aria-label": "Notes" }, parts.notes)),
      make("details", {}, make("summary", {}, "Command line"), parts.command),
    );
    this.sheets.streams.card.querySelector("caption").className = "unseen";
    this.sheets.streams.card.prepend(make("div", { class: "line" }, parts.streams, parts.order));
    this.controls();
  }

  tables() {
    const last = ["now p50", "p99", "p99.9", "max", "mean", "mean of now"];
    this.sheets = {
      figures: table("Frames", ["", "frames", "now", "layer 2", "layer 1", "whole run"]),
      latency: table("Percentiles since the start", ["", ...last.map((text) => text.replace("now ", ""))]),
      search: table("Search", []),
      trials: table("Trials", ["trial", "load", "for", "lost", "p99", "verdict"]),
      streams: table("Streams", ["stream", "received", "now", "lost", "share", "mean", "max"]),
      passages: table("Forwarding", ["from, to", "received", "now", "forwarded", "not"]),
      other: table("More", ["", "", "now"]),
      cores: table("Cores", ["core", "busy", "interrupts"]),
      workers: table("Workers", ["worker", "CPU", "frames", "now", "busy"]),
      queues: table("Queues", ["queue", "packets", "now"]),
      counters: table("Where frames may have gone", ["counter", "rise", "what it says"]),
    };
    for (const sheet of Object.values(this.sheets)) sheet.card.hidden = true;
  }

  charts() {
    this.board = new Board(() => ((this.charted = -CHART_MS), this.changed()));
    const chart = (title, about, more) => new Chart(this.board, { title, about, ...more });
    this.plots = {
      rates: chart("Rates", "offered, sent and received over time; the figures are in the table below.", { tell: (v) => this.tellRate(v) }),
      loss: chart("Loss", "frames lost a second over time.", { tell: (v) => this.tellRate(v) }),
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

  window(span, pressed) {
    this.span = span;
    for (const button of pressed.parentElement.children) button.setAttribute("aria-pressed", String(button === pressed));
    this.board.changed();
  }

  tellRate(v) {
    return this.unit === "frames" && !this.snapshot?.endpoint ? frameRate(v) : bitRate(v);
  }

  changed() {
    if (this.closed || document.hidden || this.timer) return;
    const wait = Math.max(0, FRAME_MS - (performance.now() - (this.drawn ?? -FRAME_MS)));
    this.timer = setTimeout(() => {
      this.frame = requestAnimationFrame(() => {
        this.timer = null;
        this.drawn = performance.now();
        if (!this.closed) this.draw();
      });
    }, wait);
  }

  draw() {
    this.pictures = (this.pictures ?? 0) + 1;
    this.place.dataset.pictures = this.pictures;
    const { run, snapshot, history, parts } = this;
    if (!run) return;
    say(parts.title, title(run));
    say(parts.state, this.lost ? "gone" : run.state);
    parts.state.className = `badge ${stateClass(this.lost ? "failed" : run.state)}`;
    say(parts.command, commandOf(run.job) ?? run.command ?? "");
    this.drawNotes();
    if (!snapshot && !history.newest) return;
    const before = history.secondAgo();
    if (snapshot) {
      this.drawHead(snapshot);
      this.drawFigures(snapshot, history.newest, before);
    }
    const now = performance.now();
    if (now - (this.charted ?? -CHART_MS) < CHART_MS && !isOver(run.state)) return;
    this.charted = now;
    if (snapshot) {
      this.drawStreams(snapshot, history.newest, before);
      this.drawOthers(snapshot, history.newest, before);
      this.drawSearch(snapshot);
    }
    this.drawCharts();
  }

  drawHead(now) {
    const { parts } = this, { run: of } = now;
    const [tx, rx] = [of.sends_on, of.measures_on];
    const way = tx && rx ? (tx === rx ? `${tx} and back` : `${tx} → ${rx}`) : tx ?? rx ?? "";
    say(parts.way, [way, of.engine ?? of.meter, `run ${this.id}`].filter(Boolean).join(" · "));
    let text = clock(now.elapsed_ns);
    if (!isOver(this.run.state) && now.remaining_ns != null) text += `, ${now.remaining_at_most ? "at most " : ""}${ahead(now.remaining_ns)} left`;
    if (now.rate_percent && now.rate_percent !== 100) text += ` at ${now.rate_percent} %`;
    say(parts.clock, text);
    const warnings = now.warnings ?? [];
    parts.warnings.hidden = warnings.length === 0;
    list(parts.warnings.lastChild, warnings);
  }

  drawNotes() {
    const { notes } = this.parts;
    list(notes, this.notes.length ? this.notes.map((note) => `${note.text}${note.remedy ? ` (${note.remedy})` : ""}`) : ["Nothing yet."]);
  }

  drawFigures(now, point, before) {
    const figures = [], tiles = [];
    const seconds = now.elapsed_ns / 1e9;
    const average = (frames) => (seconds > 0 ? frameRate(frames / seconds) : "");
    const told = (value, tell) => (value === null ? "-" : tell(value));
    // A run that is over has no rate of now.
    const over = isOver(this.run.state);
    const rateOf = (of) => (before && !over ? perSecond(point, before, of) : null);
    const mean = (frames) => (over ? average(frames) : null);
    if (now.intended_frames != null) {
      const is = rateOf((p) => p.intended);
      figures.push(["offered", count(now.intended_frames), told(is, frameRate), "", "", average(now.intended_frames)]);
      tiles.push(tile("offered", mean(now.intended_frames) ?? told(is, frameRate), `${count(now.intended_frames)} frames due`, "intended"));
    }
    const forwards = { reflect: "sent back", bridge: "forwarded", impair: "forwarded" }[now.run.command] ?? "sent";
    for (const [name, total, frames, octets] of [[forwards, now.tx, "sent", "sentBytes"], ["received", now.rx, "received", "receivedBytes"]]) {
      if (!total) continue;
      const [f, b] = [rateOf((p) => p[frames]), rateOf((p) => p[octets])];
      const l1 = f === null ? null : (b + f * L1_OVERHEAD_BYTES) * 8;
      figures.push([name, count(total.frames), told(f, frameRate), told(b === null ? null : b * 8, bitRate), told(l1, bitRate), average(total.frames)]);
      tiles.push(tile(name, mean(total.frames) ?? told(f, frameRate), `${count(total.frames)} frames, ${bytes(total.bytes)}`, frames));
    }
    if (now.lost_frames != null) {
      const of = Math.max(now.lost_frames, (now.tx ?? now.rx)?.frames ?? 0);
      const ratio = of ? now.lost_frames / of : 0;
      figures.push(["lost", count(now.lost_frames), told(rateOf((p) => p.lost), frameRate), "", "", percent(ratio)]);
      tiles.push(tile("lost", percent(ratio), `${count(now.lost_frames)} frames`, "lost"));
    }
    for (const [name, n] of [["reordered", now.reordered_frames], ["duplicated", now.duplicated_frames], ["sent late", now.late_frames], ["with a trailer", now.trailed_frames]]) {
      if (n != null) figures.push([name, count(n), "", "", "", ""]);
    }
    this.sheet("figures", figures, (row) => (row.dataset.name = row.cells[0].textContent));
    const rows = [["latency", now.latency_ns, "latency"], ["lateness", now.lateness_ns, "lateness"]].filter(([, d]) => d?.count);
    this.sheet("latency", rows.map(([name, d, of]) => [name, ...[d.p50, d.p99, d.p999, d.max, d.mean].map(time), over ? "-" : time(meanBetween(point?.[of], before?.[of]) ?? NaN)]));
    if (now.latency_ns?.count) tiles.push(tile("latency p99", time(now.latency_ns.p99), `p50 ${time(now.latency_ns.p50)}, max ${time(now.latency_ns.max)}`, "latency"));
    this.drawTiles(tiles);
  }

  drawTiles(tiles) {
    const { tiles: place } = this.parts;
    while (place.children.length > tiles.length) place.lastChild.remove();
    tiles.forEach(({ name, value, more, kind }, n) => {
      const tile = place.children[n] ?? place.appendChild(make("div", { class: "tile" }, make("span"), make("b"), make("small")));
      tile.className = `tile ${kind}`;
      [name, value, more].forEach((text, m) => say(tile.children[m], text));
    });
  }

  sheet(name, rows, decorate) {
    const { card, body } = this.sheets[name];
    card.hidden = rows.length === 0;
    fill(body, rows.slice(0, MOST_ROWS), decorate);
  }

  drawStreams(now, point, before) {
    const all = (now.streams ?? []).map((s) => {
      const then = before?.streams[s.stream]?.[0] ?? (before === START ? 0 : null);
      const span = point ? point.streamsAt - (before?.streamsAt ?? 0) : 0;
      const sent = s.received.frames - Math.min(s.duplicated_frames, s.received.frames) + s.lost_frames;
      return { s, rate: then === null || span <= 0 ? null : (Math.max(0, s.received.frames - then) * 1e9) / span, share: sent ? s.lost_frames / sent : 0 };
    });
    const by = [(a, b) => b.s.lost_frames - a.s.lost_frames, (a, b) => (b.rate ?? -1) - (a.rate ?? -1), () => 0][this.order];
    all.sort((a, b) => by(a, b) || a.s.stream - b.s.stream);
    const rows = all.map(({ s, rate: is, share }) => [`${s.stream}${s.name ? ` ${s.name}` : ""}`, count(s.received.frames), is === null || isOver(this.run.state) ? "-" : frameRate(is), count(s.lost_frames), percent(share),
      time(s.latency_mean_ns ?? NaN), time(s.latency_max_ns ?? NaN)]);
    this.sheet("streams", rows, (row, n) => row.classList.toggle("fault", all[n].s.lost_frames > 0));
    const beyond = Math.max(0, all.length - MOST_ROWS) + (now.streams_beyond ?? 0);
    say(this.parts.streams, beyond ? `Streams, and ${count(beyond)} that are not shown` : "Streams");
    this.top = all.slice(0, 6).map(({ s }) => [s.stream, s.name]);
  }

  drawOthers(now, point, before) {
    const older = before ? this.older(before) : null;
    this.sheet("passages", (now.forwarding ?? []).map((p) => [`${p.from} → ${p.to}`, count(p.received.frames), "-", count(p.forwarded.frames), count(Math.max(0, p.received.frames - p.forwarded.frames))]));
    const more = [];
    for (const [what, of] of [["connections", now.connections], ["flows", now.flows], ["collected", now.collected], ["cloned", now.cloned], ["endpoint", now.endpoint]]) {
      for (const [key, value] of Object.entries(of ?? {})) {
        if (value == null) continue;
        const words = `${what}: ${key.replace(/_(bytes|ns)$/, "").replaceAll("_", " ")}`;
        more.push([words, key.endsWith("_ns") ? time(value) : key.endsWith("_bytes") ? bytes(value) : count(value), ""]);
      }
    }
    const [a, b] = [point, before];
    if (now.endpoint && b) {
      const sent = perSecond(a, b, (p) => p.endpointSent), got = perSecond(a, b, (p) => p.endpointReceived);
      for (const row of more) {
        if (row[0] === "endpoint: sent" && sent !== null) row[2] = bitRate(sent * 8);
        if (row[0] === "endpoint: received" && got !== null) row[2] = bitRate(got * 8);
      }
    }
    this.sheet("other", more);
    this.sheet("cores", busy(point, before).map(([n, is, interrupts]) => [`cpu${n}`, percent(is), percent(interrupts)]));
    this.sheet("workers", (now.workers ?? []).map((w, n) => {
      const then = before?.workers[n] ?? (before === START ? [null, 0, 0] : null), span = point.t - (before?.t ?? 0);
      const is = then && span > 0 ? ((w.frames - then[1]) * 1e9) / span : null;
      const cpu = w.cpu_ns != null && then?.[2] != null && span > 0 ? (w.cpu_ns - then[2]) / span : null;
      return [String(n), w.cpu == null ? "-" : `cpu${w.cpu}`, count(w.frames), is === null ? "-" : frameRate(Math.max(0, is)), cpu === null ? "-" : percent(Math.max(0, cpu))];
    }));
    this.sheet("queues", (now.queues ?? []).map((q, n) => {
      const was = older?.queues[n], span = now.counters_elapsed_ns - (older?.at ?? 0);
      const is = was !== undefined && span > 0 ? frameRate((Math.max(0, q.packets - was) * 1e9) / span) : "-";
      return [`${q.interface} ${q.receives ? "rx" : "tx"} ${q.number}`, count(q.packets), is];
    }));
    this.sheet("counters", (now.counters ?? []).map((c) => [`${c.place} ${c.name}`, count(c.rise), c.explains]), (row) => row.cells[2].classList.add("text"));
  }

  // The queues are looked at once a second: what they were the time before.
  older() {
    const now = this.snapshot;
    if (!this.queuesNow || now.counters_elapsed_ns !== this.queuesNow.at) {
      this.queuesThen = this.queuesNow;
      this.queuesNow = { at: now.counters_elapsed_ns, queues: (now.queues ?? []).map((q) => q.packets) };
    }
    return this.queuesThen;
  }

  drawSearch(now) {
    const { search } = now;
    if (!search) return this.sheet("search", []), this.sheet("trials", []);
    const load = (v) => (search.of_rate ? frameRate(v) : count(v));
    const sizes = search.size?.[1] > 1 ? ` (${search.size[0]} of ${search.size[1]} sizes)` : "";
    const rows = [["searched for", `${search.part}, frames of ${search.frame_size} bytes${sizes}`],
      ["trial under way", `${search.trials + 1}: ${load(search.load)} for ${time(search.trial_ns)}`],
      ...(search.bounds ?? []).map((b) => [b.goal, [b.lower != null ? `${load(b.lower)} passed` : "", b.upper != null ? `${load(b.upper)} failed` : ""].filter(Boolean).join(", ") || "nothing yet"]),
      ["trials over", `${count(search.trials)}, ${count(search.passed)} passed`]];
    if (search.known) rows.push(["known", search.known]);
    this.sheet("search", rows, (row) => row.cells[1].classList.add("text"));
    this.sheet("trials", (search.rows ?? []).map((t) => [String(t.number), load(t.load), time(t.duration_ns), percent(t.loss_ratio), time(t.latency_p99_ns ?? NaN), t.verdict]),
      (row) => row.classList.toggle("fault", row.cells[5].textContent !== "passed"));
  }

  drawCharts() {
    const { board, history, plots } = this;
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
    const { plots, top = [] } = this;
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

const tile = (name, value, more, kind) => ({ name, value, more, kind });

// Busy share and share in interrupts of each core between two points.
const busy = (now, before) =>
  (now?.cores ?? []).flatMap(([n, total, idle, interrupts], place) => {
    const then = before?.cores[place];
    if (!then || then[0] !== n || total <= then[1]) return [];
    const ticks = total - then[1];
    return [[n, 1 - (idle - then[2]) / ticks, (interrupts - then[3]) / ticks]];
  });

const list = (place, texts) => {
  while (place.children.length > texts.length) place.lastChild.remove();
  texts.forEach((text, n) => say(place.children[n] ?? place.appendChild(make("li")), text));
};

// The intervals of a report, as snapshots, for a page that was opened after the end. Their percentiles are of each interval.
const intervals = (report) => {
  const sums = {};
  const sum = (key, value) => (value == null ? null : (sums[key] = (sums[key] ?? 0) + value));
  const counts = (i, way) => (i[`${way}_frames`] == null ? null : { frames: sum(`${way}f`, i[`${way}_frames`]), bytes: sum(`${way}b`, i[`${way}_bytes`] ?? 0) });
  return report.intervals.map((i) => ({
    elapsed_ns: i.end_ns,
    intended_frames: sum("intended", i.intended_frames), tx: counts(i, "tx"), rx: counts(i, "rx"), lost_frames: sum("lost", i.lost_frames),
    latency_ns: i.latency_p50_ns == null ? null : { count: 1, p50: i.latency_p50_ns, p99: i.latency_p99_ns, p999: i.latency_p999_ns, max: i.latency_max_ns, mean: NaN },
  }));
};

// A question that is answered by yes or no.
export const ask = (question, text) =>
  new Promise((resolve) => {
    const dialog = $("ask");
    say($("ask-title"), question);
    say($("ask-text"), text);
    dialog.returnValue = "no";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
  });
