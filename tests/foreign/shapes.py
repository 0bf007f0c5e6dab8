"""All shapes by name, each made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from tests.foreign import datasets, envelopes, home_made, marketing, products, snowplow, tables
from tests.foreign.world import Shape

__all__ = ["SHAPES", "Shape"]

_MAKERS: tuple[Callable[[], Shape], ...] = (
    products.segment,
    products.rudderstack,
    products.ga4,
    products.ga4_not_set,
    snowplow.snowplow_json,
    snowplow.snowplow_tsv,
    products.amplitude,
    products.amplitude_device_event_id,
    products.mixpanel,
    products.posthog_webhook,
    products.posthog_batch,
    marketing.adobe_xdm,
    marketing.braze_http,
    marketing.braze_storage,
    products.heap,
    marketing.matomo,
    envelopes.cloudevents,
    envelopes.debezium_schema,
    envelopes.debezium,
    envelopes.otel_log,
    envelopes.otlp_json,
    envelopes.connect_envelope,
    envelopes.batches,
    envelopes.arrays,
    datasets.criteo,
    datasets.mind,
    datasets.ebnerd,
    datasets.retailrocket,
    datasets.yoochoose,
    datasets.trivago,
    datasets.outbrain,
    datasets.open_bandit,
    tables.clicked_flag,
    tables.slate_flags,
    tables.slate_clicked_ids,
    tables.csv_plain,
    tables.csv_seconds_gz,
    tables.csv_microseconds,
    tables.csv_bom_crlf,
    tables.csv_offset,
    tables.csv_float_ids,
    tables.csv_local_time,
    tables.csv_postgres,
    tables.csv_semicolon,
    tables.csv_pipe,
    tables.csv_tab,
    tables.csv_utf16,
    tables.parquet_decimal,
    tables.parquet_float_ids,
    home_made.recs_by_order,
    home_made.ndjson_bom_crlf_gz,
    home_made.shelves_of_items,
    home_made.shelves_of_lists,
    home_made.pretty_array,
)


class _Shapes(Mapping[str, Shape]):
    """Shapes by the name of the function that makes them."""

    def __init__(self, makers: tuple[Callable[[], Shape], ...]) -> None:
        self._makers = {maker.__name__: cache(maker) for maker in makers}

    def __getitem__(self, name: str) -> Shape:
        return self._makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


SHAPES: Mapping[str, Shape] = _Shapes(_MAKERS)
