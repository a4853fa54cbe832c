"""The variant `loop` of the real recipe: what goes together, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from test_spack import environment, spack
from test_targets import modules, roots

from conftest import ROOT


def test_kernels_with_a_plain_loop_list_it_and_no_others_do() -> None:
    listed, plain = set(), set()
    for file in (ROOT / "kernels" / "micro").glob("*/kernel.yaml"):
        if "loop" in yaml.safe_load(file.read_text())["sensitive_to"]:
            listed.add(file.parent.name)
        if (file.parent / "loop.f90").exists():
            plain.add(file.parent.name)
    assert listed == plain and len(plain) > 15


@pytest.mark.parametrize(
    ("name", "variants", "remedy"),
    [
        ("loop-software", "loop=compiler prefetch=software", "loop=explicit"),
        ("loop-block", "loop=compiler prefetch=block", "loop=explicit"),
        ("loop-nontemporal", "loop=compiler stores=nontemporal", "loop=explicit"),
        ("loop-inserted", "loop=explicit prefetch=compiler", "loop=compiler"),
    ],
)
def test_a_loop_without_these_instructions_is_refused(
    checkout: Path, name: str, variants: str, remedy: str
) -> None:
    folder = environment(checkout, name, f"pagewise-micro@develop {variants} %pagewise-gcc")
    done = spack(checkout, folder, "concretize")
    assert done.returncode != 0
    assert remedy in done.stdout and "Traceback" not in done.stdout


def test_prefetches_of_the_compiler_select_its_loop_which_the_module_names(checkout: Path) -> None:
    folder = environment(checkout, "loop-selected", "pagewise-micro@develop prefetch=compiler %pagewise-gcc")
    done = spack(checkout, folder, "concretize")
    assert done.returncode == 0, done.stdout
    (root,) = roots(folder)
    assert root["parameters"]["loop"] == "compiler"
    (name,) = modules(checkout, folder)
    assert name.endswith("/none/compiler-regular-loop-compiler")


def test_the_loop_is_explicit_by_default_and_no_module_names_it(checkout: Path) -> None:
    folder = environment(checkout, "loop-default", "pagewise-micro@develop %pagewise-gcc")
    done = spack(checkout, folder, "concretize")
    assert done.returncode == 0, done.stdout
    (root,) = roots(folder)
    assert root["parameters"]["loop"] == "explicit"
    (name,) = modules(checkout, folder)
    assert name.endswith("/none/hardware-regular")
