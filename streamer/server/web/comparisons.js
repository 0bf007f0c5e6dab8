// What values are compared with: what an alert on the click-through rate calls usual, else the same
// time last week, or the window before.

import { find } from "./api.js";
import { COLUMNS, PREFIX } from "./columns.js";
import { capital } from "./format.js";
import { ROLLUP } from "./segments.js";

const [LEAST, KEPT_MS, MOST_KEPT] = [100, 30_000, 50];
export const CTR = COLUMNS.find(({ name }) => name === `${PREFIX}ctr_ratio`);
const kept = new Map();

/** What /api/before says: {title, lines}, without lines where there is nothing. */
export async function before(query, signal) {
  const key = new URLSearchParams(query).toString();
  const startedMs = performance.now();
  if (!kept.has(key) || startedMs >= kept.get(key).dueMs) {
    if (kept.size >= MOST_KEPT) {
      kept.clear();
    }
    kept.set(key, { dueMs: startedMs + KEPT_MS, found: await find(`api/before?${key}`, signal) });
  }
  return kept.get(key).found;
}

/** {title, of(segment)}: the latter gives {then, change, kind} or null, where there are too few
 * impressions; null where there is nothing to compare with. */
export async function comparedWith(alerts, choice, signal) {
  const { window, split, where } = choice;
  const watching = alerts.filter((each) => isOn(each, window, split, where));
  if (watching.some((each) => ownOf(each).length === split.length)) {
    return { title: "Usual", of: (segment) => byAlert(watching, segment) };
  }
  if (split.length > 1) {
    return null;
  }
  const [name] = split;
  const query = { name: CTR.name, window, ...where };
  const whole = await before(query, signal);
  const parts = name === undefined ? whole : await before({ ...query, split: name }, signal);
  const then = new Map(parts.lines.map(({ labels, values: [value] }) => [labels[name] ?? ROLLUP, value]));
  then.set(ROLLUP, whole.lines[0]?.values[0]);
  const of = (segment) => changed(segment, then.get(segment.labels[name] ?? ROLLUP), null);
  return whole.lines.length ? { title: capital(whole.title), of } : null;
}

/** The dimensions that an entry's segment has a value of. */
function ownOf({ segment }) {
  return Object.keys(segment).filter((name) => segment[name] !== ROLLUP);
}

function isOn(alert, window, split, where) {
  const isSplit = ownOf(alert).every((name) => split.includes(name));
  return alert.metric === "ctr_ratio" && alert.window === window && isSplit && !Object.keys(where).length;
}

function byAlert(watching, segment) {
  const entry = watching.find(({ segment: own }) => Object.entries(segment.labels).every(([k, v]) => own[k] === v));
  if (entry === undefined) {
    return null;
  }
  const { baseline, status } = entry.checks.metric;
  return changed(segment, baseline ?? undefined, status);
}

function changed(segment, then, status) {
  const now = segment.value(CTR.name);
  if (now === undefined || then === undefined || !then || segment.support < LEAST) {
    return null;
  }
  return { then, change: now / then - 1, status };
}
