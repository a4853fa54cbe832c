"""A stage for tests: a module tree for real Lmod, with small scripts as kernels."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from forked import PYTHON, run_module
from pagewise.core.result import Result, read_result
from scripts import HANGS_AFTER, called, write_script

ROOT = Path(__file__).parents[2]
RUNNERS = ROOT / "runners"

FAKE = Path(__file__).with_name("fake_kernel.py")
EVENTS = ROOT / "kernels" / "region" / "groups"

TRIAD = {
    "schema": "pagewise.kernel/1",
    "name": "triad",
    "group": "memory",
    "title": "Vector triad",
    "summary": "Bandwidth of a(i) = b(i) + c(i) * d(i).",
    "equation": "a(i) = b(i) + c(i) * d(i)",
    "executable": "pw-triad",
    "sensitive_to": ["compiler", "hugepages", "prefetch", "stores"],
    "metrics": [
        {
            "field": "bandwidth_stream_gb_per_s",
            "label": "Bandwidth",
            "unit": "GB/s",
            "convention": "stream",
            "better": "higher",
        },
        {
            "field": "bandwidth_hardware_gb_per_s",
            "label": "Bandwidth",
            "unit": "GB/s",
            "convention": "hardware",
            "better": "higher",
        },
    ],
    "traffic": {"loads": 3, "stores": 1, "write_allocate": 1, "flops": 2, "element_bytes": 8},
    "compare": {"arguments": ["--working-set", "64MiB", "--repetitions", "5"], "default": True},
    "sweeps": [
        {
            "arguments": ["--sweep", "working-set", "--working-set", "64MiB"],
            "x": "working_set_bytes",
            "y": "bandwidth_stream_gb_per_s",
        }
    ],
}
CHASE = {
    "schema": "pagewise.kernel/1",
    "name": "chase",
    "group": "memory",
    "title": "Pointer chase",
    "summary": "Latency by working set.",
    "executable": "pw-chase",
    "sensitive_to": ["compiler", "hugepages"],
    "metrics": [{"field": "latency_ns", "label": "Latency", "unit": "ns", "better": "lower"}],
    "compare": {"arguments": ["--working-set", "64MiB"], "default": True},
}
# A curve that only configurations with software prefetch have.
DISTANCES = {
    "arguments": ["--sweep", "prefetch-distance=4,16,64", "--working-set", "32MiB"],
    "x": "options.prefetch_distance",
    "label": "prefetch distance [lines]",
    "y": "bandwidth_stream_gb_per_s",
    "when": {"prefetch": "software"},
}
# Not in the default comparison.
GATHER = {
    **CHASE,
    "name": "gather",
    "group": "indirect",
    "title": "Gather",
    "executable": "pw-gather",
    "compare": {"arguments": ["--working-set", "64MiB"]},
}
COMPILERS = ("gcc-12.2.0", "llvm-22.1.8")
PAGES = BASE, THP = ("none", "hardware", "regular"), ("thp", "hardware", "regular")
ALL_LABELS = [
    (pages, prefetch, stores)
    for pages in ("none", "thp", "hugetlbfs")
    for prefetch, stores in (
        ("hardware", "regular"),
        ("software", "regular"),
        ("block", "regular"),
        ("hardware", "nontemporal"),
    )
]


def csv_rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def result_content(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The data of a result's manifest and records."""
    lines = (folder / "records.jsonl").read_bytes().splitlines()
    return json.loads((folder / "manifest.json").read_text()), [json.loads(line) for line in lines]


def write_result(folder: Path, manifest: dict, records: Iterable[Any] | None = None) -> Path:
    """Write a result's manifest with the digest of its records, and optionally these; returns the folder."""
    file = folder / "records.jsonl"
    if records is not None:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(one) + "\n" for one in records))
    content = file.read_bytes()
    digest = {"lines": content.count(b"\n"), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps({**manifest, "records": digest}, indent=2))
    return folder


def write_case(folder: Path, **fields: object) -> str:
    """A file for --case; its path."""
    file = folder / "case.yaml"
    file.write_text(yaml.safe_dump({"schema": "pagewise.suite/1", **fields}))
    return str(file)


