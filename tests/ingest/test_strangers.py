"""Logs and tables whose names nobody knows: values say what they are, odd rows change nothing, and
what is missing is said in a file."""

import json
import random
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import streamer
from streamer.cli.main import main
from streamer.errors import ProposalError, SettingsError, SourceError
from streamer.ingest.discovery.proposal import Proposal, propose
from streamer.ingest.record import line_stamper, record_decoder
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.files import opened
from streamer.sources.sampled import sample_files
from streamer.sources.sorted_lines import SortedLines
from tests.support.all_cases import hold_for_all
from tests.support.lanes import sized

Row = dict[str, Any]
SECOND = 1_767_225_600
"""2026-01-01."""


def log(requests: int = 80) -> Iterator[Row]:
    """A shop's events in the order of time: four items a request, of which some are clicked, and
    some of these bought."""
    dice, found, at = random.Random(7), list[Row](), SECOND
    for number in range(requests):
        at += dice.randrange(120, 400)
        who, items = dice.randrange(20), dice.sample(range(30), 4)
        for rank, item in enumerate(items, 1):
            one = {"kind": "shown", "at": at, "who": who, "request": number, "item": item}
            found.append({**one, "rank": rank})
            if dice.random() < 0.3:
                found.append({**one, "rank": rank, "kind": "clicked", "at": at + 5})
            if dice.random() < 0.1:
                worth = round(dice.uniform(5, 90), 2)
                found.append({**one, "kind": "bought", "at": at + 9, "worth": worth})
    return iter(sorted(found, key=lambda row: row["at"]))


TRUE = Counter(row["kind"] for row in log())
WORTH = round(sum(row.get("worth", 0) for row in log()), 2)


def renamed(kinds: Sequence[str], names: Mapping[str, str]) -> list[Row]:
    said = dict(zip(("shown", "clicked", "bought"), kinds, strict=True))
    rows = ({**row, "kind": said[row["kind"]], "at": row["at"] * 1000} for row in log())
    return [{names.get(name, name): value for name, value in row.items()} for row in rows]


