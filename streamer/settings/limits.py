"""Every bound of streamer, with its reason.

Bounds of one record are fixed; bounds of memory can be set in ``[limits]`` of the settings.
Where a memory bound is hit, ``streamer_inexact`` names the metrics and the bound.
"""

from __future__ import annotations

from streamer.settings.section import Section

# One record -------------------------------------------------------------------------------
MAX_RECORD_BYTES = 1_000_000
"""Kafka's own default bound of a message; a longer value is almost surely not an event."""
MAX_DEPTH = 64
"""Nesting of a record: an event needs 3, and logs of web pages have 13 in parts that nobody reads;
parsers recurse."""
MAX_EVENT_MS = 4_102_444_800_000
"""2100-01-01: pane numbers of one second stay below 2**32."""
MIN_SECONDS, MAX_SECONDS = 788_918_400, 4_102_444_800
"""2000-01-01 and 2100-01-01 in epoch seconds: a number between them is no time in milliseconds,
which would be in January or February 1970."""
MAX_FOUND_CHARS = 100
"""Characters of a refused value that an explanation shows: it goes into headers and messages."""
MAX_ID_BYTES = 512
"""Length of user, item, request, session and event ids, in bytes of UTF-8."""
MAX_LABEL_CHARS = 128
"""Length of a dimension value, which becomes a Prometheus label: longer ones are cut."""
MAX_NAME_CHARS = 64
"""Length of names in the settings that are shown as labels."""
LABEL_PATTERN = rf"^[A-Za-z0-9_.:\-]{{1,{MAX_NAME_CHARS}}}\Z"
"""Their alphabet."""
RESERVED_LABELS = frozenset({"all", "other"})
"""Dimension values with a meaning of their own: the rollup and the values beyond the bound."""
MAX_POSITION = 10_000
"""A slate of more positions is not one that a person saw."""
MAX_ITEMS = 1000
"""Elements of ``items`` and of ``reference`` in one impression, and members of a slate: metrics of
pairs cost the square of it."""
MAX_SCORE = 1e6
"""Magnitude of a score: sums of losses keep nine decimals."""
MAX_RATING = 100.0
"""Magnitude of a rating, and of scores that are compared with ratings: sums of squares of a unit of
1e-6 hold 10**8 of them."""
MAX_VALUE = 1e12
"""Value of one conversion, in currency units: 1e18 micros, a quarter of 2**62. Sums are kept in two
limbs, of which 2**34 such values fit."""
MAX_DWELL_MS = 24 * 3600 * 1000
"""Time on one item: a day; more is a client that never closed."""

