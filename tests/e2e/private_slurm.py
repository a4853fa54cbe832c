"""A private Slurm: munged, slurmctld and several slurmd in a folder, on free ports, until the block ends.

Each node is a slurmd in its own mount and host name namespaces, so that nodes can have different settings.
It neither reads nor changes a system-wide Slurm.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sinfo", "sbatch", "scontrol")
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
_SECONDS = 30
_UNSHARE = ("unshare", "--mount", "--mount-proc", "--uts", "--pid", "--fork", "--kill-child")

_CONFIGURATION = """
ClusterName=pagewise
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/linear
MpiDefault=none
ReturnToService=2
SlurmdTimeout=5
KillWait=2
MinJobAge=600
SchedulerParameters=defer_batch,batch_sched_delay=1,sched_interval=1
SlurmdParameters=config_overrides
"""


def unavailable_because() -> str | None:
    """Why a private Slurm cannot run on this machine; None if it can."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]
    if missing:
        return f"{', '.join(missing)} missing: apt-get install munge slurmctld slurmd slurm-client"
    namespaces = subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False)
    return None if os.geteuid() == 0 and namespaces.returncode == 0 else "needs root, for namespaces"


@dataclass(frozen=True)
class Slurm:
    """A running cluster. Slurm's commands use it with the variables of `environment`."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": _PATH}

    def call(self, *command: str) -> str:
        """Run one of Slurm's commands, and return its output."""
        environment = {**os.environ, **self.environment}
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=True
        ).stdout


@contextmanager
def private_slurm(folder: Path, nodes: dict[str, Sequence[str]]) -> Iterator[Slurm]:
    """A cluster with these nodes, each with the shell commands that change its settings."""
    slurm = Slurm(folder)
    daemons: list[subprocess.Popen[bytes]] = []

    def start(name: str, *command: str) -> None:
        with (folder / f"{name}.out").open("wb") as out:
            environment = {**os.environ, **slurm.environment}
            daemons.append(
                subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
            )

    munge = folder / "munge"
    munge.mkdir(mode=0o755, parents=True)
    (munge / "key").write_bytes(os.urandom(128))
    (munge / "key").chmod(0o600)
    (folder / "state").mkdir()
    _write_configuration(folder, tuple(nodes))
    files = {f"{name}-file": name for name in ("key", "pid", "log", "seed")} | {"socket": "socket"}
    try:
        start(
            "munged", "munged", "-F", "--force", *(f"--{name}={munge / file}" for name, file in files.items())
        )
        until((munge / "socket").exists, f"munged does not start; {munge}")
        start("slurmctld", "slurmctld", "-D")
        for node, before in nodes.items():
            lines = [f"hostname {node}", *before, f'exec slurmd -D -N {node} -f "$SLURM_CONF"']
            start(node, *_UNSHARE, "sh", "-ec", "\n".join(lines))
        until(lambda: _idle(slurm) == set(nodes), f"the nodes do not start; logs in {folder}")
        yield slurm
    finally:
        # unshare ignores SIGTERM. The end of a process namespace's first process ends all of them.
        for process in reversed(daemons):
            process.kill()
            process.wait()


def _write_configuration(folder: Path, nodes: Sequence[str]) -> None:
    ports = free_ports(1 + len(nodes))
    text = _CONFIGURATION.format(folder=folder, ports=ports)
    for node, port in zip(nodes, ports[1:], strict=True):
        place = f"NodeHostname=localhost NodeAddr=127.0.0.1 Port={port}"
        text += f"NodeName={node} {place} CPUs=2 RealMemory=100\n"
    text += f"PartitionName=batch Nodes={','.join(nodes)} Default=YES MaxTime=60 State=UP\n"
    (folder / "slurm.conf").write_text(text)
    # Control groups are not used, but without this file Slurm looks for the machine's.
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")


def until(condition: Callable[[], bool], message: str) -> None:
    """Wait for a condition."""
    end = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < end, message
        time.sleep(0.05)


def free_ports(count: int) -> list[int]:
    """Currently free ports."""
    held = [socket.socket() for _ in range(count)]
    try:
        for listener in held:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in held]
    finally:
        for listener in held:
            listener.close()


def _idle(slurm: Slurm) -> set[str]:
    try:
        return set(slurm.call("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split())
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return set()
