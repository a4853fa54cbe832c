"""An interruption by the user is not a failure, and GPG's background processes end with their users."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import STATE, copy_checkout, run, write_script

SECONDS = 60


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a compiler, in which CMake reports that it runs, and fails when it is interrupted."""
    root = copy_checkout(tmp_path / "checkout", "setup", "envs", "kernels", "modulefiles")
    (root / ".pagewise" / "venv").symlink_to((STATE / "venv").resolve())
    gcc = {"name": "gcc", "version": "12", "c": "gcc", "fortran": "gfortran", "entered": True}
    (root / ".pagewise" / "setup.json").write_text(json.dumps({"compilers": [gcc]}))
    environment = root / "envs" / "two" / "spack.yaml"
    environment.parent.mkdir()
    spec = "pagewise-micro hugepages=none prefetch=hardware stores=regular %gcc"
    environment.write_text(f"spack:\n  specs:\n  - {spec}\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("cmake", "ninja"):
        program = programs / name
        # A signal between fork and exec of one long sleep would be lost.
        script = (
            f"trap 'exit 1' INT\ntouch '{tmp_path}/runs'\nfor i in $(seq {10 * SECONDS}); do sleep 0.1; done"
        )
        write_script(program, f"#!/bin/sh\n{script}\n")
    return root


def test_an_interrupted_preset_build_is_repeated(checkout: Path, tmp_path: Path) -> None:
    variables = os.environ | {"PATH": f"{tmp_path / 'programs'}:{os.environ['PATH']}"}
    build = subprocess.Popen(
        # Shells start programs in the background with this signal ignored.
        ["env", "--default-signal=INT", checkout / "setup" / "presets", "two"],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + SECONDS
    while not (tmp_path / "runs").exists():
        assert build.poll() is None and time.monotonic() < end, build.communicate()
        time.sleep(0.05)
    # As a terminal does: to all processes of the group.
    os.killpg(build.pid, signal.SIGINT)
    output, _ = build.communicate(timeout=SECONDS)
    assert build.returncode == 130 and "error:" not in output, output
    assert not (checkout / ".pagewise" / "modules" / "two").exists()


@pytest.fixture
def signer() -> Iterator[Path]:
    """A checkout whose Spack creates signing keys. Its path is short: GPG's home contains sockets."""
    root = copy_checkout(Path(tempfile.mkdtemp(prefix="pagewise-gpg-")), "setup")
    spack = root / ".pagewise" / "spack" / "bin" / "spack"
    spack.parent.mkdir(parents=True)
    create = "--batch --passphrase '' --quick-generate-key signer"
    write_script(spack, f'#!/bin/sh\ngpg --homedir "$SPACK_GNUPGHOME" {create} >/dev/null 2>&1\n')
    yield root
    run("gpgconf", "--homedir", root / ".pagewise" / "gpg", "--kill", "all")
    # The agent removes its sockets as it ends.
    shutil.rmtree(root, ignore_errors=True)


def agent(home: Path) -> str:
    """The process of GPG's agent; empty if it does not run."""
    asked = ("gpg-connect-agent", "--homedir", home, "--no-autostart", "GETINFO pid", "/bye")
    return "".join(line for line in run(*asked).stdout.splitlines() if line.startswith("D "))


@pytest.mark.skipif(shutil.which("gpg-connect-agent") is None, reason="needs gpg-agent")
def test_the_agent_of_gpg_ends_with_the_script_that_started_it(signer: Path) -> None:
    home = signer / ".pagewise" / "gpg"
    done = run(signer / "setup" / "signing-key")
    key = done.stdout.split()[-1]
    assert done.returncode == 0 and re.fullmatch("[0-9A-F]{40}", key), done.stdout
    assert agent(home) == ""
    # One that the user started stays.
    run("gpg-connect-agent", "--homedir", home, "/bye")
    before = agent(home)
    assert before and run(signer / "setup" / "signing-key").stdout.split()[-1] == key
    assert agent(home) == before
