// Why a metric moved, in sentences and as steps.

import { byId, setNote, setText } from "./dom.js";
import * as format from "./format.js";
import { showWaterfall } from "./waterfall.js";

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
