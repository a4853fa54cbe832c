"""Values of options with commas, or of repeated options: what click calls with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

import click

_NODES_FOLLOW = re.compile(r",\s*(?=[a-z])")


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


def joined(
    context: click.Context, parameter: click.Parameter, several: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """The numbers of all lists, each once."""
    return tuple(dict.fromkeys(number for numbers in several for number in numbers))


def split_nodes(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> tuple[str, ...]:
    """The values of --bind; their lists of NUMA nodes contain commas too."""
    return tuple(part.strip() for text in texts for part in _NODES_FOLLOW.split(text))
