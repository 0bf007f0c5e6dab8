"""Bodies of /metrics: both formats are valid, compressed or not, and nothing is made twice."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as classic

from streamer.query.readings import ReadingSet, SeriesBlock
from streamer.server import prometheus_text
from streamer.server.scrape import OPENMETRICS, TEXT, Bodies, Form, form_of
from streamer.settings.model import Settings
from streamer.sources.replay import Replay
from streamer.sources.synthetic import SyntheticTraffic, generate
from tests.oracle.timeline import H, Log

FORMS = [Form(a, b) for a in (False, True) for b in (False, True)]
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "encoding", "form"),
    [
        ("", "", Form(False, False)),
        ("*/*", "gzip, deflate, br", Form(False, True)),
        (PROMETHEUS, "gzip", Form(True, True)),
        ("text/plain;q=0.5,application/openmetrics-text;q=0.2", "", Form(False, False)),
        ("application/openmetrics-text", "identity", Form(True, False)),
        ("application/openmetrics-text;q=0", "gzip;q=0", Form(False, False)),
        ("application/openmetrics-text;q=x", "gzip;q=0, *", Form(False, False)),
        ("Application/OpenMetrics-Text", "*;q=0.1", Form(True, True)),
    ],
)
def test_what_is_asked_for(accept: str, encoding: str, form: Form) -> None:
    assert form_of(accept, encoding) == form


def test_headers_say_what_it_is() -> None:
    assert Form(True, True).headers["Content-Type"] == OPENMETRICS
    assert Form(False, False).headers["Content-Type"] == TEXT
    assert Form(False, True).headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in Form(True, False).headers
    assert all(form.headers["Vary"] == "Accept, Accept-Encoding" for form in FORMS)


@pytest.fixture(scope="module")
def result() -> ReadingSet:
    """A readout with all kinds of series, histograms among them."""
    replay = Replay(Settings())
    found = [(kind, 1_700_000_600_000, line) for kind, line in generate(SyntheticTraffic(), 5_000)]
    later = Log().click(0, dwell_ms=2000).visited(0).shown(9 * H).click(9 * H).visited(9 * H)
    replay.feed(found + [(r.topic, r.record_ms, r.raw or b"") for r in later.records])
    replay.finish()
    return replay.readout()


def decoded(form: Form, body: bytes) -> str:
    return (gzip.decompress(body) if form.is_gzip else body).decode()


def samples(families: Iterable[Any]) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (s.name, frozenset(s.labels.items())): s.value
        for family in families
        for s in family.samples
    }


@pytest.mark.parametrize("form", FORMS)
async def test_each_form_says_the_readings(form: Form, result: ReadingSet) -> None:
    tail = b"# HELP a A.\n# TYPE a gauge\na 1.0\n" + b"# EOF\n" * form.is_openmetrics
    text = decoded(form, b"".join(await Bodies().body(result, form, tail)))
    found = samples((openmetrics if form.is_openmetrics else classic)(text))
    assert found.pop(("a", frozenset())) == 1.0
    assert found == {(r.name, frozenset(r.labels.items())): r.value for r in result.readings}
    assert any(name == "streamer_dwell_seconds_bucket" for name, _ in found)


async def test_a_readout_is_written_once_for_each_form(
    result: ReadingSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bool] = []
    render = prometheus_text.render

    def counted(of: Sequence[SeriesBlock], is_openmetrics: bool = False) -> str:
        written.append(is_openmetrics)
        return render(of, is_openmetrics)

    monkeypatch.setattr(prometheus_text, "render", counted)
    bodies = Bodies()
    for tail in (b"", b"# first\n", b"# second\n"):
        for form in FORMS:
            body = b"".join(await bodies.body(result, form, tail))
            assert decoded(form, body).endswith(tail.decode())
    assert sorted(written) == [False, True]
    await bodies.body(ReadingSet(result.stream_ms, result.blocks), FORMS[0], b"")
    assert len(written) == 3
