"""Settings of actions: what happens to an experiment, and who is told."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from streamer.errors import SettingsError
from streamer.settings.durations import duration_ms
from streamer.settings.section import Section
from streamer.settings.urls import http_parts

OCCASIONS = ("harm", "guardrail", "loss", "split", "decided", "withdrawn", "no_data")
"""What may happen to an experiment."""
TEMPLATES = ("json", "slack")


class Hook(Section, frozen=True):
    """[[actions]]: a request that `streamer act` sends when something happens to an experiment."""

    url: str
    """Where to: `https://…`, or `http://` within your network. No redirect is followed."""
    on: tuple[str, ...] = ("harm", "guardrail", "loss", "split", "withdrawn")
    """What it is sent for: `harm` (the primary metric is worse), `guardrail` (one is harmed),
    `loss` (more than `max_loss` is lost), `split` (nothing may be believed), `decided` (ship, or no
    effect), `withdrawn` (a decision no longer stands), `no_data` (nobody is exposed any more)."""
    of: tuple[str, ...] = ()
    """Names of experiments, or of owners as `owner:ads`; without any, all experiments."""
    template: str = "json"
    """The body: `json`, `slack`, or a file; see [actions](how-to/act-on-a-verdict.md#templates)."""
    secret_file: str | None = None
    """File with the secret that signs each request; `${secret}` in a header of a template."""
    max_age: str = "10m"
    """While records have waited for longer than this, nothing is sent: what is counted is old."""
    dry_run: bool = False
    """Whether it is only recorded and logged what would be sent."""

    @property
    def max_age_ms(self) -> int:
        return duration_ms(self.max_age, f"max_age of the action to {self.place}")

    @property
    def place(self) -> str:
        """The host, which may be shown: a path of a URL may be a secret."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    def wants(self, kind: str, experiment: str, owner: str) -> bool:
        """Whether it is sent for this."""
        of = {name.strip() for name in owner.split(",")}
        named = {experiment, *(f"owner:{name}" for name in of if name)}
        return kind in self.on and (not self.of or not named.isdisjoint(self.of))


def validate_actions(hooks: tuple[Hook, ...], experiments: tuple[str, ...]) -> None:
    """Raise SettingsError at the first one that cannot be used."""
    for i, hook in enumerate(hooks):
        at = f"at actions[{i}]"
        if http_parts(hook.url) is None:
            raise SettingsError(f"url is none that begins with https:// or http://; {at}")
        if unknown := [kind for kind in hook.on if kind not in OCCASIONS]:
            raise SettingsError(f"on = {unknown[0]!r}: one of {', '.join(OCCASIONS)}; {at}")
        if not hook.on:
            raise SettingsError(f"on is empty: name one of {', '.join(OCCASIONS)}; {at}")
        names = [name for name in hook.of if not name.startswith("owner:")]
        if unknown := [name for name in names if name not in experiments]:
            known = ", ".join(experiments) or "none"
            raise SettingsError(f"of = {unknown[0]!r}: experiments are {known}; {at}")
        if hook.max_age_ms <= 0:
            raise SettingsError(f"max_age = {hook.max_age!r}: above 0; {at}")
    places = [msgspec.structs.astuple(hook) for hook in hooks]
    if len(set(places)) < len(places):
        raise SettingsError("two of [[actions]] are the same: remove one")
