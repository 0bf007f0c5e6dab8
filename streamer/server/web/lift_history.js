// The lift over time: a line with its band, and the same as a table.

import { chart } from "./chart.js";
import { element, keep, setText } from "./dom.js";
import * as format from "./format.js";

/** The view of an item's history. */
export function pastLifts() {
  const drawing = chart();
  const head = element("tr");
  const body = element("tbody");
  const caption = element("caption");
  const table = element("table", { class: "plain" }, caption, element("thead", {}, head), body);
  const root = element(
    "div",
    { class: "course" },
    drawing.root,
    element("details", {}, element("summary", {}, "Day by day"), table),
  );
  return {
    root,
    update({ found, metric, pair }) {
      const points = pointsOf(found.history, metric.name, pair.arm);
      root.hidden = !points.length;
      const name = `Lift of ${pair.arm} over ${found.control}, ${metric.title}`;
      const { scale } = pair.verdict;
      drawing.update({ points, name, scale });
      setText(caption, `${name}: as it stood at the end of each day (UTC)`);
      const arms = [found.control, pair.arm];
      const headings = ["Day", ...arms.map((arm) => `Users of ${arm}`), "Lift", "At any time"];
      keep(head, headings, (text) => text, headerView);
      const rows = points.map((point) => ({ ...point, write: format.lifts(scale) }));
      keep(body, rows, (row) => row.day, (row) => rowView(row, arms));
    },
  };
}

/** What is known of a comparison at the end of each day. */
function pointsOf(history, metric, arm) {
  return history
    .filter((entry) => entry.metrics[metric]?.[arm])
    .map(({ day, users, metrics }) => ({ day, users, ...metrics[metric][arm] }));
}

function headerView(text) {
  const isNumber = text !== "Day";
  const root = element("th", { scope: "col", class: isNumber ? "number" : "" }, text);
  return { root, update() {} };
}

function rowView(_, arms) {
  const title = element("th", { scope: "row" });
  const cells = [...arms, "lift", "range"].map(() => element("td", { class: "number" }));
  const root = element("tr", {}, title, ...cells);
  return {
    root,
    update({ day, users, value, anytime, write }) {
      setText(title, format.shortDay(day));
      const range = anytime && `${write(anytime.low)} to ${write(anytime.high)}`;
      const texts = [
        ...arms.map((arm) => format.count(users[arm] ?? 0)),
        value === null ? format.NO_DATA : write(value),
        range || format.NO_DATA,
      ];
      texts.forEach((text, i) => setText(cells[i], text));
    },
  };
}
