"""Sites: the checkout's are consistent; all faults are reported at once; new ones are complete."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from pagewise.core.errors import FormatError, RefusedError, SelectionError, SetupError
from pagewise.stack.site.folder import read_site, site_names, toolchain_compilers
from pagewise.stack.site.new import detect, write

ROOT = Path(__file__).parents[2]
_SECONDS = 60
WIDTHS = {"widths": ["simd=256"], "when": "arch.satisfies('target=x86_64_v3:')"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with this checkout's sites, and detected packages."""
    for folder in ("sites", "toolchains"):
        shutil.copytree(ROOT / "envs" / folder, tmp_path / "envs" / folder)
    state = tmp_path / ".pagewise"
    (state / "detected").mkdir(parents=True)
    packages = yaml.safe_load((ROOT / "envs/sites/debian/packages.yaml").read_text())
    (state / "detected" / "packages.yaml").write_text(json.dumps(packages))
    definitions = {"definitions": [{"toolchains": ["%pagewise-gcc"]}, WIDTHS]}
    (state / "detected" / "definitions.yaml").write_text(json.dumps(definitions))
    (state / "setup.json").write_text(json.dumps({"lmod": {"init": "/usr/share/lmod/lmod/init/bash"}}))
    return tmp_path


def edit(file: Path, before: str, after: str) -> None:
    """Replace a text in a file."""
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def environment(checkout: Path) -> dict[str, str]:
    """The environment of the command line."""
    return {**os.environ, "PAGEWISE_ROOT": str(checkout), "PYTHONPATH": str(ROOT / "runners")}


