// The command line that a job stands for, by the settings' table; nothing where there is none that says all of it.

import { get } from "./api.js";

let loading = null;
const rowsOf = new Map();

// The table, which is asked for once.
export const settings = () => {
  loading ??= get("settings").then(
    (told) => {
      for (const { kind, settings: rows } of told.kinds) rowsOf.set(kind, rows);
      return told.kinds;
    },
    (error) => {
      loading = null;
      throw error;
    },
  );
  return loading;
};

// Command lines of other tools' names are their own business.
const VERBS = ["send", "replay", "measure", "reflect", "bridge", "impair", "probe", "collect", "trial", "search"];
const PLACED = ["what", "bench.what", "captures"];
// What has several options, or none, by its value.
const SPECIAL = {
  sign: (value) => ({ auto: [], always: ["--sign"], never: ["--no-sign"] })[value],
  pattern: (value) => ({ pairs: [], mesh: ["--mesh"] })[value],
  preload: (value) => (value === true ? ["--preload"] : undefined),
};
// What a job that was carried out says beside what was asked.
const DRAWN = /(^|\.)plugin\.(version|sha256)$/;

const word = (text) => (/^[\w\-./:=,%+@]+$/.test(text) ? text : `'${String(text).replaceAll("'", "'\\''")}'`);

// Says the leaves of a job, and where lists are.
const leaves = function* (value, path, lists) {
  if (value === null || value === undefined) return;
  if (Array.isArray(value) || lists(path)) yield [path, value];
  else if (typeof value !== "object") yield [path, value];
  else for (const [name, inner] of Object.entries(value)) yield* leaves(inner, path ? `${path}.${name}` : name, lists);
};

const finding = (find) => {
  const [name, ...more] = Object.keys(find ?? {});
  if (!name || more.length) return null;
  const { finding: { precision, goals = [], method, ...other } = {}, axis, ...rest } = find[name];
  if (Object.keys(other).length || Object.keys(rest).length || (axis && axis !== "rate")) return null;
  return [name, [...(precision ? ["--precision", precision] : []), ...goals.flatMap((goal) => ["--goal", goal]), ...(method && method !== "mlrsearch" ? ["--method", method] : [])]];
};

export const commandOf = (job) => {
  const rows = rowsOf.get(job?.kind);
  if (!rows || !VERBS.includes(job.kind)) return null;
  const { kind, schema: _, find, ...rest } = job;
  const verb = [kind], placed = [], options = [];
  if (kind === "search") {
    const found = finding(find);
    if (!found) return null;
    verb.push(found[0]);
    options.push(...found[1]);
  } else if (find) return null;
  const byPath = new Map(rows.map((row) => [row.path, row]));
  const base = ["trial", "search"].includes(kind) ? "bench." : "";
  const isList = (path) => path === `${base}plugin.options` || path === `${base}lab.impair`;
  if (base ? rest.bench?.lab : rest.lab) options.push("--lab");
  for (const [path, value] of leaves(rest, "", isList)) {
    const row = byPath.get(path), special = SPECIAL[path.slice(base && path.startsWith(base) ? base.length : 0)];
    if (DRAWN.test(path)) continue;
    if (PLACED.includes(path)) placed.push(...[value].flat());
    else if (path === `${base}links`) for (const link of value) for (const way of ["on", "measure"]) options.push(...(link[way] ? [`--${way}`, link[way]] : []));
    else if (path === `${base}plugin.options`) for (const [name, is] of Object.entries(value)) options.push("--set", `${name}=${is}`);
    else if (special) {
      const said = special(value);
      if (!said) return null;
      options.push(...said);
    } else if (!row?.option) return null;
    else if (row.flag) options.push(...(value === true ? [row.option] : []));
    else if (Array.isArray(value)) options.push(...(row.many ? value.flatMap((one) => [row.option, String(one)]) : [row.option, ...value.map(String)]));
    else if (typeof value === "object") return null;
    else if (!(row.words?.length && value === row.default)) options.push(row.option, String(value));
  }
  return ["netdyno", ...verb, ...placed.map(String), ...options].map(word).join(" ");
};
