// Finished runs beside each other: what their reports say, and how far each is from the first.

import { get } from "./api.js";
import { commandOf, settings } from "./command.js";
import { trend } from "./drawing.js";
import { make, table, fill } from "./dom.js";
import { bitRate, count, frameRate, percent, time } from "./units.js";

// What is compared: name, where it stands in a result, how it is told, and whether more is better (1), worse (-1) or neither (0).
const FIGURES = [
  ["offered", (r) => r.tx?.intended_frames_per_second, frameRate, 0],
  ["sent", (r) => r.tx?.frames_per_second, frameRate, 1],
  ["sent, layer 1", (r) => r.tx?.bits_per_second_l1, bitRate, 1],
  ["received", (r) => r.rx?.frames_per_second, frameRate, 1],
  ["frames sent", (r) => r.tx?.frames, count, 0],
  ["frames received", (r) => r.rx?.frames, count, 0],
  ["frames lost", (r) => r.loss?.frames, count, -1],
  ["loss", (r) => r.loss?.ratio, percent, -1],
  ["latency p50", (r) => r.latency_ns?.p50, time, -1],
  ["latency p99", (r) => r.latency_ns?.p99, time, -1],
  ["latency p99.9", (r) => r.latency_ns?.p999, time, -1],
  ["latency max", (r) => r.latency_ns?.max, time, -1],
  ["lateness p50", (r) => (r.pacing?.lateness_ns ?? r.lateness_ns)?.p50, time, -1],
  ["lateness p99", (r) => (r.pacing?.lateness_ns ?? r.lateness_ns)?.p99, time, -1],
];

const change = (value, first) => {
  if (value === first) return "same";
  if (!first) return "";
  const by = (value - first) / first;
  return `${by > 0 ? "+" : "−"}${percent(Math.abs(by))}`;
};

export class CompareView {
  constructor(place, ids) {
    this.place = place;
    this.title = make("h1", { id: "compare-title" }, "Comparison");
    place.replaceChildren(this.title);
    this.load(ids);
  }

  close() {
    this.closed = true;
    this.place.replaceChildren();
  }

  async load(ids) {
    try {
      const all = await Promise.all(ids.map(async (id) => ({ id, report: await get(`runs/${id}/report.json`), run: await get(`runs/${id}`) })));
      await settings().catch(() => {});
      if (!this.closed) this.show(all);
    } catch (error) {
      if (!this.closed) this.place.append(make("p", { role: "alert" }, error.message));
    }
  }

  show(all) {
    const heads = ["", ...all.flatMap(({ id }, n) => (n ? [id, `${id} to ${all[0].id}`] : [id]))];
    const { card, body } = table("Figures of the reports", heads);
    const rows = [["verdict", ...all.flatMap(({ run }, n) => (n ? [run.state, ""] : [run.state]))]];
    const signs = [null];
    for (const [name, of, tell, better] of FIGURES) {
      const values = all.map(({ report }) => of(report.result) ?? null);
      if (values.every((value) => value === null)) continue;
      const told = values.map((value) => (value === null ? "-" : tell(value)));
      rows.push([name, ...told.flatMap((text, n) => (n ? [text, values[n] === null || values[0] === null ? "" : change(values[n], values[0])] : [text]))]);
      signs.push(values.map((value) => (value === null || values[0] === null ? 0 : Math.sign(value - values[0]) * better)));
    }
    fill(body, rows, (row, n) => signs[n]?.forEach((sign, m) => m && row.cells[2 * m + 1].classList.add(sign > 0 ? "good" : sign < 0 ? "bad" : "even")));
    const which = make("ul", { class: "notes" }, ...all.map(({ id, run }) => make("li", {}, make("a", { href: `#/runs/${id}` }, id), ` ${run.state}, ${run.started_at}: `, make("code", {}, commandOf(run.job) ?? run.command ?? ""))));
    this.place.append(which, card);
    if (all.length > 2) this.trends(all);
    this.place.append(make("p", { class: "small" }, "For how far runs of one kind differ by themselves, repeat them, and use netdyno compare with their results."));
  }
  trends(all) {
    const ordered = [...all].sort((a, b) => (a.run.started_at < b.run.started_at ? -1 : 1));
    const known = FIGURES.filter(([, of]) => ordered.some(({ report }) => of(report.result) != null));
    const place = make("div");
    const which = make("select", { id: "trend", change: () => show() }, ...known.map(([name], n) => make("option", { value: n }, name)));
    const show = () => {
      const [name, of, tell] = known[which.value];
      place.replaceChildren(trend(ordered.map(({ id }) => id), ordered.map(({ report }) => of(report.result) ?? null), name, tell));
    };
    this.place.append(make("figure", {}, make("figcaption", {}, make("h3", {}, "From run to run"), make("span", {}, make("label", { for: "trend", class: "soft" }, "figure "), which)), place));
    show();
  }
}
