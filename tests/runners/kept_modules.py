"""Keeps what real Lmod gave for a module tree, for the same tree of another test.

A load takes a quarter of a second.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from pagewise.stack import catalog, lmod

_PLACE = "/the/folder/of/a/test"
_load, _version = lmod.load_each, lmod.version


def keep_modules(store: Path, place: str) -> None:
    """From now on in this process, load modules once per content of their tree.

    store: where results are kept. place: the folder of this test, which may differ between equal trees.
    """

    def kept(key: object, actual: str | None = None) -> str | None:
        """Return what is kept for this key, or keep what was found."""
        text = json.dumps(key).replace(json.dumps(place)[1:-1], _PLACE)
        file = store / hashlib.sha256(text.encode()).hexdigest()
        if actual is None:
            return file.read_text().replace(_PLACE, place) if file.exists() else None
        store.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}")
        new.write_text(actual.replace(place, _PLACE))
        new.rename(file)
        return actual

    def load_each(init: Path, tree: Path, names: Sequence[str]) -> list[lmod.Loaded]:
        modules = [file for file in sorted(tree.rglob("*.lua")) if file.is_file()]
        files = {str(file): file.read_text(errors="replace") for file in modules}
        key = [str(init), init.stat().st_mtime_ns, lmod.clean_environment(), list(names), files]
        actual = kept(key) or kept(key, json.dumps([vars(one) for one in _load(init, tree, names)]))
        assert actual is not None
        return [lmod.Loaded(**fields) for fields in json.loads(actual)]

    def version(init: Path) -> str | None:
        key = ["version", str(init), init.stat().st_mtime_ns]
        return kept(key) or kept(key, _version(init) or "")

    lmod.load_each = catalog.load_each = load_each
    lmod.version = version
