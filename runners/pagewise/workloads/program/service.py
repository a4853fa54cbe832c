"""A program that serves: started under a page policy, loaded by another program that is not, and stopped."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pagewise.core.reading import read_end
from pagewise.core.record_parts import Failure, ProcessPlacement
from pagewise.core.signals import exit_text, limit_time, shell_code
from pagewise.machine.groups import Freezer, read_reached
from pagewise.machine.placement import observed_placement
from pagewise.session.launch import TIMED_OUT, Measurement, Start, StartedRun, Stopwatch
from pagewise.session.processes import Running, Shell, descendants, in_session, open_files

#: Stands for a free TCP port, another one in each run.
PORT = "{port}"
_TCP = "tcp:"
_POLL_SECONDS, _PROBE_SECONDS, _STOP_SECONDS = 0.02, 10.0, 10.0
_LISTENING, _ACCEPTING = "0A", 0x10000  # /proc/net/tcp: state; /proc/net/unix: flag
_LONGEST_LOG, _REFUSED = 10_000, 4
# How much of the end of its output is searched for `ready`, in bytes.
_LARGEST_LOG = 1 << 20


@dataclass(frozen=True)
class Service:
    """How a program that serves is measured.

    load: the command whose time and output are measured. ready: when it may start, see `check_ready`; None:
    with the first listening socket. setup, fill: shell commands in the folder of the run, before the service
    starts, and before the load.
    """

    load: tuple[str, ...]
    ready: str | None = None
    setup: tuple[str, ...] = ()
    fill: tuple[str, ...] = ()

    def on_port(self, command: Sequence[str]) -> tuple[Service, list[str]]:
        """The service, and the command that starts it, with a free port where they name one."""
        texts = [*command, *self.load, *self.setup, *self.fill, self.ready or ""]
        if not any(PORT in text for text in texts):
            return self, list(command)
        port = str(_free_port())
        ready = f"{_TCP}{PORT}" if self.ready is None else self.ready
        load, setup, fill = (
            tuple(text.replace(PORT, port) for text in part) for part in (self.load, self.setup, self.fill)
        )
        placed = Service(load, ready.replace(PORT, port), setup, fill)
        return placed, [word.replace(PORT, port) for word in command]


class ServiceError(Exception):
    """A service, or a command around a run, that failed.

    log: what it and the other commands reported. limit: the limit of a control group that explains it.
    """

    def __init__(self, exit_code: int, message: str, remedy: str | None = None, log: str = "") -> None:
        super().__init__(message)
        self.failure, self.log = Failure(exit_code, message, remedy), log
        self.limit: str | None = None


@dataclass
class Serving:
    """A service in the folder of a run. shell: runs the commands around it, in their environment.

    running: its process, while the load runs and afterwards.
    """

    service: Service
    shell: Shell
    stopwatch: Stopwatch
    running: Running = field(init=False)
    _observed: ProcessPlacement = field(init=False)

    @contextmanager
    def loading(
        self, start: Start, watching: Callable[[int], AbstractContextManager[Any]], number: int | None
    ) -> Iterator[StartedRun]:
        """Starts and fills the service, and starts its load, for which the block waits; then ends it.

        `watching` gets the number of the service's process and is open while the load runs. number: see
        `Stopwatch.start_run`. Raises ServiceError.
        """
        service, command = self.service.on_port(start.command)
        reached = read_reached()
        self._log.write_text("", encoding="utf-8")
        try:
            run_all(service.setup, self.shell, self.stopwatch.limit)
            _check_port(service.ready)
            with in_session(
                command, self._log, start.environment, self.shell.folder, start.inherited, end_leftovers=True
            ) as self.running:
                self._wait(service.ready, self.running)
                run_all(service.fill, self.shell, self.stopwatch.limit)
                self._observed = observed_placement(self.running.pid)
                load = Start(service.load, self.shell.environment, folder=self.shell.folder)
                with watching(self.running.pid), self.stopwatch.start_run(load, number) as run:
                    yield run
                _check_alive(self.running, "while the load ran")
                _stop(self.running)
        except ServiceError as fault:
            fault.limit = read_reached().cause(reached)
            fault.log += self.log
            raise

    def join(self, freezer: Freezer) -> None:
        """Moves the service's processes into the group, which freezes them with the load. Raises OSError."""
        freezer.add(self.running.pid)
        for pid in descendants(self.running.pid):
            with suppress(OSError):  # It may have ended.
                freezer.add(pid)

    def place(self, load: Measurement) -> Measurement:
        """The measurement of the load, with where the service was and what it left behind."""
        return replace(load, observed=self._observed, left_behind=self.running.left_behind)

    @property
    def log(self) -> str:
        """The end of what the service wrote."""
        return f"\n[service]\n{read_end(self._log, _LONGEST_LOG)}"

    @property
    def _log(self) -> Path:
        return self.shell.scratch / "service.txt"

    def _wait(self, ready: str | None, running: Running) -> None:
        """Waits until the service is ready. Raises ServiceError when it ends before, or is not in time."""
        limit = self.stopwatch.limit
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            _check_alive(running, "before it was ready")
            # A pattern may take longer than all the time.
            with suppress(TimeoutError), limit_time(deadline - time.monotonic()):
                if self._is_ready(ready, {running.pid, *descendants(running.pid)}):
                    return
            time.sleep(_POLL_SECONDS)
        expected = "it listened on no socket" if ready is None else f"`ready: {ready}` did not hold"
        raise ServiceError(
            TIMED_OUT,
            f"the service was not ready within {limit:g} s: {expected}",
            "allow more time with --timeout, or correct `ready` of the case; the log has its output",
        )

    def _is_ready(self, ready: str | None, pids: Iterable[int]) -> bool:
        if ready is None:
            inodes = _sockets_of(pids)
            return bool(_tcp_ports(inodes)) or any(inode in inodes for inode in _unix_listeners())
        if ready.startswith(_TCP):
            return _port_of(ready) in _tcp_ports(_sockets_of(pids))
        if ready.startswith("|"):
            return self.shell.run_alone(ready[1:].strip(), _PROBE_SECONDS)[0] == 0
        return re.search(ready, read_end(self._log, _LARGEST_LOG), re.MULTILINE) is not None


