"""The core, in Rust: see ``core/src/lib.rs``."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_I16 = npt.NDArray[np.int16]
_I64 = npt.NDArray[np.int64]
_FoundRow = tuple[int, list[str], list[int], tuple[int, int], int]
_Columns = dict[str, npt.NDArray[Any]]
_Skipped = tuple[int, int, str]
"""A range of lost offsets (first, end), and why."""
_Fed = tuple[int, tuple[int, int, int] | None, list[_Skipped], list[int], bool]
"""Records that were read; offset, timestamp and CRC-32 of the last; what was lost; the ids of the
schemas without which the next record cannot be read; whether the time was up before the end."""
_Schema = tuple[str, Sequence[tuple[str, str]]]
"""The text of a schema; names and texts of those that it refers to."""

EXPERIMENT_TABLES: list[str]
UNIT_TABLES: list[str]
MIGRATED_TABLES: list[str]
"""Those whose rows hold what settings number."""
"""Those of experiments: readers look into them, too, for ranges of days."""

EVENT_KINDS: list[tuple[str, str]]
REFUND: str
"""Kinds of events: the name, and what ``type`` says in an event."""
ACTIONS: list[str]
"""What a session event can report."""
_Limit = tuple[float, str]
FIELDS: list[tuple[str, list[str], list[str], str, tuple[_Limit, _Limit] | None, str, str, str]]
"""Fields of events, as declared: the name (of those that settings name, the setting); kinds that
have it; those whose elements of ``items`` have it; what it may hold: in a word, of numbers between
what (so many times the bound of a name), and in words, with bounds in braces; the reason of
refusals; what it is."""
FIELD_BOUNDS: list[str]
"""Names of the bounds of numbers in fields."""
SUMS: list[tuple[str, int]]
"""Sums over events: the name, and how many of its integers are 1."""
COUNTERS: list[tuple[str, str, str, str, str, str]]
LOG_COUNTERS: list[tuple[str, str, str, str, str, str]]
"""Counters of a partition and of its logs: see ``state.counters.CounterRow``."""
USER_GROUPS: int
"""Groups of users by hash."""
PANE_BITS: int
"""Bits of a pane's index, below its ring."""
STAT_BITS: int
"""Bits of a statistic, below its segment (or label)."""
USER_STAT_BITS: int
USER_SEGMENT_BITS: int
"""Bits of a statistic of users, and of a segment above it; above both is the pane."""
PLACE_BITS: int
"""Bits of a place in a row: of a count of an item."""
ITEM_LABEL_BITS: int
ITEM_CATEGORY_BITS: int
PAIR_ITEM_BITS: int
"""Bits of the label of an item, above the place; above both is the item's hash."""
TOTAL_RING: int
"""The ring of the totals since the state began; it has the one pane 0. Windows are 1, 2, …"""

class PanicException(BaseException):
    """The core failed: a bug. The object that raised it is not to be used any more."""

def scan_batches(blob: bytes, next_offset: int) -> tuple[int, int, int]:
    """What the headers of fetched batches say, from an offset on: the offset to fetch next, how
    many records there are at most, the first timestamp. ValueError: the format is not read."""

def verify_batches(blob: bytes, next_offset: int, end_offset: int) -> tuple[int, int, bool] | None:
    """The first batch of a blob, fetched from an offset of a log with this end, that is not as it
    was sent: how many bytes before it are whole, its offset, and whether it can be passed over.
    None where all are whole; bytes at the end that are no whole batch are no damage."""

_MeanRow = tuple[int, int, str, str, str, str]
"""Lists and users of a mean, and sums over users as decimal digits. With x the sum of a user's
values, in units of 1e-9, and n the user's lists: of x, x², x n and n²."""
_Exposure = tuple[_I64, _I64, _I64]
"""Items, ascending, their counts one after another, and the counts of no item: see
``ItemCounts``."""

class Evaluator:
    """The lists of a table of impressions, and the relevant items of a table of clicks."""

    gains: list[float]
    """The grades above 0 of the clicks, ascending."""
    sizes: tuple[int, int, int, int, int]
    """Rows, lists and users of the impressions; rows of the clicks, and those without a list."""
    segments: list[list[str]]
    """The labels of each segment."""

    def __init__(self, spec: bytes, impressions: object, clicks: object) -> None:
        """Read both tables to their ends. ``spec``: JSON. TypeError where something is no table,
        ValueError where it cannot be read; the message names the table, the column and the row."""

    def sums(self, tables: bytes) -> list[tuple[list[_MeanRow], _Exposure | None]]:
        """The sums of all lists, then of each segment: a row a mean, and the counts of items, where
        they are wanted. ``tables``: JSON of ``core_tables``. ValueError where they do not fit."""

