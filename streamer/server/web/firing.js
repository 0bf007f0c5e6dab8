// What fires now: a line for each alert at the top of the page, the worst first; and how the title of
// the page, its icon and its navigation count them.

import { knownHistory, readAlerts, readHistories } from "./alert_history.js";
import { byId, element, keep, setAttribute, setLines, setText } from "./dom.js";
import * as format from "./format.js";
import { knownMarks, readMarks } from "./marks.js";
import { countAlerts } from "./navigation.js";
import { ROLLUP } from "./segments.js";

const SHOWN = 3;
const BEFORE_MS = 6 * 3_600_000;
const ICON = byId("icon").href;
const ALARM =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath fill='%23b3261e' d='M0 2h16L8 15z'/%3E%3C/svg%3E";
const title = { firing: "", page: "streamer" };

/** Give the page a title; what fires stands before it. */
export function setTitle(text) {
  title.page = text;
  showTitle();
}

function showTitle() {
  const text = title.firing ? `${title.firing} – streamer` : title.page;
  if (document.title !== text) {
    document.title = text; // links and tabs can be told apart
  }
}

/** A segment as addresses have it: "surface:women"; "" of everything together. */
export function segmentText(segment) {
  return Object.entries(segment)
    .filter(([, value]) => value !== ROLLUP)
    .map((pair) => pair.join(":"))
    .join(",");
}

/** What an address needs to lead to why an alert's segment moved. */
export function whyOf({ alert, segment }) {
  return { alert, segment: segmentText(segment) };
}

/** The banner. `onWhy` is called with an alert that is asked about. */
export class Firing {
  #all = false;
  #document = null;
  #onWhy;

  constructor(onWhy) {
    this.#onWhy = onWhy;
    byId("firing-more").addEventListener("click", () => {
      this.#all = true;
      this.#show();
    });
  }

  async refresh(health, signal) {
    this.#document = await readAlerts(signal);
    this.#show();
  }

  /** Say since when they fire, and what happened before, once that is read. */
  async settle(signal) {
    const { firing = [] } = this.#document;
    if (firing.length) {
      await readHistories([...new Set(firing.map((each) => each.alert))], signal);
      await readMarks(signal);
      this.#show();
    }
  }

  #show() {
    const { firing = [] } = this.#document;
    const shown = this.#all ? firing : firing.slice(0, SHOWN);
    const items = shown.map((each) => ({ ...each, ...sinceOf(each), why: this.#onWhy }));
    keep(byId("firing").querySelector("ol"), items, (each) => JSON.stringify(whyOf(each)), lineView);
    byId("firing").hidden = !firing.length;
    const more = byId("firing-more");
    more.hidden = shown.length === firing.length;
    setText(more, `${firing.length - shown.length} more`);
    const [first] = firing;
    title.firing = first ? `(${firing.length}) ${first.sign} ${first.alert} ${first.name}` : "";
    showTitle();
    setAttribute(byId("icon"), "href", first ? ALARM : ICON);
    countAlerts(this.#document);
  }
}

/** Since when, in words, and the mark before; "" until they are known. */
function sinceOf({ alert, segment, check, since_ms: began, since_low_ms: low, since_high_ms: high }) {
  const history = knownHistory(alert);
  const own = history?.segments.find((each) => segmentText(each.segment) === segmentText(segment));
  const span = own?.spans.findLast((each) => each.check === check && each.until_ms === null);
  if (span === undefined) {
    return { since: "", mark: "" };
  }
  const isBefore = span.from_ms === history.from_ms;
  const onset = began ?? span.from_ms;
  const text = format.since(onset, history.at_ms);
  const range = low < high ? `, between ${format.moment(low)} and ${format.moment(high)}` : "";
  const begin = isBefore && !began ? `before ${text}` : text + range;
  const wait = span.fires_ms === null ? `; it fires after ${format.about(history.for_ms / 1000)}` : "";
  return { since: begin + wait, mark: markBefore(onset, history.step_ms) };
}

/** The last mark in the hours before something began. */
function markBefore(ms, step) {
  const found = knownMarks().filter((mark) => mark.ms <= ms + step && mark.ms > ms - BEFORE_MS);
  const last = found.at(-1);
  return last ? `${last.text}, ${format.moment(last.ms)}` : "";
}

function lineView() {
  const [mark, what, size] = [element("span", { "aria-hidden": "true" }), element("strong"), element("span", { class: "size" })];
  const link = element("a", { class: "why" }, "Why?");
  const facts = ["Since", "Where", "Shortly before", "Likely"].map((name) => ({ name, text: element("dd") }));
  const list = element(
    "dl",
    {},
    ...facts.map(({ name, text }) => element("div", {}, element("dt", {}, name), " ", text)),
  );
  const evidence = element("ul", { class: "evidence" });
  const root = element("li", {}, element("p", { class: "what" }, mark, " ", what, " ", size), link, list, evidence);
  let item = null;
  link.addEventListener("click", (event) => {
    event.preventDefault();
    item.why(item);
  });
  return {
    root,
    update(now) {
      item = now;
      setText(mark, now.sign);
      setText(what, now.headline);
      setText(size, now.size && `(${now.size})`);
      setAttribute(link, "href", `?${new URLSearchParams(whyOf(now))}#explain`);
      setAttribute(link, "aria-label", `Why? ${now.alert}, ${now.name}`);
      [now.since, now.where, now.mark, now.likely].forEach((text, i) => {
        setText(facts[i].text, text);
        facts[i].text.parentElement.hidden = !text;
      });
      setLines(evidence, now.evidence);
    },
  };
}
