"""The environment of OpenMP libraries, built: the records name the library that each program used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from conftest import STATE, installed, run, succeed

pytestmark = pytest.mark.release

SITE = STATE / "site" / "packages.yaml"


@pytest.mark.skipif(
    not SITE.exists() or "llvm-openmp" not in SITE.read_text(), reason="libomp is not installed"
)
def test_programs_use_the_runtime_of_their_configuration(checkout: Path, tmp_path: Path) -> None:
    content = yaml.safe_load((checkout / "envs" / "libraries" / "spack.yaml").read_text())
    toolchains, _, runtimes = content["spack"]["specs"][-3:]
    content["spack"]["specs"] = [toolchains, runtimes]
    (checkout / "envs" / "runtimes").mkdir()
    text = yaml.safe_dump(content).replace("sites/libraries", "sites/runtimes")
    (checkout / "envs" / "runtimes" / "spack.yaml").write_text(text)
    succeed(checkout / "setup" / "stack", "runtimes")
    tree = checkout / ".pagewise" / "modules" / "runtimes"
    modules = {file.stem: file.read_text() for file in tree.rglob("*.lua") if "/gcc-" in str(file)}
    assert modules.keys() == {"hardware-regular", "hardware-regular-libomp", "hardware-regular-serial"}
    assert 'setenv("PAGEWISE_OPENMP", "off")' in modules["hardware-regular-serial"]
    assert 'setenv("PAGEWISE_RUNTIME", "libomp")' in modules["hardware-regular-libomp"]
    assert "PAGEWISE_RUNTIME" not in modules["hardware-regular"]

    used = {}
    for prefix, spec in installed(checkout, "runtimes").items():
        record = tmp_path / f"{spec['hash']}.jsonl"
        small = ("--working-set", "60kB", "--repetitions", "1", "--record", record)
        program = prefix / "bin" / "pw-stream_dot"
        if not spec["parameters"]["openmp"]:
            assert run(program, *small, "--threads", "2").returncode == 2
            assert run(program, *small, "--parallel", "pass").returncode == 2
            assert run(program, *small).returncode == 0
            assert json.loads(record.read_text())["configuration"]["openmp"] is False
            continue
        succeed(program, *small, "--threads", "2")
        built = json.loads(record.read_text())["configuration"]
        assert built["runtime"] in Path(built["runtime_file"]).name
        used[built["compiler"].partition("-")[0], spec["parameters"]["runtime"]] = built["runtime"]
    assert used == {
        ("gcc", "compiler"): "libgomp",
        ("gcc", "libomp"): "libomp",
        ("llvm", "compiler"): "libomp",
    }
