"""The set-up's failure paths: wrong content, no network, no Spack, missing packages. Needs no network."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import POLICIES, STATE, copy_checkout, run, succeed, write_script

#: The suffix of toolchains for processors other than x86.
OF_PROCESSOR = "" if platform.machine() == "x86_64" else "-other"


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A checkout that was never set up."""
    folders = ("setup", "envs", "runners", "kernels/cmake/compilers")
    return copy_checkout(tmp_path / "fresh", *folders, POLICIES, "pagewise", "spack.yaml")


@pytest.fixture
def other_repository(tmp_path: Path) -> str:
    """The URL of a repository that has the pinned tags on other content."""
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "file").write_text("not Spack\n")
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in ("init -q", "add .", "commit -q --no-gpg-sign -m x", "tag v1.1.0", "tag v2026.03.0"):
        subprocess.run([*git, *command.split()], check=True)
    return f"file://{folder}"


def own_spack(folder: Path, version: str) -> Path:
    """A folder that looks like a Spack of this version."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "spack").touch(mode=0o755)
    (folder / "lib" / "spack" / "spack").mkdir(parents=True)
    (folder / "lib" / "spack" / "spack" / "__init__.py").write_text(f'__version__ = "{version}"\n')
    return folder


def leftovers(checkout: Path) -> list[str]:
    """The files that get-spack left in the state folder."""
    names = (path.name for path in (checkout / ".pagewise").iterdir())
    return sorted(name for name in names if name.startswith(("spack", "clone")))


TREE, COMMIT = "c8e4b8166d4aaa26ff0e515265d047b02cae3e2b", "0e093dad700a9be836b0d4aefc4bb5183e4990bd"


def test_wrong_sources_of_spack_are_refused_with_the_variable_to_set(
    fresh: Path, tmp_path: Path, other_repository: str
) -> None:
    """Other content, no network, and a user's Spack that is too old or missing; nothing of it is left."""
    nowhere = f"file://{tmp_path}/nowhere"
    own = {
        version: own_spack(tmp_path / f"own-{version}", version) for version in ("0.23.1", "1.0.4", "1.1.0")
    }
    for given, url, variable, named in (
        ("", other_repository, "SPACK_URL", TREE),
        ("", nowhere, "SPACK_URL", nowhere),
        (own["0.23.1"], nowhere, "USE_SPACK", "own-0.23.1"),
        (own["1.0.4"], nowhere, "USE_SPACK", "own-1.0.4"),
        (tmp_path / "none", nowhere, "USE_SPACK", "none"),
        (own["1.1.0"], other_repository, "SPACK_PACKAGES_URL", COMMIT),
    ):
        urls = {"PAGEWISE_SPACK_URL": url, "PAGEWISE_SPACK_PACKAGES_URL": url}
        done = run(fresh / "setup" / "get-spack", PAGEWISE_USE_SPACK=str(given), **urls)
        assert done.returncode == 4, done.stdout
        assert named in done.stdout and f"PAGEWISE_{variable}" in done.stdout
        assert leftovers(fresh) == (["spack"] if named == COMMIT else [])


