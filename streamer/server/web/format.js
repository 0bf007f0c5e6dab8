// Numbers and times as words: three significant digits, English, UTC. `streamer.formatting` writes
// numbers by the same rules; a test holds the two together.

export const NO_DATA = "no data";
const MINUS = "\u2212";

const INTEGER = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const DIGITS = new Intl.NumberFormat("en", {
  minimumSignificantDigits: 3,
  maximumSignificantDigits: 3,
  useGrouping: false,
});
const TWO_DIGITS = new Intl.NumberFormat("en", { minimumSignificantDigits: 2, maximumSignificantDigits: 2 });
const LONG = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });
const DECIMALS = [0, 1, 2].map(
  (digits) =>
    new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }),
);
const CLOCK = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "short",
  timeZone: "UTC",
});
const TIMES = ["medium", "short"].map(
  (timeStyle) => new Intl.DateTimeFormat("en-GB", { timeStyle, timeZone: "UTC" }),
);
const MOMENT = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  timeZone: "UTC",
});
const SINCE = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  timeZone: "UTC",
});
const SHORT_DAY = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  timeZone: "UTC",
});
const DAY_MS = 86_400_000;
const SPANS = [
  [86_400, "day"],
  [3_600, "hour"],
  [60, "minute"],
  [1, "second"],
];

/** A count: 12,345. */
export function count(value) {
  return signed(INTEGER.format(value));
}

/** A count with its noun: 1 user, 2 users. */
export function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** 0.189, 12.4, 1,235. */
export function number(value) {
  if (Math.abs(value) >= 999.5) {
    return count(value);
  }
  return Math.abs(value) < 1e-6 ? "0" : signed(DIGITS.format(value));
}

/** Up to six digits, as many as there are. */
export function exact(value) {
  return signed(LONG.format(value));
}

/** A share: 12.4%. */
export function percent(value) {
  return `${number(value * 100)}%`;
}

/** A share of the settings, which has few digits by itself: 5%, 33.3%. */
export function share(value) {
  const text = number(value * 100);
  return `${text.includes(".") ? text.replace(/\.?0+$/, "") : text}%`;
}

/** A relative change, with two digits: −29%, +4.2%, +0.042%, 0%. */
export function change(value) {
  const percents = Math.abs(value * 100);
  const small = percents < 1e-6 ? "0" : TWO_DIGITS.format(percents);
  const size = percents < 0.995 ? `${small}%` : wholePercent(Math.abs(value));
  return size === "0%" ? size : `${value > 0 ? "+" : MINUS}${size}`;
}

/** A size in whole percent, below a tenth with one decimal; nearly all is not all. */
export function wholePercent(value) {
  if (value >= 0.995 && value < 1) {
    return "99.9%";
  }
  const text = DECIMALS[value >= 0.0995 ? 0 : 1].format(100 * value);
  return text === "0.0" ? "0%" : `${text}%`;
}

/** How differences of values of a form are written that stand below each other: with the decimals of
 * the largest; of shares in points of a hundred. */
export function differences(form, values) {
  const factor = form === "percent" ? 100 : 1;
  const most = Math.max(...values.map((value) => Math.abs(factor * value)), 0);
  const decimals = most > 0 ? Math.min(9, Math.max(0, 2 - Math.floor(Math.log10(most)))) : 0;
  const written = new Intl.NumberFormat("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  const unit = { percent: " points", seconds: " s" }[form] ?? "";
  return (value) => {
    const text = written.format(factor * value);
    return Number(text.replaceAll(",", "")) === 0 ? `0${unit}` : `${plus(value, signed(text))}${unit}`;
  };
}

/** A duration of dwelling: 21.5 s. */
export function seconds(value) {
  return `${number(value)} s`;
}

/** 22 Nov 2026, 14:03:05 CET. */
export function clock(ms) {
  return CLOCK.format(ms);
}

/** A tick of an axis of time, with so many ms between ticks: a date at midnight, else a time, with
 * its date where the axis is longer than a day. */
export function tick(ms, step, isLong) {
  const time = TIMES[step < 60_000 ? 0 : 1].format(ms);
  return ms % DAY_MS === 0 ? SHORT_DAY.format(ms) : isLong ? `${SHORT_DAY.format(ms)} ${time}` : time;
}

/** A time without its year: Mon 23 Nov, 00:45. */
export function moment(ms) {
  return SINCE.format(ms);
}

/** When something began, and for how long it has lasted: Mon 23 Nov, 00:45 (36 hours). */
export function since(ms, nowMs) {
  const text = Math.floor(ms / DAY_MS) === Math.floor(nowMs / DAY_MS) ? TIMES[1].format(ms) : SINCE.format(ms);
  return `${text} (${about(Math.max(60, (nowMs - ms) / 1000))})`;
}

/** From when to when: 22 Nov, 14:05 to 14:10. */
export function period(start, end) {
  const write = TIMES[end - start < 60_000 ? 0 : 1];
  const isSameDay = SHORT_DAY.format(start) === SHORT_DAY.format(end);
  const from = `${SHORT_DAY.format(start)}, ${write.format(start)}`;
  return `${from} to ${isSameDay ? write.format(end) : MOMENT.format(end)}`;
}

const UNITS_MS = { s: 1000, m: 60_000, h: 3_600_000, d: DAY_MS, w: 7 * DAY_MS };
const FILE = "file";
let spans = {};

/** Take in when windows of a file begin and end (ms), by their labels. */
export function learnSpans(found) {
  spans = found;
}

/** A window in words: the last 24h. */
export function last(label) {
  return label === FILE ? "all of the file" : `the last ${label}`;
}

/** The same, of a file with its times. */
export function lastWithTimes(label) {
  return label in spans ? `${last(label)}, ${spans[label].map(clock).join(" to ")}` : last(label);
}

/** The length of a window by its label, 24h; no window is longer than that of a file. */
export function windowMs(label) {
  if (label === FILE) {
    return Infinity;
  }
  return Number(label.slice(0, -1)) * (UNITS_MS[label.at(-1)] ?? NaN);
}

/** 3 hours, in the largest unit that fits. */
export function span(wholeSeconds) {
  const [length, noun] = SPANS.find(([unit]) => wholeSeconds >= unit) ?? SPANS.at(-1);
  return counted(Math.floor(wholeSeconds / length), noun);
}

/** About 3 hours, in the largest unit of which there are two, or the smallest. */
export function about(seconds) {
  const [length, noun] = SPANS.find(([unit]) => seconds >= 2 * unit) ?? SPANS.at(-1);
  return counted(Math.round(seconds / length), noun);
}

function plus(value, text) {
  return value > 0 && text !== "0" && text !== "0%" ? `+${text}` : text;
}

function signed(text) {
  return text.replace("-", MINUS);
}

/** How values of a metric are written: "percent", "seconds" or "number". */
export function writer(form) {
  return { percent, seconds }[form] ?? number;
}

/** How the ticks of an axis of such values are written: all with the decimals of the step. */
export function axisWriter(form, step) {
  const factor = form === "percent" ? 100 : 1;
  const decimals = Array.from({ length: 10 }, (_, i) => i).find((n) => isWhole(factor * step * 10 ** n)) ?? 10;
  const written = new Intl.NumberFormat("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  const unit = { percent: "%", seconds: " s" }[form] ?? "";
  return (value) => `${signed(written.format(factor * value + 0))}${unit}`;
}

function isWhole(value) {
  return Math.abs(value - Math.round(value)) < 1e-6 * Math.max(1, Math.abs(value));
}

/** A text that begins a sentence. */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