MAX_LABEL_TEXTS = 500_000
"""Texts of label sets that an exporter keeps (a cache: emptied when full)."""
# Labels and panes -------------------------------------------------------------------------
SCORE_OCTAVES = (-17, 20)
"""Magnitudes of scores that have bins of their own, as powers of two: from 0.0000076 to beyond
MAX_SCORE, so that pCVR and logits are in order."""
FINE_SCORE_OCTAVES = (-3, 10)
"""Those with narrow bins, from 1/8 to 1024: dot products, ratings and probabilities about 1/2 lie
close together."""
SCORE_BINS_AN_OCTAVE = (8, 32)
"""Wide and narrow ones: 1,318 bins in all. With clicks they take 42 of the 512 blocks of a row, of
which those exist that hold something: from 2 kB a segment and pane on."""
POSITION_CLASSES = 50
"""Positions 1..50 have series of their own; deeper ones share ``other``."""
MAX_DIMENSIONS = 32
"""Each takes four bytes of every combination of values that rows refer to."""
MAX_DIMENSION_VALUES = 10_000
"""Upper bound of ``max_values`` and of the values named in the settings."""
MAX_FEEDBACK_KINDS = 16
"""Configured feedback kinds: each has columns in every pane."""
MAX_WINDOWS = 8
MAX_ROLLUPS = 64
MAX_K = 16
MAX_THRESHOLDS = 5
MAX_POLICIES = 4
"""Policies that are estimated: weights are kept with every impression, 16 bytes where there are any
policies, and four are stored for each."""
MAX_DECIMALS = 30
"""Digits behind the point of a number that is written as bytes."""
MAX_SOURCES = 64
"""Sources: each topic of one has a log in every partition."""
MAX_CLUSTERS = 16
"""Clusters besides that of ``[kafka]``: each has a connection of its own in every worker."""
MAX_CLUSTER_NAME_CHARS = 64
MAX_COMPOSITES = 16
COMPOSITE_PARTS = (2, 6)
"""Metrics of a composite: experiments keep the products of all numerators and denominators, 78 of
six."""
MAX_DAY_BEFORE_PANES = 10_000
"""Panes that are kept for the day before in a partition: their names stand in the manifest, some 9
bytes each."""
MAX_POLICY_POSITIONS = 1000
"""Positions of which a policy's probability is in the settings: no slate is longer."""
MAX_RATIOS = 16
"""Ratios: each has two sums, and a sum has a bit in 32."""
MAX_RATIO_FIELDS = 8
"""Different fields that ratios add up: pending feedback keeps a number for each."""
MAX_RATIO_CONDITIONS = 32
"""Different conditions of ratios: each has a bit."""
MAX_RATIO_SKETCHES = 4
"""Ratios with quantiles: a sketch takes 55 of the 512 blocks of a row."""
MAX_RATIO_VALUES = 100
"""Values of a field that a ratio is restricted to."""
MAX_AMOUNT = 1e12
"""Magnitude of a value of a field that ratios add up: as that of money."""
MANY_SERIES = 50_000
"""Series of an exporter beyond which `streamer check` and `streamer run` warn."""
MAX_WEIGHT = 1000.0
"""Largest weight of one impression: sums of squares hold billions of them."""
MAX_CUTOFF = 1000
"""Largest cut-off k: no slate is longer."""
MAX_GAIN = 1000.0
"""Largest gain of a kind of feedback."""
MAX_EXPONENTIAL_GAIN = 30.0
"""The same where gains are exponents of two."""
MAX_EXPERIMENTS = 256
READOUT_SECONDS, READOUT_PARTS = 0.1, 20
"""Where the readouts of all experiments take longer than this, an exporter makes them no more often
than that they take one in so many parts of its time."""
MAX_WORDS_CHARS = 300
"""Characters of the title, the hypothesis and the owner of an experiment."""
MAX_UNITS = 16
"""Units of experiments besides the user, each switchback experiment being one."""
MAX_UNIT_VALUES = 20_000
"""Ids of a unit in a partition, as their texts are stored: some 40 bytes each, again whenever a new
one comes."""
MIN_SLOT_MS = 60_000
"""Shortest slot of a switchback experiment: what is at work longer than one makes slots depend on
each other."""
MAX_SCHEDULE_SLOTS = 10_000
"""Slots of a schedule before it begins again."""
MAX_FOUND_EXPERIMENTS = 256
MAX_FOUND_DAYS = 90
"""Days after its first one after which an experiment is retired that settings do not name."""
MAX_FOUND_BYTES = 128
"""Of the key or an arm of such an experiment."""
MAX_ARM_PATHS = 100
"""Paths at which events say arms."""
MAX_ARMS = 16
MIN_USERS = 100
"""Users of an arm below which intervals at any time were not seen to hold."""
MAX_EXPERIMENT_METRICS = 32
MAX_ALERTS = 32
MIN_ALERT_WINDOW_MS, MAX_ALERT_WINDOW_MS = 600_000, 86_400_000
PANES_OF_ALERTS = 6
"""Panes of an alert's window: it moves on by a sixth of itself."""
BEFORE_WINDOWS = 6
"""Windows for which a fall is compared with the window before it began, with `baseline = "before"`:
so long an alert can last."""
BASELINE_DAYS = 7
"""Past days whose same time of day is a baseline."""
BASELINE_WEEKS = 4
"""Past weeks whose same weekday and time is a baseline, once all of them are known."""
VERDICT_DAYS = 1
"""Past days whose verdicts of alerts can be computed again."""
EXPECTED_DAYS = 3
"""How far ahead the first verdict on a segment of an alert is forecast."""
REFERENCE_DAYS = 400
"""Days whose sums are kept for comparisons with a reference week."""
MAX_ALERT_PANES = 100_000
"""Panes of all alerts in a partition: an alert of an hour has 1,800, one of ten minutes 8,900, and
their names stand in the manifest, some 9 bytes each."""
MAX_RATIO_ROWS = 12_000_000
"""Rows that `streamer why` searches: 61 bytes each with twenty dimensions. Of more, a sample of
the people."""
MAX_ALERT_LABELS = 200
"""Combinations of values that an alert watches in a partition; more are `other`. Each takes half a
kilobyte a pane, of which there are 1,800 where the window is an hour."""
MAX_HISTORY_DAYS = 400
"""Days of an experiment whose lifts are shown as they stood: the last ones."""
MAX_COVARIATE_DAYS = 90
MAX_MIN_DAYS = 90
MAX_SKEW_MS = 31 * 24 * 3600 * 1000
MAX_SESSION_GAP_MS = 6 * 3600 * 1000
"""Sessions that nobody ends are counted so far ahead; a short window has a pane a second."""
PANES_PER_WINDOW = 60
ITEM_PANES_PER_WINDOW = 12
"""Of counts of items, which hold a row for each item of a pane: a divisor of those of a window."""
MIN_PANE_MS = 1000
PANE_STEP_MS = 500
"""Panes are multiples of it, so that pane numbers of their common divisor stay small."""
MAX_WINDOW_MS = 31 * 24 * 3600 * 1000

