"""What synthetic traffic looks like: sizes, rates and shares."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from streamer.errors import UsageError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SyntheticTraffic:
    """What the traffic looks like. Shares are of the lines concerned, 0 to 1."""

    seed: int = 0
    start_ms: int = 1_700_000_000_000
    """Event time of the first slate, epoch milliseconds."""
    first_id: int = 0
    """Where the numbers in event, request and session ids begin."""
    events_per_second: float = 1000.0
    """Events of all kinds per second of event time, on average."""
    users: int = 10_000
    items: int = 1000
    slate: int = 10
    """Items shown in one request."""
    variants: tuple[tuple[str, float], ...] = (("A", 0.040), ("B", 0.046))
    """(name, true share of impressions that are clicked); a user sees one variant."""
    surfaces: tuple[str, ...] = ("home", "search")
    user_exponent: float = 0.6
    """Of the Zipf law that users follow; 0 is uniform."""
    item_exponent: float = 1.0
    position_decay: float = 0.6
    """Clicks at position p are proportional to p ** -position_decay."""
    items_form_share: float = 0.0
    """Slates that are one event with ``items``."""
    tested_every: int = 0
    """Of the slates with ``items`` each so many-th carries ``reference`` (its items in another
    order) and ``held_out`` (one of them); 0: none."""
    requestless_click_share: float = 0.0
    conversion_share: float = 0.08
    """Clicks that are followed by a conversion."""
    session_share: float = 0.1
    """Slates that come with a session."""
    bounce_share: float = 0.4
    """Sessions of one view."""
    session_views: float = 4.0
    """Views of the other sessions, on average; they follow a geometric law from 2 on."""
    unended_share: float = 0.25
    """Sessions without an ``end``: the gap ends them."""
    pause_share: float = 0.02
    """Views after which the user is away for longer than the gap, and comes back under the same
    session id."""
    dwell_share: float = 0.3
    """Views of an item of the slate whose dwell the session reports."""
    click_dwell_share: float = 0.5
    """Of these, where the slate was clicked, those of the clicked item: the click has it, too."""
    out_of_order_share: float = 0.0
    """Events that reach the log up to ``out_of_order_ms`` after their time."""
    out_of_order_ms: int = 60_000
    late_share: float = 0.0
    """Events dated 61 to 120 minutes before their place in the log."""
    duplicate_share: float = 0.0
    """Events that come a second time, seconds later."""
    broken_share: float = 0.0
    """Lines that are no events, in addition to the events."""

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name.endswith("_share") and not 0 <= value <= 1:
                raise UsageError(f"{f.name} = {value}: must be 0 to 1; in the traffic")
        if not 1 <= self.slate <= self.items / 2:
            raise UsageError(f"slate = {self.slate}: must be 1 to items / 2 = {self.items / 2:g}")
        if self.events_per_second <= 0 or self.users < 1 or not self.variants:
            raise UsageError("traffic needs a positive rate, a user and a variant")
        if self.session_views < 2:
            raise UsageError(f"session_views = {self.session_views}: must be 2 or more")
        for name, rate in self.variants:
            if not 0 <= rate * self.position_weights().max() <= 1:
                raise UsageError(f"variant {name}: rate {rate} is too high at the first position")

    def position_weights(self) -> Floats:
        """Click rate at each position over the overall one; their mean is 1."""
        weights = np.arange(1, self.slate + 1) ** -self.position_decay
        return np.asarray(weights / weights.mean(), np.float64)

    def events_per_session(self) -> float:
        """A start, views, their dwells, and perhaps an end."""
        views = self.bounce_share + (1 - self.bounce_share) * self.session_views
        return 1 + views * (1 + self.dwell_share) + (1 - self.unended_share)

    def slates_per_second(self) -> float:
        """How many slates make ``events_per_second``."""
        rate = sum(r for _, r in self.variants) / len(self.variants)
        impressions = self.items_form_share + (1 - self.items_form_share) * self.slate
        clicks = self.slate * rate * (1 + self.conversion_share)
        events = impressions + clicks + self.session_share * self.events_per_session()
        return self.events_per_second / (events * (1 + self.duplicate_share))
