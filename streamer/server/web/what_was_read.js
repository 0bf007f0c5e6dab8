// What was read of the topics: a table, folded, and what about it looks like a wrong mapping.

import { byId, setLines } from "./dom.js";
import * as format from "./format.js";
import { fillTable } from "./item_table.js";

const COUNTS = ["records", "accepted", "duplicates", "late", "ignored"];
const COLUMNS = [
  { title: "Topic", texts: ({ topic }) => [topic] },
  ...COUNTS.map((name) => ({
    title: format.capital(name),
    texts: (topic) => [format.count(topic[name])],
  })),
  { title: "Rejected", texts: ({ rejected }) => [reasons(rejected) || "0"] },
  {
    title: "With a user",
    texts: ({ accepted, anonymous }) => [accepted ? format.percent(1 - anonymous / accepted) : null],
  },
];

/** The table, which is folded with more metrics, and findings above the segments. */
export class WhatWasRead {
  refresh({ read }) {
    const findings = read.findings.map(({ what, fix }) => `${what}: ${fix}.`);
    setLines(byId("read-findings"), findings);
    setLines(byId("read-joins"), read.feedback.map(joins));
    fillTable(byId("read-table"), "Since the state began", COLUMNS, read.topics, ({ topic }) => topic);
  }
}

function reasons(rejected) {
  return Object.entries(rejected).map(([why, n]) => `${format.count(n)} ${why}`).join(", ");
}

function joins({ kind, events, unattributed }) {
  const counts = `${format.count(unattributed)} of ${format.count(events)}`;
  return `${counts} ${kind} (${format.percent(unattributed / events)}) joined no impression, and no longer can.`;
}
