// The figures of a run as tiles and tables, in the names and units of the screen in a terminal.

import { fill, make, say, table } from "./dom.js";
import { START, meanBetween, perSecond } from "./history.js";
import { L1_OVERHEAD_BYTES } from "./plots.js";
import { bitRate, bytes, count, frameRate, percent, time } from "./units.js";

const MOST_ROWS = 50;
const ORDERS = ["loss", "rate", "number"];
// Tables that stand before the charts; the others stand behind them.
const FIRST = ["search", "trials"];

const tile = (name, value, more, kind) => ({ name, value, more, kind });

// Busy share and share in interrupts of each core between two points.
const busy = (now, before) =>
  (now?.cores ?? []).flatMap(([n, total, idle, interrupts], place) => {
    const then = before?.cores[place];
    if (!then || then[0] !== n || total <= then[1]) return [];
    const ticks = total - then[1];
    return [[n, 1 - (idle - then[2]) / ticks, (interrupts - then[3]) / ticks]];
  });

export class Figures {
  // `changed` is called when something has to be drawn anew.
  constructor(changed) {
    Object.assign(this, { changed, order: 0, top: [], isOver: false });
    this.tiles = make("div", { class: "tiles" });
    this.streams = make("h3", {}, "Streams");
    this.by = make("button", { type: "button", class: "small", "aria-keyshortcuts": "s", click: () => this.reorder() }, "by loss");
    this.sheets = {
      figures: table("Frames", ["", "frames", "now", "layer 2", "layer 1", "whole run"]),
      latency: table("Percentiles since the start", ["", "p50", "p99", "p99.9", "max", "mean", "mean of now"]),
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
    const { card } = this.sheets.streams;
    card.querySelector("caption").className = "unseen";
    card.prepend(make("div", { class: "line" }, this.streams, this.by));
  }

  get first() {
    return FIRST.map((name) => this.sheets[name].card);
  }

  get rest() {
    return Object.keys(this.sheets).filter((name) => !FIRST.includes(name)).map((name) => this.sheets[name].card);
  }

  reorder() {
    this.order = (this.order + 1) % ORDERS.length;
    say(this.by, `by ${ORDERS[this.order]}`);
    this.changed();
  }

  drawFigures(now, point, before) {
    const figures = [], tiles = [];
    const seconds = now.elapsed_ns / 1e9;
    const average = (frames) => (seconds > 0 ? frameRate(frames / seconds) : "");
    const told = (value, tell) => (value === null ? "-" : tell(value));
    // A run that is over has no rate of now.
    const over = this.isOver;
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
    const { tiles: place } = this;
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

  // Tables that may be long.
  drawLong(now, point, before) {
    this.drawStreams(now, point, before);
    this.drawOthers(now, point, before);
    this.drawSearch(now);
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
    const rows = all.map(({ s, rate: is, share }) => [`${s.stream}${s.name ? ` ${s.name}` : ""}`, count(s.received.frames), is === null || this.isOver ? "-" : frameRate(is), count(s.lost_frames), percent(share),
      time(s.latency_mean_ns ?? NaN), time(s.latency_max_ns ?? NaN)]);
    this.sheet("streams", rows, (row, n) => row.classList.toggle("fault", all[n].s.lost_frames > 0));
    const beyond = Math.max(0, all.length - MOST_ROWS) + (now.streams_beyond ?? 0);
    say(this.streams, beyond ? `Streams, and ${count(beyond)} that are not shown` : "Streams");
    this.top = all.slice(0, 6).map(({ s }) => [s.stream, s.name]);
  }

  drawOthers(now, point, before) {
    const older = before ? this.older(now) : null;
    this.sheet("passages", (now.forwarding ?? []).map((p, n) => {
      const is = before && !this.isOver ? perSecond(point, before, (at) => (at === START ? 0 : at.passages[n])) : null;
      const not = Math.max(0, p.received.frames - p.forwarded.frames);
      return [`${p.from} → ${p.to}`, count(p.received.frames), is === null ? "-" : frameRate(is), count(p.forwarded.frames), count(not)];
    }));
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
  older(now) {
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
}
