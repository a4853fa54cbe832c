"""The files that a session measures: their digests, and whether they stay the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pagewise.core.reading import open_file

_Identity = tuple[int, int, int, int, int]


def sha256(file: Path) -> str | None:
    """The SHA-256 of a file's content, None if it cannot be read."""
    try:
        with open_file(file) as stream:
            digest = hashlib.sha256()
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
            return digest.hexdigest()
    except OSError:
        return None


@dataclass
class Watch:
    """Files by module, with their state when the session began.

    `look` is cheap: a file with the same inode, times and size counts as unchanged. `verify` reads all files.
    A file that changed once stays reported.
    """

    files: Mapping[str, tuple[Path, ...]]
    _identities: dict[Path, _Identity | None] = field(default_factory=dict)
    _digests: dict[Path, str | None] = field(default_factory=dict)
    _changed: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Records the state of all files."""
        for file in {file for files in self.files.values() for file in files}:
            self._identities[file] = _identity(file)
            self._digests[file] = sha256(file)

    def look(self, module: str) -> list[Path]:
        """The files of a module that have changed."""
        return self._check(self.files.get(module, ()), self._looks_different)

    def verify(self) -> dict[str, list[Path]]:
        """The files whose content has changed, by module."""
        changed = {module: self._check(files, lambda _: True) for module, files in self.files.items()}
        return {module: files for module, files in changed.items() if files}

    def digests(self) -> dict[str, str | None]:
        """The SHA-256 of each file at the beginning, by path."""
        return {str(file): self._digests[file] for file in sorted(self._digests)}

    def _looks_different(self, file: Path) -> bool:
        before, self._identities[file] = self._identities[file], _identity(file)
        return self._identities[file] != before

    def _check(self, files: Iterable[Path], suspected: Callable[[Path], bool]) -> list[Path]:
        files = tuple(files)
        for file in files:
            if file not in self._changed and suspected(file) and sha256(file) != self._digests[file]:
                self._changed.add(file)
        return [file for file in files if file in self._changed]


def _identity(file: Path) -> _Identity | None:
    try:
        state = file.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns
