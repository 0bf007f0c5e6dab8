"""Rules of ``[[policies]]`` that types cannot say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from streamer.errors import SettingsError
from streamer.settings import limits

if TYPE_CHECKING:
    from streamer.settings.model import Settings
    from streamer.settings.policies import Policy

_FIELD = re.compile(r"^[a-z_][a-z0-9_]{0,62}$")


def validate_policies(s: Settings) -> None:
    """SettingsError where a policy cannot be."""
    most = limits.MAX_WEIGHT
    if not 1 <= s.metrics.max_weight <= most:
        raise SettingsError(f"metrics.max_weight = {s.metrics.max_weight}: 1 to {most:g}")
    if "off_policy" in s.metrics.families and not s.policies:
        raise SettingsError("metrics.families: 'off_policy' needs [[policies]], and there are none")
    if len(s.policies) > limits.MAX_POLICIES:
        raise SettingsError(f"{len(s.policies)} policies; at most {limits.MAX_POLICIES}")
    names = [policy.name for policy in s.policies]
    for i, policy in enumerate(s.policies):
        at = f"at policies[{i}]"
        if re.match(limits.LABEL_PATTERN, policy.name) is None or names.count(policy.name) > 1:
            raise SettingsError(
                f"name = {policy.name!r}: 1 to 64 of A-Za-z0-9_.:-, and no other's name; {at}"
            )
        if (policy.propensity is None) == (not policy.positions):
            raise SettingsError(f"one of propensity and positions says what it would show; {at}")
        _validate_positions(policy, at)
        _validate_policy_fields(policy, s, at)


def _validate_positions(policy: Policy, at: str) -> None:
    most = limits.MAX_POLICY_POSITIONS
    are_right = all(0 <= share <= 1 for share in policy.positions)
    if len(policy.positions) > most or not are_right:
        raise SettingsError(
            f"positions = {list(policy.positions)[:10]}: at most {most} numbers from 0 to 1; {at}"
        )


def _validate_policy_fields(policy: Policy, s: Settings, at: str) -> None:
    fields = [f for p in s.policies for f in (p.propensity, p.estimate) if f is not None]
    for key, field in (("propensity", policy.propensity), ("estimate", policy.estimate)):
        if field is None:
            continue
        if _FIELD.match(field) is None:
            raise SettingsError(f"{key} = {field!r}: a field, of a-z, 0-9 and _; {at}")
        if fields.count(field) > 1:
            raise SettingsError(
                f"{key} = {field!r} stands twice: each has a field of its own; {at}"
            )