class UnitSums:
    """Adds up the rows of units that are not users, of all partitions, and makes sums of them."""

    def __init__(self, spec: bytes) -> None:
        """Of no partition yet. ``spec``: JSON; ValueError where it asks for what there is not."""

    def add(self, exposures: Sequence[_Columns], days: Sequence[_Columns]) -> None:
        """Add the stored rows of a partition, the oldest blobs first. ValueError where columns do
        not fit."""

    def finish(self) -> list[tuple[_I64, list[tuple[int, _Columns]], list[int | None]]]:
        """Of each unit the first key of each experiment, day → columns of sums, and of each
        exposure when it exposed a unit first (ms)."""

_F64 = npt.NDArray[np.float64]
_RatioColumns = tuple[
    list[npt.NDArray[np.uint16]],
    npt.NDArray[np.uint32],
    npt.NDArray[np.bool_],
    tuple[_F64, _F64],
    int,
]
"""Rows of a ratio: codes of each dimension, hashes of people, whether it is now, numerator and
denominator; and how many leading bits are 0 of the hashes of people who are kept."""

RATIO_GROUPS: int
"""Groups of people by hash: the first half ranks cells."""

def first_cell(
    codes: Sequence[npt.NDArray[np.uint16]],
    person: npt.NDArray[np.uint32],
    is_now: npt.NDArray[np.bool_],
    sums: tuple[_F64, _F64],
    rule: tuple[bool, float, float],
) -> tuple[list[tuple[int, int]] | None, int]:
    """The cell of up to three dimensions that tells most of a change, by half of the people, and
    how many were looked at. ``rule``: whether it is a rise; what a cell has of the numerator at
    least (then, or now where it is a rise); and what 1 of it is in counts. ValueError where columns
    differ in length."""

