// On narrow screens the table of segments has its first columns only, until all are asked for.

import { byId, setAttribute, setText } from "./dom.js";
import { narrow } from "./fold.js";

let isAsked = false;
let count = 0;

/** Show the first ones of so many columns, or all; `isMore`: whether there are others. */
export function suitColumns(columns, isMore) {
  count = columns;
  byId("columns").hidden = !narrow.matches || !isMore;
  suit();
}

function suit() {
  const isAll = isAsked || byId("columns").hidden;
  byId("segments").className = isAll ? "stacked segments" : "few segments";
  setAttribute(byId("columns"), "aria-expanded", String(isAsked));
  setText(byId("columns"), isAsked ? "Fewer metrics" : `All ${count} metrics`);
}

byId("columns").addEventListener("click", () => {
  isAsked = !isAsked;
  suit();
});
narrow.addEventListener("change", () => {
  byId("columns").hidden = !narrow.matches;
  suit();
});
