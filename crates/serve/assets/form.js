// The form that starts a job, made from the settings' table that the server has: fields by heading, rare ones folded. The job itself is
// the form's only state: fields show parts of it, and whatever has no field stands in the job's own text.

import { get, send, upload } from "./api.js";
import { commandOf, settings as table } from "./command.js";
import { make, say } from "./dom.js";

const DRY_MS = 350;
const MAIN = ["what", "captures", "rate", "speed", "duration", "count", "size", "loop", "on", "between", "host", "test", "to", "server"];
// Kinds whose links and lab stand within `bench`.
const WITH_BENCH = ["trial", "search"];
const WITH_LINKS = ["send", "replay", ...WITH_BENCH];
const WITH_PAIR = ["bridge", "impair"];
const FINDS = ["throughput", "latency", "loss", "burst", "recovery", "reset", "soak", "flows"];
const FIRST = ["send", "replay", "measure", "trial", "search"];

const RECIPES = [
  ["UDP frames in a lab of its own", { kind: "send", what: "ipv4(src=10.0.0.0/16)/udp(dport=9)", lab: {}, rate: "10kpps", duration: "10s" }],
  ["Many flows, in the Internet's mix of sizes", { kind: "send", what: "ipv4(src=random(10.0.0.0/8))/udp(sport=random(1024..65535))", lab: {}, size: "imix", rate: "2kpps", duration: "10s" }],
  ["VLAN tags that vary, two deep", { kind: "send", what: "qinq(id=100)/vlan(id=1..4094)/ipv4/udp", lab: {}, rate: "2kpps", duration: "10s" }],
  ["More than a bottleneck of 20 Mbit/s lets through", { kind: "send", what: "ipv4(src=10.0.0.0/16)/udp", lab: { bottleneck: "20mbps" }, size: 1518, rate: "25mbps", duration: "10s" }],
  ["Frames from one interface to another", { kind: "send", what: "ipv4/udp", links: [{ on: "eth1", measure: "eth2" }], rate: "1mpps", duration: "10s" }],
  ["Replay a capture at a rate", { kind: "replay", captures: [], lab: {}, rate: "20mbps" }],
  ["Count what arrives", { kind: "measure", on: "eth1", duration: "10s" }],
  ["One trial at one rate", { kind: "trial", bench: { lab: {}, what: "ipv4/udp" }, rate: "1kpps", duration: "1s" }],
  ["Search for the throughput of a bottleneck", { kind: "search", find: { throughput: { finding: { precision: "5%" } } }, bench: { lab: { bottleneck: "20mbps" }, size: "1518" }, max: "40mbps", min: "1mbps", trial_duration: "500ms" }],
  ["A port scan, by a plugin", { kind: "send", plugin: { name: "tcp_port_scan", options: { dst_ip: "198.19.0.1" } }, lab: {}, rate: "1kpps", duration: "5s" }],
];

// `a.b[0].c` as steps; `[]` is the first.
const steps = (path) => path.split(/[.[]/).map((step) => (step.endsWith("]") ? Number(step.slice(0, -1) || 0) : step));

const read = (job, path) => steps(path).reduce((value, step) => value?.[step], job);

const isEmpty = (value) => value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0);

// Puts a value at a path; `undefined` takes it away, and what was only there for it.
const write = (job, path, value) => {
  const way = steps(path), last = way.pop(), held = [];
  let at = job;
  for (const [n, step] of way.entries()) {
    if (typeof at[step] !== "object" || at[step] === null) {
      if (value === undefined) return;
      at[step] = typeof (way[n + 1] ?? last) === "number" ? [] : {};
    }
    held.push([at, step]);
    at = at[step];
  }
  if (value !== undefined) return void (at[last] = value);
  if (Array.isArray(at)) at.splice(last, 1);
  else delete at[last];
  for (const [holder, step] of held.reverse()) {
    // An empty lab is a lab.
    if (step === "lab" || !isEmpty(holder[step])) break;
    if (Array.isArray(holder)) holder.splice(step, 1);
    else delete holder[step];
  }
};

