"""The page *processor*: whether streamer follows its logs, how fast, and what it did not count."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import stat, table, timeseries
from grafana_foundation_sdk.models import units

from grafana import panels
from grafana.declared import Declared
from grafana.panels import JOB, Query, Step, over_exporters
from streamer.metrics.catalogue import PREFIX

Panels = list[stat.Panel | timeseries.Panel | table.Panel]
_GOOD_AT_ONE = (Step(None, "red"), Step(1, "green"))
_BAD_ABOVE_NULL = (Step(None, "green"), Step(1, "red"))
_QUANTILES = ("0.5", "0.9", "0.99")


class Processor:
    """Builds the page."""

    def __init__(self, declared: dict[str, Declared]) -> None:
        self._declared = declared

    def build(self) -> builders.Dashboard:
        """The page."""
        text = "The processor itself; docs/operations.md says what to do about each alert."
        board = panels.page("streamer-processor", "streamer: processor", text)
        rows = {
            "State": self._state(),
            "Lag and pace": self._pace(),
            "Commits and owners": self._commits(),
            "Records not counted": self._refused(),
            "Joins, bounds and losses": self._truth(),
            "Exporter": self._exporter(),
        }
        return panels.with_rows(board, rows)

    def _of(self, name: str) -> Declared:
        return self._declared[PREFIX + name]

    def _tile(
        self,
        name: str,
        expr: str = "{}",
        *,
        title: str = "",
        unit: str = "",
        steps: tuple[Step, ...] = (),
    ) -> stat.Panel:
        what = self._of(name)
        query = Query(expr.format(over_exporters(f"{what.name}{{{JOB}}}")))
        return panels.tile(
            title or what.title, what.description, unit or what.unit, query, steps=steps
        )

    def _graph(self, name: str, *by: str, title: str = "", width: int = 8) -> timeseries.Panel:
        """A gauge, one line for each set of labels."""
        what = self._of(name)
        expr = over_exporters(f"{what.name}{{{JOB}}}", *by)
        query = Query(expr, _legend(by) or what.title)
        return panels.graph(title or what.title, what.description, what.unit, [query], width=width)

    def _rate(self, name: str, *by: str, width: int = 8) -> timeseries.Panel:
        """A counter's growth per second."""
        what = self._of(name)
        query = Query(over_exporters(panels.rate(what.name, JOB), *by), _legend(by) or what.title)
        title = f"{what.title} per second"
        return panels.graph(title, what.description, what.rate_unit, [query], width=width)

    def _state(self) -> Panels:
        return [
            self._tile("ready", unit=units.BoolYesNo, steps=_GOOD_AT_ONE),
            self._tile("identity_exact", unit=units.BoolYesNo, steps=_GOOD_AT_ONE),
            self._tile("workers", steps=_GOOD_AT_ONE),
            self._tile("partitions"),
            self._tile("topic_keyed_by_user", "min({})", unit=units.BoolYesNo, steps=_GOOD_AT_ONE),
            self._tile("lost_records_total", "sum({})", steps=_BAD_ABOVE_NULL),
            self._tile(
                "stream_time_seconds", "time() - {}", title="Newest event's age", unit=units.Seconds
            ),
        ]

    def _pace(self) -> Panels:
        lag, committed = self._of("consumer_lag_records"), self._of("last_commit_timestamp_seconds")
        by_partition = over_exporters(f"{lag.name}{{{JOB}}}", "topic", "partition")
        age = over_exporters(f"{committed.name}{{{JOB}}}", "partition")
        seconds = f"streamer:consumer_lag_seconds:ratio10m{{{JOB}}}"
        text = (
            "Time to work off the waiting records at the pace of the last ten minutes; no line "
            "where none wait and none came. Recorded by grafana/prometheus/rules."
        )
        waiting = Query(f"sum by (topic) ({by_partition})", "{{topic}}")
        worst = Query(f"topk(10, {by_partition})", "{{topic}} {{partition}}")
        since = Query(f"time() - {age}", "partition {{partition}}")
        return [
            panels.graph(f"{lag.title} by topic", lag.description, lag.unit, [waiting], width=8),
            panels.graph(
                f"{lag.title}, the ten largest", lag.description, lag.unit, [worst], width=8
            ),
            panels.graph("Lag in seconds", text, units.Seconds, [Query(seconds, "lag")], width=8),
            self._rate("events_total", "topic"),
            self._rate("accepted_total", "topic"),
            panels.graph(
                "Time since the last commit", committed.description, units.Seconds, [since], width=8
            ),
            self._graph("partition_standstill_seconds", "partition"),
        ]

    def _commits(self) -> Panels:
        what = self._of("commit_seconds")
        buckets = over_exporters(panels.rate(f"{what.name}_bucket", JOB), "le", "worker")
        quantiles = [
            Query(f"histogram_quantile({q}, sum by (le) ({buckets}))", f"p{100 * float(q):g}")
            for q in _QUANTILES
        ]
        count = over_exporters(panels.rate(f"{what.name}_count", JOB), "worker")
        busy = over_exporters(panels.rate(f"{what.name}_sum", JOB), "worker")
        owners = self._of("partition_owner_info")
        labels = ("partition", "worker", "phase")
        table_query = Query(over_exporters(f"{owners.name}{{{JOB}}}", *labels))
        return [
            panels.graph("Commit time", what.description, units.Seconds, quantiles, width=8),
            panels.graph(
                "Commits per second",
                what.description,
                units.CountsPerSecond,
                [Query(count, "{{worker}}")],
                width=8,
            ),
            panels.graph(
                "Share of time in commits",
                what.description,
                units.PercentUnit,
                [Query(busy, "{{worker}}")],
                width=8,
            ),
            panels.rows_of("Owners", owners.description, table_query, ("Time", "Value")),
            self._rate("fenced_total", "worker", width=12),
        ]

    def _refused(self) -> Panels:
        events, rejected = self._of("events_total"), self._of("rejected_total")
        share = (
            f"sum by (topic) ({over_exporters(panels.rate(rejected.name, JOB), 'topic', 'reason')})"
            f" / {over_exporters(panels.rate(events.name, JOB), 'topic')}"
        )
        return [
            self._rate("rejected_total", "topic", "reason", width=12),
            panels.graph(
                "Share of rejects by topic",
                rejected.description,
                units.PercentUnit,
                [Query(share, "{{topic}}")],
                width=12,
            ),
            self._rate("late_total", "topic"),
            self._rate("duplicates_total", "topic"),
            self._rate("ignored_total", "topic"),
            self._rate("anonymous_total", "topic"),
            self._rate("cut_values_total", "topic"),
            self._rate("dead_letters_total"),
            self._rate("dead_letters_omitted_total"),
        ]

    def _truth(self) -> Panels:
        return [
            self._rate("unattributed_total", "topic"),
            self._graph("unsettled", "topic"),
            self._rate("label_values_capped_total", "dimension"),
            self._graph("lost_records_total", "topic"),
            self._graph("log_restarts_total", "topic"),
            self._graph("join_gap_total"),
            self._graph("settled_moved_total"),
            self._graph("user_sample_ratio"),
            self._graph("item_sample_ratio"),
            self._graph("users_behind_seconds"),
            self._graph("source_info", "source", "topic", "cluster", "format"),
            self._added(),
        ]

    def _added(self) -> timeseries.Panel:
        """What was added to the settings while state was kept, by how long it is counted."""
        what, by = self._of("counted_since_seconds"), ("setting", "value")
        counted = Query(f"time() - {over_exporters(f'{what.name}{{{JOB}}}', *by)}", _legend(by))
        title = "Counted so far, of what was added"
        return panels.graph(title, what.description, units.Seconds, [counted], width=8)

    def _exporter(self) -> Panels:
        scraped = 'scrape_duration_seconds{job="$job"}'
        series = 'scrape_samples_scraped{job="$job"}'
        firing = 'count by (alertname, severity) (ALERTS{alertname=~"Streamer.*"})'
        text = "As Prometheus saw it; at scrape_timeout the scrape fails."
        return [
            self._graph("readout_seconds"),
            panels.graph(
                "Scrape time", text, units.Seconds, [Query(scraped, "{{instance}}")], width=8
            ),
            panels.graph(
                "Series in a scrape",
                "At sample_limit the scrape fails.",
                units.Short,
                [Query(series, "{{instance}}")],
                width=8,
            ),
            panels.graph(
                "Alerts, pending and firing",
                "Alerts of grafana/prometheus/rules.",
                units.Short,
                [Query(firing, "{{alertname}} ({{severity}})")],
                width=24,
            ),
        ]


def _legend(labels: tuple[str, ...]) -> str:
    return " · ".join(f"{{{{{label}}}}}" for label in labels)
