// What the click-through rate of segments is compared with: what an alert on it calls usual, else its
// value in the longest window.

import { get } from "./api.js";
import { COLUMNS, PREFIX } from "./columns.js";
import { ROLLUP, queryOf, segmentsOf } from "./segments.js";

const LEAST = 100;
export const CTR = COLUMNS.find(({ name }) => name === `${PREFIX}ctr_ratio`);

/** {title, of(segment)}: the latter gives {then, change, kind} or null, where there are too few
 * impressions; null where there is nothing to compare with. */
export async function comparedWith(alerts, choice, signal) {
  const { window, split, dimensions, where, windows } = choice;
  const watching = alerts.filter((each) => isOn(each, window, split, where));
  if (watching.some((each) => ownOf(each).length === split.length)) {
    return { title: "Usual", of: (segment) => byAlert(watching, segment) };
  }
  const longest = windows.at(-1);
  if (longest === window) {
    return null;
  }
  const query = new URLSearchParams(queryOf(longest, split, dimensions, where));
  query.set("name", CTR.name);
  const { readings } = await get(`api/readings?${query}`, signal);
  const { segments, whole } = segmentsOf(readings, split, dimensions);
  const then = new Map([...segments, ...(whole ? [whole] : [])].map((each) => [each.key, each.value(CTR.name)]));
  return { title: `In ${longest}`, of: (segment) => changed(segment, then.get(segment.key), null) };
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
