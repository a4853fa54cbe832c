"""Formulas over event counts: + - * / ( ), names and numbers, each with its unit. Pure functions."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

SECONDS = "seconds"
# A unit's scale in base units, and the powers of these. Counts have none: a miss is a number.
_UNITS: dict[str, tuple[Fraction, dict[str, int]]] = {
    "1": (Fraction(1), {}),
    "count": (Fraction(1), {}),
    "cycle": (Fraction(1), {"cycle": 1}),
    "instruction": (Fraction(1), {"instruction": 1}),
    "byte": (Fraction(1), {"byte": 1}),
    "B": (Fraction(1), {"byte": 1}),
    "GB": (Fraction(10**9), {"byte": 1}),
    "s": (Fraction(1), {"second": 1}),
    "ns": (Fraction(1, 10**9), {"second": 1}),
    "J": (Fraction(1), {"joule": 1}),
    "nJ": (Fraction(1, 10**9), {"joule": 1}),
    "W": (Fraction(1), {"joule": 1, "second": -1}),
}
_OPERATIONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_ALLOWED = (ast.BinOp, ast.UnaryOp, ast.USub, ast.Name, ast.Load, *_OPERATIONS)


@dataclass(frozen=True)
class Unit:
    """A unit: `scale` base units, with the powers of cycle, instruction, byte, second and joule
    that are not 0."""

    scale: Fraction
    powers: Mapping[str, int]

    @classmethod
    def of(cls, text: str) -> Unit:
        """Parses `GB/s`, `1/instruction`, `cycles`. Raises ValueError."""
        unit = NUMBER
        for sign, name in re.findall(r"(^|[*/])([^*/]*)", text.replace(" ", "")):
            scale, powers = _UNITS.get(name) or _UNITS.get(name.removesuffix("s")) or (None, {})
            if scale is None:
                raise ValueError(f"{name!r} in {text!r} is not one of the units {', '.join(_UNITS)}")
            factor = cls(scale, powers)
            unit = unit / factor if sign == "/" else unit * factor
        return unit

    def __mul__(self, other: Unit) -> Unit:
        return self._combine(other, 1)

    def __truediv__(self, other: Unit) -> Unit:
        return self._combine(other, -1)

    def __add__(self, other: Unit) -> Unit:
        if self.powers != other.powers:
            raise ValueError("it adds or subtracts different units")
        return self

    __sub__ = __add__

    def __neg__(self) -> Unit:
        return self

    def _combine(self, other: Unit, sign: int) -> Unit:
        names = sorted({*self.powers, *other.powers})
        powers = {name: self.powers.get(name, 0) + sign * other.powers.get(name, 0) for name in names}
        return Unit(self.scale * other.scale**sign, {name: power for name, power in powers.items() if power})


NUMBER = Unit(Fraction(1), {})


@dataclass(frozen=True)
class Formula:
    """A formula that was checked: it has nothing but + - * / ( ), names and numbers."""

    text: str

    @classmethod
    @cache
    def of(cls, text: str) -> Formula:
        """Parses a formula. Raises ValueError for anything else."""
        formula = cls(text)
        for node in ast.walk(formula._tree):
            is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
            if not is_number and not isinstance(node, _ALLOWED):
                raise ValueError(f"{text!r} has more than + - * / ( ), names and numbers")
        return formula

    @cached_property
    def _tree(self) -> ast.expr:
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError) as fault:
            raise ValueError(f"{self.text!r} is not a formula") from fault

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names in it, in order."""
        names = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        return tuple(sorted(names, key=self.text.index))

    def unit(self, units: Mapping[str, Unit]) -> Unit:
        """The unit of its value if its names have these units. Raises ValueError if units do not fit."""
        try:
            powers = {name: Unit(Fraction(1), unit.powers) for name, unit in units.items()}
            unit: Unit = _evaluate(self._tree, powers, lambda _: NUMBER)
        except KeyError as fault:
            raise ValueError(f"{self.text!r}: {fault.args[0]} is not defined") from fault
        except ValueError as fault:
            raise ValueError(f"{self.text!r}: {fault}") from fault
        return unit

    def value(self, values: Mapping[str, float]) -> float | None:
        """The value, None if a name has none or something is divided by zero."""
        try:
            value: float = _evaluate(self._tree, values, float)
        except (KeyError, ZeroDivisionError, OverflowError):
            return None
        return value


def _evaluate(node: ast.expr, names: Mapping[str, object], constant: Callable[[Any], Any]) -> Any:
    """The value of a formula, from those of its names: numbers or units."""
    match node:
        case ast.Name(name):
            return names[name]
        case ast.BinOp(left, kind, right):
            operands = (_evaluate(part, names, constant) for part in (left, right))
            return _OPERATIONS[type(kind)](*operands)
        case ast.UnaryOp(_, inner):
            return -_evaluate(inner, names, constant)
        case ast.Constant(number):
            return constant(number)
    raise AssertionError(node)
