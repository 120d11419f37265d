// netdyno's page: which view is shown, the list of runs, and the connection to the server.

import { Events, get, keepToken, remove, takeToken } from "./api.js";
import { commandOf, settings } from "./command.js";
import { CompareView } from "./compare.js";
import { $, fill, make, say, stacked, stackedRow, table } from "./dom.js";
import { FormView } from "./form.js";
import { HostView } from "./host.js";
import { RunView, ask, isOver, stateClass, title } from "./run.js";

let view = null;

const speak = (text) => say($("spoken"), text);

const connection = (text, alive, status) => {
  const badge = $("connection");
  say(badge, text);
  badge.className = `badge ${alive ? "done" : "failed"}`;
  if (status === 401 || status === 403) door();
};

// Asks for the token.
const door = () => {
  show("door");
  $("token").focus();
};

const show = (id) => {
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== id;
};

class ListView {
  constructor(place) {
    this.place = place;
    this.chosen = new Set();
    this.table = table("Runs, the newest first", ["run", "state", "started", "compare", "", "job"]);
    stacked(this.table);
    this.none = make("p", { class: "absent", hidden: true }, "Nothing has run yet. ", make("a", { href: "#/new" }, "Start a job."));
    this.both = make("button", { type: "button", class: "strong", disabled: true, click: () => (location.hash = `#/compare/${[...this.chosen].join(",")}`) }, "Compare the chosen");
    this.said = make("p", { class: "answer" });
    place.replaceChildren(make("div", { class: "line bar" }, make("h1", { id: "list-title" }, "Runs"), make("div", { class: "buttons" }, this.both)), this.said, this.none, this.table.card);
    this.rows = new Map();
    settings().then(() => this.runs && this.show(this.runs), () => {});
    this.events = new Events("events", {
      on: (name, data) => name === "runs" && this.show(data.runs),
      state: connection,
      gone: (status) => connection("not permitted", false, status),
    });
  }

  close() {
    this.events.close();
    this.place.replaceChildren();
  }

  show(runs) {
    this.runs = runs;
    this.none.hidden = runs.length > 0;
    this.table.card.hidden = runs.length === 0;
    const ids = new Set(runs.map(({ run }) => run));
    for (const id of this.rows.keys()) if (!ids.has(id)) this.rows.delete(id), this.chosen.delete(id);
    fill(this.table.body, runs.map((run) => this.row(run)), stackedRow);
    this.both.disabled = this.chosen.size < 2;
  }

  row(run) {
    const { run: id, state, started_at: started } = run;
    let row = this.rows.get(id);
    if (!row || row.started !== started) {
      const badge = make("b");
      const choose = make("input", { type: "checkbox", "aria-label": `choose ${id}`, change: () => this.choose(id, choose.checked) });
      const away = make("button", { type: "button", class: "small", "aria-label": `forget ${id}`, click: () => this.forget(id) }, "Forget");
      row = { started, badge, choose, away, link: make("a", { href: `#/runs/${id}` }, id), what: make("code", { class: "what" }) };
      this.rows.set(id, row);
    }
    say(row.badge, state);
    row.badge.className = `badge ${stateClass(state)}`;
    say(row.what, commandOf(run.job) ?? run.command ?? title(run));
    row.choose.hidden = !["done", "short"].includes(state);
    row.away.hidden = !isOver(state);
    return [row.link, row.badge, (started ?? "").replace("T", " ").replace(/(\.\d+)?Z$/, ""), row.choose, row.away, row.what];
  }

  choose(id, is) {
    this.chosen[is ? "add" : "delete"](id);
    this.both.disabled = this.chosen.size < 2;
  }

  async forget(id) {
    if (!(await ask(`Forget ${id}?`, "Its report is deleted from the server."))) return;
    try {
      await remove(`runs/${id}`);
      say(this.said, "");
    } catch (error) {
      say(this.said, error.message);
    }
  }
}

const open = (id) => (location.hash = `#/runs/${id}`);

const route = () => {
  takeToken();
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, which] = path.split("/");
  view?.close();
  view = null;
  document.title = "netdyno";
  const section = { runs: "run", new: "new", compare: "compare", host: "machine" }[name] ?? "list";
  show(section);
  for (const [id, is] of [["to-runs", section === "list"], ["to-new", section === "new"], ["to-host", section === "machine"]]) {
    if (is) $(id).setAttribute("aria-current", "page");
    else $(id).removeAttribute("aria-current");
  }
  if (section === "run") view = new RunView($("run"), which, { speak, connection });
  else if (section === "new") view = new FormView($("new"), { speak, open, like: new URLSearchParams(query).get("like") });
  else if (section === "compare") view = new CompareView($("compare"), which.split(",").slice(0, 12));
  else if (section === "machine") view = new HostView($("machine"));
  else view = new ListView($("list"));
};

const begin = async () => {
  try {
    const info = await get("info");
    say($("host"), [info.host?.name, info.version].filter(Boolean).join(", "));
    connection("connected", true);
    // The page of a single run shows that.
    if (info.watch && !/^#\/\w/.test(location.hash)) return void history.replaceState(null, "", `#/runs/${info.watch}`);
  } catch (error) {
    if (error.status === 401 || error.status === 403) return connection("not permitted", false, error.status), false;
  }
};

$("door-form").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken($("token").value);
  $("token").value = "";
  start();
});
const start = async () => {
  if ((await begin()) !== false) route();
};
addEventListener("hashchange", route);
takeToken();
start();
