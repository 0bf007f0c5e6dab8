// The columns of the table of segments.

import * as format from "./format.js";

export const PREFIX = "streamer_";

/** The columns of the table of segments; `labels` are those besides window and dimensions, `parts` says
 * what a rate above 1 comes of, which is none. */
export const COLUMNS = [
  main(column("Impressions", "window_impressions", "impressions in the window", format.count)),
  column("Clicks", "window_clicks", "clicks in the window", format.count),
  main({
    ...column("CTR", "ctr_ratio", "click-through rate: clicks / impressions", format.percent),
    parts: "clicks than impressions",
  }),
  column("Conversions", "window_conversions", "conversions in the window", format.count),
  {
    ...column("CVR", "cvr_ratio", "conversion rate: conversions / clicks", format.percent),
    parts: "conversions than clicks",
  },
  ofUsers(column("Users", "window_users", "distinct users with an impression", format.count)),
  ofUsers(
    column(
      "Positive rate",
      "positive_rate_ratio",
      "share of the items seen by a user that the user clicked, averaged over users",
      format.percent,
      { feedback: "click", definition: "docs" },
    ),
  ),
  column("Mean dwell", "dwell_mean_seconds", "mean time spent on an item", format.seconds),
  column(
    "NDCG@10",
    "ndcg_ratio",
    "ranking quality of the first ten items of a slate, 1 is best; mean over all slates",
    format.number,
    { k: "10", over: "all", maturity: "provisional" },
  ),
];

/** Narrow screens show only these at first. */
function main(found) {
  return { ...found, isMain: true };
}

/** Users are counted over whole windows: there is no course of them. */
function ofUsers(found) {
  return { ...found, isOfUsers: true };
}

/** The address of a metric's own page. */
export function hrefOf(name, labels = {}, choice = {}) {
  const query = new URLSearchParams({ metric: name.replace(PREFIX, ""), ...choice, ...labels });
  return `?${query}`;
}

function column(title, name, about, write, labels = {}) {
  return { title, name: PREFIX + name, about, write, labels };
}
