// What stands around the lines of a course: one lane of when alerts fired and of marks from outside,
// with its legend, and the names of lines.

import { element, setText, shape } from "./dom.js";
import * as format from "./format.js";

export const LANE_HEIGHT = 18;
const [NAMED, CHAR_WIDTH, BOLD_WIDTH, NAME_GAP, NUMBER_WIDTH] = [4, 7.4, 8.6, 14, 18];

/** Whether a course has a lane. */
export function hasLane({ firings, marks }) {
  return firings.length + marks.length > 0;
}

function marksOf({ marks }, { from, until }) {
  return marks.filter(({ ms }) => ms >= from && ms <= until);
}

/** When alerts fired, with a shade below, and marks as numbers with an upright line. */
export function laneOf(item, place) {
  const { x, within, base, top } = place;
  const found = item.firings.flatMap(({ spans }) => spans).flatMap(({ from, until }) => {
    const [begin, end] = [within(from), within(until)];
    const wide = { x: begin, y: top, width: Math.max(3, end - begin) };
    return [
      shape("rect", { class: "shade", ...wide, height: base - top, opacity: 0.08 }),
      shape("rect", { class: "firing", ...wide, height: 4 }),
    ];
  });
  let free = -Infinity;
  marksOf(item, place).forEach(({ ms }, i) => {
    const at = x(ms);
    found.push(shape("line", { class: "outside", x1: at, x2: at, y1: top, y2: base }));
    if (at >= free) {
      const isLast = at + NUMBER_WIDTH > place.right;
      found.push(shape("text", { x: isLast ? at - 4 : at + 4, y: top + 15, "text-anchor": isLast ? "end" : "start" }, String(i + 1)));
      free = at + NUMBER_WIDTH;
    }
  });
  return found;
}

/** What the lane and the lines beside those of the course are: {key, kind, sign, text}. */
export function legendOf(item, place) {
  const { firings, past, usual, targets, selected, write } = item;
  const found = firings.slice(0, NAMED).map(({ name, spans }) => ({
    kind: "shade", text: `${name}: ${[...new Set(spans.map(({ text }) => text))].join(", ")}`,
  }));
  const more = firings.length - found.length;
  found.push(...(more > 0 ? [{ kind: "shade", text: `${format.counted(more, "more alert")}` }] : []));
  found.push(...marksOf(item, place).map(({ ms, text }, i) => ({ sign: `${i + 1}`, text: `${text}, ${format.moment(ms)}` })));
  found.push(...(past ? [{ kind: "line past", text: past.title }] : []));
  found.push(...(usual ? [{ kind: "usual", text: `usual ${write(usual)}` }] : []));
  found.push(...targets.map(({ text }) => ({ kind: "target", text })));
  found.push(...(selected ? [{ kind: "selected", text: "the chosen window" }] : []));
  return found.map((each, i) => ({ ...each, key: `${i} ${each.kind}` }));
}

export function legendEntry({ kind, sign }) {
  const text = element("span");
  const drawn = kind === "shade" ? shape("rect", { class: kind, y: 3, width: 22, height: 6 }) : shape("line", { class: kind ?? "", x1: 0, x2: 22, y1: 6, y2: 6 });
  const key = sign ? element("b", {}, sign) : shape("svg", { width: 22, height: 12, "aria-hidden": "true" }, drawn);
  return { root: element("li", {}, key, text), update: (entry) => setText(text, entry.text) };
}

/** A text that takes at most so many pixels. */
export function cut(text, width, charWidth = CHAR_WIDTH) {
  const most = Math.max(1, Math.floor(width / charWidth));
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
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
