"""The environment that uses only the machine's compiler and C library: solved, locked, its sources listed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import RECIPES, VERSION, lock_of, printed, set_up, spack, succeed

pytestmark = pytest.mark.release


def test_everything_except_compiler_and_libc_is_built(spack_ready: None, clone: Callable[..., Path]) -> None:
    checkout = set_up(clone("source"))
    site = checkout / ".pagewise" / "site"
    # Only one configuration of the micro-kernels: the others, MPI and the tools take minutes to solve.
    environment = checkout / "envs" / "source" / "spack.yaml"
    head = environment.read_text().split("  definitions:\n")[0]
    spec = f"pagewise-micro@{VERSION} +papi hugepages=thp prefetch=hardware stores=regular %source-gcc"
    environment.write_text(f"{head}  specs:\n  - {json.dumps(spec)}\n  view: false\n")
    target = "x86_64_v3" if "avx2" in Path("/proc/cpuinfo").read_text().split() else "host"
    (block,) = printed(checkout, "release", "Everything from source", {"x86_64_v3": target})
    # The set-up is complete.
    make_lock, make_stack = block.replace("make ", "make --old-file=setup ").splitlines()
    succeed("bash", "-ec", f"cd {checkout}\n{make_lock}")

    folder = checkout / ".pagewise/locks" / f"source-{target}"
    lock = lock_of(folder)
    specs = lock["concrete_specs"].values()
    system = re.search(r"gcc@=([\d.]+)", (site / "packages.yaml").read_text())[1]
    externals = {(spec["name"], spec["version"]) for spec in specs if spec.get("external")}
    assert {name for name, _ in externals} == {"gcc", "glibc"} and ("gcc", system) in externals
    built = {spec["name"]: spec for spec in specs if not spec.get("external")}
    assert {"gcc", "papi", "cmake", "ninja", "libpagewise", "pagewise-micro"} <= built.keys()
    assert built["gcc"]["version"] == "15.2.0"
    hashes = {entry["name"]: entry["hash"] for entry in built["pagewise-micro"]["dependencies"]}
    assert hashes["gcc"] == built["gcc"]["hash"]

    lines = (folder / "sources.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[0-9a-f]{40}" if row[2] == "git" else r"[0-9a-f]{64}", row[4]) for row in rows)
    archives = {row[0]: row[3] for row in rows if row[2] in ("archive", "git")}
    assert re.fullmatch(r"https://\S+/gcc-15\.2\.0\.tar\.xz", archives["gcc"])
    assert archives["pagewise-micro"] == str(checkout) and f'"{VERSION}"' in (checkout / RECIPES).read_text()
    without_sources = {"compiler-wrapper", "gcc-runtime"}
    assert built.keys() - without_sources == archives.keys()
    assert "papi" in archives and any(row[2] == "patch" for row in rows)
    assert any("mirror create --directory" in line for line in lines)
    assert not any(line.startswith(f"# {name}\t") for line in lines for name in built)

    # GCC takes hours: Spack installs empty packages.
    stack = checkout / "setup" / "stack"
    stack.write_text(stack.read_text().replace(" install --only", " install --fake --only"))
    succeed("bash", "-ec", f"cd {checkout}\n{make_stack}")
    # A package may be built twice: by the system's GCC, for the new one, and by that.
    prefixes = {spec["hash"] for spec in specs if not spec.get("external")}
    installed = {folder.name.rpartition("-")[2] for folder in (checkout / ".pagewise/opt").glob("*/*/")}
    assert installed == prefixes


def test_sources_that_a_build_fetches_itself_are_reported(checkout: Path) -> None:
    folder = checkout / "envs" / "crates"
    folder.mkdir()
    rust = {"externals": [{"spec": "rust@1.80.0", "prefix": "/usr"}], "buildable": False}
    content = {
        "include": ["../../.pagewise/site", "../common"],
        "packages": {"rust": rust},
        "specs": ["hyperfine"],
        "view": False,
    }
    (folder / "spack.yaml").write_text(json.dumps({"spack": content}))
    spack(checkout, folder, "concretize")
    listed = spack(checkout, folder, "python", checkout / "setup" / "sources.py")
    version = re.search(r"^hyperfine\t([\d.]+)\tarchive\t", listed.stdout, re.MULTILINE)[1]
    assert f"# hyperfine\t{version}\t" in listed.stdout
