"""What sums mean, where their names do not say it: sums of another meaning are not continued."""

from __future__ import annotations

import hashlib

from streamer.settings.model import Settings

_SLATES = ("ranking.", "scoring.", "slates")
_MARGIN = "margin_loss"


def of_slates(settings: Settings) -> str:
    """What makes items of slates relevant, and how much."""
    gains = {kind: gain for kind, gain in settings.metrics.feedback.items() if gain > 0}
    return repr(sorted(gains.items()))


def of_policy(settings: Settings, name: str) -> str:
    """What weights of a policy are made of."""
    policies = {p.name: (p.propensity, p.positions, p.estimate) for p in settings.policies}
    return repr((policies[name], settings.metrics.max_weight))


def of_custom(settings: Settings, name: str) -> str:
    """What a custom metric adds up."""
    each = next(custom for custom in settings.custom if custom.name == name)
    return repr((each.kind, each.field, sorted(each.where.items())))


def meaning(settings: Settings, name: str) -> str:
    """Of a sum: a statistic (or a part of one) or a component; "" where its name says all."""
    whole = name.partition("/")[0]
    if name.startswith("off_policy."):
        return of_policy(settings, whole.partition("@")[2])
    if name.startswith("custom."):
        return of_custom(settings, whole.partition("@")[2])
    if name.startswith(_SLATES):
        margin = settings.metrics.margin if _MARGIN in name else None
        return repr((of_slates(settings), margin))
    return ""


def key_of(settings: Settings, name: str) -> str:
    """A sum's name with what it means, as stored.

    >>> key_of(Settings(), "clicked"), key_of(Settings(), "ranking.engaged")
    ('clicked', 'ranking.engaged#cfb2037f')
    """
    found = meaning(settings, name)
    if not found:
        return name
    return f"{name}#{hashlib.blake2b(found.encode(), digest_size=4).hexdigest()}"
