// Numbers with units for people, as crates/report's units.rs writes them: three significant digits, decimal prefixes.

const threeDigits = (value) => {
  const size = Math.abs(value);
  const text = value.toFixed(size === 0 ? 0 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
  return [text, Number(text)];
};

const scaled = (value, unit) => {
  if (!Number.isFinite(value)) return `- ${unit}`;
  for (const prefix of ["", "k", "M", "G", "T"]) {
    const [text, rounded] = threeDigits(value);
    if (Math.abs(rounded) < 1000) return `${text} ${prefix}${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(0)} P${unit}`;
};

export const count = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
export const frameRate = (perSecond) => scaled(perSecond, "pps");
export const bitRate = (perSecond) => scaled(perSecond, "bit/s");
export const rate = (perSecond, unit) => scaled(perSecond, unit);
export const bytes = (n) => (n < 1000 ? `${n} B` : scaled(n, "B"));

// Whole seconds: `5s`, `1m 30s`, `2h 5m`.
export const clock = (ns) => {
  const whole = Math.floor(ns / 1e9 + 0.5);
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  if (h) return m ? `${h}h ${m}m` : `${h}h`;
  if (m) return s ? `${m}m ${s}s` : `${m}m`;
  return `${s}s`;
};

// What still takes some time is never told as nothing.
export const ahead = (ns) => (ns < 1e9 ? "<1s" : clock(ns));

export const time = (ns) => {
  if (!Number.isFinite(ns)) return "-";
  if (ns < 1000) return `${Math.round(ns)} ns`;
  if (ns >= 60e9) return clock(ns);
  for (const [unit, name] of [[1e3, "us"], [1e6, "ms"], [1e9, "s"]]) {
    const [text, value] = threeDigits(ns / unit);
    if (value < 1000) return name === "s" && value >= 60 ? "1m" : `${text} ${name}`;
  }
  return clock(ns);
};

// A round time for an axis: `10 us`, `2.5 ms`.
export const tickTime = (ns) => {
  const [unit, name] = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]].find(([least]) => ns >= least) ?? [1, "ns"];
  return `${Number((ns / unit).toFixed(3))} ${name}`;
};

// What is not quite nothing or not quite all never reads as if it were.
export const percent = (ratio) => {
  const p = ratio * 100;
  if (!Number.isFinite(p)) return "-";
  const size = Math.abs(p);
  if (size === 0) return "0 %";
  if (size < 0.0001) return `${p < 0 ? ">-" : "<"}0.0001 %`;
  if (size < 0.1) return `${Number(p.toFixed(4))} %`;
  if (size > 99.9 && size < 100) return p.toFixed(4) === "100.0000" ? ">99.9999 %" : `${p.toFixed(4)} %`;
  return size === 100 ? `${p} %` : `${threeDigits(p)[0]} %`;
};