def pagewise(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return subprocess.run(
        [sys.executable, "-m", "pagewise", *arguments],
        env=environment(checkout),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_every_site_of_the_checkout_is_valid() -> None:
    assert site_names(ROOT) == ["debian", "fugaku", "grace", "ookami", "rocky"]
    for name in site_names(ROOT):
        assert read_site(name, ROOT).name == name


def test_sites_name_known_flag_sets_with_what_they_are_combined_with() -> None:
    known = toolchain_compilers(ROOT)
    for name in site_names(ROOT):
        site = read_site(name, ROOT)
        lists = {list_name: entry for entry in site.definitions["definitions"] for list_name in entry}
        wanted = {"quick", "gcc_and_llvm", "generic", "natives", "vector_math", "widths", "targets"}
        assert wanted <= lists.keys()
        named = re.findall(r"%(pagewise-[\w-]+)", json.dumps(site.definitions))
        assert all(known[flags] <= site.packages.keys() for flags in named), name


def test_a64fx_has_the_five_compilers_of_its_toolchains() -> None:
    known = toolchain_compilers(ROOT)
    needed = set().union(*(known[name] for name in read_site("ookami", ROOT).data["toolchains"]))
    assert needed == {"gcc", "acfl", "fj", "cce", "llvm"}


def test_all_faults_are_reported_at_once(checkout: Path) -> None:
    folder = checkout / "envs" / "sites" / "debian"
    edit(folder / "site.yaml", "base_kib: 4", "base_kib: 5")
    edit(folder / "site.yaml", "modules:", "scheduler: {kind: slurm}\nmodules:")
    edit(folder / "packages.yaml", "cmake@=3.25.1", "cmake")
    with pytest.raises(FormatError) as refused:
        read_site("debian", checkout)
    for part in ("pages.base_kib", "scheduler", "packages.yaml: cmake"):
        assert part in str(refused.value)


@pytest.mark.parametrize(
    ("site", "file", "before", "after", "named"),
    [
        ("debian", "site.yaml", "name: debian", "name: bookworm", "site.yaml|name|'bookworm'"),
        ("debian", "site.yaml", "pagewise-llvm", "pagewise-nag", "toolchains|'pagewise-nag'"),
        ("debian", "packages.yaml", ", fortran: /usr/bin/gfortran-12", "", "gcc@|fortran"),
        ("debian", "packages.yaml", "  ninja:", "  meson:", "packages.yaml|ninja"),
        ("debian", "packages.yaml", "prefix: /usr/lib/llvm-22", "prefix: llvm-22", "'llvm-22'"),
        ("ookami", "packages.yaml", "  fujitsu-libmpg:", "  libmpg:", "fujitsu-libmpg|fjmpg"),
        ("ookami", "packages.yaml", "[a64fx]", "[zen4]", "all: {target: [a64fx]}"),
        (
            "debian",
            "packages.yaml",
            "  gcc:",
            "  all: {target: [zen4]}\n  gcc:",
            "packages.yaml|all: target|site.yaml",
        ),
        ("debian", "definitions.yaml", "llvm", "nag", '[{"toolchains": ["%pagewise-gcc", "%pagewise-llvm"]'),
        ("ookami", "packages.yaml", "  acfl:", "  arm:", "acfl|pagewise-arm-a64fx"),
    ],
)
def test_faults_of_a_site_are_reported(
    checkout: Path, *, site: str, file: str, before: str, after: str, named: str
) -> None:
    edit(checkout / "envs" / "sites" / site / file, before, after)
    with pytest.raises(FormatError) as refused:
        read_site(site, checkout)
    lines = refused.value.what.splitlines()
    assert any(all(part in line for part in named.split("|")) for line in lines)


def test_what_is_missing_on_this_machine_is_reported_on_request(checkout: Path) -> None:
    read_site("fugaku", checkout)
    with pytest.raises(FormatError) as refused:
        read_site("fugaku", checkout, here=True)
    assert "frt" in str(refused.value)
    assert "/opt/FJSVxos/mmm" in str(refused.value)


def test_an_unknown_site_is_refused_with_the_known_ones(checkout: Path) -> None:
    with pytest.raises(SelectionError, match="'summit'") as refused:
        read_site("summit", checkout)
    assert "fugaku, grace, ookami" in str(refused.value)


@pytest.mark.long
def test_a_new_site_contains_what_was_detected_and_given(checkout: Path) -> None:
    done = pagewise(
        checkout,
        *("site", "new", "ours", "--yes", "--summary", 'a "quoted": machine'),
        *("--target", "zen4", "--module", "gcc/13"),
    )
    assert done.returncode == 0, done.stderr
    site = read_site("ours", checkout)
    assert site.data["summary"] == 'a "quoted": machine'
    assert site.data["target"] == "zen4"
    assert site.data["modules"] == {"init": "/usr/share/lmod/lmod/init/bash", "load": ["gcc/13"]}
    assert site.data["toolchains"] == ["pagewise-gcc", "pagewise-llvm"]
    assert site.packages == read_site("debian", checkout).packages
    assert site.of_all == {"target": ["zen4"]}
    assert site.definitions == {"definitions": [{"toolchains": ["%pagewise-gcc", "%pagewise-llvm"]}, WIDTHS]}
    assert "ours" in pagewise(checkout, "site", "list").stdout
    assert pagewise(checkout, "site", "check", "ours").returncode == 0
    again = pagewise(checkout, "site", "new", "ours", "--yes", "--summary", "other")
    assert again.returncode == 4


class Conversation:
    """`pagewise site new` in a separate terminal."""

    def __init__(self, checkout: Path, *arguments: str) -> None:
        self.ours, theirs = pty.openpty()
        self.output = ""
        # A shell ignores the interrupt for what it starts in the background.
        as_usual = ["env", "--default-signal=INT", "setsid", "--ctty"]
        self.process = subprocess.Popen(
            [*as_usual, sys.executable, "-m", "pagewise", "site", "new", *arguments],
            env=environment(checkout),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)

    def answer(self, line: str, shown: str = "") -> None:
        """Wait for the next question, which shows this, and answer it."""
        start = len(self.output)
        # So ends each question of Click.
        while not self.output[start:].endswith(": "):
            self.output += self._read() or pytest.fail(f"nothing is asked: {self.output}")
        assert shown in self.output[start:].splitlines()[-1], self.output
        os.write(self.ours, line.encode())

    def end(self, pressed: str = "") -> int:
        """Read until the end, pressing keys until the program reacts; returns the exit code."""
        limit = time.monotonic() + _SECONDS
        while text := self._read(pressed):
            self.output += text
            if time.monotonic() > limit:
                self.process.kill()
                pytest.fail(f"it does not end: {self.output}")
        os.close(self.ours)
        return self.process.wait(_SECONDS)

    def _read(self, pressed: str = "") -> str:
        """The next output; empty at the end."""
        for _ in range(_SECONDS):
            if select.select([self.ours], [], [], 1)[0]:
                try:
                    return os.read(self.ours, 4096).decode()
                except OSError:  # Linux: the other side is closed
                    return ""
            os.write(self.ours, pressed.encode())
        self.process.kill()
        pytest.fail(f"no more output: {self.output}")


def test_missing_facts_are_asked_for_until_the_answer_is_valid(checkout: Path) -> None:
    talk = Conversation(checkout, "asked")
    for wrong, right, shown in (("x" * 111, "two sockets", ""), ("Zen 4", "zen4", "native")):
        talk.answer(f"{wrong}\n", shown)
        talk.answer(f"{right}\n", shown)
    assert talk.end() == 0, talk.output
    assert talk.output.count("Error: ") == 2
    site = read_site("asked", checkout)
    assert (site.data["summary"], site.data["target"]) == ("two sockets", "zen4")


@pytest.mark.long
def test_an_empty_answer_uses_the_detected_value(checkout: Path) -> None:
    detected = detect(checkout)
    talk = Conversation(checkout, "asked", "--summary", "given is not asked")
    talk.answer("\n", "[native]")
    assert talk.end() == 0, talk.output
    site = read_site("asked", checkout)
    assert site.data["target"] is None and site.data["toolchains"] == detected.toolchains


@pytest.mark.parametrize("ends", ["\x03", "\x04"], ids=["interrupt", "end of file"])
def test_nothing_is_written_if_the_questions_are_cancelled(checkout: Path, ends: str) -> None:
    before = sorted((checkout / "envs").rglob("*"))
    talk = Conversation(checkout, "left")
    talk.answer("two sockets\n")
    talk.answer(ends, "native")
    assert talk.end(ends) != 0
    assert "Traceback" not in talk.output and "SITE=left" not in talk.output
    assert sorted((checkout / "envs").rglob("*")) == before


def test_an_invalid_site_is_not_written(checkout: Path) -> None:
    detected = detect(checkout)
    detected.packages.pop("ninja")
    with pytest.raises(FormatError, match="ninja"):
        write("bad", "x", detected, target=None, modules=(), root=checkout)
    assert not (checkout / "envs" / "sites" / "bad").exists()
    with pytest.raises(RefusedError):
        write("rocky", "x", detected, target=None, modules=(), root=checkout)


@pytest.mark.long
def test_a_fact_that_can_be_neither_detected_nor_asked_for_is_an_error(checkout: Path) -> None:
    done = pagewise(checkout, "site", "new", "ours")
    assert done.returncode == 2
    assert "--summary" in done.stderr
    done = pagewise(checkout, "site", "new", "Our Site", "--summary", "x")
    assert done.returncode == 2
    assert not (checkout / "envs" / "sites" / "Our Site").exists()
    shutil.rmtree(checkout / ".pagewise" / "detected")
    with pytest.raises(SetupError) as refused:
        detect(checkout)
    assert refused.value.remedy == "make setup"
