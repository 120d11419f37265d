// What the page remembers of a run: counts since its start, so that what lies between any two of them is exact, however many are
// left out. Bounded: where there are too many, every other one goes, and those to come are taken half as often.

const MOST = 3600;
// Streams and cores that are remembered, the first of each.
const MOST_STREAMS = 32;
const MOST_CORES = 64;

const times = (d) => (d && d.count ? [d.p50, d.p99, d.p999, d.max, d.mean * d.count, d.count] : null);

export class History {
  constructor() {
    this.clear();
  }

  clear() {
    this.points = [];
    this.step = 0;
    this.newest = null;
  }

  // Takes a snapshot, if it is not older than what is known.
  push(snapshot) {
    const t = snapshot.elapsed_ns;
    if (this.newest && t < this.newest.t) return false;
    const streams = {};
    for (const s of (snapshot.streams ?? []).slice(0, MOST_STREAMS)) streams[s.stream] = [s.received.frames, s.lost_frames];
    const point = {
      t,
      paused: snapshot.phase === "paused",
      percent: snapshot.rate_percent ?? 100,
      intended: snapshot.intended_frames ?? null,
      sent: snapshot.tx?.frames ?? null,
      sentBytes: snapshot.tx?.bytes ?? null,
      received: snapshot.rx?.frames ?? null,
      receivedBytes: snapshot.rx?.bytes ?? null,
      lost: snapshot.lost_frames ?? null,
      latency: times(snapshot.latency_ns),
      lateness: times(snapshot.lateness_ns),
      endpointSent: snapshot.endpoint?.sent_bytes ?? null,
      endpointReceived: snapshot.endpoint?.received_bytes ?? null,
      passages: (snapshot.forwarding ?? []).map((p) => p.received.frames),
      streamsAt: snapshot.streams_elapsed_ns,
      streams,
      cores: (snapshot.cores ?? []).slice(0, MOST_CORES).map((c) => [c.number, c.total_ticks, c.idle_ticks, c.interrupt_ticks]),
      workers: (snapshot.workers ?? []).slice(0, MOST_CORES).map((w) => [w.cpu ?? null, w.frames, w.cpu_ns ?? null]),
    };
    this.newest = point;
    const last = this.points.at(-1);
    // The newest point stands at the end, whatever the step is, and is replaced as long as it is within that.
    const before = this.points.at(-2);
    if (last && before && last.t - before.t < this.step) this.points.pop();
    this.points.push(point);
    if (this.points.length > MOST) {
      this.points = this.points.filter((_, n) => n % 2 === 0 || n === this.points.length - 1);
      this.step = Math.max(this.step * 2, (2 * t) / MOST);
    }
    return true;
  }

  // Points with at least `span` between them, from `from` on, the newest always among them.
  sampled(from, span) {
    const { points } = this;
    let low = 0;
    for (let high = points.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (points[middle].t < from) low = middle + 1;
      else high = middle;
    }
    const out = [];
    for (let n = Math.max(0, low - 1); n < points.length; n++) {
      if (!out.length || points[n].t - out.at(-1).t >= span * 0.99) out.push(points[n]);
    }
    return out;
  }

  // The point a second ago, or at first the start: what "now" is measured from.
  secondAgo() {
    const { points, newest } = this;
    if (!newest) return null;
    for (let n = points.length - 1; n >= 0; n--) if (points[n].t <= newest.t - 1e9) return points[n];
    return points[0].t < 2e9 ? START : points[0] === newest ? null : points[0];
  }
}

// Nothing had happened then.
export const START = {
  t: 0, intended: 0, sent: 0, sentBytes: 0, received: 0, receivedBytes: 0, lost: 0, latency: null, lateness: null, endpointSent: 0, endpointReceived: 0,
  streamsAt: 0, streams: {}, cores: [], workers: [],
};

// Events a second between two points, or null where one of them does not know.
export const perSecond = (now, before, of) => {
  const [a, b] = [of(now), of(before)];
  return a == null || b == null || now.t <= before.t ? null : (Math.max(0, a - b) * 1e9) / (now.t - before.t);
};

// The mean of what was measured between two points, which is exact, because sums are.
export const meanBetween = (now, before) => {
  if (!now) return null;
  const [sum, n] = before ? [now[4] - before[4], now[5] - before[5]] : [now[4], now[5]];
  return n > 0 ? Math.max(0, sum / n) : null;
};
