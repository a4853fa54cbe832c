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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sinfo", "sbatch", "scontrol")
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
_SECONDS = 30

_CONFIGURATION = """
ClusterName=pagewise
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
# A requeued job waits until its credential expires.
AuthInfo=socket={folder}/munge/socket,cred_expire=5
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
    namespaces = subprocess.run(["unshare", "--mount", "--uts", "true"], capture_output=True, check=False)
    return None if os.geteuid() == 0 and namespaces.returncode == 0 else "needs root, for namespaces"


@dataclass
class Slurm:
    """A running cluster. Slurm's commands use it with the variables of `environment`."""

    folder: Path
    nodes: tuple[str, ...]
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": _PATH}

    def call(self, *command: str) -> str:
        """Run one of Slurm's commands, and return its output."""
        environment = {**os.environ, **self.environment}
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=True
        ).stdout

    def start_node(self, node: str, before: Sequence[str] = ()) -> None:
        """Start a node's slurmd, after shell commands in its namespaces."""
        lines = [f"hostname {node}", *before, f'exec slurmd -D -N {node} -f "$SLURM_CONF"']
        # The end of a process namespace's first process ends all of them.
        namespaces = ("--mount", "--mount-proc", "--uts", "--pid", "--fork", "--kill-child")
        self._start(node, "unshare", *namespaces, "sh", "-ec", "\n".join(lines))

    def start(self) -> None:
        self.folder.mkdir(parents=True)
        munge = self.folder / "munge"
        munge.mkdir(mode=0o755)
        (munge / "key").write_bytes(os.urandom(128))
        (munge / "key").chmod(0o600)
        (self.folder / "state").mkdir()
        ports = free_ports(1 + len(self.nodes))
        text = _CONFIGURATION.format(folder=self.folder, ports=ports)
        for node, port in zip(self.nodes, ports[1:], strict=True):
            place = f"NodeHostname=localhost NodeAddr=127.0.0.1 Port={port}"
            text += f"NodeName={node} {place} CPUs=2 RealMemory=100\n"
        text += f"PartitionName=batch Nodes={','.join(self.nodes)} Default=YES MaxTime=60 State=UP\n"
        (self.folder / "slurm.conf").write_text(text)
        # Control groups are not used, but without this file Slurm looks for the machine's.
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        files = {
            "key-file": "key",
            "socket": "socket",
            "pid-file": "pid",
            "log-file": "log",
            "seed-file": "seed",
        }
        self._start(
            "munged", "munged", "-F", "--force", *(f"--{name}={munge / file}" for name, file in files.items())
        )
        until((munge / "socket").exists, f"munged does not start; {munge}")
        self._start("slurmctld", "slurmctld", "-D")

    def stop(self) -> None:
        """End all daemons and their processes."""
        for process in reversed(self.daemons.values()):
            # unshare ignores SIGTERM.
            process.kill()
            process.wait()

    def _start(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.out").open("wb") as output:
            self.daemons[name] = subprocess.Popen(
                command,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


@contextmanager
def private_slurm(folder: Path, nodes: dict[str, Sequence[str]]) -> Iterator[Slurm]:
    """A cluster with these nodes, each with the shell commands that change its settings."""
    slurm = Slurm(folder, tuple(nodes))
    try:
        slurm.start()
        for node, before in nodes.items():
            slurm.start_node(node, before)
        until(lambda: _idle(slurm) == set(nodes), f"the nodes do not start; logs in {folder}")
        yield slurm
    finally:
        slurm.stop()


def until(condition, message: str, seconds: float = _SECONDS) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
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
