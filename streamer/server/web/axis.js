// Axes: round numbers that are told apart, and times at midnights, full hours and minutes of UTC.

import * as format from "./format.js";

const TICKS = [1, 2, 2.5, 5, 10];
const [LABEL_WIDTH, DATED] = [84, 3]; // axes of so many days have dates alone
const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];
const TIMES = [
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 7, 14, 28, 56, 112, 364].map((n) => n * DAY),
];

/** The smallest round number that is not below a value above 0. */
export function niceAbove(value, numbers = TICKS) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * numbers.find((step) => step * power >= value * (1 - 1e-9));
}

/**
 * The axis of values: its `bottom`, `top` and `tick`. It holds all `values`, and of the ends of
 * `bands` what does not flatten them. Where all values are 0 it reaches to one and a half times the
 * `usual` value, so that an outage looks like one.
 */
export function valueAxis(values, bands, form, usual = null) {
  const shown = usual === null ? values : [...values, usual];
  if (!shown.length) {
    return axisOf(0, form === "percent" ? 0.01 : 1);
  }
  const [least, most] = [Math.min(...shown), Math.max(...shown)];
  if (least === 0 && most === 0) {
    const leastTop = form === "percent" ? 0.01 : 1;
    return axisOf(0, Math.max(leastTop, 2 * Math.max(0, ...bands)));
  }
  if (usual !== null && values.every((value) => value === 0)) {
    return axisOf(Math.min(0, 1.5 * usual), Math.max(0, 1.5 * usual));
  }
  const room = Math.max(most - least, Math.abs(most) * 0.5);
  const low = Math.max(Math.min(least, ...bands), least - room);
  const high = Math.min(Math.max(most, ...bands), most + room);
  return axisOf(low >= 0 && low < 0.6 * high ? 0 : low, high);
}

function axisOf(low, high) {
  const tick = niceAbove((high - low) / 4 || Math.abs(high) || 1);
  const bottom = Math.floor(low / tick + 1e-9) * tick;
  return { bottom, top: Math.max(bottom + tick, Math.ceil(high / tick - 1e-9) * tick), tick };
}

/** The ticks of an axis of values, each with its text; all have the same decimals. */
export function valueTicks({ bottom, top, tick }, form) {
  const write = format.axisWriter(form, tick);
  const [first, last] = [Math.round(bottom / tick), Math.round(top / tick)];
  return Array.from({ length: last - first + 1 }, (_, i) => {
    const value = (first + i) * tick;
    return { value, text: write(value) };
  });
}

/** The ticks of an axis of time (ms) that is so many pixels wide. */
export function timeTicks(from, until, width) {
  const most = Math.max(2, Math.floor(width / LABEL_WIDTH));
  const least = until - from > DATED * DAY ? DAY : 0;
  const step = TIMES.find((each) => each >= least && (until - from) / each <= most) ?? TIMES.at(-1);
  const found = [];
  for (let ms = Math.ceil(from / step) * step; ms <= until; ms += step) {
    found.push({ ms, text: format.tick(ms, step, until - from > DAY) });
  }
  return found.length ? found : [{ ms: from, text: format.tick(from, SECOND) }];
}