# A partition in memory (defaults of [limits]) -----------------------------------------------
MAX_SEGMENTS = 20_000
"""Segments of a rollup of several dimensions in one partition; more are `other` in that rollup. A
million segments of all rollups have numbers."""
MAX_OPEN_IMPRESSIONS = 8_000_000
"""Impressions that feedback can still join, about 90 bytes each; also a bound of impressions with
feedback and, where conversions have a gain, of the members of their slates: 240 bytes each; and of
the items in the brute-force lists of slates, 8 bytes each."""
MAX_OPEN_FEEDBACK = 2_000_000
"""Feedback kept because it can still move, or because a conversion may need it."""
PAIR_FEEDBACK = 128
"""Of these the feedback of one topic by one person on one item: an impression may move all of it.
Beyond, the earliest stays with the impression that it joins."""
MAX_USER_ITEMS = 4_000_000
"""(user, item, segment) touched within the longest window; beyond it a sample of the users. About
45 bytes each."""
MAX_ITEM_ROWS = 2_000_000
"""(item, segment, pane) of one window, with the counts of each: 90 bytes with two cut-offs, 160
where lists are counted; as much in the exporter, for each partition. A window has twelve such
panes, and for minutes one that lies ahead, so 150,000 items fit whatever the traffic. Beyond it a
sample of the items, which serves counts of distinct items."""
MAX_ITEM_LABELS = 1000
"""Segments of each rollup by which items are counted in a partition; more are `other` there. Codes
have twelve bits for those of all rollups: of more than four each has an equal share."""
MAX_CATALOG = 1_000_000_000
"""Items of a catalogue, and users: as many as there are people."""
MAX_USER_DAYS = 4_000_000
"""(user, day, values of dimensions) within the days of any experiment, each with the sums that
metrics need; as many (user, time) of who may still enter one, within ``max_lateness``; and as many
(user, experiment, arm). Beyond it a sample of the users. About 75 bytes each, and 8 for every sum;
the last 50 where users are in ten experiments, 200 where they are in one."""
MAX_USER_ROWS = 100_000
"""Rows of one user in each of the two tables above, so that a robot does not fill them."""
MAX_OPEN_SESSIONS = 2_000_000
"""Sessions that an event can still join, and viewings that a dwell time can."""
MAX_SESSION_MS = 31 * 24 * 3600 * 1000
"""Longer sessions count as this long in quantiles (means are exact)."""
MAX_EVENT_IDS = 8_000_000
"""Event ids remembered for deduplication, of one topic-partition; about 30 bytes each."""

# One fetch ---------------------------------------------------------------------------------
MAX_INFLATED_BYTES = 64 << 20
"""Bytes of one record batch, inflated: brokers take 1 MB of it by default, compressed. A larger one
is skipped and counted as lost."""
REJECTED_RECORDS, FETCHED_BYTES_A_REJECTED_RECORD = 1000, 8
"""Rejected records that are kept of a fetch for their dead letters: so many, and one more for so
many fetched bytes, which are fewer than those of an event, compressed."""
MAX_REJECTED_RECORDS = 200_000
"""The most of them: what a fetch of compressed events holds."""
REJECTED_BYTES, REJECTED_BYTES_A_FETCHED_BYTE = 16 << 20, 4
"""Their bytes: so many, and so many more for each fetched one."""

