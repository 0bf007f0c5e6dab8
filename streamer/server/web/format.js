// Numbers and times as words: three significant digits, English, the reader's time zone.

export const NO_DATA = "no data";
const MINUS = "\u2212";

const INTEGER = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const DIGITS = new Intl.NumberFormat("en", {
  minimumSignificantDigits: 3,
  maximumSignificantDigits: 3,
  useGrouping: false,
});
const LONG = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });
const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
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
});
const HOURS = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const TIMES = [
  [60_000, new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" })],
  [86_400_000, new Intl.DateTimeFormat("en-GB", { timeStyle: "short" })],
];
const MOMENT = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });
const SHORT_DAY = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  timeZone: "UTC",
});
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
  return `${SHORT.format(value * 100)}%`;
}

/** A lift: +1.24%, +12.4%, +124%. */
export function lift(value) {
  const size = Math.abs(value * 100);
  const decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  const text = DECIMALS[decimals].format(value * 100);
  return Number(text) === 0 ? "0%" : `${plus(value, signed(text))}%`;
}

/** How lifts are written: `scale` is "relative" or "absolute". */
export function lifts(scale) {
  return scale === "absolute" ? difference : lift;
}

/** A difference: +0.0251. */
export function difference(value) {
  return plus(value, number(value));
}

/** A share of round numbers, as axes have them: 5%, 12.5%. */
export function round(value) {
  return `${plus(value, signed(LONG.format(value * 100)))}%`;
}

/** A duration of dwelling: 21.5 s. */
export function seconds(value) {
  return `${number(value)} s`;
}

/** A p-value: 0.0052, below 0.0001. */
export function pValue(value) {
  return value < 0.0001 ? "< 0.0001" : LONG.format(Number(value.toPrecision(2)));
}

/** 22 Nov 2026, 14:03:05 CET. */
export function clock(ms) {
  return CLOCK.format(ms);
}

/** 14:03:05. */
export function hours(ms) {
  return HOURS.format(ms);
}

/** A time on an axis whose points are `step` apart and that is `long` in all (ms). */
export function instant(ms, step, long) {
  if (long > 2 * 86_400_000) {
    return DATE.format(ms);
  }
  return (TIMES.find(([most]) => step < most) ?? TIMES[1])[1].format(ms);
}

/** From when to when: 22 Nov, 14:05 to 14:10. */
export function period(start, end) {
  const write = (end - start < 60_000 ? TIMES[0] : TIMES[1])[1];
  const isSameDay = DATE.format(start) === DATE.format(end);
  const from = `${DATE.format(start)}, ${write.format(start)}`;
  return `${from} to ${isSameDay ? write.format(end) : MOMENT.format(end)}`;
}

/** A day of UTC, 2026-11-02: 2 Nov 2026. */
export function day(text) {
  return DAY.format(Date.parse(text));
}

/** The same without the year. */
export function shortDay(text) {
  return SHORT_DAY.format(Date.parse(text));
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

/** A text that begins a sentence. */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
