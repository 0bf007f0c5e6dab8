"""What others call our fields."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Mapping, Sequence

VARIANT = "variant"
EXPERIMENTS = frozenset(
    {
        *("experiment", "experiments", "exp", "ab", "abtest", "abtests", "test", "tests"),
        *("feature", "features", "flag", "flags"),
    }
)
"""Words in names around the arm of an experiment."""
OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    field: tuple(text.split())
    for field, text in {
        "type": (
            "event event_type event_name kind name action interaction verb ereignis vorgang aktion "
            "accion evento evenement azione"
        ),
        "ts": (
            "time timestamp event_time event_timestamp event_ts datetime date occurred_at "
            "happened_at created_at logged_at at derived_tstamp time_stamp unix_review_time "
            "query_time date_time hour day original_timestamp client_time server_time sent_at "
            "received_at zeitpunkt zeitstempel zeit datum fecha fecha_hora horodatage data_ora "
            "data_hora"
        ),
        "user_id": (
            "user uid visitor_id visitor customer_id customer member_id member who_id actor_id "
            "viewer_id shopper_id subscriber_id person_id profile_id client_id account_id "
            "user_pseudo_id distinct_id anonymous_id cookie_id device_id domain_userid user_token "
            "reviewer_id cookie ifa idfa gaid email profile_email anon_id unit_id kunde kunden_id "
            "kundennummer nutzer nutzer_id benutzer besucher_id cliente cliente_id id_cliente "
            "usuario usuario_id id_usuario visiteur id_visiteur utilisateur id_utilisateur "
            "id_client utente"
        ),
        "item_id": (
            "item sku product_id product content_id article_id ad_id video_id movie_id track_id "
            "song_id doc_id document_id listing_id offer_id creative_id post_id news_id book_id "
            "job_id asin result_id card_id entity_id object_id aid business_id isbn hotel_id "
            "goods_id prop_id adgroup_id creative movie book song track crid banner_id artikel "
            "artikelnr artikelnummer artikel_id produkt produkt_id articulo producto producto_id "
            "id_producto produto id_produto produit id_produit id_contenu id_article prodotto "
            "id_prodotto"
        ),
        "items": (
            "products recommendations recs results slate list candidates shown item_ids "
            "product_ids result_ids content_ids line_items lines cards entries docs ads treffer "
            "ergebnisse artikelliste resultados productos resultats"
        ),
        "request_id": (
            "request query_id recommendation_id rec_id slate_id impression_id search_id "
            "response_id list_id page_view_id pageview_id trace_id"
        ),
        "impression_id": "impression_id impression imp_id impid bid_id bidid",
        "event_id": "message_id event_uuid uuid insert_id record_id id",
        "session_id": "session visit_id visit sid ga_session_id",
        "position": "rank slot index pos place rang platz posicion posizione posicao",
        "score": "relevance relevancy prediction predicted_score model_score pctr",
        "propensity": (
            "propensity_score pscore action_prob action_probability logging_prob probability"
        ),
        "value": (
            "revenue order_total order_value order_amount total_price total price amount "
            "unit_price betrag gesamtbetrag umsatz importe montant montant_ttc importo"
        ),
        "dwell_ms": "dwell dwell_time_ms dwell_time time_spent_ms duration_ms",
        "feedback": "feedback_type reaction",
        "variant": (
            "arm treatment bucket experiment_group policy variation test_group ab_group ab_variant "
            "experiment_variant experiment_arm cohort ranker algorithm model model_version"
        ),
    }.items()
}
"""Our field → what others call it, the most likely first."""
ARM_NAMES: Mapping[str, tuple[str, ...]] = {
    field: tuple(text.split())
    for field, text in {
        "experiment": (
            "experiment_key experiment_id experiment_name flag_key feature_flag flag feature_name "
            "test_name test_id"
        ),
        "arm": (
            "variation_key variation_id variation_name variation variant_key variant_id "
            "variant_name variant treatment bucket group_name group"
        ),
    }.items()
}
"""Fields of exposures → what others call them, the most likely first."""
PRICES = ("price", "unitprice", "preis", "einzelpreis", "precio", "prix", "prezzo", "preco")
"""Plain names of what one piece costs."""
PIECES = ("quantity", "qty", "count", "units", "pieces", "menge", "anzahl", "unidades", "quantite")
"""What others call the number of pieces on a line of an order."""
RATINGS = ("rating", "ratings", "stars", "star", "overall", "book_rating", "score")
"""What others call how much somebody likes an item."""
CLICK_COLUMNS = (
    *("click", "clicked", "is_click", "is_clicked", "has_click", "clk", "click_bool"),
    *("was_clicked", "label", "target"),
)
"""What others call a column that says whether an impression was clicked."""
LIKENESS = 0.85
_VAGUE = {
    "id",
    "ids",
    "name",
    "event",
    "key",
    "at",
    "date",
    "list",
    "item",
    "user",
    "group",
    "model",
}
"""Ends of names that say nothing."""
_CONTAINERS = {"data", "attributes", "properties", "payload", "node"}
"""Names of objects that say nothing of what is in them."""
_COLUMN = "column_"
_UUID = re.compile("(.)(?:uuid|guid|urn)$")
"""Ends of names of ids: ``visitor_uuid`` is a ``visitor_id``."""


def plain(name: str) -> str:
    """A name without case, accents and punctuation: ``userId`` and ``User-ID`` are alike."""
    return "".join(c for c in _without_accents(name).casefold() if c.isalnum())


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def is_item(name: str) -> bool:
    """Whether an object is called like an item.

    >>> is_item("clickedProduct"), is_item("recs"), is_item("who"), is_item("page")
    (True, True, False, False)
    """
    return any({word, word.removesuffix("s")} & _ITEM_WORDS for word in words(name)[-1:])


def alike(field: str, names: Sequence[str]) -> str | None:
    """The name that most likely means the given field."""
    by_plain = {plain(name): name for name in reversed(names)}
    others = (field, *OTHER_NAMES.get(field, ()))
    for other in others:
        if plain(other) in by_plain:
            return by_plain[plain(other)]
    for other in others:
        if close := difflib.get_close_matches(plain(other), by_plain, 1, cutoff=LIKENESS):
            return by_plain[close[0]]
    return None


def unnamed_columns(count: int) -> tuple[str, ...]:
    """What columns without names are called."""
    return tuple(f"{_COLUMN}{number}" for number in range(1, count + 1))


def is_unnamed(path: Sequence[object]) -> bool:
    """Whether a path is that of a column without a name.

    >>> is_unnamed(("column_2",)), is_unnamed(("rank",))
    (True, False)
    """
    return len(path) == 1 and str(path[0]).startswith(_COLUMN)


def rank(names: Sequence[str], wanted: Sequence[str]) -> int | None:
    """How likely the names along a path mean what is also called ``wanted``: 0 is the best, None
    not at all. The last name counts, alone or with the one before: ``user.id`` is a ``user_id``.

    >>> rank(["context", "user", "id"], ["user_id", "uid"]), rank(["sku"], ["user_id"])
    (0, None)
    """
    last = plain(names[-1]) if names else ""
    both = plain("".join([name for name in names if plain(name) not in _CONTAINERS][-2:]))
    plain_wanted = [plain(name) for name in wanted]
    as_ids = [_UUID.sub(r"\1id", name) for name in (last, both)]
    ranks = [plain_wanted.index(name) for name in (last, both, *as_ids) if name in plain_wanted]
    return min(ranks, default=None)


_KNOWN = frozenset(name for names in OTHER_NAMES.values() for name in names)


def rank_of_end(names: Sequence[str], wanted: Sequence[str]) -> int | None:
    """As ``rank``, behind all that it knows, for the last words of a longer name, unless the whole
    name is what others call a field.

    >>> rank_of_end(["items_item_id"], ["item_id"]), rank_of_end(["page_name"], ["name"])
    (100, None)
    >>> rank_of_end(["propensity_score"], ["score"])
    """
    own = words(names[-1]) if names else []
    for start in range(1, 0 if "_".join(own) in _KNOWN else len(own)):
        end = "".join(own[start:])
        if end not in _VAGUE and (place := rank([end], wanted)) is not None:
            return 100 + place
    return None


def words(text: str) -> list[str]:
    """The words of a name, in lower case.

    >>> words("Product Clicked"), words("recsShown_v2"), words("shop.order-completed")
    (['product', 'clicked'], ['recs', 'shown', 'v', '2'], ['shop', 'order', 'completed'])
    >>> words("Posición")
    ['posicion']
    """
    found = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", _without_accents(text))
    return [word.lower() for word in found]


_ITEM_WORDS = {"rec", "recommendation"} | {
    words(name)[0] for name in ("item", *OTHER_NAMES["item_id"])
}
