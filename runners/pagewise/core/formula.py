"""Formulas over event counts: + - * / ( ), names and numbers, each with its unit. Pure functions."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

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
}
_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True)
class Unit:
    """A unit: `scale` base units, with the powers of cycle, instruction, byte and second that are not 0."""

    scale: Fraction
    powers: Mapping[str, int]

    @classmethod
    def of(cls, text: str) -> Unit:
        """Reads `GB/s`, `1/instruction`, `cycles`. Raises ValueError."""
        found = NUMBER
        for sign, name in re.findall(r"(^|[*/])([^*/]*)", text.replace(" ", "")):
            scale, powers = _UNITS.get(name) or _UNITS.get(name.removesuffix("s")) or (None, {})
            if scale is None:
                raise ValueError(f"{name!r} in {text!r} is no unit known here: {', '.join(_UNITS)}")
            factor = cls(scale, powers)
            found = found / factor if sign == "/" else found * factor
        return found

    def __mul__(self, other: Unit) -> Unit:
        return self._combined(other, 1)

    def __truediv__(self, other: Unit) -> Unit:
        return self._combined(other, -1)

    def _combined(self, other: Unit, sign: int) -> Unit:
        names = {*self.powers, *other.powers}
        powers = {name: self.powers.get(name, 0) + sign * other.powers.get(name, 0) for name in sorted(names)}
        return Unit(self.scale * other.scale**sign, {name: power for name, power in powers.items() if power})


NUMBER = Unit(Fraction(1), {})


@dataclass(frozen=True)
class Formula:
    """A formula that was found to be one."""

    text: str

    @classmethod
    def of(cls, text: str) -> Formula:
        """Raises ValueError where it holds more than + - * / ( ), names and numbers."""
        formula = cls(text)
        formula._check(formula._tree)
        return formula

    @cached_property
    def _tree(self) -> ast.expr:
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError) as fault:
            raise ValueError(f"{self.text!r} is no formula") from fault

    def _check(self, node: ast.expr) -> None:
        match node:
            case ast.BinOp(left, kind, right) if type(kind) in _OPERATIONS:
                self._check(left)
                self._check(right)
            case ast.UnaryOp(ast.USub(), inner):
                self._check(inner)
            case ast.Name() | ast.Constant(int() | float()) if not isinstance(
                getattr(node, "value", None), bool
            ):
                return
            case _:
                raise ValueError(
                    f"{self.text!r}: {ast.unparse(node)!r} is not of + - * / ( ), names and numbers"
                )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names in it, in order."""
        found = [node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)]
        return tuple(sorted(set(found), key=self.text.index))

    def unit(self, units: Mapping[str, Unit]) -> Unit:
        """The unit that it has when its names have these. Raises ValueError where units do not fit."""
        return self._unit(self._tree, units)

    def _unit(self, node: ast.expr, units: Mapping[str, Unit]) -> Unit:
        match node:
            case ast.Name(name):
                if name not in units:
                    raise ValueError(f"{self.text!r}: {name} is not defined")
                return Unit(Fraction(1), units[name].powers)
            case ast.BinOp(left, ast.Mult(), right):
                return self._unit(left, units) * self._unit(right, units)
            case ast.BinOp(left, ast.Div(), right):
                return self._unit(left, units) / self._unit(right, units)
            case ast.BinOp(left, _, right):
                one, other = self._unit(left, units), self._unit(right, units)
                if one.powers != other.powers:
                    raise ValueError(f"{self.text!r}: {ast.unparse(node)} adds unlike units")
                return one
            case ast.UnaryOp(_, inner):
                return self._unit(inner, units)
        return NUMBER

    def value(self, values: Mapping[str, float]) -> float | None:
        """The value, None where a name has none or something is divided by zero."""
        try:
            return self._value(self._tree, values)
        except (KeyError, ZeroDivisionError, OverflowError):
            return None

    def _value(self, node: ast.expr, values: Mapping[str, float]) -> float:
        match node:
            case ast.Name(name):
                return values[name]
            case ast.BinOp(left, kind, right):
                return _OPERATIONS[type(kind)](self._value(left, values), self._value(right, values))
            case ast.UnaryOp(_, inner):
                return -self._value(inner, values)
            case ast.Constant(number):
                return float(number)  # type: ignore[arg-type]
        raise AssertionError(node)
