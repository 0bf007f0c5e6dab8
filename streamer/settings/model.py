"""Settings: a frozen, typed table for each section of ``streamer.toml``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec

from streamer.settings.actions import Hook
from streamer.settings.alerts import Alert
from streamer.settings.clusters import Cluster, Connection
from streamer.settings.durations import HOUR_MS, duration_ms, in_ms, pane_length_ms
from streamer.settings.event_fields import ALL_KINDS
from streamer.settings.experiments import Experiment, ExperimentDefaults
from streamer.settings.limits import Limits
from streamer.settings.logs import Log, logs_of
from streamer.settings.own_metrics import Composite, OwnRatio, OwnSums, Policy
from streamer.settings.section import Section
from streamer.settings.sources import Source, own_source, several


class Topics(Section, frozen=True):
    """[kafka.topics]: the names of the topics."""

    impressions: str = "impressions"
    """Items shown to users."""
    clicks: str = "clicks"
    """Feedback of all kinds."""
    conversions: str = "conversions"
    """Purchases and the like, with a value."""
    sessions: str = "sessions"
    """Starts, views, dwells and ends of visits."""
    exposures: str | None = None
    """Exposure events, which put users into arms of experiments; without a name none are read."""
    dead_letters: str = "dead_letters"
    """Late and rejected records, unchanged, with headers that give the reason."""

    @cached_property
    def named(self) -> dict[str, str]:
        """Key → the name of the topic, of all that are used."""
        topics: dict[str, str | None] = {key: getattr(self, key) for key in self.__struct_fields__}
        return {key: topic for key, topic in topics.items() if topic is not None}

    @cached_property
    def by_kind(self) -> dict[str, str]:
        """Kind of events → the name of their topic."""
        return {kind: self.named[kind] for kind in ALL_KINDS if kind in self.named}


class Kafka(Connection, frozen=True):
    """[kafka]: the source of events."""

    brokers: str = "localhost:9092"
    """`host:port`, several separated by commas."""
    group: str = "streamer"
    """Consumer group of the workers."""
    topics: Topics = Topics()
    keyed_by: str | None = None
    """`user` asserts that all events of a user are on one partition number of every topic. Without
    it, `streamer run` checks a sample first: it refuses to start if a user's events are spread over
    partitions, and switches metrics of users off if it finds this later."""
    rekeyed: bool = False
    """Whether `streamer rekey` copies the events of `[[sources]]` to the topics of
    `[kafka.topics]`, which workers then read instead."""
    session_timeout: str = "6s"
    """How long Kafka waits for a silent worker before others take its partitions. A worker that
    restarts sooner keeps its partitions. By default brokers refuse less than 6 s."""
    host_name: str | None = None
    """Name of this host among the workers of the group; two hosts must not have the same one.
    Default: the host's own name."""

    session_timeout_ms = in_ms("session_timeout", "kafka")


class Redis(Section, frozen=True):
    """[redis]: the store of the state."""

    url: str = "redis://localhost:6379/0"
    """`redis://host:port/db`, or `redis+sentinel://host:port,host:port/master/db` with addresses of
    Sentinel, whose own user and password may stand before an `@`; `rediss` for TLS. Options after
    a `?` are refused: use the keys of this section."""
    prefix: str = "streamer"
    """Every key begins with it; another prefix is another state. One belongs to one `kafka.group`
    and its topics."""
    cluster: bool = False
    """Whether the URL names a Redis Cluster: one node that answers at the start, or a host name of
    several nodes. The other nodes are found."""
    username: str | None = None
    """User of an ACL."""
    password: str | None = None
    """The user's password; prefer the environment or the file."""
    password_file: str | None = None
    """File with the password, which is read again for each connection: it may be a token."""
    ssl_ca_certs: str | None = None
    """PEM file of the authorities to trust; by default the system's authorities."""
    ssl_certfile: str | None = None
    """PEM file of the client certificate."""
    ssl_keyfile: str | None = None
    """PEM file of the certificate's key."""


class Dimension(Section, frozen=True):
    """[[dimensions]]: one label of every windowed and total series."""

    name: str
    """Name of the label, and of the field in events (which can be mapped)."""
    values: tuple[str, ...] = ()
    """Values that are always kept."""
    max_values: int = 100
    """Number of further values that are kept (smallest hashes first); the rest is `other`."""


