"""Environments that make sense for a site concretize there, with stand-ins for compilers."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml
from test_a64fx_compilers import fortran_compiler, stand_in_site

from conftest import ROOT, STATE, lock_of, run, spack

X86, A64FX = ("debian", "rocky"), ("fugaku", "ookami")
#: `power` is not a folder of envs/sites: a POWER9 node with GCC and LLVM.
SITES = (*X86, *A64FX, "grace", "power")
TARGETS = {
    "rocky": "x86_64_v3",
    "fugaku": "a64fx",
    "ookami": "a64fx",
    "grace": "neoverse_v2",
    "power": "power9le",
}
_ONLY_A64FX = {site: "the environment is for A64FX" for site in SITES if site not in A64FX}
_OWN = {site: "a64fx takes its place: page policies of libmpg" for site in A64FX}
#: By environment and site, why it makes no sense there.
SENSELESS: Mapping[str, Mapping[str, str]] = {
    "targets": {},
    "libraries": {},
    "default": {**_OWN, "power": "non-temporal stores need x86-64 or Arm"},
    "mini-apps": {"power": "the site does not name an MPI"},
    "quick": {},
    "a64fx": _ONLY_A64FX,
    "stores": {"power": "non-temporal stores need x86-64 or Arm"},
}
#: Environments that include no site, or build released versions or third-party codes.
OTHERS = {
    *("a64fx-emulated", "source", "source-compiler"),
    *("suites", "targets-suites", "release", "release-quick"),
}
PAIRS = [(site, name) for name, without in SENSELESS.items() for site in SITES if site not in without]
#: In `make test`; a solve takes 5 to 20 s.
QUICK_PAIRS = [("grace", "quick"), ("fugaku", "libraries"), ("power", "libraries")]
#: Of the environments on sites of one target: their configurations.
COUNTS = {
    ("grace", "targets"): 2 * (4 + 1) * 2,
    ("grace", "libraries"): (2 * 2 + 2) * 3 + 2 + 4 + 2,
    ("fugaku", "libraries"): 3 + 1,
    ("grace", "stores"): 2 * 3 * 2 + 3 * 2,
    ("ookami", "libraries"): 5 + 1,
    ("ookami", "a64fx"): 4 * 4 * 5 + 5 + 5 + 3 * 2,
    ("fugaku", "a64fx"): 4 * 4 * 3 + 3 + 3 + 3 * 2 + 3,
    ("ookami", "targets"): 2 * (2 * 2 + 5),
    ("power", "libraries"): 2 + 2,
    ("power", "targets"): 2 * (2 + 1) * 2,
}


def test_every_environment_and_site_is_in_the_table() -> None:
    environments = {file.parent.name for file in ROOT.glob("envs/*/spack.yaml")} | {"default"}
    assert environments == SENSELESS.keys() | OTHERS
    assert set(SITES) - {"power"} == {file.parent.name for file in ROOT.glob("envs/sites/*/site.yaml")}
    assert all(set(without) < set(SITES) for without in SENSELESS.values())


def power_site(site: Path) -> None:
    """Change a copy of the site grace into one for POWER9, whose compilers cannot be run."""
    for file in sorted(site.glob("*.yaml")):
        file.write_text(file.read_text().replace("neoverse_v2", TARGETS["power"]))
    packages = yaml.safe_load((site / "packages.yaml").read_text())["packages"]
    kept = {name: packages[name] for name in ("all", "gcc", "llvm", "cmake", "ninja", "gmake")}
    for compiler in ("gcc", "llvm"):
        compilers = kept[compiler]["externals"][0]["extra_attributes"]["compilers"]
        for language in compilers:
            compilers[language] = str(site / f"{compiler}-{language}")
            Path(compilers[language]).symlink_to("/bin/false")
    (site / "packages.yaml").write_text(yaml.safe_dump({"packages": kept}))
    definitions = yaml.safe_load((site / "definitions.yaml").read_text())["definitions"]
    toolchains = next(entry["toolchains"] for entry in definitions if "toolchains" in entry)
    replaced = {
        "vector_math": [name.replace(" %", " mathlib=mass %") for name in toolchains],
        "targets": ["target=power8le", "target=power9le"],
    }
    dropped = {"libomp", "blas", "fft", "widths", *replaced}
    kept_definitions = [entry for entry in definitions if not dropped & entry.keys()]
    kept_definitions += [{name: values} for name, values in replaced.items()]
    (site / "definitions.yaml").write_text(yaml.safe_dump({"definitions": kept_definitions}))


def copy_site(root: Path, name: str, site: Path) -> None:
    """Copy a site, with compilers that this machine has."""
    if name not in X86:
        stand_in_site(root, "grace" if name == "power" else name, site)
        if name == "power":
            power_site(site)
        return
    shutil.copytree(root / "envs" / "sites" / name, site)
    packages = yaml.safe_load((site / "packages.yaml").read_text())["packages"]
    detected = yaml.safe_load((STATE / "detected" / "packages.yaml").read_text())["packages"]
    for compiler in {"gcc", "llvm"} & packages.keys():
        external = packages[compiler]["externals"][0]
        external.pop("modules", None)
        external |= {key: detected[compiler]["externals"][0][key] for key in ("prefix", "extra_attributes")}
    (site / "packages.yaml").write_text(yaml.safe_dump({"packages": packages}))


def concretized(root: Path, site: str, name: str, place: Path) -> dict[str, Any]:
    """Concretize an environment on a site, and return its lock."""
    copy_site(root, site, place)
    folder = root / "envs" / f"on-{site}-{name}"
    folder.mkdir()
    if name == "default":
        text = (root / "spack.yaml").read_text().replace(".pagewise/sites/default", str(place))
        for own in ("envs/", "modulefiles", "path: kernels"):
            text = text.replace(
                own, own.replace("kernels", "../../kernels") if ":" in own else f"../../{own}"
            )
    else:
        text = (root / "envs" / name / "spack.yaml").read_text()
        text = text.replace(f"../../.pagewise/sites/{name}", str(place))
    assert str(place) in text
    (folder / "spack.yaml").write_text(text)
    spack(root, folder, "concretize")
    return dict(lock_of(folder))


def check(root: Path, site: str, name: str, place: Path) -> None:
    """Concretize an environment on a site: its configurations have the site's compilers and target."""
    lock = concretized(root, site, name, place)
    roots = [lock["concrete_specs"][one["hash"]] for one in lock["roots"]]
    assert len(roots) == COUNTS.get((site, name), len(roots)) > 0
    packages = yaml.safe_load((place / "packages.yaml").read_text())["packages"]
    assert {fortran_compiler(lock, one) for one in roots} <= packages.keys()
    targets = {one["arch"]["target"]["name"] for one in roots if isinstance(one["arch"]["target"], dict)}
    targets |= {one["arch"]["target"] for one in roots if isinstance(one["arch"]["target"], str)}
    if site in TARGETS:
        assert TARGETS[site] in targets and (len(targets) == 1 or name == "targets")