class Core:
    """The counted state of one partition number, over all topics. One thread at a time may use
    it; other threads run while it works."""

    def __init__(self, spec: bytes, is_traced: bool = False) -> None:
        """An empty one. ``spec``: see ``ingest.spec``; ValueError where it asks for what there is
        not. ``is_traced``: it is fed a sample, whatever its times are, and asked for ``joins``."""

    # Feeding

    def feed_records(
        self,
        log: str,
        offsets: _I64,
        record_ms: _I64,
        values: Sequence[bytes | None],
        beside: Sequence[tuple[bytes | None, bytes]] = ...,
    ) -> _Fed:
        """Take in records of a log, in offset order, from its next offset on; ``beside``: their
        keys and headers, where there are any. OverflowError: a sum would pass 2**62."""

    def feed_batches(
        self,
        log: str,
        blob: bytes,
        aborted: Sequence[tuple[int, int]],
        most_ms: int | None = None,
    ) -> _Fed:
        """Take in record batches as Kafka sent them, from the log's next offset on; after
        ``most_ms`` the rest is left. ValueError where the format is not read."""

    def set_schema(self, log: str, id: int, schema: _Schema | None) -> None:
        """Make a schema of a log's registry known; None: there is none, and its records are
        rejected. ValueError where it cannot be used: they are then rejected, too."""

    def end_apply(self, at_end: Sequence[str]) -> None:
        """What was fed is taken in; ``at_end``: logs of which everything was read."""

    def refresh_user_sums(self) -> None: ...
    @property
    def is_dirty(self) -> bool:
        """Whether something changed that the sums over users do not show yet."""

    @property
    def is_stale(self) -> bool:
        """Whether all sums over users are to be computed again, at once."""

    def set_wall_clock(self, wall_ms: int) -> None:
        """Set the wall clock by which records are ahead from now on (epoch ms)."""

    def take_rejected(
        self,
    ) -> tuple[list[tuple[str, int, int, str, bytes | None, bytes | None, bytes]], int]:
        """Records that do not count since the last call: log, offset, timestamp, reason, value,
        key, headers; and how many more there were that are not kept."""

    # What is counted

    @property
    def stream_ms(self) -> int: ...
    @property
    def unit_ms(self) -> int:
        """The unit of users' times: what all panes, and all times that something is counted since,
        are multiples of."""

    @property
    def refreshed_ms(self) -> int:
        """Stream time at which the sums over users were last up to date."""

    def joins(self) -> list[tuple[int, str, int, str, int]]:
        """What became of each feedback event of a sample: the offset of its record, its kind of
        events, its time, ``joined`` or why it joined no impression, and the milliseconds since the
        impression that this is about."""

    def log(self, name: str) -> tuple[int, int, int]:
        """Next offset, arrival clock and clock of joins of a log."""

    def counters(self) -> dict[str, int]:
        """The counters of the partition, by name: see ``COUNTERS``."""

    def state(self) -> dict[str, Any]:
        """What is stored besides counters, tables and panes, by name."""

    def restore(self, state: dict[str, Any]) -> None:
        """Set what ``state`` and ``counters`` gave, before tables are loaded."""

    def seek(self, name: str, next_offset: int) -> None:
        """Go on at another offset of a log."""

    def dimensions(self) -> dict[str, Any]:
        """``values`` of each dimension (texts, events, kept, unnamed), and ``segments``: rollup and
        codes of each."""

    def restore_dimensions(
        self,
        values: Sequence[tuple[list[str], list[int], list[str]]],
        tuples: Sequence[Sequence[int]],
    ) -> None:
        """Take over texts, events and kept values of each dimension, and codes of segments."""

    # Panes: those of windows and totals, or of an alert series by its place

    def take_changed_panes(self, series: int | None) -> list[int]:
        """The panes (``encoding.packed``) that changed since the last call."""

    def live_panes(self, series: int | None) -> list[int]: ...
    def dump_panes(self, panes: Sequence[int], series: int | None) -> tuple[_I64, _I64, _I64]:
        """Sums that are not 0: pane, code of segment (or label) and statistic, value."""

    def load_pane(self, pane: int, codes: _I64, values: _I64, series: int | None) -> None:
        """Put back what was dumped of one pane."""

    def series_labels(self, series: int) -> list[list[str]]:
        """Labels of a series, by number: values in the order of its dimensions, ``all`` of those
        outside of the label's rollup."""

    def restore_series_labels(self, series: int, labels: Sequence[Sequence[str]]) -> None: ...
    def take_ratio_rows(self) -> _RatioColumns:
        """The rows of a ratio so far, which are gone here. ValueError where none are wanted."""

    # Users and experiments

    def take_changed_rings(self) -> list[int]:
        """The rings whose sums over users changed since the last call."""

    def user_sums(self, ring: int) -> tuple[_I64, _I64]:
        """Keys and values."""

    def take_changed_experiment_days(self) -> list[int]:
        """The days on which sums of experiments changed since the last call."""

    def experiment_days(self) -> list[int]:
        """The days that have sums of experiments."""

    def experiment_keys(self) -> list[int]:
        """The first key that each experiment has on a day."""

    def experiment_day(self, day: int) -> _Columns:
        """The sums of all experiments on a day: columns `key` and `limb_0`, …. Under key 0 stand
        the outcomes of all users."""

    def experiment_sums_of_days(
        self, experiment: int, days: tuple[int, int], by: int | None
    ) -> dict[str, _Columns] | None:
        """The sums of an experiment over the days [from, to), computed from the rows, by value of a
        dimension: columns with one key of arm, day and statistic."""

    def experiment_sums_across(
        self, experiment: int, other: int, days: tuple[int, int]
    ) -> dict[int, _Columns]:
        """Likewise apart for each arm of another experiment, by its number, of users who are in one
        arm of both."""

    def experiment_pairs(self) -> list[tuple[int, int, int, int, int]]:
        """Users who are in one arm of each of two experiments: first, its arm, second, its arm,
        users; experiments and arms by their numbers."""

    def experiment_sums_before_start(self, experiment: int) -> _Columns | None:
        """Likewise over the days of its covariates, as those of an experiment without covariates in
        whose first arm a user is from the day of the first impression on; None: it has no such
        days."""

    def found_experiments(self) -> list[_FoundRow]:
        """Experiments that events name and settings do not: slot; key, and arms in the order of
        their numbers; for each of these the smallest hash of a person of whom an event named it;
        first and last day on which one did; and the code of its stored rows."""

    def restore_found_experiments(self, rows: Sequence[_FoundRow]) -> None:
        """Set what was found, before tables are loaded."""

    def experiment_labels(self) -> list[list[str]]:
        """Labels of users' days: values of the dimensions that experiments look at."""

    def restore_experiments(self, labels: Sequence[Sequence[str]], final_ms: int) -> None:
        """Set what is stored of experiments beside rows, before they are loaded."""

    def unit_bits(self) -> list[tuple[int, int]]:
        """Of each unit that is not the user how many bits are 0 of the hashes of its values, and of
        its rows."""

    def restore_unit_bits(self, bits: Sequence[tuple[int, int]]) -> None:
        """Set them, before tables are loaded."""

    # Tables

    def tables(self) -> list[str]:
        """Names of the stored tables, in the order in which they are loaded."""

    def seal(self) -> None:
        """What changes from now on belongs to the next commit."""

    def serials(self, table: str) -> tuple[int, int]:
        """First and next number (or epoch) of a table's rows."""

    def horizon_ms(self, table: str) -> int | None:
        """Rows whose latest time is before it cannot matter any more; None: known by number."""

    def rows(self, table: str, first: int, end: int) -> tuple[_Columns, int]:
        """What is stored of the rows with numbers (or epochs) in [first, end), and their latest
        time (ms); 0 where a blob of them leaves by number."""

    def live(self, table: str, firsts: Sequence[int]) -> list[int] | None:
        """How many rows last changed from each epoch on, before the next; None for logs."""

    def load(
        self,
        table: str,
        blobs: Sequence[Mapping[str, npt.NDArray[Any]]],
        migration: str | None = None,
    ) -> list[tuple[int, int]]:
        """Take over the blobs of one table, the oldest first: impressions before what is retained
        of them, feedback after both. The first number (or epoch) of each, and the one after.
        ``migration``: ``PaneMigration.tables``, of rows that other settings stored. ValueError
        where columns do not fit."""

    def finish_load(self) -> None:
        """All tables are loaded: what was not counted before begins. OverflowError: a sum passes
        2**62."""

    def bounded(self) -> list[tuple[str, int]]:
        """Tables with bounds, and the rows of each."""

    def set_bounds(self, rows: dict[str, int]) -> None:
        """Bounds of rows by table, from now on."""

    def sizes(self) -> dict[str, int]:
        """Bytes and rows of what is held, by name."""

