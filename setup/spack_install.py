"""Run Spack with its check of `develop:` sources limited to the files that a package is built from.

    spack_install.py SPACK_FOLDER ARGUMENT...

Spack rebuilds a package if any file below its dev_path is newer than the installation. All our packages have
kernels/ as dev_path, so an edit of a test or of another package's source would rebuild everything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Folders of kernels/ that belong only to the packages below.
PACKAGE_FOLDERS = ("hdf5", "micro", "mini")

#: The folders and files below PACKAGE_FOLDERS that a package is built from. The other folders count for
#: every package, because the library is linked statically.
PARTS = {
    "libpagewise": ("micro",),
    "pagewise-micro": ("micro",),
    "pagewise-eos-table": ("hdf5", "mini/helmholtz/table", "mini/helmholtz/constants.f90"),
    "pagewise-helmholtz": ("hdf5", "mini/helmholtz"),
    "pagewise-ember": ("hdf5", "mini/ember", "mini/helmholtz"),
}


def inputs(source: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """The files and folders of kernels/ that a package with these parts is built from."""
    yield from source.glob("CMakeLists.txt")
    yield from source.glob("*/CMakeLists.txt")
    shared = [part for part in source.iterdir() if part.is_dir() and part.name not in PACKAGE_FOLDERS]
    for part in [*shared, *(source / name for name in parts)]:
        if part.is_file():
            yield part
        for folder, below, files in os.walk(part):
            if "tests" in below:
                below.remove("tests")
            # The folder's time changes when a file is removed or renamed.
            yield Path(folder)
            yield from (Path(folder, name) for name in files)


def main(spack_folder: Path) -> int:
    """Run Spack with the remaining arguments; returns its exit code."""
    sys.path.insert(0, str(spack_folder / "lib" / "spack"))
    import spack.main
    import spack.package_base
    import spack.store

    original = spack.package_base.PackageBase.detect_dev_src_change

    def detect_dev_src_change(package: Any) -> bool:
        if package.name not in PARTS:
            return bool(original(package))
        source = Path(package.spec.variants["dev_path"].value)
        _, record = spack.store.STORE.db.query_by_spec_hash(package.spec.dag_hash())
        time = record.installation_time
        return any(path.lstat().st_mtime > time for path in inputs(source, PARTS[package.name]))

    spack.package_base.PackageBase.detect_dev_src_change = detect_dev_src_change
    return int(spack.main.main(sys.argv[2:]) or 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