// Settings that the table leaves to its clients' own ways.
const ownRows = (kind, job, rows) => {
  const own = [];
  if (kind === "search") {
    own.push({ path: "find", words: FINDS, means: (word) => ({ [word]: {} }), text: "What is searched for.", main: true });
    if (job.find?.throughput) {
      own.push({ path: "find.throughput.finding.precision", option: "--precision", value: "PERCENT", text: "How close the answer is to be.", main: true },
        { path: "find.throughput.finding.goals", option: "--goal", value: "LIMITS", many: true, text: "What has to be kept, a goal on each line: loss=0%, loss=0.1%.", main: true });
    }
  }
  const plugin = rows.find(({ path }) => /(^|\.)plugin\.name$/.test(path));
  if (plugin) own.push({ path: plugin.path.replace(/name$/, "options"), option: "--set", value: "NAME=VALUE", pairs: true, heading: plugin.heading, text: "Options of the plugin, one on each line: NAME=VALUE." });
  return own;
};

const shown = (value) => (value === undefined || value === null ? "" : Array.isArray(value) && value.every((v) => typeof v !== "object") ? value.join("\n") : typeof value === "object" ? JSON.stringify(value) : String(value));

// Files that this page has sent, by their names in jobs: a run's job can be used again.
const contents = {};

export class FormView {
  constructor(place, { speak, open, like }) {
    Object.assign(this, { place, speak, open, fields: new Map(), kindsOf: new Map(), manners: new Map() });
    this.job = structuredClone(RECIPES[0][1]);
    this.build();
    this.load(like);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.trying?.abort();
    this.place.replaceChildren();
  }

  async load(like) {
    try {
      const [kinds, info] = await Promise.all([table(), get("info").catch(() => null)]);
      if (like) {
        const { job } = await get(`runs/${like}`);
        this.job = structuredClone(job);
        delete this.job.schema;
      }
      if (this.closed) return;
      this.kinds = kinds;
      this.offer((info?.may?.interfaces ?? []).filter((name) => !name.includes("*")));
      // What interfaces there are takes the server a moment, and nobody waits for it.
      get("doctor").then(({ interfaces = [] }) => this.offer(interfaces.filter((i) => i.granted).map((i) => i.name)), () => {});
      const order = (kind) => (FIRST.includes(kind) ? FIRST.indexOf(kind) : FIRST.length);
      const names = kinds.map(({ kind }) => kind).sort((a, b) => order(a) - order(b));
      this.parts.kind.replaceChildren(...names.map((kind) => make("option", { value: kind }, kind)));
      this.render();
    } catch (error) {
      if (!this.closed) this.fault([{ message: error.message }]);
    }
  }

  // Names of interfaces, for fields that take one.
  offer(names) {
    if (this.closed) return;
    const known = new Set([...this.parts.interfaces.children].map((option) => option.value));
    this.parts.interfaces.append(...names.filter((name) => !known.has(name)).map((value) => make("option", { value })));
  }

