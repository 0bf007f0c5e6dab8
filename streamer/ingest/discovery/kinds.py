"""What says what a record is, and which of its values are impressions, clicks, …"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from streamer.ingest.discovery.fields import places, times
from streamer.ingest.discovery.names import (
    ARM_NAMES,
    CLICK_COLUMNS,
    OTHER_NAMES,
    RATINGS,
    is_unnamed,
    rank,
    words,
)
from streamer.ingest.discovery.profile import (
    NO_AMOUNT,
    Profile,
    Seen,
    is_of_all,
    names_of,
    nearly_all,
    seconds_of,
    values_of,
    written,
)
from streamer.ingest.lookup import values_at
from streamer.settings.paths import Path, path_of, text_of
from streamer.settings.sources import ANY

_MOST_VALUES, _MOST_WORDS = 100, 4
"""Of what says the kind, and in a value of it, in the mean: more make sentences."""
_LEAST_SHARE = 0.6
"""Of the records that have a column of flags."""
_FEW = 0.05
"""Share of the records that may lack what says the kind."""
_MOST_SOLD = 0.9
"""Share of conversions that have an amount, at least."""
_LEAST_KINDS = 2
"""Kinds that values must say."""
_MOST_GUESSED = 6
"""Kinds that are told apart without words."""
_LEAST_GRADES, _MOST_GRADES = 3, 11
NO = ("0", "false", "False", "no", "0.0", "f", "n", "N", "F")
YES = ("1", "true", "True", "yes", "1.0", "t", "y", "Y", "T")
_OTHERS = frozenset(
    words(
        "add added remove removed cart basket wishlist refund refunded cancel cancelled canceled "
        "fail failed error entered applied denied login logout signup signed hide hidden dismiss "
        "dismissed scroll ping hover updated promotion promo coupon begin started abandoned info "
        "shipping warenkorb korb cesta carrito panier carrello carrinho"
    )
)
_CONVERSIONS = frozenset(
    words(
        "purchase purchases purchased bought buy conversion conversions converted convert "
        "transaction transactions order orders ordered sale sales sold subscribed booked booking "
        "install conv paid kauf gekauft bestellung bestellt comprado compra pedido "
        "pagado achat achete commande acquisto acquistato ordine comprou rented zamowienie"
    )
)
_COMPLETED = (
    {"checkout", "complete"},
    {"checkout", "completed"},
    {"checkout", "success"},
    {"subscription", "started"},
    {"subscription", "created"},
    {"application", "submitted"},
)
"""Words that together make a conversion."""
_CLICKS = frozenset(
    words(
        "click clicks clicked clk clickthrough tap taps tapped select selected read klick klicks "
        "geklickt angeklickt pulsado clic clics clique cliques clicado cliccato picked tiklanan"
    )
)
_OPENS = frozenset(words("open opens opened opn abierto aberto aperto ouvert geoffnet"))
"""Of a mail, which shows it; else of what is shown, which is a click."""
_FEEDBACK = {
    **{"like": "like", "liked": "like", "favorite": "like", "favorited": "like"},
    **{"save": "save", "saved": "save", "share": "share", "shared": "share"},
    **{"star": "like", "hearted": "like", "fav": "like", "rate": "like", "rated": "like"},
    **{"upvote": "like", "upvoted": "like", "dislike": "dislike", "disliked": "dislike"},
}
_IMPRESSIONS = frozenset(
    words(
        "impression impressions imp shown show displayed display served serve exposed exposure "
        "rendered recommended viewable angezeigt gezeigt eingeblendet mostrado impresion affiche "
        "visualizzato exibido"
    )
)
_LISTS = frozenset(
    words("list search searched results recommendations feed slate filtered recs carousel cards")
)
_VIEWS = frozenset(
    words(
        "view viewed views seen pv search searched ranking received sent send delivered gesehen "
        "ansicht aufruf visto vista vue vu"
    )
)
_EXPERIMENTS = frozenset(words("experiment experiments abtest"))
_EXPOSED = frozenset(words("exposure exposures exposed impression started assigned assignment"))
_CARTS = frozenset(words("cart basket"))
_ENDS = {"start": "start", "started": "start", "begin": "start", "end": "end", "ended": "end"}


def are_flags(seen: Seen) -> bool:
    """Whether all values are yes or no."""
    return bool(seen.values) and {*seen.values} <= {*NO, *YES}


def with_article(kind: str) -> str:
    """What a record of a kind is called in a sentence.

    >>> with_article("impression"), with_article("click")
    ('an impression', 'a click')
    """
    return f"an {kind}" if kind[:1] in "aeiou" else f"a {kind}"


@dataclass(frozen=True, slots=True)
class Value:
    """A value that says what a record is. ``kind``: impression, click, conversion, session or
    exposure; "" where it is not to be counted."""

    text: str
    kind: str
    records: int
    extra: Mapping[str, str | bool | Mapping[str, str]] = field(default_factory=dict)
    """`feedback`, `action`, `has`, `lacks`, `where`."""
    is_sure: bool = True
    there: str | None = None
    """What must stand at `Kinds.where`, besides."""

    @property
    def label(self) -> str:
        """What says the kind, for people."""
        where = self.extra.get("where")
        told = " and ".join(where) if isinstance(where, Mapping) else ""
        return self.there or self.text or str(self.extra.get("has", told))

    def is_met_by(self, record: Mapping[str, Any]) -> bool:
        """Whether a record holds what stands in all that have the value."""
        path, where = self.extra.get("has"), self.extra.get("where")
        if isinstance(where, Mapping):
            flags = where.items()
            return all(text in map(written, values_at(record, path_of(at))) for at, text in flags)
        if not isinstance(path, str):
            return True
        return any(value is not None for value in values_at(record, path_of(path)))


@dataclass(frozen=True)
class Kinds:
    """What says what a record is: a field, a header, or nothing, as all are of one kind."""

    path: Path | None = None
    header: str | None = None
    fixed: tuple[str, ...] | None = None
    values: tuple[Value, ...] = ()
    is_sure: bool = True
    where: Path | None = None
    """A second field that tells kinds apart."""

    @property
    def at(self) -> str:
        """Where it stands, for people."""
        if self.path is not None:
            return text_of(self.path)
        return f"header {self.header}" if self.header else "the topic"

    @property
    def known(self) -> dict[str, list[Value]]:
        """Kind → its values; "" has those that are not to be counted."""
        found: dict[str, list[Value]] = {}
        for value in self.values:
            found.setdefault(value.kind, []).append(value)
        return found

    def kinds_of(self, text: str | None, record: Mapping[str, Any]) -> tuple[str, ...]:
        """Kinds of events that a record with a value is; none where it is not to be counted."""
        if self.fixed is not None:
            return self.fixed
        if self.where is not None:
            found = {str(each) for each in values_at(record, self.where)}
            text_there = next(iter(found), None)
            return tuple(
                value.kind
                for value in self.values
                if value.text == text and value.kind and value.there == text_there
            )
        own = text or ""
        return tuple(
            v.kind for v in self.values if v.text == own and v.kind and v.is_met_by(record)
        )


def classified(name: str) -> tuple[str, dict[str, str | bool]]:
    """What a name of an event most likely is, "" where it is nothing that counts.

    >>> [classified(x)[0] for x in ("Product Clicked", "view_item_list", "add_to_cart")]
    ['click', 'impression', '']
    """
    words_of_name = words(name)
    own = frozenset(words_of_name)
    if "session" in own or "visit" in own:
        end = next((_ENDS[word] for word in words_of_name if word in _ENDS), None)
        return ("session", {"action": end}) if end else ("", {})
    if own & {"page", "screen", "pageview"} and own & {*_VIEWS, "pageview"}:
        return "session", {"action": "view"}
    if any(completed <= own for completed in _COMPLETED):
        return "conversion", {}
    if own & _OTHERS:
        return "", {}
    if own & _EXPERIMENTS and own & {*_VIEWS, *_EXPOSED}:
        return "exposure", {}
    if own & _CLICKS:
        return "click", {}
    if own & _CONVERSIONS:
        return "conversion", {}
    if own & _IMPRESSIONS or (own & _LISTS and own & {*_VIEWS, "searched", "filtered"}):
        return "impression", {}
    feedback = next((_FEEDBACK[word] for word in words_of_name if word in _FEEDBACK), None)
    return ("click", {"feedback": feedback}) if feedback else ("", {})


def kinds_of_topic(topic: str) -> str | None:
    """Which events a topic or file most likely holds, by its name."""
    return classified(topic)[0] or None


def find_kinds(profile: Profile, headers: Mapping[str, Seen], topic: str) -> Kinds:
    """What says what the records of a topic are."""
    candidates: list[tuple[tuple[float, ...], Kinds]] = []
    for path, seen in profile.scalars.items():
        if not is_of_all(path):
            continue
        rank_of_name = rank(names_of(path), ("type", *OTHER_NAMES["type"], "feedback_type"))
        _judge(candidates, seen, profile, rank_of_name, len(path), Kinds(path=path))
    if all(worth[0] < _LEAST_KINDS for worth, _ in candidates):
        _judge_by_presence(candidates, profile)
    for header, seen in headers.items():
        rank_of_name = rank([header], ("type", "ce_type", *OTHER_NAMES["type"]))
        _judge(candidates, seen, profile, rank_of_name, 1, Kinds(header=header))
    best = max(candidates, key=lambda one: one[0], default=None)
    if best is not None and best[0][0] >= _LEAST_KINDS:
        return best[1]
    if found := _click_column(profile) or _outcomes(profile, topic) or _one_of(profile):
        return found
    fixed = kinds_of_topic(topic)
    if fixed is not None and fixed != "session":
        return Kinds(fixed=(fixed,))
    if best is not None:
        return best[1]
    if any(_is_rating(path, seen) for path, seen in profile.scalars.items()):
        return Kinds(fixed=("click",), is_sure=False)
    return Kinds(fixed=("exposure" if _says_arms(profile) else "impression",), is_sure=False)


def _says_arms(profile: Profile) -> bool:
    """Whether records have an experiment and an arm, and no item."""

    def has(name: str, others: Sequence[str]) -> bool:
        return any(rank(names_of(path), (name, *others)) is not None for path in profile.scalars)

    has_item = has("item_id", OTHER_NAMES["item_id"]) or profile.lists or profile.id_lists
    return not has_item and all(has(name, others) for name, others in ARM_NAMES.items())


def _judge(
    to: list[tuple[tuple[float, ...], Kinds]],
    seen: Seen,
    profile: Profile,
    rank_of_name: int | None,
    depth: int,
    at: Kinds,
) -> None:
    """Adds a candidate, with what speaks for it."""
    is_text = sum(len(text.split()) for text in seen.values) > _MOST_WORDS * seen.distinct
    if seen.distinct > _MOST_VALUES or seen.is_numeric or is_text:
        return
    values = _values(seen, profile, at.path)
    lacking = profile.records - seen.count
    if lacking > _FEW * profile.records:
        kind = None if at.path is None else _kind_without(values, profile, at.path)
        if at.path is None or kind is None:
            return
        lacks = {"lacks": text_of(at.path)}
        values.append(Value("", kind, lacking, lacks, is_sure=False))
    of_kinds = {value.kind for value in values if value.kind and (value.is_sure or not value.text)}
    likely = {value.kind for value in values if value.kind}
    if not of_kinds or (rank_of_name is None and len(likely) < 2):
        return
    of_known_kind = sum(value.records for value in values if value.kind)
    worth = (
        len(of_kinds),
        {"impression", "click"} <= of_kinds,
        rank_of_name is not None,
        of_known_kind / profile.records,
        -(rank_of_name or 0),
        -depth,
    )
    to.append((worth, Kinds(path=at.path, header=at.header, values=tuple(values))))


def _kind_without(values: Sequence[Value], profile: Profile, path: Path) -> str | None:
    """What the records are that lack what says the kind of others: the lists that these were chosen
    from; or nothing, where the others are of several kinds and most. None where neither is so."""
    texts = values_of(profile, path)
    lists = Counter(
        text is None for text, has_list in zip(texts, profile.with_list, strict=True) if has_list
    )
    lacking = texts.count(None)
    if "impression" not in {value.kind for value in values}:
        are_lists = nearly_all(lists[True], lacking) and not nearly_all(
            lists[False], len(texts) - lacking
        )
        return "impression" if are_lists else None
    told = [value for value in values if value.kind]
    are_told = len({value.kind for value in told}) > 1 and any(value.is_sure for value in told)
    return "" if are_told and lacking < len(texts) / 2 else None


def _judge_by_presence(to: list[tuple[tuple[float, ...], Kinds]], profile: Profile) -> None:
    """Adds a field whose words say nothing, where records with one of its values alone have an
    amount: these are conversions; of others those with lists, or else the most frequent, are
    impressions, and the next clicks."""
    amounts = [
        [place for place, text in enumerate(values_of(profile, path)) if text not in NO_AMOUNT]
        for path, seen in profile.scalars.items()
        if seen.is_numeric and seen.unit is None and not seen.are_ranks
    ]
    for path, seen in profile.scalars.items():
        of_values = [text for text, _ in seen.values.most_common()]
        is_guessed = 2 <= len(of_values) <= _MOST_GUESSED and not are_flags(seen)
        if not is_guessed or profile.share(path) < 1 - _FEW:
            continue
        texts = values_of(profile, path)
        lists = Counter(x for x, has_list in zip(texts, profile.with_list, strict=True) if has_list)
        of_values.sort(key=lambda text: not nearly_all(lists[text], seen.values[text]))
        for places_of_amount in amounts:
            owners = {texts[place] for place in places_of_amount}
            sold = next(iter(owners), None)
            if len(owners) != 1 or sold is None or sold == of_values[0]:
                continue
            if len(places_of_amount) < _MOST_SOLD * seen.values[sold]:
                continue
            most, *others = of_values
            clicked = next(text for text in (*others, "") if text != sold)
            is_event = _have_the_same_ids(profile, texts, (most, clicked), sold)
            kinds = {most: "impression", sold: "conversion" if is_event else "", clicked: "click"}
            values = [
                Value(text, kinds.get(text, ""), seen.values[text], is_sure=False)
                for text in of_values
            ]
            to.append(
                ((2.0, 0.0, 0.0, 1.0, 0.0, -len(path)), Kinds(path=path, values=tuple(values)))
            )


def _have_the_same_ids(
    profile: Profile, texts: Sequence[str | None], pair: tuple[str, str], sold: str
) -> bool:
    """Whether records with a value have all ids that those of a pair of values have: what is about
    items alone names no person."""
    counts = Counter(texts)
    ids = [p for p, seen in profile.scalars.items() if seen.is_id and not seen.are_ranks]
    for path in ids:
        filled = zip(texts, values_of(profile, path), strict=True)
        having = Counter(text for text, value in filled if value is not None)
        is_of_both = all(nearly_all(having[each], counts[each]) for each in pair if each)
        if is_of_both and not nearly_all(having[sold], counts[sold]):
            return False
    return True


def _is_rating(path: Path, seen: Seen) -> bool:
    """Whether a field says how much somebody likes an item: some grades."""
    is_named = rank(names_of(path), RATINGS) is not None or is_unnamed(path)
    has_grades = _LEAST_GRADES <= seen.distinct <= _MOST_GRADES
    return is_named and has_grades and seen.within(0, _MOST_GRADES)


def _values(seen: Seen, profile: Profile, path: Path | None) -> list[Value]:
    values: list[Value] = []
    assigned = {"exposure"} if {("experiment",), ("arm",)} <= profile.scalars.keys() else set()
    if path is not None and any({*words(text)} & _EXPOSED for text in seen.values):
        assigned |= _assigned(profile, path)
    for text, records in seen.values.most_common():
        is_arm = text in assigned and {*words(text)} & _EXPOSED  # else of items: they are, too
        kind, extra = ("exposure", {}) if is_arm else classified(text)
        values.append(Value(text, kind, records, extra))
    values = _with_opened(values)
    if any(value.kind == "impression" for value in values):
        return values
    kind, shown = (
        "impression",
        {v.text for v in values if _is_free(v) and {*words(v.text)} & _VIEWS},
    )
    if path and shown and _is_browsing(values, shown, profile, path):
        kind = "click"
    elif path and not shown:
        shown = _with_lists(values, profile, path) or _most_often(values)
    return [Value(v.text, kind, v.records, {}, False) if v.text in shown else v for v in values]


def _assigned(profile: Profile, path: Path) -> set[str]:
    """Values whose records hold an experiment and an arm, which those of other values lack."""
    texts, alone = values_of(profile, path), list[set[str | None]]()
    counts = Counter(texts)
    for name, others in ARM_NAMES.items():
        ranks = {at: rank(names_of(at), (name, *others)) for at in profile.scalars}
        named = [(place, at) for at, place in ranks.items() if place is not None]
        if not named:
            return set()
        of_field = values_of(profile, min(named, key=lambda one: one[0])[1])
        having = Counter(t for t, own in zip(texts, of_field, strict=True) if own is not None)
        alone.append({text for text, n in having.items() if nearly_all(n, counts[text])})
    both = set.intersection(*alone)
    return {text for text in both if text} if both < counts.keys() else set()


def _with_opened(values: Sequence[Value]) -> list[Value]:
    """What was opened was clicked, unless other values say so: then it was shown, if nothing else
    was."""
    kinds = {value.kind for value in values if not value.extra}
    kind = "click" if "click" not in kinds else "" if "impression" in kinds else "impression"
    return [
        replace(value, kind=kind, is_sure=False)
        if _is_free(value) and {*words(value.text)} & _OPENS
        else value
        for value in values
    ]


def _is_free(value: Value) -> bool:
    """Whether no word says what records with a value are."""
    return not value.kind and not {*words(value.text)} & _OTHERS


def _with_lists(values: Sequence[Value], profile: Profile, path: Path) -> set[str]:
    """Values that no word explains, of which nearly all records hold a list, as clicks do not."""
    texts = values_of(profile, path)
    lists = Counter(x for x, has_list in zip(texts, profile.with_list, strict=True) if has_list)
    clicked = [value for value in values if value.kind == "click"]
    if not clicked or any(lists[value.text] > _FEW * value.records for value in clicked):
        return set()
    return {v.text for v in values if _is_free(v) and nearly_all(lists[v.text], v.records)}


def _are_clicked(values: Sequence[Value]) -> bool:
    """Whether one says that something was clicked, not liked or saved alone."""
    return any(value.kind == "click" and not value.extra for value in values)


def _most_often(values: Sequence[Value]) -> set[str]:
    """The value of most records, where another one says that something was clicked."""
    most = sum(value.records for value in values) / 2 if _are_clicked(values) else float("inf")
    return {value.text for value in values if _is_free(value) and value.records > most}


def _is_browsing(values: Sequence[Value], shown: Set[str], profile: Profile, path: Path) -> bool:
    """Whether people look at one page after another: what they view comes before carts and orders,
    nothing is clicked, and hardly two views of a person are of one moment."""
    is_clicked = _are_clicked(values)
    goes_on = any(value.kind == "conversion" or {*words(value.text)} & _CARTS for value in values)
    moments_at = times(profile)
    if is_clicked or not goes_on or not moments_at:
        return False
    persons_at = [place.path for place in places(profile, "user_id")[:1]]
    columns = (values_of(profile, at) for at in (path, moments_at[0].path, *persons_at))
    moments = [row[1:] for row in zip(*columns, strict=True) if row[0] in shown]
    return bool(moments) and len(moments) - len(set(moments)) <= _FEW * len(moments)


def _click_column(profile: Profile) -> Kinds | None:
    """A column of 0 and 1 that says whether an impression was clicked."""
    columns: list[tuple[int, Path, Seen]] = []
    for path, seen in profile.scalars.items():
        rank_of_name = rank(names_of(path), CLICK_COLUMNS)
        is_flag = are_flags(seen)
        if rank_of_name is None and classified(names_of(path)[-1]) == ("click", {}):
            rank_of_name = len(CLICK_COLUMNS)
        if rank_of_name is None and is_unnamed(path) and is_flag and seen.distinct > 1:
            clicked = sum(seen.values[text] for text in YES)
            rank_of_name = len(CLICK_COLUMNS) if clicked < seen.count / 2 else None
        if rank_of_name is not None and is_flag and profile.share(path) > _LEAST_SHARE:
            columns.append((rank_of_name, path, seen))
    if not columns:
        return None
    _, path, seen = min(columns, key=lambda one: (one[0], len(one[1])))
    texts = list(seen.values)
    yes = [flag for flag in texts if flag in YES] or [_opposite(texts[0])]
    no = [flag for flag in texts if flag in NO] or [_opposite(yes[0])]
    is_sure = rank(names_of(path), _SURE) is not None
    if sold := _sold_column(profile):
        every = Value("", "impression", profile.records, {"has": text_of(path)})
        click = Value("", "click", seen.values[yes[0]], {"where": {text_of(path): yes[0]}})
        return Kinds(values=(every, replace(click, is_sure=is_sure), sold))
    values = [Value(flag, "impression", seen.values[flag]) for flag in (*no, *yes)]
    values += [Value(flag, "click", seen.values[flag]) for flag in yes]
    return Kinds(path=path, values=tuple(values), is_sure=is_sure)


def _sold_column(profile: Profile) -> Value | None:
    """What a column of 0 and 1 says that is called like conversions."""
    for path, seen in profile.scalars.items():
        yes = [flag for flag in seen.values if flag in YES]
        is_flag = bool(yes) and are_flags(seen) and seen.distinct > 1
        is_named = is_of_all(path) and classified(names_of(path)[-1])[0] == "conversion"
        if is_flag and is_named and profile.share(path) > _LEAST_SHARE:
            where = {"where": {text_of(path): yes[0]}}
            return Value("", "conversion", seen.values[yes[0]], where, is_sure=False)
    return None


def _outcomes(profile: Profile, topic: str) -> Kinds | None:
    """Records that hold the time of a click, or of a conversion, where there was one: impressions,
    unless the topic says else."""
    own = kinds_of_topic(topic) or "impression"
    times_at = [place.path for place in times(profile)]
    kind_of = {path: _kind_of_time(names_of(path)[-1]) for path in times_at}
    outcomes = [p for p in times_at if kind_of[p] in ("click", "conversion") and is_of_all(p)]
    whole = next((p for p in times_at if p not in outcomes and profile.share(p) > 1 - _FEW), None)
    if whole is None or profile.within or own not in ("impression", "click"):
        return None
    rarest: dict[str, Path] = {}  # the furthest of a kind
    for path in sorted(outcomes, key=lambda path: -profile.scalars[path].count):
        if kind_of[path] != own and _is_after(profile, whole, path):
            rarest[kind_of[path]] = path
    if not rarest:
        return None
    values = [Value("", own, profile.records, {"has": text_of(whole)})]
    for kind, path in rarest.items():
        count = profile.scalars[path].count
        values.append(Value("", kind, count, {"has": text_of(path)}, is_sure=False))
    return Kinds(values=tuple(values))


def _kind_of_time(name: str) -> str:
    return classified(name)[0] or ("click" if {*words(name)} & _OPENS else "")


def _is_after(profile: Profile, whole: Path, outcome: Path) -> bool:
    """Whether an outcome, which few records have, is not before what it is of."""
    pairs = zip(values_of(profile, whole), values_of(profile, outcome), strict=True)
    some = [(seconds_of(at), seconds_of(x)) for at, x in pairs if at is not None and x is not None]
    later = sum(at is not None and x is not None and at <= x for at, x in some)
    return profile.share(outcome) <= _LEAST_SHARE and nearly_all(later, len(some))


def _one_of(profile: Profile) -> Kinds | None:
    """Records of which each holds one of several objects, whose names say what they are."""
    objects = profile.objects
    counts = Counter(n for one in objects for n, x in one.items() if isinstance(x, Mapping))
    kinds = {name: kind for name in counts if (kind := classified(name))[0]}
    are_different = len({kind for kind, _ in kinds.values()}) == len(kinds)
    if profile.within or len(kinds) < 2 or not are_different:
        return None
    events = Counter(sum(isinstance(one.get(name), Mapping) for name in kinds) for one in objects)
    if not nearly_all(events[0] + events[1], profile.records) or events[0] >= events[1]:
        return None
    values = [
        Value("", kind, counts[name], {**extra, "has": text_of((name,))})
        for name, (kind, extra) in kinds.items()
    ]
    rest = [Value(ANY, "", events[0], is_sure=False)] if events[0] else []
    return Kinds(values=(*values, *rest))


_SURE: Sequence[str] = CLICK_COLUMNS[:-2]


def _opposite(text: str) -> str:
    pairs = dict(zip(NO, YES, strict=True))
    return pairs.get(text) or next(no for no, yes in pairs.items() if yes == text)
