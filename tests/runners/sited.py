"""The origins of a program's memory without the simulator: a preloaded library writes allocation stacks."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from pagewise.core.manifest_parts import Origin
from pagewise.workloads.simulation.origins import name_origins

#: Programs, and the library.
SOURCES = Path(__file__).with_name("selected")
_LEAST = 1024


def compiled(out: Path, *words: str | Path, compiler: str = "cc") -> Path:
    subprocess.run([compiler, "-o", out, *words], check=True)
    return out


def origins_of(folder: Path, *command: str | Path, modules: Sequence[Path] = ()) -> tuple[Origin, ...]:
    """The origins of a program: sites of its run, and static objects of `modules`."""
    library, out = folder / "sites.so", folder / "sites"
    if not library.exists():
        compiled(library, "-O1", "-shared", "-fPIC", SOURCES / "sites.c")
    out.unlink(missing_ok=True)
    environment = {**os.environ, "SITES": str(out), "LD_PRELOAD": str(library), "NUMPY_MADVISE_HUGEPAGE": "0"}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    about: dict[str, Any] = {"begin": 0, "end": 0, "page_faults": 0, "allocations": 1, "name": ""}
    reported = []
    for line in out.read_text().splitlines():
        size, *words = line.split()
        places = zip(words[::2], words[1::2], strict=True)
        frames = [{"module": str(Path(path).resolve()), "offset": int(offset)} for path, offset in places]
        reported.append(
            {**about, "kind": "allocation", "module": "", "frames": frames[:14], "bytes": int(size)}
        )
    for module in modules:
        with module.open("rb") as stream:
            table = ELFFile(stream).get_section_by_name(".symtab")
            objects = [symbol for symbol in table.iter_symbols() if symbol["st_info"]["type"] == "STT_OBJECT"]
        static = {**about, "kind": "static", "module": str(module), "frames": []}
        reported += [
            {**static, "name": symbol.name, "bytes": size}
            for symbol in objects
            if (size := symbol["st_size"]) >= _LEAST
        ]
    # By size, because only the first ones are kept.
    return name_origins(
        [{**each, "counts": {"L1D_TLB_REFILL": 1, "PAGE_WALKS": max(each["bytes"], 1)}} for each in reported]
    )
