"""Other files that are read: modules, kernel.yaml, geometries, codes, sites, what the set-up found."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from fault import Ended, Fault, Place

from scripts import write_script
from stage import ROOT

DEEP, BINARY = "[" * 1500, bytes(range(256))
#: Contents that no file of pagewise has, in YAML or JSON.
CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "binary": BINARY,
    "list": b"[]",
    "number": b"1",
    "deep": DEEP.encode(),
    "key twice": b"schema: a\nschema: b\n",
    "alias of itself": b"a: &a [*a]\n",
    "moment that does not exist": b"a: 2026-99-99\n",
    "object of Python": b"a: !!python/object/apply:os.system ['touch outside/hit']\n",
    "surrogate": b'"\\ud800"',
}


def _kernel(change: Callable[[Path], object]) -> Callable[[Place], list[Ended]]:
    """Commands over a tree whose first module brings a kernel.yaml that was changed."""

    def happen(place: Place) -> list[Ended]:
        prefix = place.folder / "prefix"
        origin = sorted(place.modules.parent.glob("opt/*"))[0]
        shutil.copytree(origin, prefix, symlinks=True)
        change(prefix / "share/pagewise/kernels/chase.yaml")
        for module in place.tree.rglob("*.lua"):
            module.write_text(module.read_text().replace(str(origin), str(prefix)))
        options = f"--modules {place.tree}"
        return place.run_all(f"list {options}", f"kernels --plan {options}")

    return happen


def _fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _text(old: str, new: str) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    return change


def _tree(change: Callable[[Path], object]) -> Callable[[Place], Ended]:
    """The modules of a tree that was changed."""

    def happen(place: Place) -> Ended:
        change(place.tree)
        return place.run("list", "--modules", str(place.tree))

    return happen


def _module(text: str, name: str = "x") -> Callable[[Place], Ended]:
    """A further module in the tree."""
    return _tree(lambda tree: write_script(tree / f"pagewise-micro/0.1.0/{name}.lua", text))


def _file(name: str, content: bytes, command: str) -> Callable[[Place], list[Ended]]:
    """A command that reads a file with this content."""

    def happen(place: Place) -> list[Ended]:
        file = place.folder / name
        if "sites" in file.parts:
            shutil.copytree(ROOT / "envs/sites/ookami", file.parent)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return place.run_all(command)

    return happen


# Files that are read, the command and its exit codes.
READ = {
    "set-up": (".pagewise/setup.json", "list", (0, 3)),
    "geometry": ("geometry.yaml", "simulate --geometry ./geometry.yaml chase", (3,)),
    "code": ("envs/suites/codes/stream.yaml", "compare --suite stream --rounds 1 -- true", (3,)),
    "site": ("envs/sites/odd/site.yaml", "site check odd", (1, 3)),
}
SETS_HALF = 'setenv("PAGEWISE_PACKAGE", "\\027[31m")\nsetenv("PAGEWISE_VERSION", "")'
FAULTS = [
    *(
        Fault(f"kernel.yaml: {name}", _kernel(lambda file, to=content: file.write_bytes(to)), (3,))
        for name, content in CONTENTS.items()
    ),
    Fault("kernel.yaml: FIFO", _kernel(_fifo), (3,)),
    Fault("kernel.yaml: title with escapes and markup", _kernel(_text("Pointer chase", "[/]x[bold]")), (3,)),
    Fault("kernel.yaml: executable elsewhere", _kernel(_text("pw-chase", "../../../bin/sh")), (3,)),
    Fault("module: nonsense", _module("nonsense(", "x/none/hardware-regular"), (0,)),
    Fault("module: empty", _module(""), (0,)),
    Fault("module: binary", _module(BINARY.decode("latin-1")), (0,)),
    Fault("module: says escapes", _module('LmodError("\x1b[31m[/]\\027]0;x\\007")'), (0,)),
    Fault("module: sets half", _module(SETS_HALF), (0,)),
    Fault("tree: FIFO as a module", _tree(lambda tree: os.mkfifo(tree / "x.lua")), (0,)),
    Fault("tree: folder as a module", _tree(lambda tree: (tree / "x.lua").mkdir()), (0,)),
    Fault("tree: link to itself", _tree(lambda tree: (tree / "x.lua").symlink_to("x.lua")), (0,)),
    Fault("tree: link to what is above", _tree(lambda tree: (tree / "x").symlink_to("..")), (0,)),
    Fault("tree: name with escapes", _tree(lambda tree: (tree / "\x1b[31m.lua").touch()), (0,)),
    Fault("tree: name of no letters", _tree(lambda tree: (tree / "\udcff.lua").touch()), (0,)),
    *(
        Fault(f"{kind}: {name}", _file(file, content, command), codes)
        for kind, (file, command, codes) in READ.items()
        for name, content in CONTENTS.items()
    ),
    Fault("query: binary", _file("q.sql", BINARY, "results query q.sql"), (2,)),
    Fault("query: empty", _file("q.sql", b"", "results query q.sql"), (0, 2)),
]
