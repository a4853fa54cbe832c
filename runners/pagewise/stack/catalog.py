"""The configurations of a module tree, and the kernels that their kernel.yaml files describe."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.configuration import Configuration
from pagewise.core.errors import FormatError, SelectionError, SetupError
from pagewise.core.kernel import Kernel
from pagewise.core.manifest import BrokenModule
from pagewise.core.reading import read_document
from pagewise.core.text import nearest
from pagewise.stack import lmod
from pagewise.stack.lmod import load_each
from pagewise.stack.paths import module_tree
from pagewise.stack.setup import setup_facts


@dataclass(frozen=True)
class Entry:
    """A configuration with its environment after `module load`, and its kernels."""

    configuration: Configuration
    environment: dict[str, str]
    kernels: dict[str, Kernel]

    def program(self, executable: str) -> str | None:
        """The program's absolute path by this module's PATH, or None."""
        return shutil.which(executable, path=self.environment.get("PATH", ""))


@dataclass(frozen=True)
class Catalog:
    """The usable configurations of a module tree, their kernels, and the broken modules."""

    tree: Path
    entries: tuple[Entry, ...]
    kernels: dict[str, Kernel]
    broken: tuple[BrokenModule, ...]

    @property
    def by_module(self) -> dict[str, Entry]:
        """The configurations by their modules."""
        return {entry.configuration.module: entry for entry in self.entries}

    def select_kernels(self, patterns: Sequence[str]) -> list[Kernel]:
        """The kernels that match a name or glob; without any, those of the default comparison.

        Raises SelectionError.
        """
        for text in patterns:
            if not any(kernel.matches(text) for kernel in self.kernels.values()):
                near = ", ".join(self._names_near(text))
                raise SelectionError(
                    f"no kernel matches {text}",
                    where=self.tree,
                    remedy=f"nearest: {near}; `pagewise list kernels` lists all",
                )
        if patterns:
            return [k for k in self.kernels.values() if any(k.matches(text) for text in patterns)]
        default = [kernel for kernel in self.kernels.values() if kernel.compare.default]
        if self.kernels and not default:
            raise SelectionError(
                f"this tree has {len(self.kernels)} kernels, but none that is compared by default",
                where=self.tree,
                remedy="choose: --kernels NAMES, or --kernels '*'; `pagewise list kernels` lists them",
            )
        return default

    def _names_near(self, text: str) -> list[str]:
        """Similar names and groups, else all groups."""
        groups = sorted({f"{kernel.group}/*" for kernel in self.kernels.values()})
        # Of a glob only its letters are compared.
        letters = text.lower().translate(str.maketrans("", "", "*?[]")).strip("/")
        known = {name: name for name in groups}
        for kernel in self.kernels.values():
            known |= {kernel.name: kernel.name, kernel.path: kernel.name}
        known |= {name.removesuffix("/*"): name for name in groups}
        near = [name for word, name in known.items() if letters and letters in word]
        near += [known[word] for word in nearest(letters, known, 5)]
        return list(dict.fromkeys(near))[:8] or groups

    def _like(self, text: str) -> str:
        """A similar configuration, as the beginning of a remedy."""
        near = nearest(text, (f"{e.configuration.compiler}/{e.configuration.label}" for e in self.entries), 1)
        return f"did you mean {near[0]}? " if near else ""

    def select_entries(self, patterns: Sequence[str]) -> list[Entry]:
        """The configurations that match a glob; without globs, all. Raises SelectionError."""
        for text in patterns:
            if not any(entry.configuration.matches(text) for entry in self.entries):
                raise SelectionError(
                    f"no configuration matches {text!r}",
                    where=self.tree,
                    remedy=f"{self._like(text)}`pagewise list` lists them; a glob is like 'gcc-*/thp/*'",
                )
        return [
            e for e in self.entries if not patterns or any(e.configuration.matches(text) for text in patterns)
        ]


def module_files(tree: Path) -> dict[str, Path]:
    """Module names of a tree with their files, sorted; hidden files are not modules."""
    files = {str(file.relative_to(tree).with_suffix("")): file for file in sorted(tree.rglob("*.lua"))}
    return {name: file for name, file in files.items() if file.is_file() and "/." not in f"/{name}"}


def find_catalog(environment: str, modules: Path | None) -> Catalog:
    """The catalog of an environment, or of another module tree. Raises as read_catalog."""
    return read_catalog(module_tree(environment, modules), lmod.find_init(setup_facts()))


def read_catalog(tree: Path, init: Path) -> Catalog:
    """Loads every module of the tree once and reads its configuration and kernels.

    A module that does not set PAGEWISE_PACKAGE is not part of pagewise and ignored. A module of pagewise that
    does not load or does not set a variable is listed as broken. Raises SetupError when no module is usable,
    FormatError for an invalid kernel.yaml.
    """
    files = module_files(tree)
    entries: list[Entry] = []
    broken: list[BrokenModule] = []
    read: dict[bytes, Kernel] = {}
    for loaded in load_each(init, tree, list(files)):
        if loaded.environment is None:
            broken.append(BrokenModule(loaded.name, f"module load failed: {loaded.message}"))
            continue
        if "PAGEWISE_PACKAGE" not in loaded.environment:
            continue
        digest = hashlib.sha256(files[loaded.name].read_bytes()).hexdigest()
        try:
            configuration = Configuration.from_environment(loaded.name, loaded.environment, digest)
        except KeyError as missing:
            broken.append(BrokenModule(loaded.name, f"the module does not set {missing.args[0]}"))
            continue
        entries.append(Entry(configuration, loaded.environment, _kernels_of(configuration, read)))
    if not entries:
        reasons = "".join(f"\n    {fault.module}: {fault.reason}" for fault in broken)
        raise SetupError(
            "this tree has no usable module" + reasons,
            where=tree,
            remedy="build the environment (make compare), or name another tree with --modules",
        )
    entries.sort(key=lambda entry: entry.configuration.sort_key())
    return Catalog(tree, tuple(entries), _agree(entries), tuple(broken))


def _kernels_of(configuration: Configuration, read: dict[bytes, Kernel]) -> dict[str, Kernel]:
    """The kernels of an installation by name; equal files are parsed once."""
    files = sorted((Path(configuration.prefix) / "share" / "pagewise" / "kernels").glob("*.yaml"))
    remedy = "correct its source, and build the environment again"
    kernels = {}
    for file in files:
        kernel = read_document(Kernel, file, remedy, read)
        kernels[kernel.name] = kernel
    return kernels


def _agree(entries: Sequence[Entry]) -> dict[str, Kernel]:
    """One description per kernel: builds that describe a kernel differently must not be compared."""
    first: dict[str, tuple[Kernel, str]] = {}
    for entry in entries:
        for name, kernel in entry.kernels.items():
            known, module = first.setdefault(name, (kernel, entry.configuration.module))
            if known != kernel:
                raise FormatError(
                    f"two builds describe the kernel {name} differently",
                    where=f"{module} and {entry.configuration.module}",
                    remedy="build the environment again, so that all builds have one source",
                )
    return {name: kernel for name, (kernel, _) in sorted(first.items())}
