"""Settings of policies: what else could have been shown, whose click-through rate is estimated."""

from __future__ import annotations

from streamer.settings.section import Section


class Policy(Section, frozen=True):
    """[[policies]]: a policy whose click-through rate is estimated from what another one showed."""

    name: str
    """Value of the label `policy`."""
    propensity: str | None = None
    """Field of shown items with this policy's probability of showing the item there, 0 to 1."""
    positions: tuple[float, ...] = ()
    """Instead of a field: its probabilities by position from 1; beyond them they are 0."""
    estimate: str | None = None
    """Field of shown items with the clicks expected where this policy chooses, 0 to 1. Without it
    there is no `doubly_robust_ratio`, which also needs `reward_estimate` of the shown item."""

    @property
    def fields(self) -> dict[str, str]:
        """Its fields → the reason for which a wrong value is refused."""
        named = {"propensity": self.propensity, "reward_estimate": self.estimate}
        return {field: reason for reason, field in named.items() if field is not None}
