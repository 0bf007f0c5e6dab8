// A past range of a course: from when to when, within what is kept.

import { element, setAttribute, setText } from "./dom.js";
import * as format from "./format.js";

const MINUTE_MS = 60_000;

/** Two times in UTC and a button; `onRange` gets {from, until} in ms, both "" for the present. */
export class Range {
  #from = element("input", { type: "datetime-local" });
  #until = element("input", { type: "datetime-local" });
  #kept = element("p", { class: "remark" });
  #now = element("button", { type: "button", hidden: "" }, "Back to now");
  #isTouched = false;

  constructor(onRange) {
    const apply = element("button", { type: "button" }, "Show");
    const field = (text, input) => element("label", { class: "field" }, `${text} `, input);
    const controls = element("div", { class: "controls" }, field("From", this.#from), field("until", this.#until), apply, this.#now);
    this.root = element("details", { class: "range" }, element("summary", {}, "Past range"), controls, this.#kept);
    for (const input of [this.#from, this.#until]) {
      input.addEventListener("input", () => (this.#isTouched = true));
    }
    apply.addEventListener("click", () => {
      const [from, until] = [this.#from, this.#until].map((input) => Date.parse(`${input.value}Z`));
      if (from < until) {
        onRange({ from: String(from), until: String(until) });
      } else {
        setText(this.#kept, "Choose two times, the earlier one first.");
      }
    });
    this.#now.addEventListener("click", () => onRange({ from: "", until: "" }));
  }

  /** Offer what a document of /api/history says is kept; times that somebody has typed stay. */
  show(query, { kept_from_ms: kept, at_ms: at, starts_ms: starts, step_ms: step }) {
    this.#now.hidden = !query.has("from_ms");
    if (kept === undefined) {
      return;
    }
    setText(this.#kept, `Kept since ${format.clock(kept)} in points of this size; longer windows reach further back.`);
    if (!this.#isTouched) {
      this.#from.value = textOf(starts[0]);
      this.#until.value = textOf(Math.min(at, starts.at(-1) + step));
    }
    setAttribute(this.#until, "max", textOf(at + MINUTE_MS));
  }
}

/** As inputs want it: 2026-11-24T12:45. */
function textOf(ms) {
  return new Date(ms).toISOString().slice(0, 16);
}
