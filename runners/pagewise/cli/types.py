"""Values of options: types, whose `name` is how --help shows the value, and lists with commas."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pagewise.session.options import PagesToPrepare

    _Type = click.ParamType[Any]
else:
    # Generic only in later versions of click.
    _Type = click.ParamType

#: Thirty years: what timers can wait, and records can hold.
LONGEST_SECONDS = 1e9
_NODES_FOLLOW = re.compile(r",\s*(?=[a-z])")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*%")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"(\d+(?:\.\d+)?|\.\d+)([smh])"
_DURATION = re.compile(rf"(?:{_PART})+")


class _Parsed(_Type):
    """A text that `parse` reads, which raises ValueError; another value as it is."""

    parse: Callable[[str], Any]

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """The value. Raises BadParameter when the text is not valid."""
        try:
            return self.parse(value.strip()) if isinstance(value, str) else value
        except ValueError as fault:
            self.fail(f"{fault}.", parameter, context)


class Percent(_Parsed):
    """A percentage as 2%: its share 0.02. 0% and 100% are valid only if `closed`."""

    name = "percent"

    def __init__(self, closed: bool = False) -> None:
        self._closed = closed

    def parse(self, text: str) -> float:
        """The share of 1. Raises ValueError."""
        match = _PERCENT.fullmatch(text)
        share = float(match[1]) / 100.0 if match else math.nan
        if 0.0 < share < 1.0 or (self._closed and share in (0.0, 1.0)):
            return share
        raise ValueError(f"{text!r} is not a percentage between 0% and 100%; write it as 2%")


class Duration(_Parsed):
    """A duration as 90s, 10m, 1h or 1h30m, or as a number of seconds: its seconds."""

    name = "time"

    def __init__(self, least: float = 0.0) -> None:
        self._least = least

    def parse(self, text: str) -> float:
        """The seconds. Raises ValueError."""
        with_unit = text if text[-1:] in _UNITS else f"{text}s"
        seconds = math.nan
        if _DURATION.fullmatch(with_unit):
            seconds = sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, with_unit))
        if self._least <= seconds <= LONGEST_SECONDS:
            return seconds
        raise ValueError(
            f"{text!r} is not a duration of at least {self._least:g}s; write it as 90s, 10m or 1h30m"
        )


class Prepared(_Parsed):
    """The huge pages to prepare, as 2M:512,thp:64k."""

    name = "pages"

    def parse(self, text: str) -> PagesToPrepare:
        """The pages. Raises ValueError."""
        from pagewise.session.options import PagesToPrepare

        return PagesToPrepare.of(text)


class Number(click.IntRange):
    """A whole number in a range."""

    name = "n"


class Folder(click.Path):
    """The path of a folder; `exists`: of one that exists, as an absolute path if `resolved`."""

    def __init__(self, exists: bool = False, resolved: bool = False) -> None:
        super().__init__(exists=exists, file_okay=not exists, resolve_path=resolved, path_type=Path)
        self.name = "dir"


def split_commas(texts: Sequence[str]) -> tuple[str, ...]:
    """The parts of texts with commas."""
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def split(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> tuple[str, ...]:
    """The parts of all texts."""
    return split_commas(texts)


def several(texts: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The settings, one per option or per combination of values as in a=1/2, each of its parts.

    Raises BadParameter for an empty one.
    """
    settings = [split_commas([text]) for text in texts]
    if not all(settings):
        raise click.BadParameter("a setting is empty.")
    return tuple(setting for parts in settings for setting in product(*map(_choices, parts)))


def _choices(part: str) -> list[str]:
    """A part of a setting with each of its values: a=1/2 is a=1 or a=2."""
    name, equals, values_given = part.partition("=")
    return [f"{name}{equals}{value}" for value in values_given.split("/")]


def whole_numbers(
    context: click.Context, parameter: click.Parameter, texts: Sequence[str]
) -> tuple[int, ...]:
    """The numbers of all lists, from 1 to 4096, each once. Raises BadParameter."""
    number: Any = Number(1, 4096)
    return tuple(dict.fromkeys(number.convert(text, parameter, context) for text in split_commas(texts)))


def split_nodes(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> tuple[str, ...]:
    """The values of --bind; their lists of NUMA nodes contain commas too."""
    return tuple(part.strip() for text in texts for part in _NODES_FOLLOW.split(text))