# Processing -------------------------------------------------------------------------------
GATHER_ROWS = 5_000
"""Rows gathered before one apply: fewer than one fetch gives of a busy partition, which would wait
for the next one otherwise; many enough that what Python does for an apply does not count."""
APPLY_MS = 500
"""After so long what is left of a fetched chunk is applied in the next turn: a worker that is asked
to stop waits for a turn, and events may cost a hundred times the usual."""
FLUSH_MS = 500
"""Longest time between an event's arrival and its commit, when nothing is slow."""
MAX_FLUSH_MS = 10_000
"""Ends of logs are looked for and workers report at every flush."""
HOLD_BACK_MS = 600_000
"""A topic may run this far ahead of the slowest of its siblings, on the arrival clock."""
WORKER_MEMORY_SHARE, WORKER_ROWS_SHARE = 0.85, 0.75
"""A worker takes so much of the memory that there is, and its rows so much of what is left of that
after its start; beyond it rows leave early."""
MAX_INBOX_RECORDS = 1_600_000
"""Records waiting in one worker before fetching pauses, shared by its topic-partitions: five
fetches of each of 16. A pause costs a fetch; at 400,000 all of them cost a third of the speed."""
USER_REFRESH_SECONDS = 1.0
"""Sums over users are brought up to date no more often while events come."""
USER_REFRESH_PARTS, USER_REFRESH_PARTS_IDLE = 20, 3
"""Bringing the sums over users up to date takes at most one in so many parts of a worker's time: of
one that has to catch up, and of one that waits for events."""
COMMIT_ROWS = 200_000
"""Rows applied after which a commit is due whatever the time; none more while one is under way."""
MAX_DEAD_LETTERS = 50_000
"""Dead letters of a partition held until the commit that counts them."""
MAX_MANIFEST_BYTES = 16_000_000
"""One commit script writes at most this much: longer ones block Redis. With the largest settings
and every bound filled a manifest has less than half a megabyte, and 1.3 kB more for each topic."""
MAX_SCRIPT_KEYS = 1000
"""Keys one commit script deletes at most (Lua's unpack fails at 8000)."""
BLOB_FAN_IN = 16
"""Blobs of one size class that are merged into one of the next."""
BLOB_ROWS = 500_000
"""Rows of one blob: some megabytes, which one request moves and decoding holds twice."""
FINGERPRINT_COUNT = 24
"""Records remembered to recognise a recreated topic, at exponentially spaced offsets."""
MAX_GAPS = 16
"""Ranges of lost offsets kept of each topic-partition: the last ones; all are counted."""
DISCOVERED_RECORDS = 2000
"""Records of one file or topic that `streamer init` looks at: the first half, then every 50th."""
DISCOVERED_PATHS = 500
DISCOVERED_VALUES = 2000
"""Different values kept of each path."""
DISCOVERED_ELEMENTS = 20
"""Elements of a list that are looked at."""
DISCOVERED_BYTES = 64_000_000
"""Of all records that `streamer init` holds."""
MAX_EVALUATED_SEGMENTS = 10_000
"""Combinations of values by which lists are evaluated."""
MAX_KEPT_REJECTS = 10_000
"""Rejected events that a counter keeps for its caller: the first ones; all are counted."""
MAX_LINE_BYTES = MAX_RECORD_BYTES + 1
"""Bytes of a longer line in a file are not kept: it is a reject whatever it holds."""
RETRY_SECONDS_MAX = 5.0
"""Longest pause between two attempts to reach Redis."""
EARLY_END_SECONDS = 60.0
RESTART_SECONDS_MAX = 60.0
"""Longest pause before another worker is started where workers end earlier than that."""
REDIS_CONNECTIONS = 64
"""Of one process to a Redis: what all partitions of a worker ask at once waits for its turn."""
RECOVERIES_AT_ONCE = 8
"""Partitions of one worker that are loaded and compared at the same time."""
STANDING_SECONDS = 5.0
"""How often a worker asks whether what it has is still its own: an idle partition commits nothing
that would tell."""
ENDS_SECONDS = 1.0
"""How often an exporter asks Kafka where its logs end."""
ENDS_OLD_SECONDS = 3.0
"""The lag counts as unknown once the last answer is older."""
ENDS_TIMEOUT_SECONDS = 10.0
"""Longest wait for the answer, before the connection is replaced."""
STANDSTILL_SECONDS = 3.0
"""Records that have waited for so long without a commit of their partition are a problem."""
WORKER_SILENT_SECONDS = 15
"""A worker that has not reported for longer counts as gone."""
ACT_SECONDS = 0.5
"""How often who acts looks whether anything was committed."""
LEASE_MS = 10_000
"""After so long without a word of who acts another process leads."""
ACT_TIMEOUT_SECONDS = 10.0
"""Longest wait for a receiver of an action."""
ACT_BACKOFF_SECONDS = 1.0
"""The pause after the first attempt to deliver, twice as long after each other one."""
ACT_PAUSE_SECONDS = 900.0
"""The longest pause."""
ACT_ATTEMPTS = 138
"""So many fill about a day: a delivery has failed. No clock that is set can cut it short."""
MAX_ACTED = 1000
"""Records of what was acted on; the oldest leave."""
STORE_SECONDS = 2.0
"""A store that has not said its time within it hangs: an exporter says so, and waits no longer."""
CLUSTER_SECONDS = 10.0
"""Longest wait for an answer of another cluster, before its partitions say that it is away."""
SILENT_SECONDS = 3.0
"""A connection to Kafka is replaced where nothing arrives for so long though an answer is due."""
UNANSWERED_SECONDS = 2.0
"""A broker that has not answered for so long is a problem."""
CONNECT_SECONDS = 10.0
"""Longest wait for a new connection to Kafka."""
DAMAGED_FETCHES = 5
"""A record batch that arrives damaged is fetched so many times before it is lost; the pauses add up
to some 4 s."""
REGISTRY_SECONDS = 10.0
"""Longest wait for an answer of a schema registry."""
MAX_SCHEMA_BYTES = 1 << 20
"""Bytes of one answer of a schema registry, and of a schema with those that it refers to: one of
Protobuf takes 0.4 s to parse for each megabyte."""
MAX_SCHEMA_REFERENCES = 1000
"""Schemas that one schema refers to, itself or through others."""
REGISTRY_REQUESTS = 8
"""Requests to a schema registry at a time."""
ASK_AGAIN_SECONDS = 30.0
"""How often a registry is asked again for schemas that it did not have."""
IMPATIENT_SECONDS = 3600.0
"""How long no partition waits for a schema of a log after one was waited for in vain: five bytes
that name a schema stop a partition once an hour, for `unknown_after`."""
MAX_REFUSED_SCHEMAS = 1000
"""Schemas that are not there, of one source: so many are remembered, and asked for again. A record
with one more is asked for as if it were the first."""
KEYING_SECONDS = 600.0
"""How often `streamer run` looks whether the topics are keyed by user."""
SPLIT_USERS = 0.01
"""Share of sampled users that may be on several partition numbers of a topic that is keyed by user:
records that somebody sent by hand."""
SAMPLED_USERS = 20
"""Users of a topic in a sample without which nothing is said of its keys."""
MAX_PARTITIONS = 10_000
"""Partitions of a topic: more is no number that workers stored."""
MAX_BLOB_ROWS = 50_000_000
"""Rows of one stored blob: more is damage, and would not fit into memory."""
MAX_BLOB_BYTES = 1 << 30
"""Bytes of one stored blob or manifest, unpacked; likewise."""
MAX_MS = 1 << 53
"""Milliseconds of a clock: more is no time."""
MAX_REPORT_BYTES = 1_000_000
"""Bytes of a worker's report that are read."""
BLOBS_SECONDS = 60.0
"""How often a worker asks whether all blobs of its partitions are still there."""
READ_ATTEMPTS = 5
"""Times a reader starts again when a partition was committed under its hands."""
READ_PARTITIONS = 64
"""Partitions a reader asks for at a time: few round trips, and little in flight."""

