// Files of what is shown: tables as CSV, drawings as SVG.

import { element } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const CONTROL = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const PRESENTED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-weight", "stop-color"];

/** A button that saves what `make()` gives: {name, type, text}. */
export function downloadButton(title, label, make) {
  const root = element("button", { type: "button", class: "save", "aria-label": label }, title);
  root.addEventListener("click", () => {
    const { name, type, text } = make();
    const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  return root;
}

/** A button that saves a table as CSV. */
export function csvButton(table, name) {
  const label = () => table.caption?.textContent ?? name;
  return downloadButton("CSV", `Save the table as CSV: ${name}`, () => ({
    name: `${fileName(label())}.csv`,
    type: "text/csv",
    text: csvOf(table),
  }));
}

/** The text of a table's rows, values and what stands below them apart. */
export function csvOf(table) {
  const heads = [...(table.tHead?.rows[0]?.cells ?? [])].map((cell) => [ownText(cell), ""]);
  const body = [...table.tBodies, ...(table.tFoot ? [table.tFoot] : [])].flatMap((part) => [...part.rows]);
  const rows = body.map((row) => [...row.cells].map(partsOf));
  const all = heads.length ? [heads, ...rows] : rows;
  const hasNotes = heads.map((_, i) => rows.some((row) => row[i]?.[1]));
  return all
    .map((row, at) =>
      row
        .flatMap(([text, note], i) => (hasNotes[i] ? [text, at || !heads.length ? note : `${text} (more)`] : [text]))
        .map(quoted)
        .join(","),
    )
    .join("\r\n");
}

function ownText(cell) {
  return cell.querySelector("a, span[title]")?.textContent ?? cell.textContent.trim();
}

/** What a cell says, and what stands below it. */
function partsOf(cell) {
  const note = cell.querySelector(".interval");
  const value = cell.querySelector(".value, th > span:first-child");
  const text = value?.textContent ?? [...cell.childNodes].filter((node) => node !== note).map((n) => n.textContent).join("");
  return [text.trim(), note && !note.hidden ? note.textContent.replaceAll("\u00a0", " ") : ""];
}

/** As CSV wants it; a text that spreadsheets would take for a formula is one of an event. */
function quoted(text) {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.,]+%?$/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** A drawing as a file of its own: what style sheets give it becomes attributes. */
export function svgOf(svg) {
  const copy = svg.cloneNode(true);
  copy.setAttribute("xmlns", SVG);
  const [theirs, own] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
  theirs.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of PRESENTED) {
      own[i].setAttribute(name, style.getPropertyValue(name));
    }
  });
  copy.setAttribute("font-family", "system-ui, sans-serif");
  copy.querySelectorAll(".cursor").forEach((node) => node.remove());
  // XML has no control characters, not even escaped: they are shown as in other texts.
  const shown = (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return new XMLSerializer().serializeToString(copy).replace(CONTROL, shown);
}

/** A text as the name of a file. */
export function fileName(text) {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 80) || "streamer";
}
