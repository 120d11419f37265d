// The view of one run: how it stands, its charts, what can be done to it, and at the end its verdict.

import { Events, download, get, hasToken, send } from "./api.js";
import { commandOf, settings } from "./command.js";
import { $, make, say } from "./dom.js";
import { distribution } from "./drawing.js";
import { Figures } from "./figures.js";
import { History } from "./history.js";
import { Plots } from "./plots.js";
import { ahead, clock } from "./units.js";

// At most ten pictures a second.
const FRAME_MS = 100;
// Charts and long tables have a point each half a second; a cursor that moves is followed at once.
const CHART_MS = 400;
const MOST_NOTES = 200;
const SPANS = [["1 min", 60e9], ["10 min", 600e9], ["all", Infinity]];
const OVER = ["done", "short", "failed", "aborted"];

export const isOver = (state) => OVER.includes(state);
export const stateClass = (state) => (state === "done" ? "done" : state === "failed" || state === "aborted" ? "failed" : state === "short" || state === "paused" ? "short" : "going");
export const title = (run) => run.job?.name ?? `netdyno ${run.kind}`;

export class RunView {
  constructor(place, id, { speak, connection }) {
    Object.assign(this, { place, id, speak, connection, history: new History(), notes: [] });
    this.snapshot = null;
    this.run = null;
    this.build();
    this.visible = () => document.hidden || this.anew();
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
    this.plots.close();
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
        this.plots.pauses = [];
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
    this.plots.moment(snapshot);
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
    const drawn = [["latency", result.latency_ns], ["lateness", result.lateness_ns ?? result.pacing?.lateness_ns]].filter(([, of]) => of?.histogram?.length > 1 && of.count > 0);
    this.parts.distributions.replaceChildren(...drawn.map(([name, of]) =>
      make("figure", {}, make("figcaption", {}, make("h3", {}, `Distribution of ${name}`)), distribution(of, name))));
    // A page that was opened after the end, or has seen nothing else than that.
    if (this.history.points.length < 3 && report.intervals?.length) {
      this.history.clear();
      for (const point of intervals(report)) this.history.push(point);
      this.plots.plots.latency.rename("Latency of each interval");
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
      s: () => this.figures.reorder(), q: () => this.stop(), "?": () => $("help").showModal(),
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

  controls() {
    const { pause, tools, rateForm } = this.parts;
    const may = Boolean(this.may());
    tools.hidden = rateForm.hidden = !may;
    say(pause, this.run?.state === "paused" ? "Resume" : "Pause");
  }

  // --- how it looks

  build() {
    const button = (text, click, more = {}) => make("button", { type: "button", click, ...more }, text);
    const parts = (this.parts = {
      title: make("h1", { id: "run-title" }, this.id),
      state: make("b", { class: "badge" }, "connecting"),
      clock: make("span", { class: "mono" }),
      way: make("p", { class: "soft" }),
      command: make("pre", { class: "command" }),
      verdict: make("div", { class: "verdict", hidden: true }),
      answer: make("p", { class: "answer" }),
      pause: button("Pause", () => this.toggle(), { "aria-keyshortcuts": "Space" }),
      rateText: make("input", { id: "rate-by-hand", autocomplete: "off", spellcheck: "false", placeholder: "2mpps or 50 %", size: "12" }),
      distributions: make("div", { class: "charts" }),
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
    this.figures = new Figures(() => this.anew());
    this.plots = new Plots(() => this.anew());
    const windows = make("div", { class: "buttons", role: "group", "aria-label": "Time that the charts show" }, ...SPANS.map(([text, span]) =>
      button(text, (event) => this.window(span, event.currentTarget), { class: "small", "aria-pressed": String(span === this.plots.span) })));
    const units = make("select", { id: "unit", change: (event) => ((this.plots.unit = event.target.value), this.anew()) },
      ...[["frames", "frames"], ["l2", "bits, layer 2"], ["l1", "bits, layer 1"]].map(([value, text]) => make("option", { value }, text)));
    this.place.replaceChildren(
      make("div", { class: "head" }, make("div", { class: "line" }, parts.title, parts.state, parts.clock), parts.way,
        make("div", { class: "line" }, parts.tools, parts.rateForm), parts.answer),
      parts.verdict, this.figures.tiles, parts.warnings, ...this.figures.first,
      make("div", { class: "line bar" }, make("h2", {}, "Over time"), windows, make("label", { for: "unit", class: "soft" }, "in "), units),
      make("div", { class: "charts" }, ...this.plots.elements), parts.distributions,
      make("h2", {}, "Figures"), ...this.figures.rest,
      make("details", { open: true }, make("summary", {}, "Notes"), make("div", { class: "long", tabindex: "0", role: "region", "aria-label": "Notes" }, parts.notes)),
      make("details", {}, make("summary", {}, "Command line"), parts.command),
    );
    this.controls();
  }

  window(span, pressed) {
    this.plots.span = span;
    for (const button of pressed.parentElement.children) button.setAttribute("aria-pressed", String(button === pressed));
    this.anew();
  }

  // All of it, charts and long tables among it.
  anew() {
    this.charted = -CHART_MS;
    this.changed();
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
    if (!history.newest) return this.drawNotes();
    const before = history.secondAgo();
    if (snapshot) {
      this.drawHead(snapshot);
      this.figures.isOver = isOver(run.state);
      this.figures.drawFigures(snapshot, history.newest, before);
    }
    const now = performance.now();
    if (now - (this.charted ?? -CHART_MS) < CHART_MS && !isOver(run.state)) return;
    this.charted = now;
    this.drawNotes();
    if (snapshot) this.figures.drawLong(snapshot, history.newest, before);
    this.plots.draw(history, snapshot, this.figures.top);
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
    say(this.parts.command, commandOf(this.run.job) ?? this.run.command ?? "");
    const { notes } = this.parts;
    list(notes, this.notes.length ? this.notes.map((note) => `${note.text}${note.remedy ? ` (${note.remedy})` : ""}`) : ["Nothing yet."]);
  }

}

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
