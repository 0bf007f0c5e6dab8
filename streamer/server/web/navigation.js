// The navigation of every page: what each section has to say, counted by colour.

import { byId, element, keep, setAttribute, setText } from "./dom.js";

const NEEDS = [
  ["ship", "good", "✓", "to ship"],
  ["harm", "bad", "▼", "harmful"],
  ["broken", "warn", "✕", "broken"],
];
const STATES = { live: ["good", "✓", "OK"], busy: ["warn", "!", "look"], bad: ["bad", "✕", "bad"] };

/** Of /api/alerts, what fires. */
export function countAlerts({ firing = [], alerts }) {
  setBadges("alerts-badges", firing.length ? [{ kind: "bad", sign: `▼ ${firing.length}`, words: "firing" }] : []);
  byId("alerts-link").hidden = alerts.length === 0;
}

/** What experiments need, as /api/experiments counts it; in words of a sentence, too. */
export function countExperiments(needs) {
  const found = NEEDS.filter(([name]) => needs[name]);
  setBadges("experiments-badges", found.map(([name, kind, sign, words]) => ({ kind, sign: `${sign} ${needs[name]}`, words })));
  return found.map(([name, , , words]) => `${needs[name]} ${words}`).join(", ");
}

/** Of the state of the header, whether all is well. */
export function countHealth(state) {
  const [kind, sign, words] = STATES[state] ?? ["open", "–", "waiting"];
  setBadges("pipeline-badges", [{ kind, sign, words }]);
}

function setBadges(id, badges) {
  keep(byId(id), badges, ({ words }) => words, ({ words }) => {
    const text = element("span");
    const root = element("b", { class: "badge" }, text, element("span", { class: "word" }, ` ${words}`));
    return {
      root,
      update({ kind, sign }) {
        setText(text, sign);
        setAttribute(root, "data-kind", kind);
      },
    };
  });
}
