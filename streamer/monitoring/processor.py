"""The dashboard *processor*: whether streamer follows its logs and counts all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.metrics.catalogue import PREFIX
from streamer.monitoring import alerts
from streamer.monitoring.page import firing, page
from streamer.monitoring.panels import (
    GREEN,
    ORANGE,
    RED,
    SYSTEM,
    TARGETS,
    Override,
    Panel,
    Query,
    Step,
    bad_from,
    graph,
    in_tooltip,
    least_of,
    on_the_right,
    over_exporters,
    rate,
    table,
    tiles,
)
from streamer.monitoring.series import NUMBER, PERCENT, SECONDS, YES_NO, PanelSeries
from streamer.query.counters import SOURCE_LABELS
from streamer.settings.model import Settings

_DAY_SECONDS = 86_400
_QUANTILES = ("0.5", "0.9", "0.99")
_ONE_PERCENT = (Step(None, GREEN), Step(0.01, RED))
_LAG = ("consumer_lag_records", "consumer_lag_seconds", "stream_time_seconds")
_LOSSES = {
    "lost_records_total": "lost records",
    "log_restarts_total": "restarted logs",
    "join_gap_total": "join gaps",
    "settled_moved_total": "settled feedback moved",
}


class Processor:
    """Builds the dashboard."""

    def __init__(self, series: Mapping[str, PanelSeries], settings: Settings) -> None:
        self._series, self._settings = series, settings

    def build(self, page_url: str) -> dict[str, Any]:
        """The dashboard."""
        rows = {
            "Is it counting?": [
                *(self._state(), alerts.fired(self._settings, page_url), self._owners()),
            ],
            "Is it keeping up?": [
                *(self._behind(), self._pace(), self._waiting(), self._commits(), self._room()),
            ],
            "Is everything counted?": [
                *(self._lost_or_late(), self._reasons(), self._left_out(), self._unattributed()),
                *(self._inexact(), self._samples()),
            ],
            "What is read, and how fast is it shown?": [
                *(self._readout(), self._added()),
                self._sources(),
            ],
        }
        return page(
            "processor",
            "Does streamer read its topics, in time and all of them?",
            rows,
            annotations=[firing()],
            folded=("Is everything counted?", "What is read, and how fast is it shown?"),
            since="now-6h",
            links=[("The exporter's page", page_url)],
        )

    def _text(self, *names: str) -> str:
        return "\n\n".join(self._series[name].description for name in names)

    def _gauge(self, name: str, *by: str) -> str:
        return over_exporters(f"{PREFIX}{name}{{{SYSTEM}}}", *by)

    def _least(self, name: str, *by: str) -> str:
        """Of exporters that differ the lowest, as the rules read it."""
        return least_of(f"{PREFIX}{name}{{{SYSTEM}}}", *by)

    def _rate(self, name: str, *by: str) -> str:
        return over_exporters(rate(f"{PREFIX}{name}"), *by)

    def _rarely(self, name: str, *by: str) -> str:
        """Growth per second over ten minutes, of what is seldom."""
        return over_exporters(f"rate({PREFIX}{name}{{{SYSTEM}}}[10m])", *by)

    def _share(self, *names: str) -> str:
        """Of the events of each topic."""
        events = self._rarely("events_total", "topic")
        parts = [
            f"sum by (topic) ({self._rarely(name, 'topic', 'reason')})"
            if name == "rejected_total"
            else self._rarely(name, "topic")
            for name in names
        ]
        return f"({' + '.join(parts)}) / {events}"

    # Is it counting? ------------------------------------------------------------------------------

    def _state(self) -> Panel:
        good = [Step(None, RED), Step(1, GREEN)]
        queries = [
            Query(self._least("ready"), "all partitions"),
            Query(self._least("topic_keyed_by_user"), "keyed by user"),
            Query(self._least("identity_exact"), "exact"),
            Query(f"1 - max({self._gauge('topic_unread', 'topic')})", "all topics"),
            Query(self._gauge("workers"), "workers"),
            Query(self._gauge("partitions"), "partitions"),
        ]
        overrides = [
            bad_from("^(all partitions|keyed by user|exact|all topics)$", good, unit=YES_NO),
            bad_from("^workers$", good),
        ]
        names = ("ready", "topic_keyed_by_user", "identity_exact", "topic_unread", "workers",
                 "partitions")  # fmt: skip
        return tiles(
            "State of streamer: is it counting?", self._text(*names), NUMBER, queries,
            empty="no exporter", width=8, height=6, overrides=overrides,
        )  # fmt: skip

    # Is it keeping up? ----------------------------------------------------------------------------

    def _behind(self) -> Panel:
        waiting = f"sum({self._gauge('consumer_lag_records', 'topic', 'partition')})"
        pace = f"sum({over_exporters(f'rate({PREFIX}events_total{{{SYSTEM}}}[10m])', 'topic')})"
        newest = f"time() - {self._gauge('stream_time_seconds')}"
        queries = [
            Query(f"clamp_max({waiting} / {pace} >= 0, {_DAY_SECONDS})", "work waiting"),
            Query(f"max({self._gauge('consumer_lag_seconds', 'topic')})", "oldest record waits"),
            Query(newest, "newest event's age"),
            Query(f"1 - avg_over_time(streamer:late:bool{{{SYSTEM}}}[1d])", "in time: of a day"),
            Query(waiting, "records waiting"),
        ]
        description = (
            "Work waiting: the records that wait, at the pace of the last ten minutes; a day where"
            " nothing is read. In time: the objective of the rules is that records wait for at most"
            " thirty seconds, 99.5 % of the time."
            f"\n\n{self._text(*_LAG)}"
        )
        return graph(
            "Lag: how far behind is it?",
            description,
            SECONDS,
            queries,
            empty="nothing is known of Kafka's logs",
            steps=(Step(None, GREEN), Step(300, RED)),
            overrides=[
                on_the_right("^records waiting$", NUMBER, "records"),
                in_tooltip("^in time", PERCENT),
            ],
        )

    def _pace(self) -> Panel:
        queries = [
            Query(self._rate("events_total", "topic"), "{{topic}}"),
            Query(self._rate("accepted_total", "topic"), "{{topic}}: accepted"),
        ]
        thin = Override(
            ": accepted$",
            {"custom.lineWidth": 1, "custom.lineStyle": {"fill": "dash", "dash": [6, 6]}},
        )
        description = self._text("events_total", "accepted_total")
        return graph(
            "Events: how many come in?",
            description,
            "cps",
            queries,
            empty="no events",
            overrides=[thin],
        )

    def _waiting(self) -> Panel:
        lag = self._gauge("consumer_lag_records", "topic", "partition")
        waiting = f"sum by (partition) ({lag})"
        queries = [
            Query(self._least("partition_standstill_seconds", "partition"), "{{partition}}"),
            Query(waiting, "{{partition}}: records"),
            Query(self._gauge("unstable_records", "topic"), "{{topic}}: behind open transactions"),
        ]
        description = self._text(
            "partition_standstill_seconds", "consumer_lag_records", "unstable_records"
        )
        return graph(
            "Standstill by partition, and open transactions: what waits?",
            description,
            SECONDS,
            queries,
            empty="no partition",
            steps=(Step(None, GREEN), Step(30, RED)),
            overrides=[
                in_tooltip(": records$", NUMBER),
                on_the_right(" transactions$", NUMBER, "records"),
            ],
        )

    def _commits(self) -> Panel:
        name = "commit_seconds"
        buckets = self._rate(f"{name}_bucket", "le", "worker")
        queries = [
            Query(f"histogram_quantile({q}, sum by (le) ({buckets}))", f"p{100 * float(q):g}")
            for q in _QUANTILES
        ]
        count = f"sum({self._rate(f'{name}_count', 'worker')})"
        size = f"sum({self._rate('commit_bytes_total', 'worker')})"
        queries += [Query(count, "commits per second"), Query(f"{size} / {count}", "size")]
        return graph(
            "Commits: how long do they take?",
            self._text(name, "commit_bytes_total"),
            SECONDS,
            queries,
            empty="no commits",
            steps=(Step(None, GREEN), Step(1, RED)),
            overrides=[on_the_right(" per second$", "cps", "commits"), in_tooltip("size", "bytes")],
        )

    def _room(self) -> Panel:
        taken = self._gauge("worker_memory_bytes", "worker")
        limit = self._gauge("worker_memory_limit_bytes", "worker")
        queries = [
            Query(f"{taken} / {limit}", "{{worker}}: memory"),
            Query(self._gauge("table_used_ratio", "table"), "{{table}}"),
        ]
        names = ("worker_memory_bytes", "worker_memory_limit_bytes", "table_used_ratio")
        return graph(
            "Room: how full are memory and tables?",
            self._text(*names),
            PERCENT,
            queries,
            empty="no worker",
            steps=(Step(None, GREEN), Step(1, RED)),
        )

    def _owners(self) -> Panel:
        labels = ("partition", "worker", "phase")
        queries = [Query(self._gauge("partition_owner_info", *labels))]
        text = self._text("partition_owner_info")
        title = "Partitions: who counts which?"
        return table(
            title,
            text,
            queries,
            labels=labels,
            empty="nobody",
            sort="partition",
            width=24,
            height=6,
        )

    # Is everything counted? -----------------------------------------------------------------------

    def _lost_or_late(self) -> Panel:
        queries = [
            Query(self._share("late_total"), "{{topic}}: late"),
            Query(self._share("rejected_total"), "{{topic}}: rejected"),
            Query(f"sum({self._gauge('lost_records_total', 'topic')})", "lost so far"),
            Query(self._gauge("dead_letters_omitted_total"), "not dead-lettered so far"),
        ]
        description = self._text(
            "late_total", "rejected_total", "lost_records_total", "dead_letters_omitted_total"
        )
        right = on_the_right("so far$", NUMBER, "records")
        return graph(
            "Late, rejected and lost: is anything left out?",
            f"Shares of the events of each topic.\n\n{description}",
            PERCENT,
            queries,
            empty="no events in ten minutes",
            steps=_ONE_PERCENT,
            overrides=[right],
        )

    def _reasons(self) -> Panel:
        queries = [
            Query(self._rarely("rejected_total", "topic", "reason"), "{{topic}}: {{reason}}"),
            Query(self._rarely("dead_letters_total"), "dead letters"),
        ]
        text = self._text("rejected_total", "dead_letters_total")
        right = on_the_right("^dead letters$", "cps", "dead letters")
        title, empty = "Rejects by reason: why are records refused?", "none refused"
        return graph(title, text, "cps", queries, empty=empty, overrides=[right])

    def _left_out(self) -> Panel:
        names = {
            "duplicates_total": "duplicates",
            "ignored_total": "ignored",
            "anonymous_total": "without a user",
            "cut_values_total": "values cut",
        }
        queries = [
            Query(f"{self._rarely(name, 'topic')} > 0", f"{{{{topic}}}}: {what}")
            for name, what in names.items()
        ]
        capped = self._rarely("label_values_capped_total", "dimension")
        queries.append(Query(f"{capped} > 0", "{{dimension}}: counted as other"))
        capped = self._rarely("segments_capped_total", "rollup")
        queries.append(Query(f"{capped} > 0", "{{rollup}}: counted as other"))
        description = self._text(*names, "label_values_capped_total", "segments_capped_total")
        title = "Duplicates and more: what is left out, or counted as other?"
        return graph(title, description, "cps", queries, empty="nothing")

    def _unattributed(self) -> Panel:
        queries = [
            Query(self._share("unattributed_total"), "{{topic}}"),
            Query(self._gauge("unsettled", "topic"), "{{topic}}: unsettled"),
        ]
        description = self._text("unattributed_total", "unsettled")
        return graph(
            "Unattributed share: does feedback find its impression?",
            f"Share of the events of each topic that joined nothing.\n\n{description}",
            PERCENT,
            queries,
            empty="no events in ten minutes",
            overrides=[in_tooltip(": unsettled$", NUMBER)],
        )

    def _inexact(self) -> Panel:
        queries = []
        for name, text in _LOSSES.items():
            by = ("topic",) if name in ("lost_records_total", "log_restarts_total") else ()
            queries.append(Query(f"sum({self._gauge(name, *by)})", text))
        steps = (Step(None, GREEN), Step(1, RED))
        text = self._text(*_LOSSES)
        title = "Inexact numbers: what has made them so?"
        return tiles(
            title, text, NUMBER, queries, empty="no exporter", width=12, height=9, steps=steps
        )

    def _samples(self) -> Panel:
        queries = [
            Query(self._gauge("user_sample_ratio"), "users"),
            Query(self._gauge("item_sample_ratio", "window"), "items in {{window}}"),
            Query(self._gauge("users_behind_seconds"), "metrics of users behind"),
        ]
        description = self._text("user_sample_ratio", "item_sample_ratio", "users_behind_seconds")
        return graph(
            "Samples: are all users and items counted?",
            description,
            PERCENT,
            queries,
            empty="no metrics of users and items",
            steps=(Step(None, ORANGE), Step(1, GREEN)),
            overrides=[on_the_right("behind$", SECONDS, "behind")],
        )

    def _added(self) -> Panel:
        """What was added to the settings while state was kept."""
        labels = ("setting", "value")
        query = Query(f"time() - {self._gauge('counted_since_seconds', *labels)}", "for")
        text = self._text("counted_since_seconds")
        return table(
            "Settings that are new: what has been counted for a shorter time?", text, [query],
            labels=labels, width=12, height=9, unit=SECONDS, empty="none: all since the start",
        )  # fmt: skip

    def _sources(self) -> Panel:
        query = Query(self._gauge("source_info", *SOURCE_LABELS))
        text = self._text("source_info")
        title = "Sources: where do events come from?"
        empty = "no exporter"
        return table(title, text, [query], labels=SOURCE_LABELS, empty=empty, width=12, height=9)

    # Can it be read? ------------------------------------------------------------------------------

    def _readout(self) -> Panel:
        queries = [
            Query(self._gauge("readout_seconds"), "readout"),
            Query(f"scrape_duration_seconds{{{TARGETS}}}", "scrape of {{instance}}"),
            Query(f"scrape_samples_scraped{{{TARGETS}}}", "{{instance}}: series"),
        ]
        description = (
            f"{self._text('readout_seconds')} A scrape fails at scrape_timeout or sample_limit."
        )
        return graph(
            "Readout and scrape: is the exporter fast enough?",
            description,
            SECONDS,
            queries,
            empty="no exporter is scraped",
            steps=(Step(None, GREEN), Step(5, ORANGE), Step(10, RED)),
            overrides=[in_tooltip(": series$", NUMBER)],
        )