# The exporter's connections ------------------------------------------------------------------
MAX_CONNECTIONS = 1000
"""Connections to an exporter at the same time: people and a few Prometheus servers need tens."""
RESERVED_FILES = 64
"""Files that an exporter needs besides its connections: Redis, Kafka, its own; it accepts so many
connections fewer than the process may open files."""
HEADER_SECONDS = 10.0
"""Longest time from the first byte of a request, or from the connection, to the end of its header;
and of a TLS handshake."""
IDLE_SECONDS = 120.0
"""Longest pause between two requests of a connection: scrapes are seldom further apart."""
GRACE_SECONDS = 0.25
"""A connection that has waited for less makes no room for a new one: its request is on its way."""
UNREAD_SECONDS = 60.0
"""Longest time that an answer waits for a client which does not read it."""
MAX_UNREAD_BYTES = 128 * 1024 * 1024
"""Bytes of answers that wait for their clients, over all connections; the oldest is cut off."""
PART_BYTES = 64 * 1024
"""Bytes of a scrape that are given to a connection at a time."""
LINGER_SECONDS = 1.0
"""Longest wait for the rest of a request's body, which no page needs."""
MAX_HEADERS = 64
"""Header lines of a request; each, and the request line, has at most 8190 bytes."""
REQUESTS_AT_ONCE = 2
"""Requests below /api that are computed at the same time: each takes a core from scrapes."""
REQUESTS_WAITING = 32
"""Requests below /api that wait for their turn; one more is refused with 503."""
MAX_DOCUMENTS = 64
"""Different queries of /api/readings whose documents are kept until the next readout."""
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
"""Bytes of those documents, compressed; a new one takes the place of all."""
EXPLORATION_SECONDS = 60.0
"""How often at most an exporter explores an experiment by one dimension: it reads the rows of all
users, one exploration at a time."""
MAX_HOSTS = 100
"""Names in exporter.hosts."""
MAX_HOST_CHARS = 253
"""Length of a host name in DNS."""

