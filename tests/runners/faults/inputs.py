"""Other files that are read: modules, kernel.yaml, geometries, codes, sites, what the set-up found."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from fault import Ended, Fault, Place

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


def _kernel(change: Callable[[Path], None]) -> Callable[[Place], list[Ended]]:
    """Commands over a tree whose first module brings a kernel.yaml that was changed."""

    def happen(place: Place) -> list[Ended]:
        made = place.folder / "tree"
        prefix = place.folder / "prefix"
        origin = sorted(place.modules.parent.glob("opt/*"))[0]
        shutil.copytree(origin, prefix, symlinks=True)
        change(prefix / "share/pagewise/kernels/chase.yaml")
        for module in place.modules.rglob("*.lua"):
            to = made / module.relative_to(place.modules)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(module.read_text().replace(str(origin), str(prefix)))
        options = ["--modules", str(made)]
        return [place.run("list", *options), place.run("kernels", "--plan", *options)]

    return happen


def _fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _text(old: str, new: str) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    return change


def _module(name: str, text: str) -> Callable[[Place], Ended]:
    """A further module in the tree."""

    def happen(place: Place) -> Ended:
        made = shutil.copytree(place.modules, place.folder / "tree")
        file = Path(made) / f"pagewise-micro/0.1.0/{name}.lua"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return place.run("list", "--modules", str(made))

    return happen


def _odd_tree(make: Callable[[Path], None]) -> Callable[[Place], Ended]:
    def happen(place: Place) -> Ended:
        made = Path(shutil.copytree(place.modules, place.folder / "tree"))
        make(made)
        return place.run("list", "--modules", str(made))

    return happen


def _setup(content: bytes) -> Callable[[Place], Ended]:
    def happen(place: Place) -> Ended:
        (place.folder / ".pagewise").mkdir()
        (place.folder / ".pagewise/setup.json").write_bytes(content)
        return place.run("list")

    return happen


def _geometry(content: bytes) -> Callable[[Place], Ended]:
    def happen(place: Place) -> Ended:
        file = place.folder / "geometry.yaml"
        file.write_bytes(content)
        return place.run("simulate", "--geometry", str(file), "chase")

    return happen


def _code(content: bytes) -> Callable[[Place], Ended]:
    def happen(place: Place) -> Ended:
        folder = place.folder / "envs/suites/codes"
        folder.mkdir(parents=True)
        (folder / "stream.yaml").write_bytes(content)
        return place.run("compare", "--suite", "stream", "--rounds", "1", "--", "true")

    return happen


def _site(content: bytes) -> Callable[[Place], Ended]:
    def happen(place: Place) -> Ended:
        folder = place.folder / "envs/sites/odd"
        shutil.copytree(ROOT / "envs/sites/ookami", folder)
        (folder / "site.yaml").write_bytes(content)
        return place.run("site", "check", "odd")

    return happen


def _query(content: bytes) -> Callable[[Place], Ended]:
    def happen(place: Place) -> Ended:
        (place.folder / "q.sql").write_bytes(content)
        return place.run("results", "query", "q.sql")

    return happen


FAULTS = [
    *(
        Fault(f"kernel.yaml: {name}", _kernel(lambda file, to=content: file.write_bytes(to) and None), (3,))
        for name, content in CONTENTS.items()
    ),
    Fault("kernel.yaml: FIFO", _kernel(_fifo), (3,)),
    Fault("kernel.yaml: title with escapes and markup", _kernel(_text("Pointer chase", "[/]x[bold]")), (3,)),
    Fault("kernel.yaml: executable elsewhere", _kernel(_text("pw-chase", "../../../bin/sh")), (3,)),
    Fault("module: nonsense", _module("x/none/hardware-regular", "nonsense("), (0,)),
    Fault("module: empty", _module("x", ""), (0,)),
    Fault("module: binary", _module("x", BINARY.decode("latin-1")), (0,)),
    Fault("module: says escapes", _module("x", 'LmodError("\x1b[31m[/]\\027]0;x\\007")'), (0,)),
    Fault(
        "module: sets half",
        _module("x", 'setenv("PAGEWISE_PACKAGE", "\\027[31m")\nsetenv("PAGEWISE_VERSION", "")'),
        (0,),
    ),
    Fault("tree: FIFO as a module", _odd_tree(lambda tree: os.mkfifo(tree / "x.lua")), (0,)),
    Fault("tree: folder as a module", _odd_tree(lambda tree: (tree / "x.lua").mkdir()), (0,)),
    Fault("tree: link to itself", _odd_tree(lambda tree: (tree / "x.lua").symlink_to("x.lua")), (0,)),
    Fault("tree: link to what is above", _odd_tree(lambda tree: (tree / "x").symlink_to("..")), (0,)),
    Fault("tree: name with escapes", _odd_tree(lambda tree: (tree / "\x1b[31m.lua").touch()), (0,)),
    Fault("tree: name of no letters", _odd_tree(lambda tree: (tree / "\udcff.lua").touch()), (0,)),
    *(
        Fault(f"set-up: {name}", _setup(CONTENTS[name]), (0, 3))
        for name in ("empty", "binary", "list", "deep")
    ),
    *(Fault(f"geometry: {name}", _geometry(content), (3,)) for name, content in CONTENTS.items()),
    *(Fault(f"code: {name}", _code(content), (3,)) for name, content in CONTENTS.items()),
    *(Fault(f"site: {name}", _site(content), (1, 3)) for name, content in CONTENTS.items()),
    Fault("query: binary", _query(BINARY), (2,)),
    Fault("query: empty", _query(b""), (0, 2)),
]
