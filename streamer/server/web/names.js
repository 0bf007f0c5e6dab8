// What metrics are called, and how their values are written.

import * as format from "./format.js";

export const PREFIX = "streamer_";

/** The columns of the table of segments; `labels` are those besides window and dimensions. */
export const COLUMNS = [
  column("Impressions", "window_impressions", "items shown", format.count),
  column("Clicks", "window_clicks", "clicks in the window", format.count),
  column("CTR", "ctr_ratio", "click-through rate: clicks / impressions", format.percent),
  column("Conversions", "window_conversions", "conversions in the window", format.count),
  column("CVR", "cvr_ratio", "conversion rate: conversions / clicks", format.percent),
  column("Users", "window_users", "distinct users who were shown something", format.count),
  column(
    "Positive rate",
    "positive_rate_ratio",
    "of the items that a user saw the share that was clicked, averaged over users",
    format.percent,
    { feedback: "click", definition: "docs" },
  ),
  column("Mean dwell", "dwell_mean_seconds", "mean time on an item", format.seconds),
  column(
    "NDCG@10",
    "ndcg_ratio",
    "order of the first ten items shown, 1 is the best; mean over all slates",
    format.number,
    { k: "10", over: "all", maturity: "provisional" },
  ),
];

function column(title, name, about, write, labels = {}) {
  return { title, name: PREFIX + name, about, write, labels };
}

const TITLES = {
  ctr_ratio: "Click-through rate",
  ctr_attributed_ratio: "Click-through rate, attributed",
  cvr_ratio: "Conversion rate",
  cvr_attributed_ratio: "Conversion rate, attributed",
  clicks_per_user: "Clicks per user",
  conversion_value_per_user: "Conversion value per user",
  conversion_value_per_click: "Conversion value per click",
  conversion_value_per_impression: "Conversion value per impression",
  dwell_mean_seconds: "Mean dwell time",
  positive_rate_ratio: "Positive rate",
  precision_ratio: "Precision",
  recall_ratio: "Recall",
  hit_ratio: "Hit rate",
  mrr: "Mean reciprocal rank",
  arhr: "Reciprocal hit rank",
  map_ratio: "Mean average precision",
  mar_ratio: "Mean average recall",
  cg: "Cumulative gain",
  dcg: "DCG",
  ndcg_ratio: "NDCG",
  fcp_ratio: "Fraction of concordant pairs",
  kendall_tau: "Kendall's tau",
  spearman_rho: "Spearman's rho",
};
const SHARES = new Set(["ctr", "ctr_attributed", "cvr", "cvr_attributed", "positive_rate", "hit"]);

/** The name of a metric of experiments in words: "ndcg_ratio@10.engaged" → "NDCG@10, engaged". */
export function title(name) {
  const [, base, cutoff, options] = parts(name);
  const words = Object.hasOwn(TITLES, base) ? TITLES[base] : base;
  const others = options.split(".").filter(Boolean);
  return [words + cutoff, ...others].join(", ");
}

/** How values of a metric of experiments are written. */
export function writer(name) {
  const [, base] = parts(name);
  if (base.endsWith("_seconds")) {
    return format.seconds;
  }
  return SHARES.has(base.replace(/_ratio$/, "")) ? format.percent : format.number;
}

function parts(name) {
  return /^([^@.]*)(@\d+)?(.*)$/s.exec(name).map((part) => part ?? "");
}
