// Why a metric moved: its change as mix and rate, by segment.

import { byId, setAttribute, setNote, setText, shape } from "./dom.js";
import * as format from "./format.js";
import { fillTable } from "./item_table.js";
import { showWaterfall } from "./waterfall.js";

const [WIDTH, HEIGHT] = [120, 12];
const MOST_ROWS = 10;

/**
 * Show a document of /api/explain. `whole` is what is said of everything together, `dimensions` are
 * those of the settings.
 */
export function showSplit(found, whole, dimensions) {
  const note = noteOf(found, whole, dimensions);
  setNote(byId("why-note"), note);
  byId("why-again").hidden = found.now === null;
  setText(byId("why-command"), found.command);
  const isSplit = found.change !== null && found.segments_by.length > 0;
  byId("why-split").hidden = !isSplit;
  if (!isSplit) {
    return;
  }
  const write = format.writer(found.form);
  const [first, ...others] = found.sentences ?? [];
  setNote(byId("why-first"), first ?? "");
  setText(byId("why-words"), [wordsOf(found, write), ...others].join(" "));
  const isRiseBad = whole?.direction === "lower"; // is better
  showWaterfall(byId("waterfall"), found, (amount) => (isRiseBad ? amount > 0 : amount < 0));
  const parts = found.segments.flatMap((each) => [each.mix, each.rate]);
  const difference = format.differences(found.form, parts);
  for (const part of ["change", "mix", "rate"]) {
    setText(byId(`why-${part}`), difference(found[part]));
  }
  const most = Math.max(...parts.map(Math.abs));
  const rows = found.segments.slice(0, MOST_ROWS).map((each) => ({ ...each, write, difference, most }));
  const caption = `By ${found.segments_by.join(" and ")}, largest effect first`;
  fillTable(byId("parts"), caption, COLUMNS, rows, (row) => row.segment);
}

const COLUMNS = [
  { title: "Segment", isText: true, texts: (row) => [row.segment] },
  { title: "Share then", texts: (row) => [format.percent(row.share_then)] },
  { title: "Share now", texts: (row) => [format.percent(row.share_now)] },
  { title: "Value then", texts: (row) => [valueOf(row, row.rate_then)] },
  { title: "Value now", texts: (row) => [valueOf(row, row.rate_now)] },
  partColumn("Mix", "mix"),
  partColumn("Rate", "rate"),
];

function partColumn(heading, part) {
  return {
    title: heading,
    texts: (row) => [row.difference(row[part])],
    extra: () => partBar(part),
  };
}

/** A bar from the middle to one side; the number beside it says the same. */
function partBar(part) {
  const rect = shape("rect", { y: 1, height: HEIGHT - 2 });
  const zero = shape("line", { class: "zero", x1: WIDTH / 2, x2: WIDTH / 2, y1: 0, y2: HEIGHT });
  const box = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT };
  const root = shape("svg", { class: "part", "aria-hidden": "true", ...box }, rect, zero);
  return {
    root,
    update(row) {
      const long = row.most ? (Math.abs(row[part]) / row.most) * (WIDTH / 2) : 0;
      setAttribute(rect, "x", String(row[part] < 0 ? WIDTH / 2 - long : WIDTH / 2));
      setAttribute(rect, "width", String(long));
    },
  };
}

function valueOf(row, value) {
  return value === null ? null : row.write(value);
}

const THEN = {
  days: "at the same time on past days",
  weekdays: "at the same time on weekdays of the past week",
  weekends: "at the same time on the past weekend",
  weeks: "at the same time on this weekday in past weeks",
  before: "in the window before",
};

function wordsOf({ title, window, compared, then, now }, write) {
  return `${title} over ${window} is ${write(now)}; ${THEN[compared]} it was ${write(then)}.`;
}

function noteOf(found, whole, dimensions) {
  const notes = [];
  if (found.now === null) {
    notes.push("Nothing was counted in the window.");
  } else if (found.then === null) {
    notes.push("There is no baseline yet.");
  }
  if (whole?.main.status === "no baseline") {
    notes.push(`There is too little data to tell a change from chance: ${whole.main.reason}.`);
  }
  if (!found.segments_by.length) {
    const by = JSON.stringify(dimensions.slice(0, 1));
    const advice = dimensions.length ? ` Add segments = ${by} to the alert in the settings.` : "";
    notes.push(`This alert watches everything together, so there is nothing to split by.${advice}`);
  }
  return notes.join(" ");
}
