// What alerts said in the past day, and when undecided segments could be decided: /api/alerts/NAME.

import { Failure, get } from "./api.js";
import { ROLLUP } from "./segments.js";
import * as format from "./format.js";

const KEPT_MS = 14_000; // sections that are read together share it
const kept = new Map();

/** The history of an alert; null where there is none. */
export async function alertHistory(name, signal) {
  const now = performance.now();
  if (!kept.has(name) || kept.get(name).readMs < now - KEPT_MS) {
    kept.set(name, { readMs: now, found: await historyOf(name, signal) });
  }
  return kept.get(name).found;
}

async function historyOf(name, signal) {
  try {
    return await get(`api/alerts/${encodeURIComponent(name)}`, signal);
  } catch (failure) {
    if (failure instanceof Failure && failure.status === 404) {
      return null;
    }
    throw failure;
  }
}

/** Times at which an alert fired for segments that a filter (URLSearchParams) leaves, a row each. */
export function firingsOf({ alert, segments }, query) {
  return segments
    .filter(({ segment }) => Object.entries(segment).every(([k, v]) => v === ROLLUP || v === (query.get(k) ?? v)))
    .map(({ segment, spans }) => ({
      name: `alert ${alert}, ${nameOf(segment)}`,
      spans: spans
        .filter(({ fires_ms: fires }) => fires !== null)
        .map(({ what, status, fires_ms: from, until_ms: until }) => ({ from, until, text: wordsOf(what, status) })),
    }))
    .filter(({ spans }) => spans.length > 0);
}

/** "all together", or the values of a segment. */
export function nameOf(segment) {
  return Object.values(segment).filter((value) => value !== ROLLUP).join(", ") || "all together";
}

function wordsOf(what, status) {
  return what === "traffic" ? `traffic ${status}` : status;
}

/** ", the next could be decided in about 2 hours": the soonest of the segments of a history. */
export function expectation(history) {
  const times = (history?.segments ?? []).map((each) => each.expected_ms).filter((ms) => ms !== null);
  if (!times.length) {
    return "";
  }
  const seconds = Math.max(60, (Math.min(...times) - history.at_ms) / 1000);
  return `; the next could be decided in about ${format.about(seconds)}`;
}
