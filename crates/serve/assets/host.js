// What this host is, what jobs may do here, and what could be better (as `netdyno doctor` finds).

import { get } from "./api.js";
import { fill, make, stacked, stackedRow, table } from "./dom.js";
import { bitRate } from "./units.js";

const WORDS = { good: "good", note: "note", bad: "bad" };

// A grant, in words: a list, a text, or nothing.
const granted = (value) => (Array.isArray(value) ? value.join(", ") : value == null ? "" : String(value)) || "-";

export class HostView {
  constructor(place) {
    this.place = place;
    this.said = make("p", { class: "answer", role: "status" }, "Looking …");
    place.replaceChildren(make("h1", { id: "machine-title" }, "This host"), this.said);
    this.load();
  }

  close() {
    this.closed = true;
    this.place.replaceChildren();
  }

  async load() {
    try {
      const [info, found] = await Promise.all([get("info"), get("doctor")]);
      if (this.closed) return;
      this.said.remove();
      this.show(info, found);
    } catch (error) {
      if (!this.closed) this.said.textContent = error.message;
    }
  }

  show(info, found) {
    const parts = [];
    const add = (caption, heads, rows, decorate) => {
      if (!rows.length) return;
      const made = table(caption, heads);
      if (heads.length) stacked(made);
      fill(made.body, rows, (row) => (heads.length && stackedRow(row), decorate?.(row)));
      parts.push(made.card);
    };
    const { host = {}, may = {} } = info;
    add("Host", [], [["name", host.name ?? "-"], ["kernel", host.kernel ?? "-"], ["architecture", host.architecture ?? "-"], ["cores", String(host.cores ?? "-")], ["netdyno", info.version ?? "-"]]);
    add("Interfaces", ["name", "state", "speed", "MTU", "driver", "Ethernet address", "jobs may use it"],
      (found.interfaces ?? []).map((i) => [i.name, i.up ? "up" : "down", i.speed_bits_per_second ? bitRate(i.speed_bits_per_second) : "-", String(i.mtu ?? "-"), i.driver ?? "-", i.mac ?? "-", i.granted ? "yes" : "no"]));
    add("What jobs may do, beside labs of their own", [], Object.entries(may).map(([name, value]) => [name.replaceAll("_", " "), granted(value)]), (row) => row.cells[1].classList.add("text"));
    const findings = (found.diagnosis ?? found).findings ?? [];
    add("Findings", ["what", "", "found", "what it means", "what to do"],
      findings.map((f) => [`${f.area}: ${f.topic}`, make("b", { class: `badge ${f.state === "good" ? "done" : f.state === "note" ? "short" : "failed"}` }, WORDS[f.state] ?? f.state), f.found, f.means, f.command ?? ""]),
      (row) => [2, 3, 4].forEach((n) => row.cells[n].classList.add("text")));
    this.place.append(...parts);
  }
}
