"""Which cores a run is bound to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pagewise.errors import SelectionError
from pagewise.host import core_of, numa_nodes


@dataclass(frozen=True)
class Placement:
    """The threads of a run, the CPUs they are bound to, and the OpenMP settings which bind them."""

    threads: int
    cpus: tuple[int, ...]

    @property
    def environment(self) -> dict[str, str]:
        """OpenMP's settings: one thread a core, side by side."""
        return {"OMP_NUM_THREADS": str(self.threads), "OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}

    @contextmanager
    def bound(self) -> Iterator[None]:
        """Binds the calling thread while the block lasts: a process that is started there inherits it.

        A child is bound before its exec in this way, without code between fork and exec.
        """
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.cpus)
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)


def place(threads: int, allowed: set[int] | None = None, root: Path = Path("/")) -> Placement:
    """One CPU of as many physical cores as there are threads, on one NUMA node where one has enough.

    The last cores of a node are taken: the first one serves most interrupts. `allowed` are the CPUs this
    process may use (batch systems give a part). Raises SelectionError when there are fewer cores than
    threads.
    """
    allowed = os.sched_getaffinity(0) if allowed is None else allowed
    cores = sorted({min(set(core_of(cpu, root)) & allowed) for cpu in allowed})
    if threads > len(cores):
        raise SelectionError(
            f"{threads} threads were asked for, and this process may use {len(cores)} physical cores",
            where="--threads",
            remedy=f"--threads {len(cores)}, or ask the batch system for more cores",
        )
    nodes = [[cpu for cpu in node["cpus"] if cpu in cores] for node in numa_nodes(root)]
    enough = [cpus for cpus in nodes if len(cpus) >= threads]
    pool = enough[0] if enough else cores
    return Placement(threads, tuple(sorted(pool)[len(pool) - threads :]))