_Written = tuple[int, bytes | None, bytes]
_Rekeyed = tuple[
    list[tuple[int, int, list[_Written]]],
    list[tuple[str, int, int, str, bytes | None, bytes | None, bytes]],
    int,
    tuple[int, int] | None,
    int | None,
    list[_Skipped],
]
"""What became of some records: by number of the kind of events (in the order of ``KINDS``) and
partition the timestamp, key and value of what is to be written; log, offset, timestamp, reason,
value, key and headers of what is rejected; how many are ignored; offset and timestamp of the first
record that is newer than wanted, or whose schema is not known; the id of that; and skipped
ranges."""

class Rekeyer:
    """Rewrites records of mapped logs in our own shape, keyed by user. One thread at a time may use
    it."""

    def __init__(self, spec_json: bytes, partitions: int, max_inflated_bytes: int) -> None:
        """``spec_json``: as of ``RecordDecoder``; ``partitions``: of each topic that is written;
        ``max_inflated_bytes``: what one record batch may inflate to. ValueError where it asks for
        what there is not."""

    def set_schema(self, log: str, id: int, schema: _Schema | None) -> None:
        """Make a schema known: see ``Core.set_schema``."""

    def records(
        self,
        log: str,
        place: tuple[str, int],
        offsets: _I64,
        record_ms: _I64,
        values: Sequence[bytes | None],
        beside: Sequence[tuple[bytes | None, bytes]],
        next_offset: int,
        until_ms: int,
    ) -> _Rekeyed:
        """Rewrites records of a log, from an offset on, up to the first that is newer than
        ``until_ms``. ``place``: topic and partition they come from; ``beside``: their keys and
        headers."""

    def batches(
        self,
        log: str,
        place: tuple[str, int],
        blob: bytes,
        aborted: Sequence[tuple[int, int]],
        next_offset: int,
        until_ms: int,
    ) -> _Rekeyed:
        """The same of record batches as Kafka sent them; ValueError where the format is not
        read."""

def depth(record: bytes) -> int:
    """Deepest nesting of brackets outside of texts."""