def check_ready(text: str) -> None:
    """Raises ValueError for what is neither `tcp:PORT`, nor `| COMMAND`, nor a pattern."""
    try:
        if text.startswith(_TCP):
            _port_of(text)
        elif not text.startswith("|"):
            re.compile(text, re.MULTILINE)
    except (ValueError, re.error) as fault:
        raise ValueError(f"{text!r} is neither tcp:PORT, nor '| command', nor a pattern: {fault}") from fault


def _port_of(ready: str) -> int:
    text = ready.removeprefix(_TCP)
    return int(text) if text != PORT else 0


def run_all(commands: Iterable[str], shell: Shell, limit: float) -> None:
    """Runs shell commands around a run, each for `limit` seconds at most. Raises ServiceError."""
    for command in commands:
        code, output = shell.run(command, limit)
        if code is None:
            raise ServiceError(TIMED_OUT, f"'{command}' did not end within {limit:g} s", log=output)
        if code != 0:
            last = [line for line in output.splitlines() if line.strip()][-1:]
            message = ": ".join([f"'{command}' {exit_text(code)}", *last])
            raise ServiceError(_REFUSED, message[:500], log=output)


def _check_alive(running: Running, when: str) -> None:
    code = running.process.poll()
    if code is not None:
        raise ServiceError(
            shell_code(code),
            f"the service {exit_text(code)} {when}",
            "its output is in the log; a service must stay in the foreground",
        )


def _check_port(ready: str | None) -> None:
    """Raises ServiceError if the port of the service is taken: the load would reach another service."""
    if ready is not None and ready.startswith(_TCP) and (port := _port_of(ready)) in _tcp_ports(None):
        raise ServiceError(
            _REFUSED,
            f"port {port} is in use by another process",
            f"end that process, or write {PORT} instead of the number: each run then has a free port",
        )


def _stop(running: Running) -> None:
    """Asks the service to end, and waits; what is left is ended with its group afterwards."""
    running.process.terminate()
    with suppress(subprocess.TimeoutExpired):
        running.process.wait(_STOP_SECONDS)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _sockets_of(pids: Iterable[int]) -> set[str]:
    """The inodes of the sockets that these processes have open."""
    names = (name for pid in pids for name in open_files(pid))
    return {name[8:-1] for name in names if name.startswith("socket:[")}


def _tcp_ports(inodes: set[str] | None) -> set[int]:
    """The ports that are listened on, by these sockets or by any."""
    ports = set()
    for file in ("/proc/net/tcp", "/proc/net/tcp6"):
        for words in _lines(Path(file)):
            if words[3] == _LISTENING and (inodes is None or words[9] in inodes):
                ports.add(int(words[1].rpartition(":")[2], 16))
    return ports


def _unix_listeners() -> Iterator[str]:
    """The inodes of Unix sockets that are listened on."""
    for words in _lines(Path("/proc/net/unix")):
        if int(words[3], 16) & _ACCEPTING:
            yield words[6]


def _lines(file: Path) -> Iterator[list[str]]:
    with suppress(OSError):
        for line in file.read_text(encoding="ascii", errors="replace").splitlines()[1:]:
            yield line.split()
