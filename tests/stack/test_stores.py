"""envs/stores: every combination of prefetching and stores that the processor has, one variable apart."""

from __future__ import annotations

import platform
from itertools import product
from pathlib import Path

import yaml
from test_spack import spack
from test_targets import modules, roots

from conftest import ROOT

PREFETCH = ("hardware", "software", "block")


def test_every_combination_of_prefetching_and_stores_concretizes(checkout: Path) -> None:
    folder = checkout / "envs" / "stores"
    done = spack(checkout, folder, "concretize")
    assert done.returncode == 0, done.stdout
    combined: dict[str, set[tuple[str, str]]] = {}
    for root in roots(folder):
        values = root["parameters"]
        combined.setdefault(str(values["fflags"]), set()).add((values["prefetch"], values["stores"]))
        assert (values["hugepages"], values["loop"]) == ("none", "explicit")
    stores = ("regular", "nontemporal", *(("zfill",) if platform.machine() == "aarch64" else ()))
    assert set(map(frozenset, combined.values())) == {frozenset(product(PREFETCH, stores))}
    assert len(modules(checkout, folder)) == len(roots(folder)), "module names are unique"


def test_zfill_is_built_where_the_processor_has_it(checkout: Path) -> None:
    content = yaml.safe_load((ROOT / "envs" / "stores" / "spack.yaml").read_text())
    definitions = content["spack"]["definitions"]
    (condition,) = [entry["when"] for entry in definitions if entry.get("stores") == ["stores=zfill"]]
    names = [f"arch=linux-debian12-{target}" for target in ("a64fx", "neoverse_v1", "zen4")]
    code = f"from spack.spec import Spec; print([bool({condition}) for arch in map(Spec, {names})])"
    done = spack(checkout, checkout / "envs" / "stores", "python", "-c", code)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "[True, True, False]"
