// The disclosure of a comparison: both intervals, p-values, what could be found and when.

import { element, keep, setText } from "./dom.js";
import * as format from "./format.js";

const HEADINGS = ["Value", "At any time", "p, any time", "At a single look", "p, single look"];

/** The view of an item's numbers. */
export function numbers() {
  const headings = HEADINGS.map((text) => headerCell(text, "number"));
  const head = element("tr", { role: "row" }, headerCell("Lift", ""), ...headings);
  const body = element("tbody", { role: "rowgroup" });
  const caption = element("caption");
  const table = element(
    "table",
    { class: "stacked numbers", role: "table" },
    ...[caption, element("thead", { role: "rowgroup" }, head), body],
  );
  const facts = element("dl", { class: "facts" });
  const root = element("details", {}, element("summary", {}, "All numbers"), table, facts);
  return {
    root,
    update(item) {
      const level = format.share(1 - item.found.alpha);
      setText(caption, `${item.pair.arm} against ${item.found.control}, with ${level} intervals`);
      keep(body, rowsOf(item.pair), (row) => row.title, rowView);
      keep(facts, factsOf(item), (fact) => fact.title, factView);
    },
  };
}

function headerCell(text, kind) {
  return element("th", { scope: "col", role: "columnheader", class: kind }, text);
}

function rowsOf({ absolute, relative, adjusted }) {
  const counted = [
    { title: "relative", estimate: relative, write: format.lift },
    { title: "absolute", estimate: absolute, write: format.difference },
  ];
  if (!adjusted) {
    return counted;
  }
  return [
    { title: "relative, adjusted", estimate: adjusted.relative, write: format.lift },
    { title: "absolute, adjusted", estimate: adjusted.absolute, write: format.difference },
    ...counted.map((row) => ({ ...row, title: `${row.title}, unadjusted` })),
  ];
}

function rowView() {
  const title = element("th", { scope: "row", role: "rowheader" });
  const cells = HEADINGS.map((text) =>
    element("td", { role: "cell", class: "number", "data-title": text }),
  );
  const root = element("tr", { role: "row" }, title, ...cells);
  return {
    root,
    update(row) {
      setText(title, row.title);
      textsOf(row).forEach((text, i) => setText(cells[i], text));
    },
  };
}

function textsOf({ estimate, write }) {
  const { value, anytime, fixed, reason } = estimate;
  const of = (inference) =>
    inference === null
      ? ["not defined", format.NO_DATA]
      : [`${write(inference.low)} to ${write(inference.high)}`, format.pValue(inference.p_adjusted)];
  return [value === null ? reason || "not defined" : write(value), ...of(anytime), ...of(fixed)];
}

function factsOf({ metric, pair }) {
  const facts = [];
  if (metric.comparisons.length > 1) {
    const text = `p-values and intervals are corrected for ${metric.comparisons.length} treatments (Holm).`;
    facts.push({ title: "Corrected", text });
  }
  if (pair.adjusted) {
    facts.push({ title: "Adjusted", text: pair.adjustment });
  }
  const why = (pair.adjusted ?? pair).relative.reason;
  if (why && pair.verdict.scale === "absolute") {
    facts.push({ title: "No lift in percent", text: `${why}.` });
  }
  facts.push({ title: "Least lift that these users can detect", text: leastWords(pair.detectable) });
  facts.push({ title: "Days until a lift would be detected", text: pair.waits_words || format.NO_DATA });
  return facts;
}

function leastWords(detectable) {
  const { relative_anytime: anytime, relative_fixed: fixed } = detectable;
  if (anytime === null) {
    return detectable.absolute_anytime === null
      ? format.NO_DATA
      : `${format.number(detectable.absolute_anytime)} absolute, looking at any time`;
  }
  return `${format.percent(anytime)} looking at any time, ${format.percent(fixed)} at a single look`;
}

function factView({ title }) {
  const text = element("dd");
  const root = element("div", {}, element("dt", {}, `${title}: `), text);
  return { root, update: (fact) => setText(text, fact.text) };
}
