// On narrow screens the table of segments has its first columns only, until all are asked for.

import { byId, setAttribute, setText } from "./dom.js";
import { narrow } from "./fold.js";

let isAsked = false;
let count = 0;
let isMore = false;

/** Show the first ones of so many columns, or all; `hasMore`: whether there are others. */
export function suitColumns(columns, hasMore) {
  [count, isMore] = [columns, hasMore];
  suit();
}

function suit() {
  byId("columns").hidden = !narrow.matches || !isMore;
  const isAll = isAsked || byId("columns").hidden;
  byId("segments").className = isAll ? "stacked segments" : "few segments";
  setAttribute(byId("columns"), "aria-expanded", String(isAsked));
  setText(byId("columns"), isAsked ? "Fewer metrics" : `All ${count} metrics`);
}

byId("columns").addEventListener("click", () => {
  isAsked = !isAsked;
  suit();
});
narrow.addEventListener("change", suit);
