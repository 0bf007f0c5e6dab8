"""Questions on the terminal, each with the likely answer first: Enter takes it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.prompt import Confirm, Prompt

from streamer.cli.terminal import shown
from streamer.errors import SettingsError
from streamer.settings.source_rules import validate_zone

_LOCALTIME = Path("/etc/localtime")
_DEFAULT = "UTC"


def can_ask() -> bool:
    """Whether somebody sits before a terminal, who sees questions and can answer them."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class Wizard:
    """Asks on standard error. ``answers``: lines that are read instead of those of the terminal."""

    def __init__(self, console: Console, answers: TextIO | None = None) -> None:
        self._console = console
        self._answers = answers
        self._given: dict[str, int | bool | str] = {}
        """Question → its answer: none is asked twice."""

    def choose(self, question: str, choices: Sequence[str]) -> int:
        """The number of the choice, from 0."""
        if question not in self._given:
            self._console.print(shown(question))
            for number, choice in enumerate(choices, 1):
                self._console.print(shown(f"  {number}  {choice}"), soft_wrap=True)
            numbers = [str(number) for number in range(1, len(choices) + 1)]
            self._given[question] = int(self._ask("Number", "1", numbers)) - 1
        return int(self._given[question])

    def confirm(self, question: str) -> bool:
        """Whether it is so."""
        if question not in self._given:
            said = shown(question)
            try:
                answer = Confirm.ask(
                    said, console=self._console, default=True, stream=self._answers
                )
            except EOFError:
                answer = True
            self._given[question] = answer
        return bool(self._given[question])

    def zone(self, question: str) -> str:
        """The name of a time zone: UTC, or that of the machine, or another."""
        own = machine_zone()
        asked = f'{question}: {_DEFAULT}{f", {own}" if own else ""}, or like "Europe/Berlin"'
        while asked not in self._given:
            name = self._ask(asked, _DEFAULT, None).strip()
            try:
                validate_zone(name, "the terminal")
            except SettingsError:
                self._console.print(shown(f"there is no time zone {name!r}"))
            else:
                self._given[asked] = name
        return str(self._given[asked])

    def _ask(self, question: str, default: str, choices: list[str] | None) -> str:
        try:
            return Prompt.ask(
                shown(question),
                console=self._console,
                default=default,
                choices=choices,
                show_choices=False,
                stream=self._answers,
            )
        except EOFError:
            return default


def machine_zone() -> str | None:
    """The time zone of this machine, where it has a name other than UTC."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if not name:
        _, _, name = str(_LOCALTIME.resolve()).partition("zoneinfo/")
    try:
        validate_zone(name, "the machine")
    except SettingsError:
        return None
    return None if name in ("UTC", "Etc/UTC") else name
