// Marks from outside, deployments and campaigns: /api/annotations.

import { Failure, get } from "./api.js";

const KEPT_MS = 60_000;
let known = { readMs: -KEPT_MS, marks: [] };

/** The marks, read again where they are old: {ms, until, text}. */
export async function readMarks(signal) {
  const startedMs = performance.now();
  if (startedMs - known.readMs >= KEPT_MS) {
    known = { readMs: startedMs, marks: await marksOf(signal) };
  }
  return known.marks;
}

/** What was read last. */
export function knownMarks() {
  return known.marks;
}

async function marksOf(signal) {
  try {
    const { annotations } = await get("api/annotations", signal);
    return annotations.map(({ at_ms: ms, until_ms: until, text }) => ({ ms, until, text }));
  } catch (failure) {
    if (failure instanceof Failure) {
      return known.marks; // all else is shown without them
    }
    throw failure;
  }
}