class WindowSettings(Section, frozen=True):
    """[windows]: the lengths of the sliding windows."""

    lengths: tuple[str, ...] = ("1m", "5m", "1h", "24h")
    """Each length gives a series with the label `window`. All of a file is the window `file`, which
    eight lengths leave no room for."""
    day_before: tuple[str, ...] = ()
    """Windows in `lengths` that are also kept for the day before, for `score_drift` and for
    composites that compare with it. They have 10 minutes or more, divide a day evenly, and have at
    most 10,000 panes together."""

    @cached_property
    def lengths_ms(self) -> dict[str, int]:
        """Label → milliseconds, in the order of the settings."""
        return {x: duration_ms(x, "windows.lengths") for x in self.lengths}

    @property
    def named_ms(self) -> dict[str, int]:
        """Those that settings name: not the window that is all of a file."""
        return self.lengths_ms

    @property
    def by_length(self) -> list[str]:
        """The labels, the shortest window first."""
        return sorted(self.lengths_ms, key=self.lengths_ms.__getitem__)

    def panes_of(self, label: str) -> tuple[int, int]:
        """Milliseconds of a pane, and how many panes of a window are kept."""
        pane_ms = pane_length_ms(self.lengths_ms[label])
        return pane_ms, self.lengths_ms[label] // pane_ms


class Attribution(Section, frozen=True):
    """[attribution]: how feedback joins impressions."""

    click: str = "30m"
    """Longest time from an impression to feedback that joins it."""
    conversion: str = "24h"
    """Longest time from an impression to a conversion that joins it. Feedback to the impression
    must come between both: a conversion without it (view-through) joins nothing."""
    session_gap: str = "30m"
    """Time without an event after which a session has ended."""

    click_ms = in_ms("click", "attribution")
    conversion_ms = in_ms("conversion", "attribution")
    session_gap_ms = in_ms("session_gap", "attribution")


LOG_LEVELS, LOG_FORMATS = ("debug", "info", "warning", "error"), ("text", "json")
CONVENTIONS = {
    "precision_ratio": ("shown",),
    "map_ratio": ("jurity", "primer"),
    "mar_ratio": ("jurity", "primer"),
    "ndcg_ratio": ("jurity", "exponential"),
    "kendall_tau": ("tau_b",),
}
"""Metric of slates → conventions by which it can be shown besides its default, in the order in
which they are laid out."""


VISIBLE = -1
"""Stands for the positions that people see, as a cut-off."""