def partition_of(key: bytes | None, partitions: int) -> int:
    """The partition of a key by Kafka's default partitioner (Java's); 0 without a key."""

def hash_of(key: tuple[int, int], id: str) -> int:
    """The hash of an id under a key."""

def people_of(id: int) -> list[int]:
    """The hashes of the persons that an id with this hash can be: users, and people by the id of
    joins."""

def arms_said(json: str) -> list[tuple[str | None, str]]:
    """What a value of an event says of arms: keys of experiments (None: the one that the value is
    of) and their arms."""

# For tests and tools

def read_batches(
    blob: bytes,
    next_offset: int,
    check_crcs: bool,
    aborted: list[tuple[int, int]],
    is_read_committed: bool = True,
    max_inflated_bytes: int = ...,
) -> tuple[int, list[tuple[int, int, bytes | None]], list[_Skipped]]:
    """The next offset, the records (offset, timestamp, value) and the skipped ranges of a fetched
    blob."""

class LineStamper:
    """Stamps the lines of one file, in their order."""

    def __init__(
        self,
        spec_json: bytes,
        types: tuple[str, list[tuple[str, int]]] | None = None,
        log: str | None = None,
    ) -> None:
        """``spec_json``: as of ``RecordDecoder``. All lines are of ``log`` where there is one; else
        ``types`` are the field that says it, and what it says of the log of each number; else the
        first log is taken of which a line is an event. ValueError where it asks for what there is
        not."""

    def stamp(self, lines: list[bytes], now_ms: int, begin_ms: int = 0) -> tuple[_I16, _I64, _I64]:
        """Of each of the next lines the number of its log (-1: none), its record timestamp, and the
        time of its latest event (epoch ms; -1: none). ``now_ms``: beyond it no event moves the
        clock; ``begin_ms``: where the clock is at least."""

    def split(self, lines: list[bytes]) -> list[bytes]:
        """Lines of one event each, of records that may hold several."""

def reason_of_no_topic(line: bytes, max_record_bytes: int) -> str:
    """Why a line belongs to no log: it cannot be read, or has no known type."""

class TableRows:
    """Iterates over the rows of a table: lists of lines of JSON."""

    def __init__(self, table: Any, max_line_bytes: int) -> None:
        """``table``: anything with ``__arrow_c_stream__``; of a line at most ``max_line_bytes`` are
        kept. TypeError where it is no table, ValueError where its schema cannot be read."""

    def __iter__(self) -> TableRows: ...
    def __next__(self) -> list[bytes]:
        """At most 4096 lines; ValueError where a column cannot be read."""

_Traced = tuple[
    str | None,
    str | None,
    str | None,
    list[tuple[str, int, str, int | None]],
    tuple[str, int | None, str | None],
]
"""Why an event is none (None: it is one), its kind as far as it is known, and the text that says
it; of each value that stands where a field of a source is looked for our name of the field, the
number of its form, its JSON, and epoch ms of a time that was read; our name of the field that the
reason is about ("": the whole), of which element of a list, and what stands there."""

class RecordDecoder:
    """Decodes records, one by one."""

    def __init__(
        self, spec_json: bytes, schema_of: Callable[[str, int], _Schema | None] | None = None
    ) -> None:
        """``schema_of``: called with a log and the id of a schema that is met for the first time;
        its errors pass through."""

    def decode_all(
        self,
        log: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: bytes | None = None,
        timestamp_ms: int = 0,
    ) -> list[Any]:
        """The values of each event of a log in a record as a dict, or the reason why one is none:
        one at least. Ids are hashes."""

    def trace(
        self,
        log: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: bytes | None = None,
        timestamp_ms: int = 0,
    ) -> list[_Traced]:
        """How each event of a record of a log was read."""

    def text(self, log: str, value: bytes) -> bytes | None:
        """The text of a record, whatever its format, with what its texts hold in their place; None
        where it has none."""

    def split(self, log: str, value: bytes) -> list[bytes]:
        """A record once for each event that it holds, each time with that alone; nothing where it
        cannot be read, or is one event."""

    def key(self, log: str, value: bytes, timestamp_ms: int = 0) -> bytes | None:
        """What a record is keyed by: its ``join_id``, else its ``user_id``; of our own shape if it
        can be read whatever else is wrong, of others where it is an event. None without one."""

    def hash(self, text: str) -> int:
        """The hash of an id."""
