// What alerts say now: /api/alerts; what they said before, and when more may be said:
// /api/alerts/NAME. Sections that are read together share it.

import { Failure, get } from "./api.js";
import * as format from "./format.js";
import { ROLLUP } from "./segments.js";

const KEPT_MS = 14_000;
const kept = new Map();
let now = null;

/** The document of /api/alerts, read again where it is old. */
export async function readAlerts(signal) {
  const startedMs = performance.now();
  if (now === null || now.readMs < startedMs - KEPT_MS) {
    now = { readMs: startedMs, found: await get("api/alerts", signal) };
  }
  return now.found;
}

/** What was read last of an alert's history; null where nothing was. */
export function knownHistory(name) {
  return kept.get(name)?.found ?? null;
}

/** Read the histories of alerts again where they are old. One that cannot be read stays as it was:
 * all else is shown without it. */
export async function readHistories(names, signal) {
  for (const name of names) {
    const startedMs = performance.now();
    if (!kept.has(name) || kept.get(name).readMs < startedMs - KEPT_MS) {
      kept.set(name, { readMs: startedMs, found: knownHistory(name) });
      kept.get(name).found = await historyOf(name, signal);
    }
  }
}

async function historyOf(name, signal) {
  try {
    return await get(`api/alerts/${encodeURIComponent(name)}`, signal);
  } catch (failure) {
    if (failure instanceof Failure) {
      return knownHistory(name);
    }
    throw failure;
  }
}

/** When an alert fired for segments that a filter (URLSearchParams) leaves, a row each. */
export function firingsOf({ alert, from_ms: first, segments }, query) {
  const isLeft = ([name, value]) => [null, ROLLUP, value].includes(query.get(name));
  return segments
    .filter(({ segment }) => Object.entries(segment).every(isLeft))
    .map(({ segment, spans }) => ({
      name: `alert ${alert}, ${nameOf(segment)}`,
      isFromBefore: spans.some(({ from_ms: from, fires_ms: fires }) => from === first && fires !== null),
      spans: spans
        .filter(({ fires_ms: fires }) => fires !== null)
        .map(({ check, status, fires_ms: from, until_ms: until }) => ({
          from, until: until ?? Infinity, text: wordsOf(check, status),
        })),
    }))
    .filter(({ spans }) => spans.length > 0);
}

/** "all together", or the values of a segment. */
export function nameOf(segment) {
  return Object.values(segment).filter((value) => value !== ROLLUP).join(", ") || "all together";
}

/** "dropped" of the metric, "traffic dropped" of other checks. */
function wordsOf(check, status) {
  return check === "metric" ? status : `${check} ${status}`;
}

/** "; the first verdict is likely in about 2 hours": the soonest of the segments of a history. */
export function expectation(history) {
  const times = (history?.segments ?? []).map((each) => each.expected_ms).filter((ms) => ms !== null);
  if (!times.length) {
    return "";
  }
  const seconds = Math.max(60, (Math.min(...times) - history.at_ms) / 1000);
  return `; the first verdict is likely in about ${format.about(seconds)} if traffic holds`;
}