@pytest.fixture
def place(site: str, tmp_path: Path, unavailable: Callable[[str], NoReturn]) -> Path:
    """The folder for a copy of the site."""
    if site in X86 and platform.machine() != "x86_64":
        unavailable("needs compilers for x86-64")
    return tmp_path / site


@pytest.mark.parametrize(("site", "name"), QUICK_PAIRS)
def test_an_environment_on_a_site(small: Path, site: str, name: str, place: Path) -> None:
    check(small, site, name, place)


def test_an_environment_without_configurations_on_a_site_is_refused(small: Path, tmp_path: Path) -> None:
    site = shutil.copytree(small / "envs" / "sites" / "rocky", tmp_path / "rocky")
    definitions = (site / "definitions.yaml").read_text()
    (site / "definitions.yaml").write_text(definitions.replace("- quick:", "- other:"))
    content = yaml.safe_load((small / "envs" / "quick" / "spack.yaml").read_text())
    content["spack"]["definitions"].append({"quick": []})
    (small / "envs" / "empty").mkdir()
    (small / "envs" / "empty" / "spack.yaml").write_text(
        yaml.safe_dump(content).replace("sites/quick", "sites/empty")
    )
    link = small / ".pagewise" / "sites" / "empty"
    link.symlink_to(before := small / ".pagewise" / "site")
    done = run(small / "setup" / "solve", "empty", PAGEWISE_SITE=str(site))
    assert done.returncode == 4, done.stdout
    assert link.readlink() == before and not (small / "envs" / "empty" / "spack.lock").exists()


@pytest.mark.release
@pytest.mark.parametrize(("site", "name"), [pair for pair in PAIRS if pair not in QUICK_PAIRS])
def test_every_environment_on_every_site(small: Path, site: str, name: str, place: Path) -> None:
    check(small, site, name, place)
