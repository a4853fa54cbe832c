"""The variant `loop` of the real recipe."""

from __future__ import annotations

from pathlib import Path

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


def test_prefetches_of_the_compiler_select_its_loop_which_alone_the_module_names(checkout: Path) -> None:
    specs = [f"pagewise-micro@develop prefetch={name} %pagewise-gcc" for name in ("compiler", "hardware")]
    folder = environment(checkout, "loops", *specs)
    done = spack(checkout, folder, "concretize")
    assert done.returncode == 0, done.stdout
    loops = {root["parameters"]["prefetch"]: root["parameters"]["loop"] for root in roots(folder)}
    assert loops == {"compiler": "compiler", "hardware": "explicit"}
    names = {name.partition("/none/")[2] for name in modules(checkout, folder)}
    assert names == {"compiler-regular-loop-compiler", "hardware-regular"}
