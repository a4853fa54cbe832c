"""Values of options: types, whose `name` is how --help shows the value, and lists with commas."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pagewise.session.options import PagesToPrepare

    _Type = click.ParamType[float]
    _Prepared = click.ParamType[PagesToPrepare]
else:
    # Generic only in later versions of click.
    _Type = _Prepared = click.ParamType

#: Thirty years: what timers can wait, and records can hold.
LONGEST_SECONDS = 1e9
_NODES_FOLLOW = re.compile(r",\s*(?=[a-z])")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*%")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"(\d+(?:\.\d+)?|\.\d+)([smh])"
_DURATION = re.compile(rf"(?:{_PART})+")


class _Quantity(_Type):
    """A text with a unit; `needed` describes valid texts."""

    needed: str

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float:
        """The value of a text, or a number as it is. Raises BadParameter when the text is not valid."""
        number = self.read(value.strip()) if isinstance(value, str) else float(value)
        if math.isnan(number):
            self.fail(f"{value!r} is not {self.needed}.", parameter, context)
        return number

    def read(self, text: str) -> float:
        """The value of a text, NaN if it is not valid."""
        raise NotImplementedError


class Percent(_Quantity):
    """A percentage as 2%: its share 0.02. 0% and 100% are valid only if `closed`."""

    name = "percent"
    needed = "a percentage between 0% and 100%; write it as 2%"

    def __init__(self, closed: bool = False) -> None:
        self._closed = closed

    def read(self, text: str) -> float:
        """The share of 1."""
        match = _PERCENT.fullmatch(text)
        share = float(match[1]) / 100.0 if match else math.nan
        return share if 0.0 < share < 1.0 or (self._closed and share in (0.0, 1.0)) else math.nan


class Duration(_Quantity):
    """A duration as 90s, 10m, 1h or 1h30m, or as a number of seconds: its seconds."""

    name = "time"

    def __init__(self, least: float = 0.0) -> None:
        self._least = least
        self.needed = f"a duration of at least {least:g}s; write it as 90s, 10m or 1h30m"

    def read(self, text: str) -> float:
        """The seconds."""
        text = text if text[-1:] in _UNITS else f"{text}s"
        seconds = math.nan
        if _DURATION.fullmatch(text):
            seconds = sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text))
        return seconds if self._least <= seconds <= LONGEST_SECONDS else math.nan


class Prepared(_Prepared):
    """The huge pages to prepare, as 2M:512,thp:64k."""

    name = "pages"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> PagesToPrepare:
        """The pages. Raises BadParameter."""
        from pagewise.session.options import PagesToPrepare

        try:
            return value if isinstance(value, PagesToPrepare) else PagesToPrepare.of(value)
        except ValueError as fault:
            self.fail(f"{fault}.", parameter, context)


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


def several(
    context: click.Context, parameter: click.Parameter, texts: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    """The settings, one per option or per combination of values as in a=1/2, each of its parts.

    Raises BadParameter for an empty one.
    """
    settings = [split_commas([text]) for text in texts]
    if not all(settings):
        raise click.BadParameter("a setting is empty.", context, parameter)
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