  build() {
    const parts = (this.parts = {
      recipe: make("select", { id: "recipe", change: () => this.preset() }, make("option", { value: "" }, "choose one …"), ...RECIPES.map(([name], n) => make("option", { value: n }, name))),
      kind: make("select", { id: "kind", change: () => this.another(parts.kind.value) }),
      about: make("p", { class: "small" }),
      file: make("input", { id: "capture", type: "file", accept: ".pcap,.pcapng,.cap,.gz,.zst", change: () => this.take(parts.file.files) }),
      taken: make("p", { class: "small", role: "status" }),
      where: make("fieldset"),
      main: make("div", { class: "fields" }),
      rest: make("div"),
      command: make("pre", { class: "command", id: "command-line" }, "…"),
      faults: make("ul", { class: "faults", role: "alert" }),
      text: make("textarea", { id: "job-text", rows: "12", spellcheck: "false", change: () => this.typed() }),
      start: make("button", { type: "submit", class: "strong" }, "Start"),
      interfaces: make("datalist", { id: "interfaces" }),
    });
    const drop = make("label", { class: "drop", for: "capture" }, "Drop a capture here, or choose one: ", parts.file);
    const form = make("form", { id: "job-form", novalidate: true, submit: (event) => (event.preventDefault(), this.start()) },
      make("div", { class: "fields" }, make("div", { class: "field" }, make("label", { for: "recipe" }, "Recipe"), parts.recipe), make("div", { class: "field" }, make("label", { for: "kind" }, "Kind of job"), parts.kind)),
      parts.about, drop, parts.taken, parts.where, parts.main, parts.rest,
      make("details", {}, make("summary", {}, "The job as JSON, to be edited"), make("label", { for: "job-text", class: "unseen" }, "The job as JSON"), parts.text),
      make("h2", {}, "The same as a command line"), parts.command, parts.faults, make("div", { class: "buttons" }, parts.start), parts.interfaces);
    // Anywhere on the form, so that a capture that misses is not opened in the place of the page.
    for (const name of ["dragover", "drop", "dragleave"]) {
      form.addEventListener(name, (event) => {
        if (!event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        drop.classList.toggle("over", name === "dragover");
        if (name === "drop") this.take(event.dataTransfer.files);
      });
    }
    this.place.replaceChildren(make("h1", { id: "new-title" }, "New job"), form);
  }

  preset() {
    const recipe = RECIPES[Number(this.parts.recipe.value)];
    if (this.parts.recipe.value === "" || !recipe) return;
    const { captures } = this.job;
    this.job = structuredClone(recipe[1]);
    if (this.job.kind === "replay" && captures?.length) this.job.captures = captures;
    // So are the faults that were told.
    this.fault([]);
    say(this.parts.command, "…");
    this.render();
  }

  // Another kind keeps what both have.
  another(kind) {
    const rows = this.kinds.find((k) => k.kind === kind)?.settings ?? [];
    const job = { kind };
    for (const { path } of rows) {
      const value = read(this.job, path);
      if (value !== undefined) write(job, path, value);
    }
    const [from, to] = [this.base(this.job.kind), this.base(kind)];
    if (WITH_LINKS.includes(kind)) {
      const links = read(this.job, `${from}links`);
      if (links) write(job, `${to}links`, links);
      else write(job, `${to}lab`, read(this.job, `${from}lab`) ?? {});
    }
    this.job = job;
    this.render();
  }

  base(kind = this.job.kind) {
    return WITH_BENCH.includes(kind) ? "bench." : "";
  }

  async take(files) {
    for (const file of files) {
      say(this.parts.taken, `${file.name}: sending …`);
      try {
        const { content, bytes } = await upload(file);
        if (this.closed) return;
        const name = file.name.replace(/[/\\]/g, "_");
        contents[name] = content;
        if (this.job.kind !== "replay") {
          this.another("replay");
          // A capture has an end and times of its own: those of the job before it would send it in a loop.
          for (const path of ["rate", "duration", "count"]) write(this.job, path, undefined);
        }
        this.job.captures = [...(this.job.captures ?? []).filter((other) => other !== name), name];
        say(this.parts.taken, `${name}: ${bytes} bytes are with the server.`);
        this.render();
      } catch (error) {
        say(this.parts.taken, `${file.name}: ${error.message}`);
      }
    }
    this.parts.file.value = "";
  }

  // The job was edited as text.
  typed() {
    try {
      const job = JSON.parse(this.parts.text.value);
      if (!job || typeof job !== "object" || Array.isArray(job)) throw new Error("a job is an object");
      this.job = job;
      this.render();
    } catch (error) {
      this.fault([{ message: `The job as JSON: ${error.message}` }]);
    }
  }

  // --- fields

  render() {
    const { parts, job } = this;
    if (job.kind === "search" && !job.find) job.find = { throughput: {} };
    const kind = this.kinds?.find((k) => k.kind === job.kind);
    this.fields.clear();
    if (!kind) return this.changed();
    parts.kind.value = job.kind;
    say(parts.about, kind.text ?? "");
    this.where(kind.settings);
    const rows = kind.settings.filter(({ path }) => !(WITH_LINKS.includes(job.kind) && /^(bench\.)?(links$|lab$|lab\.)/.test(path)) && !(WITH_PAIR.includes(job.kind) && path === "between"));
    rows.push(...ownRows(job.kind, job, rows));
    const rank = ({ path, main }) => (main ? -1 : (MAIN.indexOf(path.replace(/^bench\./, "")) + 1 || 99));
    const isMain = (row) => !row.rare && (row.main || row.heading == null || rank(row) < 99) && !row.pairs;
    parts.main.replaceChildren(...rows.filter(isMain).sort((a, b) => rank(a) - rank(b)).map((row) => this.field(row)));
    const headings = new Map();
    for (const row of rows.filter((row) => !isMain(row))) {
      const heading = row.heading ?? "More";
      if (!headings.has(heading)) headings.set(heading, []);
      headings.get(heading).push(row);
    }
    const open = new Set([...parts.rest.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent));
    parts.rest.replaceChildren(...[...headings].map(([heading, of]) => this.group(heading, of, open)));
    this.changed();
  }

  group(heading, rows, open) {
    const often = rows.filter((row) => !row.rare), rare = rows.filter((row) => row.rare);
    const fields = (of) => make("div", { class: "fields" }, ...of.map((row) => this.field(row)));
    const said = (of) => of.some(({ path }) => read(this.job, path) !== undefined);
    const details = (title, inner, isOpen) => make("details", { open: isOpen || open.has(title) }, make("summary", {}, title), ...inner);
    const inner = often.length ? [fields(often)] : [];
    if (rare.length) inner.push(often.length ? details(`${heading}, wanted seldom`, [fields(rare)], said(rare)) : fields(rare));
    return details(heading, inner, said(often) || said(rare));
  }

  field(row) {
    const id = `field-${row.path.replace(/[^\w]/g, "-")}`, value = read(this.job, row.path);
    const label = row.option ? `${row.path} (${row.option.startsWith("-") ? row.option : `--${row.option}`})` : row.path;
    const words = row.words ?? row.values;
    let input;
    if (row.flag) input = make("input", { id, type: "checkbox", checked: value === true });
    else if (words?.length && !row.many) input = make("select", { id }, make("option", { value: "" }, row.default ? `default: ${row.default}` : "not said"), ...words.map((word) => make("option", { value: word }, word)));
    else if (row.many || row.pairs || Array.isArray(value)) input = make("textarea", { id, rows: "2", spellcheck: "false" });
    else input = make("input", { id, type: "text", autocomplete: "off", spellcheck: "false", placeholder: row.default ?? row.value ?? "", list: /IFACE/.test(row.value ?? "") ? "interfaces" : null });
    if (row.means) input.value = Object.keys(value ?? {})[0] ?? "";
    else if (row.pairs) input.value = Object.entries(value ?? {}).map(([name, is]) => `${name}=${is}`).join("\n");
    else if (!row.flag) input.value = shown(value);
    input.setAttribute("aria-describedby", `${id}-help ${id}-fault`);
    input.addEventListener("input", () => this.edited(row, input));
    const fault = make("p", { id: `${id}-fault`, class: "fault" });
    this.fields.set(row.path, { row, input, fault });
    const among = words?.length && row.many ? ` One on each line, of: ${words.join(", ")}.` : "";
    const help = make("p", { id: `${id}-help`, class: "small" }, `${(row.text ?? "").replaceAll("`.", "`").replaceAll("`", "")}${among}`);
    const top = row.flag ? make("label", { for: id, class: "check" }, input, " ", label) : make("label", { for: id }, label);
    return make("div", { class: `field${row.path === "what" || row.path === "bench.what" ? " wide" : ""}` }, top, row.flag ? null : input, help, fault);
  }

  edited(row, input) {
    if (row.means) {
      if (read(this.job, row.path)?.[input.value]) return;
      this.job[row.path] = input.value ? row.means(input.value) : {};
      return this.render();
    }
    write(this.job, row.path, row.flag ? (input.checked ? true : undefined) : this.value(row, input.value));
    this.changed();
  }

  // What a text stands for in JSON: a number, a list, an object, or itself. Where the server says that another is expected, `manners`
  // remembers it.
  value(row, text) {
    const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
    if (!lines.length) return undefined;
    if (row.pairs) {
      const pairs = lines.map((line) => /^([^=]*)=?(.*)$/.exec(line).slice(1));
      const meant = (word) => (/^-?\d{1,15}(\.\d+)?$/.test(word) ? Number(word) : word === "true" || word === "false" ? word === "true" : word);
      return Object.fromEntries(pairs.map(([name, is]) => [name.trim(), meant(is.trim())]));
    }
    const manner = this.manners.get(row.path) ?? (row.many ? "sequence" : null);
    if (manner === "boolean" && /^(true|false)$/.test(text.trim())) return text.trim() === "true";
    const one = (word) => (/^\d{1,15}$/.test(word) && manner !== "string" ? Number(word) : /^-?\d+(\.\d+)?$/.test(word) && manner === "number" ? Number(word) : word);
    if (/^[[{]/.test(lines[0])) {
      try {
        return JSON.parse(text);
      } catch {
        return text.trim();
      }
    }
    if (manner === "sequence") return (lines.length > 1 ? lines : lines[0].split(/\s*,\s*(?![^(]*\))/)).map(String);
    return one(text.trim());
  }

  where(settings) {
    const { parts, job } = this, base = this.base();
    parts.where.hidden = !WITH_LINKS.includes(job.kind) && !WITH_PAIR.includes(job.kind);
    if (parts.where.hidden) return parts.where.replaceChildren();
    const text = (path, label, hint) => this.field({ path, value: "IFACE", text: hint, option: label });
    if (WITH_PAIR.includes(job.kind)) {
      return parts.where.replaceChildren(make("legend", {}, "Where"), make("div", { class: "fields" }, text("between[0]", null, "One interface."), text("between[1]", null, "The other one.")));
    }
    const links = read(job, `${base}links`);
    const inLab = !links?.length;
    const choice = (value, words, checked) => make("label", { class: "check" }, make("input", { type: "radio", name: "where", value, checked, change: () => this.place_(value) }), ` ${words}`);
    const lab = settings.filter(({ path }) => path.startsWith(`${base}lab.`));
    const rows = inLab
      ? lab.filter(({ rare }) => !rare).map((row) => this.field(row))
      : links.flatMap((_, n) => [text(`${base}links[${n}].on`, "--on", "Frames leave by this interface."), text(`${base}links[${n}].measure`, "--measure", "They are measured where they arrive at this one; may be left out.")]);
    const rare = inLab ? lab.filter((row) => row.rare) : [];
    const seldom = rare.length ? [make("details", {}, make("summary", {}, "Lab, wanted seldom"), make("div", { class: "fields" }, ...rare.map((row) => this.field(row))))] : [];
    const more = make("button", { type: "button", class: "small", click: () => (write(job, `${base}links[${links?.length ?? 0}]`, { on: "" }), this.render()) }, "One more link");
    parts.where.replaceChildren(make("legend", {}, "Where"), make("div", { class: "line" }, choice("lab", "in a lab of its own, on this host", inLab), choice("links", "between interfaces", !inLab)),
      make("div", { class: "fields" }, ...rows), ...seldom, ...(inLab ? [] : [more]));
  }

  place_(value) {
    const base = this.base();
    write(this.job, `${base}${value === "lab" ? "links" : "lab"}`, undefined);
    write(this.job, `${base}${value}`, value === "lab" ? {} : [{ on: "" }]);
    this.render();
  }

  // --- what the server says of it

  changed() {
    // An answer that is still on its way is about what was there before.
    this.trying?.abort();
    const text = JSON.stringify(this.job, null, 2);
    if (document.activeElement !== this.parts.text) this.parts.text.value = text;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.dry(), DRY_MS);
  }

  used() {
    return Object.fromEntries(Object.entries(contents).filter(([name]) => JSON.stringify(this.job).includes(JSON.stringify(name))));
  }

  async dry(again = 0) {
    this.trying?.abort();
    const { signal } = (this.trying = new AbortController());
    try {
      const { command } = await send("POST", "runs?dry=1", { job: this.job, contents: this.used() }, { signal });
      if (this.closed || signal.aborted) return;
      say(this.parts.command, commandOf(this.job) ?? command);
      this.fault([]);
    } catch (error) {
      if (this.closed || signal.aborted) return;
      if (again < 4 && this.otherwise(error)) return this.dry(again + 1);
      this.refused(error);
    }
  }

  // Writes a value in another manner, if the server says which it expects.
  otherwise(error) {
    let changed = false;
    for (const { path, message } of error.errors ?? []) {
      const found = this.at(path), expected = /invalid type: .*expected (?:a |an )?(\w+)/.exec(message)?.[1];
      if (!found || !expected) continue;
      const manner = expected === "sequence" ? "sequence" : expected === "string" ? "string" : expected === "boolean" ? "boolean" : /^[uif]\d+$|^integer|^float/.test(expected) ? "number" : null;
      if (!manner || this.manners.get(found.row.path) === manner) continue;
      this.manners.set(found.row.path, manner);
      write(this.job, found.row.path, this.value(found.row, found.input.value));
      changed = true;
    }
    if (changed) this.parts.text.value = JSON.stringify(this.job, null, 2);
    return changed;
  }

  // The field of a path that the server names, or of what holds that.
  at(path) {
    for (let way = path ?? ""; way; way = way.replace(/(\.[^.[]*|\[\d*\])$/, (end) => (end === way ? "" : ""))) {
      const found = this.fields.get(way) ?? this.fields.get(`bench.${way}`);
      if (found) return found;
      if (!/[.[]/.test(way)) break;
    }
    return null;
  }

  refused(error) {
    const errors = error.errors?.length ? error.errors : [{ message: error.message }];
    this.fault(errors);
  }

  fault(errors) {
    for (const { input, fault } of this.fields.values()) {
      say(fault, "");
      input.removeAttribute("aria-invalid");
    }
    const others = [];
    for (const { path, message, hint } of errors) {
      const bare = (message ?? "").replace(/^job\.\w+: /, "");
      const words = `${path && bare.startsWith(`${path}: `) ? bare.slice(path.length + 2) : bare}${hint ? ` (${hint})` : ""}`, found = this.at(path);
      if (!found) {
        others.push(path ? `${path}: ${words}` : words);
        continue;
      }
      say(found.fault, words);
      found.input.setAttribute("aria-invalid", "true");
      for (let at = found.input.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    }
    const { faults, command } = this.parts;
    if (errors.length) say(command, "…");
    faults.replaceChildren(...others.map((text) => make("li", {}, text)));
  }

  async start() {
    clearTimeout(this.timer);
    this.trying?.abort();
    this.parts.start.disabled = true;
    try {
      const run = await send("POST", "runs", { job: this.job, contents: this.used() });
      if (!this.closed) this.open(run.run);
    } catch (error) {
      if (this.closed) return;
      if (this.otherwise(error)) return void (await this.start());
      this.refused(error);
      this.speak("The job was not started.");
      (this.place.querySelector("[aria-invalid]") ?? this.parts.start).focus();
    } finally {
      this.parts.start.disabled = false;
    }
  }
}
