"""Finds what starts MPI ranks: the site's launcher, else that of the program's MPI."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from pagewise.core.errors import SetupError
from pagewise.stack.commands import output_of
from pagewise.stack.paths import checkout
from pagewise.stack.site import SiteLauncher, find_folder, read_site

_MPI = re.compile(r"lib(mpi|mpich|mpi_[a-z]+)\.so(\.|$)")


@dataclass(frozen=True)
class LauncherKind:
    """A kind of launcher.

    programs: its names. version: a pattern of what `--version` prints. variables: the environment variables
    with the number of a rank on its node. options: with {ranks} and {threads}. environment: what leaves the
    binding of ranks to us. inherits: whether ranks inherit settings of the process that starts the launcher.
    job: a pattern of the batch system's variables that it needs, which loaded modules do not have.
    """

    programs: tuple[str, ...]
    version: str
    variables: tuple[str, ...]
    options: tuple[str, ...] = ("-n", "{ranks}")
    environment: Mapping[str, str] = field(default_factory=dict)
    inherits: bool = True
    job: str = "(?!)"


#: Open MPI reads OMPI_ variables up to version 4, PRTE_ variables from 5 on, and Fujitsu's MPI
#: those of plm_ple. machine/rank.py binds ranks, to CPUs that were checked before.
KINDS: Mapping[str, LauncherKind] = MappingProxyType(
    {
        "mpiexec-openmpi": LauncherKind(
            ("mpiexec.openmpi", "mpiexec", "mpirun"),
            r"Open ?MPI|Open-MPI|OpenRTE|PRRTE|PRTE",
            ("OMPI_COMM_WORLD_LOCAL_RANK", "PLE_RANK_ON_NODE"),
            job=r"PJM_|PLE_",
            environment={
                "OMPI_MCA_hwloc_base_binding_policy": "none",
                "OMPI_MCA_rmaps_base_oversubscribe": "1",
                "OMPI_MCA_plm_ple_cpu_affinity": "0",
                "PRTE_MCA_hwloc_default_binding_policy": "none",
                "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
            },
        ),
        "mpiexec-hydra": LauncherKind(
            ("mpiexec.mpich", "mpiexec.hydra", "mpiexec"),
            r"HYDRA|Intel\(R\) MPI",
            ("MPI_LOCALRANKID", "PMI_RANK"),
            environment={"I_MPI_PIN": "0", "HYDRA_BINDING": "none", "MV2_ENABLE_AFFINITY": "0"},
        ),
        "srun": LauncherKind(
            ("srun",),
            r"slurm",
            ("SLURM_LOCALID",),
            # A comparison may be a step of its job itself, whose CPUs the ranks then share with it.
            ("--nodes=1", "--ntasks={ranks}", "--cpus-per-task={threads}", "--cpu-bind=none", "--overlap"),
            inherits=False,
            job=r"SLURM_|SRUN_",
        ),
    }
)
#: Open MPI refuses to run as root without these two.
_AS_ROOT = {
    f"{prefix}_ALLOW_RUN_AS_ROOT{suffix}": "1" for prefix in ("OMPI", "PRTE") for suffix in ("", "_CONFIRM")
}


@dataclass(frozen=True)
class RankLauncher:
    """A launcher: its kind, program, and further options."""

    name: str
    program: str
    options: tuple[str, ...] = ()

    @property
    def kind(self) -> LauncherKind:
        """Its kind."""
        return KINDS[self.name]

    @property
    def environment(self) -> dict[str, str]:
        """The settings that it needs."""
        as_root = _AS_ROOT if self.name == "mpiexec-openmpi" and os.geteuid() == 0 else {}
        job = {name: value for name, value in os.environ.items() if re.match(self.kind.job, name)}
        return {**job, **self.kind.environment, **as_root}

    def command(self, ranks: int, threads: int) -> list[str]:
        """The command line, without the program of the ranks."""
        own = (option.format(ranks=ranks, threads=threads) for option in self.kind.options)
        return [self.program, *own, *self.options]


def find_launcher(files: Iterable[Path], environment: Mapping[str, str]) -> RankLauncher:
    """The launcher for a program with these files: itself and its shared libraries.

    The site's kind and options come first; without one, the kind is what the launcher reports. Raises
    SetupError if it is missing or of an unknown kind.
    """
    declared = _of_site()
    name = declared and declared.kind
    names = KINDS[name].programs if name else ("mpiexec", "mpirun", "srun")
    options = declared.options if declared else ()
    for program in _candidates(files, names, environment):
        kind = name or _kind_of(program, environment)
        if kind is not None:
            return RankLauncher(kind, program, options)
    raise SetupError(
        f"the launcher of MPI ranks is missing: {' or '.join(names)}",
        where="--ranks",
        remedy="apt-get install openmpi-bin, or mpich for programs of MPICH; on a cluster load the program's "
        "MPI module, or name `launcher: {kind: ...}` in the site's site.yaml (docs/how-to/ranks.md)",
    )


def links_mpi(files: Iterable[Path]) -> bool:
    """Whether a library among these files is MPI's."""
    return any(_MPI.match(file.name) for file in files)


def _of_site() -> SiteLauncher | None:
    """The launcher in the site.yaml of this machine; None without one."""
    root, name = checkout(), os.environ.get("PAGEWISE_SITE")
    if root is None and not name:
        return None
    folder = find_folder(name) if name else (root or Path()) / ".pagewise" / "site"
    if not (folder / "site.yaml").is_file():
        return None
    return read_site(str(folder)).data.launcher


def _candidates(files: Iterable[Path], names: Iterable[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Launchers that exist: those installed with the program's MPI, then those on PATH."""
    for library in (file.resolve() for file in files if _MPI.match(file.name)):
        own = "mpiexec.mpich" if library.name.startswith("libmpich") else "mpiexec.openmpi"
        for prefix in library.parents[1:-1][:3]:
            for name in (own, *names):
                if os.access(prefix / "bin" / name, os.X_OK):
                    yield str(prefix / "bin" / name)
    for name in names:
        for path in (environment.get("PATH", os.defpath), os.environ.get("PATH", os.defpath)):
            if (file := shutil.which(name, path=path)) is not None:
                yield file


def _kind_of(program: str, environment: Mapping[str, str]) -> str | None:
    """The kind of a launcher by what it reports; None if it is unknown."""
    reported = output_of([program, "--version"], environment, check=False) or ""
    return next((name for name, kind in KINDS.items() if re.search(kind.version, reported)), None)