@dataclass
class Stage:
    """A folder with a module tree and prefixes, and methods that run pagewise on it."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    #: Load modules by Lmod in each run, instead of once per content of the tree.
    loads_modules: bool = False

    @property
    def modules(self) -> Path:
        return self.folder / "modules"

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def add(
        self, compiler: str, label: tuple[str, str, str], kernels: Iterable[dict], **behaviour: str
    ) -> str:
        """Add a configuration: module, prefix and kernels, PW_FAKE_* as behaviour; returns the module's name.

        `papi="on"`: built with PAPI; `openmp="off"`: without OpenMP. `library`: the name of the library that
        the kernels call. `loop`: how loops are written; without it, the module does not name it.
        """
        hugepages, prefetch, stores = label
        library, loop = behaviour.pop("library", ""), behaviour.pop("loop", "")
        suffix = "-loop-compiler" if loop == "compiler" else ""
        suffix += f"-{library}" if library else ""
        name = f"pagewise-micro/0.1.0/{compiler}/{hugepages}/{prefetch}-{stores}{suffix}"
        prefix = self.prefix(name)
        (prefix / "bin").mkdir(parents=True)
        (prefix / "share/pagewise/kernels").mkdir(parents=True)
        (prefix / "share/pagewise/events").symlink_to(EVENTS)
        for kernel in kernels:
            write_script(
                prefix / "bin" / kernel["executable"], f"#!{sys.executable} -SE\n" + FAKE.read_text()
            )
            (prefix / f"share/pagewise/kernels/{kernel['name']}.yaml").write_text(yaml.safe_dump(kernel))
        facts = {
            "PACKAGE": "pagewise-micro",
            "VERSION": "0.1.0",
            "COMPILER": compiler,
            "HUGEPAGES": hugepages,
            "PREFETCH": prefetch,
            "STORES": stores,
            "OPENMP": behaviour.pop("openmp", "on"),
            "PAPI": behaviour.pop("papi", "off"),
            "TARGET": "x86_64",
            **({"LIBRARY": library} if library else {}),
            **({"LOOP": loop} if loop else {}),
            "HASH": hashlib.sha256(name.encode()).hexdigest()[:16],
            "BUILDER": "cmake",
            "PREFIX": str(prefix),
        }
        lines = [f'setenv("PAGEWISE_{key}", "{value}")' for key, value in facts.items()]
        lines += [f'setenv("PW_FAKE_{key.upper()}", "{value}")' for key, value in behaviour.items()]
        self.module(name, [f'prepend_path("PATH", "{prefix}/bin")', 'family("pagewise")', *lines])
        return name

    def prefix(self, name: str) -> Path:
        """The prefix of a module's programs."""
        return self.folder / "opt" / name.replace("/", "-")

    def set(self, name: str, variable: str, value: str) -> None:
        """Make a module set another variable."""
        with (self.modules / f"{name}.lua").open("a") as file:
            file.write(f'setenv("{variable}", "{value}")\n')

    def module(self, name: str, lines: Iterable[str]) -> Path:
        file = self.modules / f"{name}.lua"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n")
        return file

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "pagewise", *arguments]

    def variables(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        return {
            **kept,
            **PYTHON,
            "PAGEWISE_ROOT": str(self.folder),
            "PAGEWISE_MODULES": str(self.modules),
            "COLUMNS": "120",
            **(
                {}
                if self.loads_modules
                else {"PAGEWISE_TEST_KEPT_MODULES": str(ROOT / ".pagewise/tests-modules")}
            ),
            **self.environment,
        }

    def run(
        self, *arguments: str, timeout: float = HANGS_AFTER, code: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run pagewise; it must end with this code, if there is one."""
        done = run_module("pagewise", arguments, self.variables(), self.folder, timeout)
        assert code in (None, done.returncode), done.stdout + done.stderr
        return done

    def compare(self, *arguments: str, code: int | None = None) -> subprocess.CompletedProcess[str]:
        name = "compare" if {"--", "--suite", "--case"} & {*arguments} else "kernels"
        return self.run(name, "--output", str(self.results), *arguments, code=code)

    def start(self, name: str, *arguments: str, records: int = 1) -> subprocess.Popen[str]:
        """Start a command that measures; it has written so many records, or has ended."""
        process = subprocess.Popen(
            self.command(name, "--output", str(self.results), *arguments),
            env=self.variables(),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while process.poll() is None:
            files = list(self.results.glob("*/records.jsonl"))
            if files and files[0].read_bytes().count(b"\n") >= records:
                break
            time.sleep(0.01)
        return process

    def resume(
        self, folder: Path, *options: str, code: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Repeat the command of a result with --resume."""
        _, name, *words = json.loads((folder / "manifest.json").read_text())["command"]
        return self.run(name, "--resume", str(folder), *options, *words, code=code)

    def reframe(self, site: Path, settings: dict[str, str], *more: str) -> subprocess.CompletedProcess[str]:
        """Run the test of `pagewise.cluster.reframe_nodes`, with its variables as `settings`."""
        program = write_script(self.folder / "pagewise", f'#!/bin/sh\nexec {" ".join(self.command())} "$@"\n')
        settings = {"pagewise": str(program), **settings}
        command = [sys.executable, "-c", "from reframe.frontend.cli import main; main()", "-r", *more]
        command += [word for name, value in settings.items() for word in ("-S", f"{name}={value}")]
        command += ["-C", str(site), "-c", str(RUNNERS / "pagewise/cluster/reframe_nodes.py")]
        return called(
            [*command, "--prefix", str(self.folder / "reframe")],
            env={**self.variables(), "HOME": str(self.folder)},
            cwd=self.folder,
        )

    def result(self) -> Path:
        """The newest result's folder."""
        return max(self.results.iterdir())

    def read_result(self) -> Result:
        return read_result(self.result())