class Metrics(Section, frozen=True):
    """[metrics]: the metrics to compute."""

    k: tuple[int, ...] = (10,)
    """Cut-offs of the metrics of ranked lists."""
    visible: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    """A dimension = its values with the number of positions that people see there, e.g. `{ platform
    = { phone = 3, desktop = 8 } }`: metrics of slates have the cut-off `visible`, too. With other
    values it is the first of `k`."""
    margin: float = 0.1
    """The distance that `margin_loss` asks for between the scores of a relevant item and another
    one."""
    feedback: dict[str, float] = msgspec.field(default_factory=lambda: {"click": 1.0})
    """Kind of feedback = gain, 0 to 1000; `conversion` is the conversions topic. Other kinds are
    counted as `other`. `click` is always counted, with gain 0 if it is not listed."""
    thresholds: tuple[float, ...] = (0.5,)
    """Scores, ascending, from which `classifier_precision_ratio` and `classifier_recall_ratio`
    treat an impression as a predicted click."""
    max_weight: float = 100.0
    """Largest weight of an impression in estimates of other policies, 1 to 1000: larger ones are
    clipped to it."""
    families: tuple[str, ...] = (
        *("traffic", "engagement", "ranking", "scoring", "calibration", "coverage", "intervals"),
    )
    """Families of metrics; `intervals` adds intervals of rates and means. Off by default: `scores`,
    `diversity`, and `off_policy`, which needs `[[policies]]`. `ratios` is on if `[[ratios]]` is
    set."""
    hide: tuple[str, ...] = ()
    """Metrics to hide, by name without `streamer_`; `*` stands for anything: `["*_stderr"]`."""
    conventions: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Metric = conventions to show in addition to the default, e.g. `{ map_ratio = ["jurity"]
    }`."""
    rollups: tuple[tuple[str, ...], ...] | None = None
    """Combinations of dimensions by which sums are kept and shown, as lists of names. Default: the
    total `[]`, each alone."""
    detailed: tuple[tuple[str, ...], ...] | None = None
    """Rollups that show every metric. Default: the total. The others show the series marked *brief*
    in metrics.md; series of ranking and scoring only for at most one dimension."""

    @property
    def cutoffs(self) -> dict[str, int]:
        """Those of slates by label, ascending; `VISIBLE` comes last."""
        found = {str(k): k for k in sorted(self.k)}
        return {**found, "visible": VISIBLE} if self.visible else found

    @property
    def most_visible(self) -> int:
        """The largest number of positions that people see."""
        seen = (k for positions in self.visible.values() for k in positions.values())
        return max((self.k[0], *seen))


class Items(Section, frozen=True):
    """[items]: the items of the families `coverage` and `diversity`."""

    dimensions: tuple[str, ...] = ()
    """Dimensions by which items are counted. Without any, metrics of items are shown for the total
    only. With them, they are shown for the rollups in `metrics.detailed` that have no other
    dimensions."""
    windows: tuple[str, ...] | None = None
    """Windows in `windows.lengths` for which items are counted. Default: windows of an hour or
    more, or the longest."""
    catalog_size: int = 0
    """Number of items in the catalogue; 0: the items in the longest of these windows."""
    users: int = 0
    """Number of all users, for `user_coverage_ratio`; 0: the users of the longest window."""
    pairs: bool = False
    """Counts pairs of items, for `co_occurrence_diversity_ratio`: `limits.items` bounds them, too.
    The families `diversity` and `engagement` are needed."""
    category: str | None = None
    """The dimension that holds the category of items. Default: the field `item_category`."""


class Events(Section, frozen=True):
    """[events]: the form of events on the wire."""

    fields: dict[str, str] = msgspec.field(default_factory=dict)
    """Our name of a field = yours, also for dimensions and fields of policies and ratios.
    Your name is at the top level of the event, not a path; each name is used once."""
    positions_from: int = 1
    """The number of the first position: 0 or 1."""
    zone: str = "UTC"
    """Time zone of times without an offset, by its name in the IANA database."""


class Time(Section, frozen=True):
    """[time]: which events count."""

    max_lateness: str = "1h"
    """An event older than the newest record of its topic-partition by more than this is late."""
    max_skew: str = "5m"
    """An event newer than the newest record by more than this is rejected as `future`; so is a
    record that is stamped beyond the wall clock by more, and it moves no clock."""
    dedup_horizon: str = "1h"
    """For how long a second event with the same `event_id` is a duplicate."""
    conversion_dedup_horizon: str = "30d"
    """Likewise of conversions, whose pages are opened again days later; a million ids take 26 MB.
    Two rows of one `event_id` with different items are lines of one order, and no duplicates."""

    max_lateness_ms = in_ms("max_lateness", "time")
    max_skew_ms = in_ms("max_skew", "time")
    dedup_horizon_ms = in_ms("dedup_horizon", "time")
    conversion_dedup_horizon_ms = in_ms("conversion_dedup_horizon", "time")


class ExporterSettings(Section, frozen=True):
    """[exporter]: the address of `/metrics`."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = 8000
    """Port to listen on; 0 takes a free one."""
    hosts: tuple[str, ...] = ()
    """Names in the header `Host` of requests, in addition to `localhost`, `host`, this machine's
    own name and all addresses. Requests to other names are refused."""
    tls_certfile: str | None = None
    """PEM file of the certificate (with its chain): serve HTTPS."""
    tls_keyfile: str | None = None
    """PEM file of the certificate's key, if the certificate file has none."""
    username: str | None = None
    """User name for every page except `/healthz` (basic authentication)."""
    password: str | None = None
    """The user's password; prefer the environment or the file."""
    password_file: str | None = None
    """File with the password."""
    annotations_token: str | None = None
    """Token for marking deployments and campaigns on the charts (`POST /api/annotations`); prefer
    the environment or the file."""
    annotations_token_file: str | None = None
    """File with the token."""


class LogSettings(Section, frozen=True):
    """[log]: what workers and exporters log, on stderr."""

    level: str = "info"
    """The least severe messages that are logged: `debug`, `info`, `warning` or `error`. Those of
    libraries are logged from `warning` on."""
    format: str = "text"
    """`text`, or `json`: each line an object with `time`, `level`, `logger`, `message` and, where
    they are known, `partition`, `topic` and more."""


