"""Means over people and visits by their published definitions, from raw lines, with polars.

Nothing of oracle or engine is used. It is for clean logs only: lines in the order of their integer
``ts``, none twice, none broken; no user on two partitions; every click names its request, whose
impression came no more than 30 minutes before it; the one dimension is ``variant``.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping

import polars as pl

Values = dict[tuple[str, frozenset[tuple[str, str]]], int | float]
"""By name and labels."""

GAP_MS = 30 * 60_000
HORIZON_MS = 30 * 60_000
KEYS = ["user_id", "request_id", "item_id"]
NAMES = (
    *("streamer_window_users", "streamer_window_hit_users", "streamer_hit_rate_ratio"),
    *("streamer_clicks_per_user", "streamer_window_positive_users"),
    *("streamer_positive_rate_ratio", "streamer_window_sessions", "streamer_window_bounces"),
    *("streamer_bounce_rate_ratio", "streamer_views_per_session"),
    *("streamer_session_length_mean_seconds", "streamer_window_session_length_seconds"),
)
"""Everything that is recomputed."""


def recompute(lines: Iterable[bytes], lengths_ms: Mapping[str, int]) -> Values:
    """All of ``NAMES`` for each window (label → length), for `all` and each variant."""
    log = pl.read_ndjson(io.BytesIO(b"\n".join(lines)), infer_schema_length=None)
    if "variant" not in log.columns:
        log = log.with_columns(variant=pl.lit(None, pl.String))
    shown, clicks, visits = impressions(log), clicked(log), sessions(log)
    now_ms: int = log.select(pl.col("ts").max()).item()
    out: Values = {}
    for window, length_ms in lengths_ms.items():
        pane_ms = length_ms // 60
        end_ms = (now_ms // pane_ms + 1) * pane_ms
        inside = pl.col("ts").is_between(end_ms - length_ms, end_ms, closed="left")
        parts = [frame.filter(inside) for frame in (shown, clicks, visits)]
        for variant in (pl.lit("all"), pl.col("variant")):
            by_variant = [part.with_columns(variant=variant) for part in parts]
            for name, labels, value in (*users(*by_variant[:2]), *lengths(by_variant[2])):
                key = (f"streamer_{name}", frozenset({"window": window, **labels}.items()))
                assert key not in out
                out[key] = value
    return out


# Frames ---------------------------------------------------------------------------------------


def impressions(log: pl.DataFrame) -> pl.DataFrame:
    """A row for each shown item: ts, KEYS, variant."""
    log = log.filter(pl.col("type") == "impression")
    if "items" in log.columns:
        single = log.filter(pl.col("items").is_null()).select("ts", *KEYS, "variant")
        lists = log.filter(pl.col("items").is_not_null()).explode("items")
        item_id = pl.col("items").struct.field("item_id")
        log = pl.concat([single, lists.with_columns(item_id=item_id).select(single.columns)])
    return log.select("ts", *KEYS, pl.col("variant").fill_null("unknown"))


def clicked(log: pl.DataFrame) -> pl.DataFrame:
    """A row for each click: ts, KEYS, and the variant of the impression that it followed."""
    clicks = log.filter(pl.col("type") == "click").select("ts", *KEYS, own="variant")
    first = impressions(log).rename({"ts": "shown_ms"}).unique(KEYS, keep="first")
    found = clicks.join(first, on=KEYS, how="left", validate="m:1")
    apart_ms = found.select(pl.col("ts") - pl.col("shown_ms")).to_series()
    assert apart_ms.null_count() == 0, "a click that followed nothing"
    assert apart_ms.is_between(0, HORIZON_MS).all(), "a click that came too late"
    return found.select("ts", *KEYS, variant=pl.coalesce("own", "variant"))


def sessions(log: pl.DataFrame) -> pl.DataFrame:
    """A row for each session: ts of its end, variant, length_ms, views."""
    events = log.filter(pl.col("type") == "session").sort("ts", maintain_order=True)
    of_one = ["user_id", "session_id"]
    apart = pl.col("ts").diff() >= GAP_MS
    visit = apart.fill_null(value=False).cum_sum().over(of_one)
    last_ms = pl.col("ts").max()
    ended = ((pl.col("action") == "end") & (pl.col("ts") == last_ms)).any()
    return (
        events.with_columns(visit=visit)
        .group_by(*of_one, "visit")
        .agg(
            pl.col("variant").first().fill_null("unknown"),
            ts=pl.when(ended).then(last_ms).otherwise(last_ms + GAP_MS),
            length_ms=last_ms - pl.col("ts").min(),
            views=(pl.col("action") == "view").sum(),
        )
    )


# Formulas -------------------------------------------------------------------------------------


def users(
    shown: pl.DataFrame, clicks: pl.DataFrame
) -> Iterator[tuple[str, dict[str, str], int | float]]:
    """Per user p / n over distinct items, then means over users; hits; clicks a user."""
    person = ["variant", "user_id"]
    item = [*person, "item_id"]
    given = clicks.select(item).unique().with_columns(positive=True)
    per_user = (
        shown.select(item)
        .unique()
        .join(given, on=item, how="left")
        .group_by(person)
        .agg(n=pl.len(), p=pl.col("positive").fill_null(value=False).sum())
        .join(clicks.select(person).unique().with_columns(hit=True), on=person, how="left")
    )
    rate = pl.col("p") / pl.col("n")
    some = pl.col("p") > 0
    hits = pl.col("hit").fill_null(value=False)
    totals = per_user.group_by("variant").agg(
        users=pl.len(),
        hits=hits.sum(),
        hit_rate=hits.mean(),
        positive=some.sum(),
        docs=rate.mean(),
        gorse=rate.filter(some).mean(),
    )
    number = clicks.group_by("variant").agg(clicks=pl.len())
    totals = totals.join(number, on="variant", how="left").with_columns(
        pl.col("clicks").fill_null(0)
    )
    for row in totals.iter_rows(named=True):
        labels = {"variant": row["variant"]}
        kind = {"feedback": "click", **labels}
        yield "window_users", labels, row["users"]
        yield "hit_rate_ratio", labels, row["hit_rate"]
        yield "clicks_per_user", labels, row["clicks"] / row["users"]
        yield "positive_rate_ratio", {"definition": "docs", **kind}, row["docs"]
        if row["hits"]:
            yield "window_hit_users", labels, row["hits"]
        if row["positive"]:
            yield "window_positive_users", kind, row["positive"]
            yield "positive_rate_ratio", {"definition": "gorse-0.5", **kind}, row["gorse"]


def lengths(visits: pl.DataFrame) -> Iterator[tuple[str, dict[str, str], int | float]]:
    """Bounces, views and lengths of the sessions that ended in a window."""
    bounced = pl.col("views") == 1
    seconds = pl.col("length_ms") / 1000
    totals = visits.group_by("variant").agg(
        sessions=pl.len(),
        bounces=bounced.sum(),
        bounce_rate=bounced.mean(),
        views=pl.col("views").mean(),
        length=seconds.mean(),
        **{f"q{q}": seconds.quantile(q, "equiprobable") for q in (0.5, 0.9, 0.99)},
    )
    for row in totals.iter_rows(named=True):
        labels = {"variant": row["variant"]}
        yield "window_sessions", labels, row["sessions"]
        yield "bounce_rate_ratio", labels, row["bounce_rate"]
        yield "views_per_session", labels, row["views"]
        yield "session_length_mean_seconds", labels, row["length"]
        if row["bounces"]:
            yield "window_bounces", labels, row["bounces"]
        for q in ("0.5", "0.9", "0.99"):
            yield "window_session_length_seconds", {"quantile": q, **labels}, row[f"q{q}"]