def lines_of(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def table_of(path: Path, rows: Sequence[Sequence[Any]], by: str = ",") -> Path:
    path.write_text("".join(by.join(map(str, row)) + "\n" for row in rows))
    return path


def proposed(*files: Path) -> Proposal:
    return propose(sample_files(files, Settings()), "a test")


def read(*files: Path) -> tuple[dict[str, int], Proposal]:
    """Kind → its events, and the settings that were guessed."""
    counter = streamer.read(list(files))
    assert counter.proposal is not None
    kinds, late = counter.what_was_read.kinds, counter.what_was_read.topics["late"]
    assert not any(late)
    events = zip(map(str, kinds["kind"]), kinds["events"], strict=True)
    return {kind: int(str(n)) for kind, n in events}, counter.proposal


STRANGE = {
    "advertising": (
        ("served", "clk", "conv"),
        {"kind": "verb", "at": "when", "who": "ifa", "request": "auction", "item": "cr"},
    ),
    "German": (
        ("gezeigt", "geklickt", "gekauft"),
        {"kind": "art", "at": "zeit", "who": "kunde", "request": "anfrage", "item": "ware"},
    ),
    "letters": (
        ("show", "click", "buy"),
        {"kind": "k", "at": "t", "who": "u", "request": "r", "item": "i", "rank": "p"},
    ),
}


@pytest.mark.parametrize("name", STRANGE)
def test_values_say_what_names_do_not(name: str, tmp_path: Path) -> None:
    kinds, names = STRANGE[name]
    counts, proposal = read(lines_of(tmp_path / "a.ndjson", renamed(kinds, names)))
    assert counts == {
        "impressions": TRUE["shown"],
        "clicks": TRUE["clicked"],
        "conversions": TRUE["bought"],
    }
    (source,) = proposal.settings.sources
    for ours, theirs in (("user_id", "who"), ("request_id", "request"), ("item_id", "item")):
        assert source.fields[ours] == names.get(theirs, theirs), ours
    assert source.fields_of("conversions")["value"] == "worth"
    assert "# ? request_id: by its values" in proposal.toml


def _of_mails(folder: Path) -> Path:
    """A mail is delivered before it is opened; clicks come late in the file."""
    rows = list[Row]()
    for row in log(600):
        one = {"email": f"u{row['who']}@a.example", "timestamp": row["at"], "campaign": row["item"]}
        if row["kind"] == "shown":
            rows += [{**one, "event": "delivered", "smtp": "250"}, {**one, "event": "open"}]
        elif row["kind"] == "clicked" and row["request"] > 300:
            rows.append({**one, "event": "click", "url_offset": {"type": "html"}})
    return lines_of(folder / "mails.ndjson", rows)


def _of_cards(folder: Path) -> Path:
    kinds = ("CARD_IMPRESSION", "CARD_OPEN", "APPLICATION_SUBMITTED")
    return lines_of(folder / "cards.ndjson", renamed(kinds, {"kind": "eventType", "item": "urn"}))


def _of_a_dump(folder: Path) -> Path:
    """Queries stand between events, and have no action."""
    rows = list[Row]()
    for row in renamed(("impression", "click", "purchase"), {"kind": "action_name"}):
        if row["action_name"] == "impression" and row["rank"] == 1:
            rows.append({"_source": {"query": "lamp", "at": row["at"], "who": row["who"]}})
        rows.append({"_source": row})
    return lines_of(folder / "dump.json", rows)


def _of_codes(folder: Path) -> Path:
    """Numbers alone, without names of columns; what is not sold is worth 0."""
    codes, rows = {"shown": 10, "clicked": 20, "bought": 40}, list[Sequence[int]]()
    for row in log():
        of_row = (41_000 + row["who"], codes[row["kind"]], 8_000 + row["item"], row.get("rank", 0))
        rows.append((row["at"], *of_row, round(100 * row.get("worth", 0))))
    return table_of(folder / "export.csv", rows)


def _of_outcomes(folder: Path) -> Path:
    """A row for each item that was shown, in the French of a database."""
    head = ("id_exposition", "id_visiteur", "id_contenu", "rang", "affiche_le", "clique_le")
    clicked = Counter((r["request"], r["item"]) for r in log() if r["kind"] == "clicked")
    rows = list[Sequence[Any]]([head])
    for n, row in enumerate(row for row in log() if row["kind"] == "shown"):
        at = datetime.fromtimestamp(row["at"], UTC)
        click = f"{at:%Y-%m-%d %H:%M}:59" if clicked[row["request"], row["item"]] else "\\N"
        one = (7_000_001 + n, f"v{row['who']}", f"ct-{row['item']:04}", row["rank"])
        rows.append((*one, f"{at:%Y-%m-%d %H:%M}:00", click))
    return table_of(folder / "expositions.csv", rows)


def _of_batches(folder: Path) -> Path:
    """An app sends what it saw in batches, each event with its own time."""
    batches = dict[int, Row]()
    for row in log():
        batch = {
            "bn": f"b{row['request']}",
            "dv": f"d{row['who']}",
            "up": 1000 * row["at"] + 60_000,
        }
        events = batches.setdefault(row["request"], {**batch, "q": []})["q"]
        what = {"shown": "seen", "clicked": "tapped", "bought": "hearted"}[row["kind"]]
        events.append({"x": what, "o": f"pst:{row['item']}", "m": 1000 * row["at"]})
    return lines_of(folder / "batches.ndjson", list(batches.values()))


def _of_orders(folder: Path) -> Path:
    """Lists in the German of a shop, with decimal commas, and a sum of each order."""
    searches, others = dict[int, Row](), list[Row]()
    for row in log():
        one = {"zeitpunkt": f"{datetime.fromtimestamp(row['at'], UTC):%Y-%m-%dT%H:%M:%SZ}"}
        one["kundennummer"], item = f"K-{row['who']}", f"GA-{row['item']}"
        if row["kind"] == "shown":
            search = {**one, "vorgang": "trefferliste_gezeigt", "treffer": list[Row]()}
            hit = {"artikelnr": item, "rang": row["rank"], "preis": "25,99"}
            searches.setdefault(row["request"], search)["treffer"].append(hit)
        elif row["kind"] == "clicked":
            others.append({**one, "vorgang": "treffer_angeklickt", "artikelnr": item, "rang": 2})
        else:
            total = f"{row['worth']:.2f}".replace(".", ",")
            lines = [{"artikelnr": item, "menge": 1, "einzelpreis": total}]
            order = {**one, "vorgang": "bestellung", "positionen": lines, "gesamtbetrag": total}
            others.append(order)
    rows = sorted([*searches.values(), *others], key=lambda row: str(row["zeitpunkt"]))
    return lines_of(folder / "suche.ndjson", rows)


def _of_trackers(folder: Path) -> Path:
    """Names of ids that end as few do."""
    names = {"kind": "happening", "who": "visitor_uuid", "item": "target_url", "rank": "slot_no"}
    rows = renamed(("teaser_viewable", "teaser_click", "order_line"), names)
    head = tuple(dict.fromkeys(name for row in rows for name in row))
    urls = ({**row, "target_url": f"https://a.example/a/{row['target_url']}"} for row in rows)
    cells = [tuple(row.get(name, "") for name in head) for row in urls]
    return table_of(folder / "clicks.tsv", [head, *cells], "\t")


def _of_a_recommender(folder: Path) -> Path:
    """A row for each click, with the list that it was chosen from."""
    lists = dict[int, list[int]]()
    for row in log():
        if row["kind"] == "shown":
            lists.setdefault(row["request"], []).append(row["item"])
    clicks = [
        (row["who"] + 300, row["item"], row["at"], "click", "|".join(map(str, of)))
        for row in log()
        if row["kind"] == "clicked"
        for of in [lists[row["request"]]]
    ]
    head = ("USER_ID", "ITEM_ID", "TIMESTAMP", "EVENT_TYPE", "IMPRESSION")
    return table_of(folder / "interactions.csv", [head, *clicks])


def _of_rankings(folder: Path) -> Path:
    """Prices of items stand among rankings and interactions."""
    rows, lists = list[Row](), dict[int, Row]()
    for n, row in enumerate(row for row in log() if row["kind"] != "bought"):
        one = {"id": f"e{n}", "timestamp": str(1000 * row["at"]), "user": f"u{row['who']}"}
        if row["kind"] == "shown":
            ranking = {**one, "event": "ranking", "items": list[Row]()}
            if row["request"] not in lists:
                rows.append(lists.setdefault(row["request"], ranking))
            lists[row["request"]]["items"].append({"id": f"i{row['item']}"})
        else:
            ranked = lists[row["request"]]["id"]
            rows.append({**one, "event": "interaction", "ranking": ranked, "type": "click"})
            rows[-1]["item"] = f"i{row['item']}"
        if n % 40 == 0:
            of = {"event": "item", "item": f"i{row['item']}", "price": 3.5}
            rows.append({"id": f"m{n}", "timestamp": str(1000 * row["at"]), **of})
    return lines_of(folder / "rankings.ndjson", rows)


def _of_a_test(folder: Path) -> Path:
    """The arm of a user stands in a record of its own, before the first item."""
    rows, seen = list[Row](), set[int]()
    for row in log():
        one = {"t": row["at"] * 1000, "unit": f"n{row['who']}"}
        if row["who"] not in seen:
            seen.add(row["who"])
            arm = "ab"[row["who"] % 2]
            rows.append({**one, "event": "exposure", "experiment": "rank7", "variant": arm})
        names = {"shown": "listing_impression", "clicked": "listing_click", "bought": "booking"}
        rows.append({**one, "event": names[row["kind"]], "listing_id": row["item"]})
    return lines_of(folder / "test.ndjson", rows)


ALL = {"impressions": TRUE["shown"], "clicks": TRUE["clicked"], "conversions": TRUE["bought"]}
_SHOWN = [row for row in log(600) if row["kind"] == "shown"]
_LATE = [row for row in log(600) if row["kind"] == "clicked" and row["request"] > 300]
STRANGERS: dict[str, tuple[Callable[[Path], Path], dict[str, int]]] = {
    "mails": (_of_mails, {"impressions": len(_SHOWN), "clicks": len(_LATE)}),
    "cards": (_of_cards, ALL),
    "a dump with queries": (_of_a_dump, ALL),
    "codes without names": (_of_codes, ALL),
    "outcomes beside what was shown": (
        _of_outcomes,
        {"impressions": TRUE["shown"], "clicks": TRUE["clicked"]},
    ),
    "batches of an app": (
        _of_batches,
        {"impressions": TRUE["shown"], "clicks": TRUE["clicked"] + TRUE["bought"]},
    ),
    "lists and orders": (
        _of_orders,
        {**ALL, "impressions": len({row["request"] for row in log()})},
    ),
    "unusual ids": (_of_trackers, ALL),
    "arms apart": (_of_a_test, ALL),
    "clicks with lists": (
        _of_a_recommender,
        {"impressions": TRUE["clicked"], "clicks": TRUE["clicked"]},
    ),
    "rankings": (
        _of_rankings,
        {"impressions": len({row["request"] for row in log()}), "clicks": TRUE["clicked"]},
    ),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_strangers_are_read_by_their_values(name: str, tmp_path: Path) -> None:
    written, expected = STRANGERS[name]
    counts, proposal = read(written(tmp_path))
    assert counts == expected
    assert ("exposure = [" in proposal.toml) == (name == "arms apart")
    (source,) = proposal.settings.sources
    who = [source.fields_of(kind)["user_id"] for kind in expected]
    assert len(set(map(str, who))) == 1
    assert not {"rank", "rang", "slot_no", "column_5"} & {*map(str, who)}


def test_what_people_are_is_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = ("customer_id", "registered_at", "country", "clicks_90d", "favourite_item_id")
    rows = [
        (2000 + n, f"2025-{1 + n % 12:02}-{1 + n % 28:02} 09:42:29", "DFA"[n % 3], n % 7, n % 50)
        for n in range(300)
    ]
    path, out = table_of(tmp_path / "crm.csv", [head, *rows]), tmp_path / "s.toml"
    assert main(["init", str(path), "--out", str(out)]) == 1
    err = capsys.readouterr().err
    assert "one row for each customer_id: what people are, not what they did" in err
    assert "next: write a row for each event" in err
    assert parse(tomllib.loads(out.read_text())) == Settings()


def _ratings() -> list[tuple[int, int, int, int]]:
    dice = random.Random(3)
    found = {(dice.randrange(40), dice.randrange(90)) for _ in range(700)}
    rows = [(u, i, dice.randrange(1, 6), 881_250_949 + 60 * dice.randrange(9**6)) for u, i in found]
    return sorted(rows)


@pytest.mark.parametrize(
    ("name", "by", "head"),
    [
        ("u.data", "\t", ()),
        ("ratings.dat", "::", ()),
        ("ratings.csv", ",", ("userId", "movieId", "rating", "timestamp")),
        (
            "ml.inter",
            "\t",
            ("user_id:token", "item_id:token", "rating:float", "timestamp:float"),
        ),
    ],
)
def test_ratings_are_feedback_of_users_however_they_are_written(
    name: str, by: str, head: Sequence[str], tmp_path: Path
) -> None:
    rows: list[Sequence[Any]] = [head] if head else []
    path = table_of(tmp_path / name, [*rows, *_ratings()], by)
    counts, proposal = read(path)
    assert counts == {"clicks": len(_ratings())}
    (source,) = proposal.settings.sources
    columns = source.columns or [one.partition(":")[0] for one in head]
    assert [source.fields["user_id"], source.fields["item_id"]] == list(columns[:2])
    assert source.preset == ("recbole" if name == "ml.inter" else "movielens")


def test_a_flag_without_a_name_says_what_was_clicked(tmp_path: Path) -> None:
    shown = [row for row in log() if row["kind"] == "shown"]
    rows = [
        (f"u{r['who']}", r["at"], f"sku{r['item']}", int(n % 7 == 0)) for n, r in enumerate(shown)
    ]
    counts, _ = read(table_of(tmp_path / "imp.csv", rows))
    assert counts == {"impressions": len(rows), "clicks": -(-len(rows) // 7)}


def test_other_kinds_are_told_from_lists_that_do_not_say_theirs(tmp_path: Path) -> None:
    lists: list[Row] = [
        {"at": SECOND + 9 * n, "client": n % 9, "hits": [f"d{(n + k) % 30}" for k in range(4)]}
        for n in range(60)
    ]
    clicks = [
        {"at": one["at"] + 2, "client": one["client"], "what": what, "object": one["hits"][1]}
        for one in lists[::3]
        for what in ("click", "purchase")
    ]
    counts, proposal = read(lines_of(tmp_path / "a.ndjson", [*lists, *clicks]))
    assert counts == {"impressions": 60, "clicks": 20, "conversions": 20}
    assert '{ lacks = "what" }' in proposal.toml


def test_clicks_without_an_item_join_by_the_id_of_the_impression(tmp_path: Path) -> None:
    shown: list[Row] = [
        {"event": "ad_impression", "bid": f"b{n}", "ad_id": f"ad{n % 7}", "ms": 1000 * (SECOND + n)}
        for n in range(100)
    ]
    clicks = [{"event": "ad_click", "bid": one["bid"], "ms": one["ms"] + 400} for one in shown[::5]]
    path = lines_of(tmp_path / "a.ndjson", sorted([*shown, *clicks], key=lambda row: row["ms"]))
    log = streamer.read(path)
    assert log.proposal is not None
    (source,) = log.proposal.settings.sources
    assert source.fields["impression_id"] == "bid"
    assert source.fields_of("impressions")["item_id"] == "ad_id"
    assert "impression_id: by its values bid" in log.proposal.toml
    assert log.what_was_read.kinds["joined"] == [0, 20]


def _one(name: str, value: Any, kind: str = "shown") -> Callable[[list[Row]], None]:
    def change(rows: list[Row]) -> None:
        next(row for row in rows[40:] if row["event"] == kind)[name] = value

    return change


ODD = {
    **{f"ts {x!r}": _one("time", x) for x in (0, "", "N/A", 915_148_800_000, SECOND, None)},
    **{f"item {x!r}": _one("sku", x) for x in (None, "", ["a"], 1.5, {"id": 1}, True, "x" * 600)},
    **{f"user {x!r}": _one("customer", x) for x in ({"id": 1}, 1.5, False, "x" * 600)},
    **{f"rank {x!r}": _one("rank", x) for x in (0, "top", 99_999, -1, 2.5)},
    **{f"value {x!r}": _one("total", x, "order") for x in (-3, "free", "12,50", "NaN")},
    **{f"kind {x!r}": _one("event", x) for x in ("heartbeat", None, 7)},
    "ts of an order": _one("time", 915_148_800_000, "order"),
}
SHAPES = {
    "flat": dict[str, str](),
    "strange": {"customer": "ifa", "sku": "goods"},
}


def _rows(names: Mapping[str, str], odd: Callable[[list[Row]], None] | None) -> list[Row]:
    own = {"kind": "event", "at": "time", "who": "customer", "request": "query_id", "item": "sku"}
    rows = renamed(("shown", "click", "order"), {**own, "worth": "total"})
    for row in rows:
        row["sku"] = f"s{row['sku']}"
    if odd is not None:
        odd(rows)
    return [{names.get(name, name): value for name, value in row.items()} for row in rows]


def test_one_odd_row_changes_no_mapping(tmp_path: Path) -> None:
    plain = {
        name: proposed(lines_of(tmp_path / f"{name}.ndjson", _rows(names, None)))
        for name, names in SHAPES.items()
    }

    def is_mapped_as_without_it(case: tuple[str, str]) -> None:
        shape, odd = case
        made = proposed(lines_of(tmp_path / f"{shape}.ndjson", _rows(SHAPES[shape], ODD[odd])))
        own, other = made.settings.sources[0], plain[shape].settings.sources[0]
        kinds = ("impressions", "clicks", "conversions")
        assert [own.fields_of(kind) for kind in kinds] == [other.fields_of(kind) for kind in kinds]
        assert own.positions_from == other.positions_from == 1

    cases = [(shape, odd) for shape in SHAPES for odd in ODD]
    hold_for_all(cases[:: sized(3, 1)], is_mapped_as_without_it, at_least=sized(13, 40))


def test_times_far_from_all_others_are_a_doubt(tmp_path: Path) -> None:
    rows = _rows({}, _one("time", 915_148_800_000))
    made = proposed(lines_of(tmp_path / "a.ndjson", rows))
    assert "# ? ts: 1 of " in made.toml
    assert "times are far from all others (1999-01-01)" in made.toml


@pytest.mark.parametrize("is_on_disk", [False, True])
def test_files_in_any_order_are_counted_as_in_that_of_time(
    is_on_disk: bool, tmp_path: Path
) -> None:
    rows = [{**row, "at": row["at"] * 1000} for row in log()]
    grouped = sorted(rows, key=lambda row: (row["who"], row["at"]))
    path = lines_of(tmp_path / "a.ndjson", grouped)
    if is_on_disk:
        settings = proposed(path).settings
        source = SortedLines(
            opened(path, settings), lambda: line_stamper(settings, "a"), held_bytes=2000
        )
        found = [json.loads(line) for lines in source for line in lines]
        assert [row["at"] for row in found] == [row["at"] for row in rows]
        return
    in_order = lines_of(tmp_path / "sorted.ndjson", rows)
    ways: list[Any] = [path, in_order, grouped, rows]
    tables = [streamer.read(way).metrics("ctr") for way in ways]
    assert len({(table["value"][0], table["support"][0]) for table in tables}) == 1


def test_sessions_that_hold_their_events_are_sorted_by_these(tmp_path: Path) -> None:
    by_user: dict[int, list[Row]] = {}
    for row in log():
        what = {"shown": "impression", "clicked": "click", "bought": "purchase"}[row["kind"]]
        by_user.setdefault(row["who"], []).append(
            {"what": what, "at": row["at"], "product": f"p{row['item']}"}
        )
    rows = [{"uid": f"u{who}", "actions": events} for who, events in by_user.items()]
    counts, proposal = read(lines_of(tmp_path / "a.ndjson", rows))
    assert counts["impressions"] == TRUE["shown"]
    assert proposal.settings.sources[0].fields["user_id"] == "uid"


def test_replay_keeps_the_order_where_it_is_told_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = sorted(_rows({}, None), key=lambda row: (row["customer"], row["time"]))
    path, settings = lines_of(tmp_path / "a.ndjson", rows), tmp_path / "s.toml"
    assert main(["init", str(path), "--out", str(settings)]) == 0
    assert "a.ndjson is not in the order of time: it is sorted" in capsys.readouterr().err
    command = ["replay", str(path), "-c", str(settings), "--strict"]
    assert main(command) == 0
    assert main([*command, "--as-is"]) == 1


NO_LOGS: dict[str, list[Sequence[Any]]] = {
    "sums of events": [
        ("ad", "Impressions", "Clicks"),
        *((n % 5, 900 + n, 9 + n) for n in range(40)),
    ],
    "a matrix of 30": [
        ("user", *(f"item_{n}" for n in range(30))),
        *((f"u{n}", *(n * k % 6 for k in range(30))) for n in range(50)),
    ],
    "one row for each userid": [
        ("userid", "age", "retained"),
        *((n + 100, n % 70, n % 3 == 0) for n in range(90)),
    ],
    "one row for each userid without a time": [
        ("userid", "version", "country"),
        *((n + 100, "ab"[n % 2], ("de", "fr", "it")[n % 3]) for n in range(90)),
    ],
    "one row for each id": [
        ("id", "user_id", "group", "opened_mail"),
        *((n + 100, n % 30, ("red", "blue")[n % 2], n % 5 == 0) for n in range(90)),
    ],
}


@pytest.mark.parametrize("what", NO_LOGS)
def test_tables_that_are_no_logs_are_told_as_what_they_are(what: str, tmp_path: Path) -> None:
    with pytest.raises(ProposalError, match=what) as told:
        proposed(table_of(tmp_path / "a.csv", NO_LOGS[what]))
    assert what in told.value.toml


@pytest.mark.parametrize("name", ["cats", "cats" * 17])
def test_one_row_a_person_and_arm_is_an_experiment_of_one_day(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        (n + 100, ("gate_30", "gate_40")[n % 2], n % 7, n % 5 == 0 or n % 4 == 1)
        for n in range(2000)
    ]
    table = [("userid", "version", "rounds", "retained"), *rows]
    path, out = table_of(tmp_path / f"{name}.csv", table), tmp_path / "s.toml"
    assert main(["init", str(path), "--out", str(out)]) == 0
    text = out.read_text()
    assert "# ? ts: there is no time: the rows are an experiment of one day, 2000-01-01" in text
    assert main(["readout", name[:64], "--file", str(path), "-c", str(out), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    arms = made["users"]
    assert arms == {"gate_30": 1000, "gate_40": 1000}
    kept = {v: sum(r[3] for r in rows if r[1] == v) for v in arms}
    assert kept["gate_40"] > 2 * kept["gate_30"]
    assert (made["recommendation"]["action"], made["days"]["days"]) == ("ship", 1)


def test_a_mapped_name_is_a_dimension() -> None:
    fields = {"ts": "t", "item_id": "i", "country": "geo.country", "user_id": "u"}
    source = {"topics": ["a"], "kind": {"fixed": "click"}, "fields": fields}
    settings = parse({"dimensions": [{"name": "level"}], "sources": [source]})
    assert settings.dimension_names == ("level", "country")
    with pytest.raises(SettingsError, match="did you mean 'user_id'"):
        parse({"sources": [{**source, "fields": {**fields, "user_idd": "x"}}]})


def test_numbers_with_a_decimal_comma_are_numbers(tmp_path: Path) -> None:
    names = {"at": "when", "kind": "event"}
    rows = renamed(("shown", "click", "purchase"), names)
    for row in rows:
        if "worth" in row:
            row["total"] = f"{row.pop('worth'):.2f}".replace(".", ",")
    counts, proposal = read(lines_of(tmp_path / "a.ndjson", rows))
    assert proposal.settings.sources[0].decimals == {"total": ","}
    assert counts["conversions"] == TRUE["bought"]
    (source,) = proposal.settings.sources
    decoder = record_decoder(proposal.settings)
    events = [decoder.decode_all(source.topics[0], json.dumps(row).encode()) for row in rows]
    sold = [one["lines"][0][1] for (one,) in events if one["kind"] == "conversions"]
    assert sum(sold) == round(1e6 * WORTH)


@pytest.mark.parametrize(
    ("unit", "number"), [(None, 5000), ("s", 5), ("min", 2), ("h", 1.5), ("d", 3)]
)
def test_times_count_from_a_moment_in_any_unit(unit: str | None, number: float) -> None:
    ts = {"path": "t", "from": "2026-01-01T00:00:00Z", **({"unit": unit} if unit else {})}
    fields = {"ts": ts, "item_id": "i"}
    source = {"topics": ["a"], "kind": {"fixed": "click"}, "fields": fields}
    decoder = record_decoder(parse({"sources": [source]}))
    length = {None: 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}[unit]
    for said in (number, str(number)):
        (event,) = decoder.decode_all("a", json.dumps({"t": said, "i": 1}).encode())
        assert event["event_ms"] == SECOND * 1000 + number * length


def test_a_page_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("<!DOCTYPE HTML>\n<html></html>\n")
    with pytest.raises(SourceError, match="it is a page of HTML"):
        proposed(path)


def test_what_is_missing_is_written_with_its_candidates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("user_id", "item_id", "click"), *((n % 9, n % 13, n % 2) for n in range(60))]
    path, out = table_of(tmp_path / "a.csv", rows), tmp_path / "s.toml"
    assert main(["init", str(path), "--out", str(out)]) == 1
    assert "# ? ts is not read: missing; name one of user_id (9 values in 60)" in out.read_text()
    err = capsys.readouterr().err
    assert f"next: complete {out} where it says missing, then streamer replay {path}" in err


def test_lines_of_bulk_files_that_say_where_documents_go_are_none(tmp_path: Path) -> None:
    documents = renamed(("impression", "click", "purchase"), {"kind": "action", "item": "sku"})
    rows = [one for row in documents for one in ({"index": {"_index": "ev", "_id": "1"}}, row)]
    counts, _ = read(lines_of(tmp_path / "a.ndjson", rows))
    assert sum(counts.values()) == len(documents)


def test_a_star_ignores_all_other_kinds() -> None:
    kind = {"field": "event", "click": ["click"], "ignored": ["*"]}
    fields = {"ts": "t", "item_id": "i"}
    settings = parse({"sources": [{"topics": ["a"], "kind": kind, "fields": fields}]})
    rows = [{"event": what, "t": SECOND * 1000, "i": 1} for what in ("click", "ping", None)]
    counter = streamer.Counter(settings)
    counter.add(rows)
    assert counter.what_was_read.topics["ignored"] == [2]
    assert counter.what_was_read.topics["accepted"] == [1]


def test_strict_allows_no_guess(tmp_path: Path) -> None:
    kinds, names = STRANGE["letters"]
    path = lines_of(tmp_path / "a.ndjson", renamed(kinds, names))
    assert main(["init", str(path), "--out", str(tmp_path / "a.toml")]) == 0
    assert main(["init", str(path), "--strict", "--out", str(tmp_path / "b.toml")]) == 1
    sure = lines_of(tmp_path / "c.ndjson", _rows({}, None))
    assert main(["init", str(sure), "--strict", "--out", str(tmp_path / "c.toml")]) == 0
    for name, file in (("a", path), ("c", sure)):
        command = ["replay", str(file), "-c", str(tmp_path / f"{name}.toml")]
        assert main(command) == 0
        assert main([*command, "--strict"]) == (name == "a")


FUNNEL = {"shown": "pv", "clicked": "fav", "bought": "buy"}


def test_pages_that_people_look_at_are_clicks_where_no_list_is_shown(tmp_path: Path) -> None:
    rows = [
        (row["who"], row["item"], FUNNEL[row["kind"]], row["at"] + n)
        for n, row in enumerate(log())
        if row["kind"] != "clicked"
    ]
    rows += [(who, item, "cart", at + 1) for who, item, _, at in rows[::9]]
    counts, proposal = read(table_of(tmp_path / "UserBehavior.csv", rows))
    assert counts == {"clicks": TRUE["shown"], "conversions": TRUE["bought"]}
    assert "kind: 'pv' is taken for a click" in proposal.toml


def test_records_with_one_of_several_objects_are_told_by_its_name(tmp_path: Path) -> None:
    def own(row: Row) -> Row:
        name = {"shown": "impressionEvent", "clicked": "clickEvent", "bought": "purchaseEvent"}
        inner = {"itemId": str(row["item"]), "requestId": str(row["request"])}
        paid = {"total": {"units": str(int(row["worth"]))}} if "worth" in row else {}
        around = {"eventTime": row["at"] * 1000, "userId": str(row["who"])}
        return {**around, name[row["kind"]]: {**inner, **paid}}

    counts, proposal = read(lines_of(tmp_path / "a.ndjson", list(map(own, log()))))
    assert counts == dict(zip(("impressions", "clicks", "conversions"), TRUE.values(), strict=True))
    (source,) = proposal.settings.sources
    assert source.fields_of("clicks")["request_id"] == "clickEvent.requestId"
    assert '{ has = "clickEvent" }' in proposal.toml
    assert "value: none found: is it in purchaseEvent.total.units?" in proposal.toml


def test_orders_within_shown_items_are_a_doubt(tmp_path: Path) -> None:
    pages = [
        {
            "view": {"id": f"v{n}", "at": 1000 * (SECOND + 60 * n), "visitor": f"u{n % 9}"},
            "tiles": [
                {
                    "productId": f"p{(n + k) % 31}",
                    "clicked": k == n % 4,
                    "order": {"amount": 2.5} if k == n % 4 and n % 5 == 0 else None,
                }
                for k in range(4)
            ],
        }
        for n in range(90)
    ]
    path = tmp_path / "views.json"
    path.write_text(json.dumps(pages, indent=2))
    counts, proposal = read(path)
    assert counts == {"impressions": 90, "clicks": 90}
    assert "tiles[].order is not read: may it be a conversion?" in proposal.toml


def outcomes() -> tuple[list[Row], int, int]:
    """Impressions with the times of what became of them; how many were clicked, and bought."""
    rows = [row for row in log() if row["kind"] == "shown"]
    for n, row in enumerate(rows):
        at = row.pop("at")
        row |= {"shown_at": at * 1000, "clicked_at": "", "purchased_at": "", "price": 2.5 + n % 3}
        row |= {"clicked_at": at * 1000 + 9000} if n % 5 == 0 else {}
        row |= {"purchased_at": at * 1000 + 20_000} if n % 20 == 0 else {}
        del row["kind"]
    return rows, len(rows[::5]), len(rows[::20])


def test_times_of_outcomes_beside_an_impression_are_events(tmp_path: Path) -> None:
    rows, clicked, bought = outcomes()
    table = [list(rows[0]), *(list(row.values()) for row in rows)]
    counts, proposal = read(table_of(tmp_path / "impressions.csv", table))
    assert counts == {"impressions": len(rows), "clicks": clicked, "conversions": bought}
    (source,) = proposal.settings.sources
    assert source.fields_of("clicks")["ts"] == "clicked_at"
    assert source.fields_of("conversions")["value"] == "price"


def test_a_kind_with_a_list_of_what_is_clicked_is_shown(tmp_path: Path) -> None:
    lists = dict[int, Row]()
    rows = list[Row]()
    for row in log():
        if row["kind"] == "shown":
            one = {"type": "widget_render", "ts": row["at"] * 1000, "user": row["who"], "skus": []}
            if row["request"] not in lists:
                rows.append(one)
            lists.setdefault(row["request"], one)["skus"].append(f"s{row['item']}")
        elif row["kind"] == "clicked":
            click = {"type": "widget_click", "ts": row["at"] * 1000, "user": row["who"]}
            rows.append({**click, "sku": f"s{row['item']}"})
    counts, proposal = read(lines_of(tmp_path / "a.ndjson", rows))
    assert counts == {"impressions": 80, "clicks": TRUE["clicked"]}
    (source,) = proposal.settings.sources
    assert source.fields_of("impressions")["item_id"] == "skus[]"
    assert "kind: 'widget_render' is taken for an impression" in proposal.toml


def test_tables_of_excel_are_read_in_their_encoding(tmp_path: Path) -> None:
    kinds = {"shown": "Anzeige", "clicked": "Klick", "bought": "Kauf"}
    head = "Zeitstempel;Kunde;Anfrage;Ereignis;Artikel;Käufergruppe;Umsatz\n"
    lines = [
        f"{at:%d.%m.%Y %H:%M:%S};K{row['who']};A-{row['request']};{kinds[row['kind']]};"
        f"{row['item']:03}.031;Stammkäufer;{str(row.get('worth', '')).replace('.', ',')}\n"
        for row in log()
        for at in [datetime.fromtimestamp(row["at"], UTC)]
    ]
    path = tmp_path / "Empfehlungen.csv"
    path.write_bytes((head + "".join(lines)).encode("cp1252"))
    counts, proposal = read(path)
    assert counts == dict(zip(("impressions", "clicks", "conversions"), TRUE.values(), strict=True))
    (source,) = proposal.settings.sources
    assert source.fields["request_id"] == "Anfrage"
    assert source.fields_of("conversions")["value"] == "Umsatz"


@pytest.mark.parametrize(
    ("day", "clock", "form"),
    [
        ("%d/%m/%Y", "%H:%M:%S", "%d/%m/%Y %H:%M:%S"),
        ("%d.%m.%Y", "%H:%M", "%d.%m.%Y %H:%M"),
        ("%Y-%m-%d", "%H:%M:%S", None),
    ],
)
def test_a_day_and_a_time_may_stand_apart(
    tmp_path: Path, day: str, clock: str, form: str | None
) -> None:
    kinds = {"shown": "mostrado", "clicked": "click", "bought": "compra"}
    head = "Fecha;Hora;Cliente;Petición;Acción;Artículo;Importe\n"
    lines = [
        f"{at:{day}};{at:{clock}};C{row['who']};P-{row['request']};{kinds[row['kind']]};"
        f"{row['item']:03}.031;{str(row.get('worth', '')).replace('.', ',')}\n"
        for row in log(160)
        for at in [datetime.fromtimestamp(row["at"], UTC) + timedelta(days=20)]
    ]
    path = tmp_path / "registro.csv"
    path.write_bytes((head + "".join(lines)).encode("cp1252"))
    _, proposal = read(path)
    (source,) = proposal.settings.sources
    how = {"path": "Fecha", "time": "Hora"} | ({"format": form} if form else {})
    assert source.fields["ts"] == how
    assert not {"Fecha", "Hora"} & {
        text for text in source.fields.values() if isinstance(text, str)
    }
    assert not any(doubt.startswith("ts: ") for doubt in proposal.doubts), proposal.doubts


def test_a_time_of_its_own_is_before_a_day_and_a_time_apart(tmp_path: Path) -> None:
    rows = [
        {**row, "fecha": f"{at:%d/%m/%Y}", "hora": f"{at:%H:%M:%S}"}
        for row in renamed(("shown", "click", "order"), {})
        for at in [datetime.fromtimestamp(row["at"] / 1000, UTC)]
    ]
    _, proposal = read(lines_of(tmp_path / "log.ndjson", rows))
    assert proposal.settings.sources[0].fields["ts"] == "at"


def test_a_broken_row_of_unicode_stays_broken(tmp_path: Path) -> None:
    rows = "".join(f"click,{SECOND}000,ü{n},i{n % 9}\n" for n in range(50))
    path = tmp_path / "a.csv"
    path.write_bytes(("type,ts,user_id,item_id\n" + rows).encode() + b"click,1,\xff,i\n" * 4)
    counter = streamer.read(path)
    assert counter.what_was_read.topics["rejected"] == [0, 0, 0, 0, 4]


def test_times_of_a_logger_have_a_comma(tmp_path: Path) -> None:
    rows = renamed(("shown", "click", "order"), {"kind": "message", "at": "asctime"})
    for row in rows:
        at = datetime.fromtimestamp(row["asctime"] / 1000, UTC)
        row["asctime"] = f"{at:%Y-%m-%d %H:%M:%S},774"
    counts, _ = read(lines_of(tmp_path / "service.log", rows))
    assert sum(counts.values()) == TRUE.total()


def test_ids_are_no_times(tmp_path: Path) -> None:
    rows = renamed(("shown", "click", "order"), {"kind": "event"})
    rows = [
        {"OrderId": 2_000_000_000 + 997 * n, **row, "moment": row["at"]}
        for n, row in enumerate(rows)
    ]
    for row in rows:
        del row["at"]
    _, proposal = read(lines_of(tmp_path / "a.ndjson", rows))
    (source,) = proposal.settings.sources
    assert source.fields["ts"] == "moment"


def test_files_that_are_no_log_are_left_out_beside_one(tmp_path: Path) -> None:
    events = lines_of(tmp_path / "events.ndjson", _rows({}, None))
    items: list[Sequence[Any]] = [["sku", "added", "brand", "tag"]]
    items += [[f"s{n}", f"2025-11-{1 + n % 28:02}", f"b{n % 9}", n % 7] for n in range(60)]
    catalogue = table_of(tmp_path / "items.csv", items)
    counts, proposal = read(events, catalogue)
    assert counts["impressions"] == TRUE["shown"]
    assert proposal.left_out == ("items",)
    assert "# ? topics: left out items" in proposal.toml
    assert "# ? topics: this is one row for each sku, without a moment" in proposal.toml
    out = tmp_path / "a.toml"
    assert main(["init", str(events), str(catalogue), "--out", str(out)]) == 0


def test_clicks_name_the_impression_of_another_file(tmp_path: Path) -> None:
    def at(row: Row, n: int) -> Row:
        return {"LogTime": 1000 * (row["at"] + n), "Tdid": f"t{row['who']}"}

    shown = [row for row in log() if row["kind"] == "shown"]
    impressions = [
        {**at(row, 0), "ImpressionId": f"i{n}", "CreativeId": f"c{row['item']}"}
        for n, row in enumerate(shown)
    ]
    clicks = [
        {**at(row, 7), "ClickId": f"k{n}", "DisplayImpressionId": f"i{n}", "Site": "a"}
        for n, row in enumerate(shown)
        if n % 4 == 0
    ]
    files = (
        lines_of(tmp_path / "impressions.ndjson", impressions),
        lines_of(tmp_path / "clicks.ndjson", clicks),
    )
    counter = streamer.read(list(files))
    assert counter.what_was_read.kinds["joined"] == [0, len(clicks)]
    assert counter.proposal is not None
    by_topic = {source.topics[0]: source.fields for source in counter.proposal.settings.sources}
    assert by_topic["clicks"]["impression_id"] == "DisplayImpressionId"
    assert by_topic["impressions"]["impression_id"] == "ImpressionId"


def test_sentences_say_no_kind(tmp_path: Path) -> None:
    texts = (
        "I would buy it again and again.",
        "She clicked on it three times, too.",
        "Not as I saw it on the page.",
    )
    rows = [
        {
            "rating": 1 + n % 5,
            "text": texts[n % 3],
            "asin": f"a{n % 40}",
            "user_id": f"u{n % 30}",
            "timestamp": 1000 * (SECOND + 60 * n),
        }
        for n in range(300)
    ]
    counts, proposal = read(lines_of(tmp_path / "reviews.ndjson", rows))
    assert counts == {"clicks": 300}
    assert "nothing says for sure" in proposal.toml


def test_columns_of_a_list_are_a_doubt(tmp_path: Path) -> None:
    rows: list[Sequence[Any]] = [
        ["request_id", "user_id", "ts", *(f"item_{n}" for n in range(1, 5))]
    ]
    rows += [
        [f"r{n}", f"u{n % 9}", SECOND + 60 * n, *(f"i{(n + k) % 31}" for k in range(4))]
        for n in range(90)
    ]
    _, proposal = read(table_of(tmp_path / "requests.csv", rows))
    assert "item_2, item_3, item_4 hold such values, too" in proposal.toml


EXPORTS = {
    "a dump of SQL": "--\n-- a database\n--\n\nSET timeout = 0;\nCOPY t (a, b) FROM stdin;\n1\t2\n",
    "Python's literals": "{'user': 'u', 'items': [{'id': 1}]}\n{'user': 'v', 'items': []}\n",
    "JSON behind the keys": 'u1\t{"ts": 1, "item": "i"}\nu2\t{"ts": 2, "item": "i"}\n',
}


@pytest.mark.parametrize("what", EXPORTS)
def test_a_file_that_is_no_log_is_told_as_what_it_is(what: str, tmp_path: Path) -> None:
    path = tmp_path / "export.txt"
    path.write_text(EXPORTS[what])
    with pytest.raises(SourceError, match=f"it is {what}"):
        streamer.read(path)


def _kinds_at(row: Row, names: Sequence[str]) -> str:
    return names[("shown", "click", "order").index(row["kind"])]


LIKE_EVENTS: dict[str, Callable[[Row], Row]] = {
    "a day of an order": lambda row: {"order_date": "2025-12-09"} if row["kind"] == "order" else {},
    "the click before": lambda row: (
        {"previous_click_time": row["at"] - 90_000_000} if row["kind"] == "click" else {}
    ),
    "the last purchase": lambda row: (
        {"last_purchase_at": row["at"] - 9_000_000} if row["item"] % 5 == 0 else {}
    ),
    "tags of what was bought": lambda row: (
        {"categories": ["shoes", "men"]} if row["kind"] == "order" else {}
    ),
    "a time to come": lambda row: (
        {"at": 4_000_000_000_000} if row["item"] == 7 and row["who"] == 3 else {}
    ),
}
"""What looks like an event, or like its time, and is none."""


@pytest.mark.parametrize("name", LIKE_EVENTS)
@pytest.mark.parametrize("words", [("shown", "click", "order"), ("view", "click", "order")])
def test_what_looks_like_an_event_changes_no_mapping(
    name: str, words: tuple[str, str, str], tmp_path: Path
) -> None:
    rows = renamed(("shown", "click", "order"), {})
    rows = [{**row, **LIKE_EVENTS[name](row), "kind": _kinds_at(row, words)} for row in rows]
    proposal = proposed(lines_of(tmp_path / "a.ndjson", rows))
    (source,) = proposal.settings.sources
    assert [source.fields_of(kind)["ts"] for kind in ("impressions", "clicks", "conversions")] == [
        "at"
    ] * 3
    assert source.kind.field == "kind"
    assert words[0] in map(str, source.kind.impression)


def test_times_before_an_impression_are_no_outcome_of_it(tmp_path: Path) -> None:
    rows = [
        {"ts": at, "user_id": f"u{n % 9}", "item_id": f"i{n % 31}"}
        | ({"last_purchase_at": at - 10**9} if n % 3 == 0 else {})
        for n in range(300)
        for at in [1000 * (SECOND + 60 * n)]
    ]
    with pytest.raises(ProposalError, match="nothing says whether these are impressions"):
        read(lines_of(tmp_path / "events.ndjson", rows))
    ranked = [{**row, "position": 1 + n % 5} for n, row in enumerate(rows)]
    counts, _ = read(lines_of(tmp_path / "events.ndjson", ranked))
    assert counts == {"impressions": 300}
    counts, _ = read(lines_of(tmp_path / "clicks.ndjson", rows))
    assert counts == {"clicks": 300}


def test_columns_without_names_are_those_of_their_own_file(tmp_path: Path) -> None:
    shown = [row for row in log(200) if row["kind"] == "shown"]
    impressions = [(f"u{row['who']}", f"i{row['item']}", row["at"]) for row in shown]
    clicks = [(f"i{row['item']}", f"u{row['who']}", row["at"] + 5) for row in shown[::4]]
    files = (
        table_of(tmp_path / "impressions.csv", impressions),
        table_of(tmp_path / "clicks.csv", clicks),
    )
    counts, proposal = read(*files)
    assert counts == {"impressions": len(impressions), "clicks": len(clicks)}
    assert "hold such values" not in proposal.toml


def test_tables_that_only_look_like_no_log_are_read(tmp_path: Path) -> None:
    rows = [["copy", "user_id", "type", "ts", "item_id"]]
    rows += [
        [f"Buy {n % 4}", f"u{n % 9}", "click", f"{SECOND + n}000", f"i{n}"] for n in range(300)
    ]
    path = table_of(tmp_path / "a.tsv", rows, "\t")
    with path.open("ab") as file:
        file.write(b"x\t\x81\xff\tclick\t1767225600000\ti\n" * 3)
    counter = streamer.read(path)
    assert sum(map(int, map(str, counter.what_was_read.kinds["events"]))) == 300