# History -------------------------------------------------------------------------------------
HISTORY_POINTS = 60
"""Points of a metric's course, at most: as many as a window has panes."""
HISTORY_LINES = 12
"""Lines of a metric's course, at most: more cannot be told apart."""
ALERT_HISTORY_SEGMENTS = 30
"""Segments in the history of an alert, at most: the largest ones."""
SLOW_DOCUMENT_SHARE = 0.02
"""Share of the time that an exporter spends at most on the history of alerts."""
MAX_ANNOTATIONS = 500
"""Marks from outside that are kept: the oldest leave."""
MAX_ANNOTATION_CHARS = 200
"""Length of the text of one."""
MAX_ANNOTATION_BYTES = 4096
"""Bytes of one, as it is posted and stored."""
RECENT_MS = 3_600_000
"""How far back an exporter looks to say what became of records lately."""
RECENT_STEP_MS = 60_000
"""How often it remembers its counters for that."""
MERGED_STATISTICS = 16
"""Metrics whose panes are kept merged between commits: those whose course was asked for last."""
HISTORY_SERIES = 200
"""Series of one answer of /api/history; a query that gives more has to name labels."""


class Limits(Section, frozen=True):
    """[limits]: bounds. If one is hit, `streamer_inexact` names the metrics and the bound."""

    flush_ms: int = FLUSH_MS
    """Longest time from an event to its commit, in milliseconds, when nothing is slow."""
    gather_rows: int = GATHER_ROWS
    """Records gathered before they are applied together."""
    hold_back_ms: int = HOLD_BACK_MS
    """How far a topic may run ahead of the slowest other topic, in milliseconds."""
    inbox_records: int = MAX_INBOX_RECORDS
    """Records that may wait in a worker, over its topic-partitions, before fetching pauses."""
    worker_memory_mb: int | None = None
    """Memory of a worker, in MB, beyond which the largest tables of its partitions let their oldest
    rows leave early. Default: 85 % of the memory of its container or machine, shared by the workers
    of one `streamer run`."""
    segments: int = MAX_SEGMENTS
    """Segments of a rollup of several dimensions in a partition; further ones are `other`."""
    open_impressions: int = MAX_OPEN_IMPRESSIONS
    """Impressions of a partition that feedback can still join."""
    open_feedback: int = MAX_OPEN_FEEDBACK
    """Feedback of a partition that can still move, or that a conversion may need."""
    open_sessions: int = MAX_OPEN_SESSIONS
    """Sessions of a partition that events can still join; the same number of viewings of items."""
    user_items: int = MAX_USER_ITEMS
    """Rows (user, item, segment) of a partition in the longest window; beyond it users are
    sampled."""
    user_days: int = MAX_USER_DAYS
    """Rows of a partition for users' actions on each day of any experiment. The same number of rows
    is allowed for events of users who may still enter one (for `time.max_lateness`), and for users'
    arms. Beyond it users are sampled."""
    unit_values: int = MAX_UNIT_VALUES
    """Ids of a unit of experiments in a partition, if the unit is neither the user nor a dimension;
    of more, a sample counts."""
    items: int = MAX_ITEM_ROWS
    """Rows (item, segment, pane) of one window in a partition; beyond it items are sampled."""
    event_ids: int = MAX_EVENT_IDS
    """Event ids remembered for a topic-partition."""
