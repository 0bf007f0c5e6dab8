"""Erasure of a person from what is stored: rows of users and of units leave; what joins still need
becomes that of nobody.

Rows of impressions, feedback, sessions and viewings keep their places in the log, and what was
counted of them stays: their hashes that are made of the person's id are mixed with a random number
that is forgotten. Later events of the person join none of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from streamer._core import UNIT_TABLES, people_of
from streamer.encoding.arrays import Bools
from streamer.encoding.segments import OTHER
from streamer.settings.labels import OTHER as OTHER_TEXT
from streamer.state.codec import Columns
from streamer.state.manifest import Texts

_U64 = npt.NDArray[np.uint64]
_REMOVED = ("user_items", "user_exposures", "user_days", "user_pending")
_FORGOTTEN = {
    "impressions": (("user",), ("user", "pair", "slate")),
    "retained": (("user",), ("user", "pair", "slate")),
    "feedback": (("user",), ("user", "item_pair", "slate")),
    "sessions": (("user",), ("user", "key")),
    "viewings": (("click_user", "session_user"), ("click_user", "session_user", "key")),
}
"""Table → the columns that say whose a row is, and those that are made of the person's id."""
TABLES = ("combinations", *_REMOVED, *_FORGOTTEN, "probes", *UNIT_TABLES)
"""Those that an erasure changes."""


class Erasure:
    """Takes persons out of one partition while it is loaded. ``ids``: hashes of their ids;
    ``dimensions``: how many fields of kept values come before those of units."""

    def __init__(self, ids: Collection[int], dimensions: int) -> None:
        self.ids, self._dimensions = ids, dimensions
        self._people = _array({person for one in ids for person in people_of(one)})
        self._secret = np.uint64(secrets.randbits(64) | 1)
        self._slates = self._pairs = _array(())
        self._codes: dict[str, list[int]] = {}

    def texts(self, texts: Texts) -> Texts:
        """Texts without the values of units that are these persons' ids: they are ``other``, as
        values beyond the bound are. To be called before ``table``."""
        changed = list(texts.dimensions)
        for at in range(self._dimensions, len(changed)):
            of = changed[at]
            gone = {text for text, digest in of.unnamed if digest in self.ids}
            if gone:
                self._codes[f"code_{at}"] = [i for i, text in enumerate(of.texts) if text in gone]
                changed[at] = msgspec.structs.replace(
                    of,
                    texts=[OTHER_TEXT if text in gone else text for text in of.texts],
                    kept=[text for text in of.kept if text not in gone],
                    unnamed=[pair for pair in of.unnamed if pair[0] not in gone],
                )
        return msgspec.structs.replace(texts, dimensions=changed)

    def table(self, name: str, blobs: Sequence[Columns]) -> Sequence[Columns]:
        """The rows of a table without the persons; tables come in the order of loading."""
        return [self._columns(name, columns) for columns in blobs]

    def _columns(self, name: str, columns: Columns) -> Columns:
        if name == "combinations":
            return {column: self._other(column, codes) for column, codes in columns.items()}
        if not columns or name not in TABLES:
            return columns
        if name in _REMOVED or name in UNIT_TABLES:
            whose = _array(self.ids) if name in UNIT_TABLES else self._people
            kept = ~np.isin(columns["user"].view(np.uint64), whose)
            return {column: values[kept] for column, values in columns.items()}
        if name == "probes":
            theirs = np.isin(columns["slate"].view(np.uint64), self._slates)
            return self._forget(columns, ("slate", "pair"), theirs)
        whose_columns, forgotten = _FORGOTTEN[name]
        theirs = np.zeros(len(columns[whose_columns[0]]), np.bool_)
        for column in whose_columns:
            theirs |= np.isin(columns[column].view(np.uint64), self._people)
        if "slate" in forgotten:
            slates = columns["slate"].view(np.uint64)[theirs]
            self._slates = np.union1d(self._slates, slates[slates != 0])
        if "pair" in forgotten:
            self._pairs = np.union1d(self._pairs, columns["pair"].view(np.uint64)[theirs])
        erased = self._forget(columns, forgotten, theirs)
        if name == "feedback":
            return self._forget(erased, ("pair",), self._joins(columns, theirs))
        return erased

    def _joins(self, feedback: Columns, theirs: Bools) -> Bools:
        """Feedback of which ``pair`` is forgotten: it is of them, or has the id of an impression of
        theirs; by the id of another's impression it goes on to join that."""
        pair = feedback["pair"].view(np.uint64)
        is_of_item = pair == feedback.get("item_pair", feedback["pair"]).view(np.uint64)
        joins: Bools = theirs & is_of_item | np.isin(pair, self._pairs)
        return joins

    def _other(self, column: str, codes: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        gone = np.isin(codes, self._codes.get(column, []))
        return np.where(gone, np.asarray(OTHER, codes.dtype), codes)

    def _forget(self, columns: Columns, names: Sequence[str], theirs: Bools) -> Columns:
        found = dict(columns)
        for name in columns.keys() & names:  # not all are in what an older version stored
            hashes = columns[name].view(np.uint64)
            is_given = theirs & (hashes != 0)
            mixed = np.where(is_given, self._mixed(hashes), hashes)
            found[name] = mixed.view(columns[name].dtype)
        return found

    def _mixed(self, hashes: _U64) -> _U64:
        """Hashes that nobody can make of an id again; equal ones stay equal."""
        mixed = (hashes ^ self._secret) * self._secret
        mixed ^= mixed >> np.uint64(32)
        found: _U64 = np.maximum(mixed * self._secret & ~np.uint64(1), np.uint64(2))
        return found


def _array(hashes: Collection[int]) -> _U64:
    return np.array(sorted(hashes), np.uint64)


def pending(erasures: Mapping[int, int], erased_ms: int) -> dict[int, int]:
    """Of erasures (hash of the id → when it was asked for) those that came after the last one."""
    return {digest: ms for digest, ms in erasures.items() if ms > erased_ms}