@pytest.fixture
def without_spack(fresh: Path, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A checkout, and the settings with which its set-up runs without Spack."""
    # The Python environment is not tested here, and would need the network.
    python_env = fresh / "setup" / "python-env"
    python_env.write_text(f"#!/bin/sh\nln -sfn {STATE / 'venv'} {fresh}/.pagewise/venv\n")
    (fresh / "setup" / "system-packages.tsv").write_text("")
    return fresh, {"PAGEWISE_SPACK_URL": f"file://{tmp_path}/nowhere", "PAGEWISE_USE_SPACK": ""}


def test_without_spack_the_set_up_continues_and_records_why(
    without_spack: tuple[Path, dict[str, str]],
) -> None:
    checkout, settings = without_spack
    succeed(checkout / "setup" / "bootstrap", PAGEWISE_REQUIRE_SPACK="0", **settings)
    facts = json.loads((checkout / ".pagewise" / "setup.json").read_text())
    assert facts["spack"]["available"] is False
    assert settings["PAGEWISE_SPACK_URL"] in facts["spack"]["reason"]
    assert "PAGEWISE_SPACK_URL" in facts["spack"]["remedy"]
    entered = [compiler["name"] for compiler in facts["compilers"] if compiler["entered"]]
    definitions = json.loads((checkout / ".pagewise" / "site" / "definitions.yaml").read_text())
    toolchains = [f"%pagewise-{name}{OF_PROCESSOR}" for name in entered]
    assert entered and definitions["definitions"][0] == {"toolchains": toolchains}
    lists = {name for entry in definitions["definitions"] for name in entry} - {"when"}
    assert {"quick", "gcc_and_llvm", "generic", "natives", "vector_math", "libomp", "blas", "fft"} <= lists


def test_only_a_required_spack_is_reported_as_an_error(without_spack: tuple[Path, dict[str, str]]) -> None:
    checkout, settings = without_spack
    for required, kinds in (("0", {"warning"}), ("1", {"error"})):
        done = run(checkout / "setup" / "bootstrap", PAGEWISE_REQUIRE_SPACK=required, **settings)
        assert set(re.findall(r"^setup: (\w+):", done.stdout, re.M)) == kinds, done.stdout
        assert done.returncode == (4 if "error" in kinds else 0) and "PAGEWISE_SPACK_URL" in done.stdout


@pytest.mark.parametrize("name", ["with a blank", "a,b"])
def test_a_path_that_spack_would_split_is_set_up_without_it(
    without_spack: tuple[Path, dict[str, str]], name: str
) -> None:
    plain, _ = without_spack
    checkout = plain.rename(plain.with_name(name))
    python_env = checkout / "setup" / "python-env"
    python_env.write_text(f"#!/bin/sh\nln -sfn {STATE / 'venv'} '{checkout}/.pagewise/venv'\n")
    # Refused before anything is installed.
    done = run(checkout / "setup" / "bootstrap", PAGEWISE_REQUIRE_SPACK="1")
    assert done.returncode == 4 and str(checkout) in done.stdout
    assert not (checkout / ".pagewise" / "venv").exists()
    (checkout / ".pagewise" / "no-spack").unlink()
    # Also if Spack was cloned before the checkout was moved.
    (checkout / ".pagewise" / "spack").mkdir()
    done = run(checkout / "setup" / "bootstrap")
    assert done.returncode == 0 and "error:" not in done.stdout, done.stdout
    facts = json.loads((checkout / ".pagewise" / "setup.json").read_text())
    assert facts["spack"]["available"] is False and str(checkout) in facts["spack"]["reason"]
    assert run(checkout / "pagewise", "--version").returncode == 0
    # The launcher is installed unless the loader would split its path; the warning names the remedy.
    assert (checkout / ".pagewise" / "exec").exists() is (" " not in name)
    assert ("./pagewise exec --install" in done.stdout) is (" " in name)


@pytest.mark.parametrize("name", ["a:b", "a'b", "a$b", "a;b", "a\nb", "a*b"])
def test_a_path_that_nothing_can_be_built_in_is_refused_at_once(fresh: Path, name: str) -> None:
    checkout = fresh.rename(fresh.with_name(name))
    done = run(checkout / "setup" / "bootstrap")
    assert done.returncode == 4 and "error:" in done.stdout
    assert sorted(path.name for path in (checkout / ".pagewise").iterdir()) == ["sites", "stamps"]


@pytest.mark.parametrize(("bundle", "prefix"), [("a b", "prefix"), ("bundle", "a b"), ("bundle", "a:b")])
def test_a_bundle_is_refused_where_spack_would_split_its_path(
    fresh: Path, tmp_path: Path, bundle: str, prefix: str
) -> None:
    (tmp_path / bundle).mkdir()
    for name in ("install-bundle", "messages.sh"):
        shutil.copy2(fresh / "setup" / name, tmp_path / bundle / name)
    verify = tmp_path / bundle / "verify-bundle"
    write_script(verify, f"#!/bin/sh\ntouch '{tmp_path}/verified'\n")
    done = run(tmp_path / bundle / "install-bundle", tmp_path / prefix, "0" * 40)
    assert done.returncode == 4
    assert not (tmp_path / "verified").exists() and not (tmp_path / prefix / ".git").exists()
    # In a checkout: a folder with a blank, or an archive that would be unpacked in one.
    archive = tmp_path / "bundle.tar"
    archive.touch()
    moved = fresh.rename(fresh.with_name("c d"))
    for named in (archive, tmp_path / bundle):
        refused = run(moved / "setup" / "bootstrap", BUNDLE=str(named), KEY="0" * 40)
        if named == archive or " " in bundle:
            assert refused.returncode == 4 and not (moved / ".pagewise" / "bundle").exists()


def test_activation_adds_the_command_and_its_completion(without_spack: tuple[Path, dict[str, str]]) -> None:
    checkout, settings = without_spack
    assert run(checkout / "setup" / "bootstrap", **settings).returncode == 0
    questions = {
        ("bash", "--norc"): "complete -p pagewise",
        ("zsh", "-f"): "autoload -Uz compinit; compinit -u -D; echo $_comps[pagewise]",
    }
    for shell, question in questions.items():
        if shutil.which(shell[0]) is None:
            continue
        # Twice: a second activation adds nothing.
        activate = f". {checkout}/setup/activate.sh; . {checkout}/setup/activate.sh"
        done = succeed(*shell, "-c", f"{activate}; {question}; command -v pagewise; echo $PATH")
        assert "_pagewise" in done.stdout and f"{checkout}/pagewise\n" in done.stdout, done.stdout
        assert done.stdout.count(f"{checkout}/.pagewise/exec/bin") == 1, done.stdout


def test_the_builder_falls_back_with_a_warning_unless_spack_is_requested(fresh: Path) -> None:
    (fresh / ".pagewise" / "no-spack").write_text("the reason\nthe remedy\n")
    presets = fresh / "setup" / "presets"
    presets.write_text("#!/bin/sh\necho presets build $1\n")
    build = fresh / "setup" / "build"

    fallen = succeed(build, "quick", BUILDER="auto")
    for words in ("the reason", "the remedy", "presets build quick"):
        assert words in fallen.stdout

    refused = run(build, "quick", BUILDER="spack")
    assert refused.returncode == 4
    for words in ("BUILDER=spack", "the reason", "the remedy"):
        assert words in refused.stdout
    assert "presets build" not in refused.stdout

    assert run(build, "quick", BUILDER="ninja").returncode == 4


def test_missing_packages_are_listed_with_their_purpose(fresh: Path, tmp_path: Path) -> None:
    # A machine without apt: only the tools that the script itself needs.
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "env", "readlink", "dirname", "sed", "sort", "head", "grep", "mkdir", "cut"):
        (tools / name).symlink_to(str(shutil.which(name)))
    rows = tmp_path / "rows.tsv"
    rows.write_text("run\tabacus\tabacus\tcounting beads\nrun\tbash\tbash\tshells\ntest\tlute\tlute\tmusic\n")
    script = fresh / "setup" / "system-packages"
    done = succeed(script, "run", PATH=str(tools), PAGEWISE_SYSTEM_PACKAGES=str(rows))
    assert "abacus" in done.stdout and "counting beads" in done.stdout
    assert "lute" not in done.stdout
    missing = (fresh / ".pagewise" / "missing.tsv").read_text()
    assert missing == "abacus\tcounting beads\tapt-get install abacus\n"


def test_packages_are_only_listed_on_request(fresh: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    apt = tmp_path / "bin" / "apt-get"
    write_script(apt, f'#!/bin/sh\ntouch "{tmp_path}/called"\n')
    rows = tmp_path / "rows.tsv"
    rows.write_text("run\tabacus\tabacus\tcounting beads\ntest\tlute\tlute\tmusic\n")
    settings = {"PATH": f"{apt.parent}:{os.environ['PATH']}", "PAGEWISE_SYSTEM_PACKAGES": str(rows)}
    done = run(fresh / "setup" / "system-packages", "run", NO_INSTALL="1", **settings)
    assert done.returncode == 4 and "abacus\tcounting beads\n" in done.stdout and "lute" not in done.stdout
    assert not (tmp_path / "called").exists()
    assert run(fresh / "setup" / "system-packages", "gcc", NO_INSTALL="1", **settings).returncode == 0


def test_without_package_lists_no_unknown_version_is_in_the_command(fresh: Path, tmp_path: Path) -> None:
    # As in an image of a container: apt-cache lists nothing, and no flang is installed.
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "env", "readlink", "dirname", "sed", "sort", "head", "grep", "mkdir", "cut", "comm"):
        (tools / name).symlink_to(str(shutil.which(name)))
    (tools / "apt-cache").symlink_to(str(shutil.which("true")))
    rows = tmp_path / "rows.tsv"
    rows.write_text("run\tabacus\tabacus\tbeads\nrun\tflang-N\tflang-N\tFortran\n")
    settings = {"PATH": str(tools), "PAGEWISE_SYSTEM_PACKAGES": str(rows), "NO_INSTALL": "1"}
    done = run(fresh / "setup" / "system-packages", "run", **settings)
    (command,) = (line for line in done.stdout.splitlines() if "apt-get install" in line)
    assert done.returncode == 4 and "flang-N\tFortran\n" in done.stdout
    assert command.split()[-1] == "abacus" and "apt-get update" in done.stdout


def test_without_network_hdf5_for_aarch64_is_skipped_with_a_warning(fresh: Path) -> None:
    done = run(fresh / "setup" / "aarch64-hdf5", PAGEWISE_OFFLINE="1")
    assert done.returncode == 4
    assert "PAGEWISE_OFFLINE" in done.stdout
    assert not (fresh / ".pagewise" / "aarch64").exists()


def test_a_site_that_does_not_exist_is_refused(without_spack: tuple[Path, dict[str, str]]) -> None:
    checkout, settings = without_spack
    done = run(checkout / "setup" / "bootstrap", PAGEWISE_SITE="nonesuch", **settings)
    assert done.returncode == 4
    assert "'nonesuch'" in done.stdout


def test_the_set_up_does_not_change_the_sites_of_environments(
    without_spack: tuple[Path, dict[str, str]],
) -> None:
    checkout, settings = without_spack
    (checkout / "envs" / "sites" / "mine").mkdir(parents=True)
    links, other = checkout / ".pagewise" / "sites", checkout / "other"
    other.mkdir()
    (links / "quick").unlink()
    (links / "quick").symlink_to(other)
    (links / "release").unlink()
    assert run(checkout / "setup" / "bootstrap", PAGEWISE_SITE="mine", **settings).returncode == 0
    detected = str(checkout / ".pagewise" / "detected")
    names = {"default", *(file.parent.name for file in checkout.glob("envs/*/spack.yaml"))}
    sites = {link.name: os.path.realpath(link) for link in links.iterdir()}
    assert sites == {name: detected for name in names} | {"quick": str(other)}
