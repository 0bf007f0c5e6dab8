// The table of experiments, what needs a decision first; each opens to its page.

import { get } from "./api.js";
import { byId, element, isLong, keep, setAttribute, setNote, setText, shape } from "./dom.js";
import { csvButton } from "./download.js";
import * as format from "./format.js";
import { countExperiments } from "./navigation.js";

const EVERY_MS = 15_000;
/** Of more experiments, the others are shown when they are asked for. */
const FIRST = 12;

/** An experiment moves slowly, and costs the exporter more: it is read at every third look. */
export class Experiments {
  #dueMs = 0;
  #only = "";
  #all = false;
  #list = { experiments: [], scale: [], needs: {} };

  constructor() {
    const old = /^#experiment=(.+)$/.exec(location.hash); // links of former versions
    if (old) {
      location.replace(`experiments/${old[1]}`);
    }
    byId("experiments-only").addEventListener("change", (event) => {
      this.#only = event.target.value;
      this.#show();
    });
    byId("experiments-tools").append(csvButton(byId("experiments-table"), "experiments"));
    byId("experiments-all").addEventListener("click", () => {
      this.#all = true;
      this.#show();
    });
  }

  async refresh(health, signal) {
    const startedMs = performance.now();
    if (startedMs < this.#dueMs) {
      return;
    }
    this.#list = await get("api/experiments", signal);
    byId("no-experiments").hidden = this.#list.experiments.length > 0;
    byId("experiments-panel").hidden = !this.#list.experiments.length;
    this.#show();
    this.#dueMs = startedMs + EVERY_MS - 1000;
  }

  #show() {
    const { experiments, scale } = this.#list;
    const wanted = experiments.filter((each) => !this.#only || each.needs === this.#only);
    const shown = this.#all ? wanted : wanted.slice(0, FIRST);
    byId("experiments-choice").hidden = experiments.length <= FIRST;
    setText(byId("experiments-shown"), `${shown.length} of ${experiments.length} shown, what needs a decision first.`);
    byId("experiments-all").hidden = shown.length === wanted.length;
    const items = shown.map((each) => ({ ...each, scale }));
    const table = byId("experiments-table");
    setText(table.caption, "What to do with each experiment, by its primary metric");
    const heads = ["Experiment", ...COLUMNS];
    const views = keep(table.tHead.rows[0], heads, (title) => title, headView);
    views.get("Range").show(scale);
    keep(table.tBodies[0], items, (each) => each.name, rowView);
    const words = countExperiments(this.#list.needs) || "No decision is due";
    setNote(byId("experiments-answer"), experiments.length ? words : "");
  }
}

const COLUMNS = ["Advice", "Change", "Range", "Guardrails", "Users", "Days", "Split"];

function headView(title) {
  const kind = { Experiment: "", Advice: "", Range: "drawn" }[title] ?? "number";
  const text = element("span", title === "Range" ? { class: "hidden-text" } : {}, title);
  const root = element("th", { scope: "col", role: "columnheader", class: kind }, text);
  const axis = axisView();
  if (title === "Range") {
    root.append(axis.root);
  }
  return { root, update() {}, show: axis.update };
}

/** The axis of all bars, in the head of the table. */
function axisView() {
  const drawing = shape("svg", { class: "scale", height: 16, "aria-hidden": "true" });
  return {
    root: drawing,
    update(ticks) {
      keep(drawing, ticks, (tick) => tick.text, () => {
        const root = shape("text", { y: 12, "text-anchor": "middle" });
        return {
          root,
          update({ at, text }) {
            setAttribute(root, "x", `${at}%`);
            setText(root, text);
          },
        };
      });
    },
  };
}

function rowView() {
  const link = element("a");
  const owner = element("span", { class: "interval" });
  const cells = COLUMNS.map((title) => element("td", { role: "cell", class: "number", "data-title": title }));
  const [advice, change, drawn, guardrails, users, days, split] = cells;
  const pill = element("span", { class: "verdict" });
  advice.className = "";
  advice.append(pill);
  const [value, range] = [element("span", { class: "value" }), element("span", { class: "interval" })];
  change.append(value, " ", range);
  drawn.className = "drawn";
  const bar = barView();
  drawn.append(bar.root);
  const name = element("th", { scope: "row", role: "rowheader" }, link, " ", owner);
  return {
    root: element("tr", { role: "row" }, name, ...cells),
    update(item) {
      setAttribute(link, "href", `experiments/${encodeURIComponent(item.name)}`);
      setText(link, item.title);
      name.classList.toggle("long", isLong(item.title));
      setNote(owner, item.owner);
      const pillOf = item.advice?.pill;
      setText(pill, pillOf ? `${pillOf.sign} ${pillOf.words}` : item.waiting);
      setAttribute(pill, "data-kind", pillOf?.kind ?? "open");
      setText(value, item.lift?.text ?? "–");
      setNote(range, item.lift ? `${item.metric_title}, ${item.lift.range}` : "");
      bar.update(item);
      setText(guardrails, item.guardrails?.text ?? "–");
      setText(users, item.users === undefined ? "–" : format.count(item.users));
      setText(days, item.days?.text ?? "–");
      const other = item.split?.is_unusual ? "! unusual" : "✓ as planned";
      setText(split, item.split ? (item.split.is_wrong ? "✕ broken" : other) : "–");
    },
  };
}

/** The interval of a lift on the scale of all rows. */
function barView() {
  const rect = shape("rect", { y: 8, height: 8, rx: 4 });
  const dot = shape("circle", { cy: 12, r: 5 });
  const zero = shape("line", { class: "zero", y1: -12, y2: 36 });
  const marks = ["◂", "▸"].map((text, i) => shape("text", { class: "cut", x: i ? "100%" : "0%", y: 16, "text-anchor": i ? "end" : "start" }, text));
  const root = shape("svg", { class: "lift-bar", height: 24, "aria-hidden": "true" }, zero, rect, dot, ...marks);
  return {
    root,
    update({ bar, lift, scale }) {
      const origin = scale.find((tick) => tick.is_zero);
      setAttribute(zero, "x1", `${origin?.at ?? 0}%`);
      setAttribute(zero, "x2", `${origin?.at ?? 0}%`);
      for (const part of [rect, dot]) {
        setAttribute(part, "visibility", bar ? "visible" : "hidden");
        setAttribute(part, "data-kind", lift?.kind ?? "open");
      }
      setAttribute(rect, "x", `${bar?.left ?? 0}%`);
      setAttribute(rect, "width", `${bar?.width ?? 0}%`);
      setAttribute(dot, "cx", `${bar?.dot ?? 0}%`);
      [bar?.is_cut_low, bar?.is_cut_high].forEach((isCut, i) => setAttribute(marks[i], "visibility", isCut ? "visible" : "hidden"));
    },
  };
}
