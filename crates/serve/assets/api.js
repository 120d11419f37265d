// The server's API: requests, and streams of events that come back by themselves after a break.

const KEY = "netdyno.token";

// The token comes in the address's fragment, which is sent to nobody, and leaves the address bar at once.
export const takeToken = () => {
  const found = /(?:^#|[&#?])token=([^&]*)/.exec(location.hash);
  if (!found) return;
  keepToken(decodeURIComponent(found[1]));
  history.replaceState(null, "", location.pathname + location.search);
};

export const keepToken = (token) => {
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
};

const headers = (more = {}) => {
  const token = sessionStorage.getItem(KEY);
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
};

// What the server, or the way to it, says no with.
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `the server answered ${status}`);
    this.status = status;
    this.errors = Array.isArray(problem.errors) ? problem.errors : [];
  }
}

const answer = async (response) => {
  const type = response.headers.get("Content-Type") ?? "";
  const body = response.status === 204 ? null : type.includes("json") ? await response.json() : await response.text();
  if (!response.ok) throw new Refused(response.status, body && typeof body === "object" ? body : { detail: body || response.statusText });
  return body;
};

const request = async (path, options = {}) => {
  let response;
  try {
    response = await fetch(`/api/v1/${path}`, { cache: "no-store", credentials: "omit", ...options, headers: headers(options.headers) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { detail: "the server does not answer" });
  }
  return answer(response);
};

export const get = (path, options) => request(path, options);
export const send = (method, path, body = {}, options = {}) =>
  request(path, { ...options, method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
export const remove = (path) => request(path, { method: "DELETE", headers: { "Content-Type": "application/json" } });
export const upload = (file) =>
  request(`contents?name=${encodeURIComponent(file.name)}`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });

// Opens a file of the API where a token has to go with the request, which a plain link cannot do.
export const download = async (path, name) => {
  const response = await fetch(`/api/v1/${path}`, { headers: headers(), credentials: "omit" });
  if (!response.ok) return void (await answer(response));
  const address = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
};
export const hasToken = () => sessionStorage.getItem(KEY) !== null;

// The server says something at least every 10 s.
const SILENCE_MS = 25_000;
const LONGEST_WAIT_MS = 15_000;
// A line without an end is nothing of ours.
const MOST_PENDING = 64 << 20;
// A hidden page gives its connection back: browsers have six for each host.
const HIDDEN_MS = 5_000;

// Server-Sent Events by `fetch`, because EventSource cannot send a token. `on(name, data)` gets events, `state(text, alive)` what the
// connection does; `gone(status)` says that there is nothing (more) to listen to.
export class Events {
  constructor(path, { on, state, gone }) {
    Object.assign(this, { path, on, state, gone, closed: false, failures: 0, last: null, timers: new Set() });
    this.seen = () => this.visibility();
    this.again = () => this.hurry?.();
    document.addEventListener("visibilitychange", this.seen);
    addEventListener("online", this.again);
    this.run();
  }

  close() {
    this.closed = true;
    document.removeEventListener("visibilitychange", this.seen);
    removeEventListener("online", this.again);
    clearTimeout(this.hiding);
    this.abort?.abort();
    this.hurry?.();
  }

  visibility() {
    clearTimeout(this.hiding);
    if (document.hidden) {
      this.hiding = setTimeout(() => {
        this.asleep = true;
        this.abort?.abort();
      }, HIDDEN_MS);
    } else {
      this.asleep = false;
      this.hurry?.();
    }
  }

  async run() {
    while (!this.closed) {
      const over = await this.once();
      if (over || this.closed) return;
      if (this.asleep) {
        await new Promise((resolve) => (this.hurry = resolve));
        continue;
      }
      // Not all pages come back in the same moment.
      const wait = Math.min(LONGEST_WAIT_MS, 500 * 2 ** Math.min(this.failures, 6)) * (0.75 + Math.random() / 2);
      this.failures += 1;
      this.state("disconnected: trying again", false);
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, wait);
        this.hurry = () => (clearTimeout(timer), resolve());
      });
      this.hurry = null;
    }
  }

  // One connection, to its end. True if there will be no further one.
  async once() {
    this.abort = new AbortController();
    let watchdog;
    const alive = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => this.abort.abort(), SILENCE_MS);
    };
    try {
      alive();
      const more = { Accept: "text/event-stream", ...(this.last === null ? {} : { "Last-Event-ID": this.last }) };
      const response = await fetch(`/api/v1/${this.path}`, { headers: headers(more), cache: "no-store", credentials: "omit", signal: this.abort.signal });
      if (response.status === 204 || [401, 403, 404].includes(response.status)) {
        if (!this.closed) this.gone(response.status);
        return true;
      }
      if (!response.ok) return false;
      this.state("connected", true);
      this.failures = 0;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let pending = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done || this.closed) return this.ended === true;
        alive();
        pending += value;
        const events = pending.split(/\r?\n\r?\n/);
        pending = events.pop();
        if (pending.length > MOST_PENDING) return false;
        for (const event of events) this.dispatch(event);
      }
    } catch {
      return false;
    } finally {
      clearTimeout(watchdog);
      this.abort.abort();
    }
  }

  dispatch(event) {
    let name = "message";
    const data = [];
    for (const line of event.split(/\r?\n/)) {
      const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
      if (field === "event") name = value;
      else if (field === "data") data.push(value);
      else if (field === "id") this.last = value;
    }
    if (!data.length || this.closed) return;
    if (name === "end") this.ended = true;
    this.on(name, JSON.parse(data.join("\n")));
  }
}
