// The shape of a window's traffic: how many get from impression to conversion, where on a slate they
// click, and on how few items impressions fall. Read only while it is open.

import { get } from "./api.js";
import { PREFIX } from "./columns.js";
import { POSITIONS, positionsOf, shareBar, showPositions } from "./curves.js";
import { byId } from "./dom.js";
import { csvButton } from "./download.js";
import * as format from "./format.js";
import { fillTable } from "./item_table.js";
import { queryOf } from "./segments.js";

const LEAST = 1 / 160; // a bar is a line at least
const STEPS = [
  ["window_impressions", "Impressions"],
  ["window_clicks", "Clicks"],
  ["window_conversions", "Conversions"],
];
const ITEMS = [
  ["window_items", "Distinct items shown", format.count, ""],
  ["catalog_coverage_ratio", "Share of the catalogue that was shown", format.percent, ""],
  ["exposure_gini", "Gini coefficient of impressions by item", format.number, "0: all items alike; 1: one item has all"],
];

/** The disclosure below the breakdown. */
export class Shape {
  constructor(again) {
    byId("shape").addEventListener("toggle", again);
    for (const id of ["funnel", "items"]) {
      byId(`${id}-tools`).append(csvButton(byId(id), id));
    }
  }

  async refresh({ window, dimensions, where }, signal) {
    if (!byId("shape").open) {
      return;
    }
    const query = new URLSearchParams(queryOf(window, [], dimensions, where));
    const names = [...STEPS, ...ITEMS].map(([name]) => PREFIX + name);
    [...names, ...POSITIONS].forEach((name) => query.append("name", name));
    const { readings } = await get(`api/readings?${query}`, signal);
    const of = (name) => readings.filter((each) => each.name === PREFIX + name);
    showFunnel(STEPS.map(([name, title]) => ({ title, count: of(name)[0]?.value ?? 0 })), window);
    const items = ITEMS.flatMap(([name, title, write, note]) =>
      of(name).map(({ value, labels }) => ({ title: titleOf(title, labels), text: write(value), note })),
    );
    byId("items-part").hidden = !items.length;
    fillTable(byId("items"), `Items, ${format.lastWithTimes(window)}`, ITEM_COLUMNS, items, (row) => row.title);
    const positions = positionsOf(readings);
    byId("positions").hidden = !positions.length;
    showPositions(byId("positions"), positions, window);
  }
}

function titleOf(title, { k }) {
  return k === undefined || k === "all" ? title : `${title}, the first ${k}`;
}

function showFunnel(steps, window) {
  const [first] = steps;
  const rows = steps.map((step, i) => ({
    ...step,
    before: i && steps[i - 1].count ? step.count / steps[i - 1].count : null,
    share: first.count ? step.count / first.count : 0,
  }));
  fillTable(byId("funnel"), `From impressions to conversions, ${format.lastWithTimes(window)}`, FUNNEL_COLUMNS, rows, (row) => row.title);
}

const FUNNEL_COLUMNS = [
  { title: "Step", isText: true, texts: (row) => [row.title] },
  { title: "Events", texts: (row) => [format.count(row.count)] },
  { title: "Of the step before", texts: (row) => [row.before === null ? null : format.percent(row.before)], extra: () => shareBar(({ share }) => Math.min(1, Math.max(LEAST, share))) },
];
const ITEM_COLUMNS = [
  { title: "Of items", isText: true, texts: (row) => [row.title, row.note] },
  { title: "Value", texts: (row) => [row.text] },
];
