// What stands around the lines of a course: when alerts fired, marks from outside, names of lines.

import { shape } from "./dom.js";

export const LANE_HEIGHT = 18;
const [LANES, CHAR_WIDTH, BOLD_WIDTH, NAME_GAP] = [4, 7.4, 8.6, 14];

/** The firings that have a lane above the plot; the cursor and the table have all. */
export function lanesOf({ firings }) {
  return firings.slice(0, LANES);
}

/** The times of one segment's alert, with its name, and a shade below them. */
export function laneOf({ name, spans }, lane, { within, base, top, left, right }) {
  const y = top + lane * LANE_HEIGHT;
  const found = spans.flatMap(({ from, until }) => {
    const [begin, end] = [within(from), within(until)];
    const wide = { x: begin, width: Math.max(3, end - begin) };
    return [
      shape("rect", { class: "shade", ...wide, y, height: base - y, opacity: 0.08 }),
      shape("rect", { class: "firing", ...wide, y, height: LANE_HEIGHT - 6 }),
    ];
  });
  const first = within(Math.min(...spans.map((span) => span.from)));
  const last = within(Math.max(...spans.map((span) => span.until)));
  return [...found, nameOf(name, { first, last, left, right }, y + LANE_HEIGHT - 7)];
}

/** Beside the spans where there is room, else upon them; as long as there is room for. */
function nameOf(name, { first, last, left, right }, y) {
  const width = name.length * CHAR_WIDTH;
  if (first - left > width + 6) {
    return shape("text", { x: first - 6, y, "text-anchor": "end" }, name);
  }
  if (right - last > width + 6) {
    return shape("text", { x: last + 6, y }, name);
  }
  return shape("text", { class: "upon", x: first + 4, y }, cut(name, right - first - 8));
}

/** A text that takes at most so many pixels. */
export function cut(text, width, charWidth = CHAR_WIDTH) {
  const most = Math.max(1, Math.floor(width / charWidth));
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/** A mark from outside: an upright line with its text above the plot. */
export function markOf({ ms, text }, { x, left, right, base, from, until, axis, y }) {
  if (ms < from || ms > until) {
    return [];
  }
  const [at, top] = [x(ms), y(axis.top)];
  const isLate = at > (left + right) / 2;
  const room = isLate ? at - left : right - at;
  return [
    shape("line", { class: "outside", x1: at, x2: at, y1: top - 12, y2: base }),
    shape(
      "text",
      { x: isLate ? at - 4 : at + 4, y: top - 4, "text-anchor": isLate ? "end" : "start" },
      cut(text, Math.min(room, 240)),
    ),
  ];
}

/** The names of lines at their ends, so far apart that they can be read. */
export function namesOf(lines, { y, right, base }) {
  const ends = lines
    .map(({ title, values }, i) => ({ title, i, value: values.findLast((v) => v !== null && v !== undefined) }))
    .filter(({ value }) => value !== undefined)
    .map((end) => ({ ...end, y: y(end.value) + 4 }))
    .sort((a, b) => a.y - b.y);
  let lowest = base + 4;
  for (const end of ends.toReversed()) {
    end.y = Math.min(end.y, lowest);
    lowest = end.y - NAME_GAP;
  }
  return ends.map(({ title, i, y: at }) =>
    shape("text", { class: `name style-${i % 6}`, x: right + 8, y: at }, cut(title, 102, BOLD_WIDTH)),
  );
}