class Settings(Section, frozen=True):
    kafka: Kafka = Kafka()
    clusters: dict[str, Connection] = msgspec.field(default_factory=dict)
    redis: Redis = Redis()
    dimensions: tuple[Dimension, ...] = (Dimension(name="variant"), Dimension(name="surface"))
    windows: WindowSettings = WindowSettings()
    attribution: Attribution = Attribution()
    metrics: Metrics = Metrics()
    items: Items = Items()
    events: Events = Events()
    time: Time = Time()
    experiments: tuple[Experiment, ...] = ()
    experiments_defaults: ExperimentDefaults = ExperimentDefaults()
    alerts: tuple[Alert, ...] = ()
    policies: tuple[Policy, ...] = ()
    ratios: tuple[OwnRatio, ...] = ()
    composites: tuple[Composite, ...] = ()
    sources: tuple[Source, ...] = ()
    actions: tuple[Hook, ...] = ()
    exporter: ExporterSettings = ExporterSettings()
    log: LogSettings = LogSettings()
    limits: Limits = Limits()

    @property
    def dimension_names(self) -> tuple[str, ...]:
        return tuple(d.name for d in self.dimensions)

    @cached_property
    def kept_dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions, where arms of experiments, and values that ratios are restricted to or
        cut-offs depend on, are always kept, too."""
        kept = {d.name: dict.fromkeys(d.values) for d in self.dimensions}
        for experiment in self.experiments:
            if experiment.dimension:
                kept[experiment.dimension].update(dict.fromkeys(experiment.arms))
        for dimension, values in (*self.values_of_ratios.items(), *self.metrics.visible.items()):
            kept[dimension].update(dict.fromkeys(values))
        return tuple(
            msgspec.structs.replace(d, values=tuple(kept[d.name])) for d in self.dimensions
        )

    @cached_property
    def unit_fields(self) -> tuple[str, ...]:
        """Fields of events that are units of experiments, and no dimensions."""
        named = dict.fromkeys(e.unit_field for e in self.experiments if e.unit_field)
        return tuple(name for name in named if name not in self.dimension_names)

    @property
    def kept_fields(self) -> tuple[str, ...]:
        """Fields of events whose values are kept: dimensions, then units."""
        return (*self.dimension_names, *self.unit_fields)

    @cached_property
    def user_dimensions(self) -> tuple[str, ...]:
        """The dimensions that users' days are kept by: those to be explored, and those by whose
        values outcomes are attributed."""
        own = {e.dimension for e in self.experiments if e.outcomes == "attributed"}
        kept = {*own, *(name for e in self.experiments for name in e.explore)}
        return tuple(name for name in self.dimension_names if name in kept)

    def arm_paths_of(self, experiment: Experiment) -> tuple[str, ...]:
        """Where events say the arm of an experiment; nothing where a dimension says it."""
        is_said = experiment.dimension or experiment.switchback
        own = () if is_said else several(self.experiments_defaults.arm)
        return experiment.paths or own

    @cached_property
    def arm_paths(self) -> tuple[str, ...]:
        """All paths at which events say arms."""
        paths = (path for e in self.experiments for path in self.arm_paths_of(e))
        found = several(self.experiments_defaults.arm) if self.finds_experiments else ()
        return tuple(dict.fromkeys((*paths, *found)))

    @property
    def finds_experiments(self) -> bool:
        """Whether experiments are read that events name and settings do not."""
        return bool(self.experiments_defaults.metrics)

    def says_arm(self, experiment: Experiment) -> str:
        """What says the arm of an experiment, for people: a dimension, or its key at paths."""
        if experiment.switchback is not None:
            return "switchback.schedule"
        paths = ", ".join(self.arm_paths_of(experiment)) or "events of exposures"
        return experiment.dimension or f"{experiment.called} at {paths}"

    @property
    def reads_sources(self) -> bool:
        """Whether the topics that are read are those of ``[[sources]]``: not where they are rekeyed
        to those of ``[kafka.topics]``."""
        return bool(self.sources) and not self.kafka.rekeyed

    @cached_property
    def read_sources(self) -> tuple[Source, ...]:
        """The sources that are read: those of ``[[sources]]``, else the four that
        ``[kafka.topics]`` and ``[events]`` stand for."""
        if self.reads_sources:
            return self.sources
        topics, events = self.kafka.topics.by_kind, self.events
        return tuple(
            own_source(topic, kind, events.fields, events.positions_from, events.zone)
            for kind, topic in topics.items()
        )

    @cached_property
    def logs(self) -> dict[str, Log]:
        """Name → log, of all topics that are read."""
        return logs_of(self.read_sources)

    @cached_property
    def read_clusters(self) -> tuple[Cluster, ...]:
        """The clusters of these topics; that of ``[kafka]`` is the first."""
        others = self.clusters.items() if self.reads_sources else ()
        return (Cluster(None, self.kafka), *(Cluster(name, its) for name, its in others))

    def logs_in(self, cluster: Cluster) -> list[Log]:
        """Those of the logs that are in a cluster."""
        return [log for log in self.logs.values() if log.cluster == cluster.name]

    @cached_property
    def policy_fields(self) -> dict[str, str]:
        """Fields of shown items that policies need → the reason for which a wrong value is
        refused."""
        return {field: why for policy in self.policies for field, why in policy.fields.items()}

    @cached_property
    def own_sums(self) -> OwnSums:
        """What ratios add up."""
        return OwnSums.of(self.ratios, self.dimension_names)

    @cached_property
    def values_of_ratios(self) -> dict[str, tuple[str, ...]]:
        """Dimension → its values that ratios are restricted to."""
        found: dict[str, tuple[str, ...]] = {}
        for own in self.own_sums.sums:
            for dimension, values in own.dimensions:
                found[dimension] = (*found.get(dimension, ()), *values)
        return found

    @cached_property
    def own_fields(self) -> dict[str, tuple[str, ...]]:
        """Kind of events → fields that only ratios read."""
        return self.own_sums.fields(self.dimension_names)

    @cached_property
    def own_numbers(self) -> tuple[str, ...]:
        """Those of them that are numbers."""
        own = {name for names in self.own_fields.values() for name in names}
        return tuple(field for _, field in self.own_sums.amounts if field in own)

    @cached_property
    def families(self) -> tuple[str, ...]:
        """The families of metrics that are on: `ratios` and `composites` are so by their tables."""
        tables = {"ratios": self.ratios, "composites": self.composites}
        by_themselves = (name for name, some in tables.items() if some)
        return tuple(dict.fromkeys((*self.metrics.families, *by_themselves)))

    @property
    def feedback_kinds(self) -> tuple[str, ...]:
        """Configured kinds of the clicks topic, ``click`` first."""
        kinds = [x for x in self.metrics.feedback if x not in ("click", "conversion")]
        return ("click", *kinds)

    @property
    def user_feedback_kinds(self) -> tuple[str, ...]:
        """Kinds of the positive rate; conversions, if configured, come last."""
        conversion = ("conversion",) if "conversion" in self.metrics.feedback else ()
        return (*self.feedback_kinds, *conversion)

    @property
    def gains(self) -> tuple[float, ...]:
        """The distinct positive gains, ascending: grades above 0."""
        return tuple(sorted({gain for gain in self.metrics.feedback.values() if gain > 0}))

    @property
    def item_windows(self) -> tuple[str, ...]:
        """The windows for which items are counted."""
        lengths_ms, named = self.windows.lengths_ms, self.windows.named_ms
        least_ms = min(HOUR_MS, max(named.values(), default=0))
        longer = (label for label, ms in named.items() if ms >= least_ms)
        chosen = longer if self.items.windows is None else self.items.windows
        return (*(label for label in lengths_ms if label not in named), *chosen)

    @property
    def feedback_horizon_ms(self) -> int:
        """How long after an impression feedback can still change its grade."""
        if self.metrics.feedback.get("conversion", 0) > 0:
            return self.attribution.conversion_ms
        return self.attribution.click_ms

    @property
    def rollups(self) -> tuple[tuple[str, ...], ...]:
        """Subsets of dimensions to show; default: none, each alone."""
        if self.metrics.rollups is not None:
            return self.metrics.rollups
        return ((), *((name,) for name in self.dimension_names))

    @property
    def detailed(self) -> tuple[tuple[str, ...], ...]:
        """Those rollups in which every metric is shown; default: the total, if it is shown."""
        if self.metrics.detailed is not None:
            return self.metrics.detailed
        return tuple(rollup for rollup in self.rollups if not rollup)

    def is_detailed(self, rollup: tuple[str, ...]) -> bool:
        """Whether every metric is shown for a rollup, in whatever order it names dimensions."""
        return set(rollup) in [set(names) for names in self.detailed]

    def has_items(self, rollup: Sequence[str]) -> bool:
        """Whether items are counted by a rollup: the total, and those detailed ones that have no
        dimensions but ``items.dimensions``."""
        is_within = {*rollup} <= {*self.items.dimensions}
        return not rollup or (is_within and self.is_detailed(tuple(rollup)))
