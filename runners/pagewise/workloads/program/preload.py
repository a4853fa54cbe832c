"""The libraries that are preloaded into programs, compiled on first use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pagewise.stack.c_code import Product
from pagewise.stack.c_code import compiled as compiled_code

_HERE = Path(__file__).parent
_LIBRARY = Product(
    "the library to be preloaded", "preload", ("-std=c11", "-O2", "-fPIC", "-shared"), suffix=".so"
)


@dataclass(frozen=True)
class Libraries:
    """The compiled ones. remap: asks for huge pages. snapshot: tells memory at the end of untimed runs."""

    remap: Path
    snapshot: Path


def compiled(compiler: list[str]) -> Libraries:
    """Compiles what is not there yet. Raises SetupError with what the compiler said."""
    return Libraries(*(compiled_code(_HERE / name, _LIBRARY, compiler) for name in ("remap.c", "snapshot.c")))
