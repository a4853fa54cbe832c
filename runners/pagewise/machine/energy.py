"""The energy that this node uses: counters of RAPL (powercap) or hwmon.

Sources: Linux, Documentation/power/powercap/powercap.rst and Documentation/hwmon/sysfs-interface.rst.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.manifest import EnergyPart
from pagewise.core.record_parts import ENERGY, POWER
from pagewise.machine.host import number, read

#: Stands for / (tests pass another).
ROOT = Path("/")
_POWERCAP, _HWMON = Path("sys/class/powercap"), Path("sys/class/hwmon")
# Counters of RAPL wrap after 65 kJ or more: no package uses 1 kW for a minute.
_PERIOD_SECONDS = 60.0
# No socket uses more: its counter did not wrap but was reset, as when its driver is loaded again.
_MOST_WATTS = 10_000
# Their sensors are not those of the node.
_GPUS = ("amdgpu", "i915", "nouveau", "radeon", "xe")


@dataclass(frozen=True)
class Sensor:
    """A file with a counter of energy in microjoules; wrap: the value after which it begins at 0, if any."""

    name: str
    file: Path
    wrap: int | None = None

    def microjoules(self, before: int | None, after: int | None, seconds: float) -> float | None:
        """The energy between two readings; None if one is missing, or if the counter was reset."""
        if before is None or after is None:
            return None
        if after >= before:
            return after - before
        used = None if self.wrap is None else after - before + self.wrap
        return None if used is None or used > _MOST_WATTS * 1e6 * seconds else used


class Reading:
    """The energy since it was made, up to the last `advance`."""

    def __init__(self, sensors: Sequence[Sensor]) -> None:
        self._sensors = sensors
        self._values = [number(sensor.file) for sensor in sensors]
        self._time = time.monotonic()
        self._seconds = 0.0
        self._microjoules: float | None = 0.0

    def advance(self) -> None:
        """Adds the energy since the last call."""
        values, now = [number(sensor.file) for sensor in self._sensors], time.monotonic()
        seconds = now - self._time
        for sensor, before, after in zip(self._sensors, self._values, values, strict=True):
            used = sensor.microjoules(before, after, seconds)
            failed = used is None or self._microjoules is None
            self._microjoules = None if failed else (self._microjoules or 0.0) + (used or 0.0)
        self._seconds += seconds
        self._values, self._time = values, now

    @property
    def metrics(self) -> dict[str, float]:
        """Joules and watts for a record; empty without sensors, or if one failed."""
        if not self._microjoules:
            return {}
        joules = self._microjoules / 1e6
        return {ENERGY: joules, POWER: joules / self._seconds}


@dataclass(frozen=True)
class Meter:
    """The sensors that measure the energy of this node; none if it is `part.unavailable`."""

    part: EnergyPart
    sensors: tuple[Sensor, ...] = ()

    @contextmanager
    def measuring(self) -> Iterator[Reading]:
        """Measures the energy while the block runs."""
        reading, over = Reading(self.sensors), threading.Event()
        if not self.sensors:
            yield reading
            return

        def watch() -> None:
            while not over.wait(_PERIOD_SECONDS):
                reading.advance()

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield reading
        finally:
            over.set()
            thread.join()
            reading.advance()


def find_meter(root: Path | None = None) -> Meter:
    """The first source of energy that this user may read. `root`: see ROOT."""
    root = root or ROOT
    refused: list[Path] = []
    for source, sensors in (("powercap", _powercap(root)), ("hwmon energy", _hwmon(root))):
        unreadable = [sensor.file for sensor in sensors if number(sensor.file) is None]
        if sensors and not unreadable:
            return Meter(EnergyPart(source, tuple(sensor.name for sensor in sensors)), tuple(sensors))
        refused = refused or unreadable
    if refused:
        files = " ".join(map(str, refused))
        remedy = f"as root: chmod a+r {files} (see docs/explanation/energy.md), or run as root"
        return Meter(EnergyPart(unavailable=f"{refused[0]} cannot be read", remedy=remedy))
    reason = f"no package in {root / _POWERCAP}, and no counter of energy in {root / _HWMON}"
    remedy = "measure on a bare-metal node; there, as root: modprobe intel_rapl_msr"
    return Meter(EnergyPart(unavailable=reason, remedy=remedy))


def _powercap(root: Path) -> list[Sensor]:
    """Packages and their memory, of the control type that has most.

    Others count packages again: intel-rapl-mmio. The domain psys contains the packages, and core and uncore
    are parts of them.
    """
    by_type: dict[str, list[Sensor]] = {}
    for folder in sorted((root / _POWERCAP).glob("*:*")):
        name, parent = read(folder / "name") or "", folder.name.rpartition(":")[0]
        if name == "dram":
            name = f"{read(folder.parent / parent / 'name') or parent} dram"
        elif not name.startswith("package"):
            continue
        wrap = number(folder / "max_energy_range_uj")
        by_type.setdefault(folder.name.split(":")[0], []).append(Sensor(name, folder / "energy_uj", wrap))
    return max(by_type.values(), key=len, default=[])


def _hwmon(root: Path) -> list[Sensor]:
    """The counters of all devices of the first driver that has them; older drivers have them in `device`."""
    by_driver: dict[str, list[tuple[str, Sensor]]] = {}
    for folder in sorted((root / _HWMON).glob("hwmon*")):
        driver = read(folder / "name") or read(folder / "device/name") or folder.name
        pattern = "energy*_input"
        files = sorted(folder.glob(pattern)) or sorted((folder / "device").glob(pattern))
        for file in files if driver not in _GPUS else ():
            number_of = file.name.partition("_")[0]
            label = read(file.with_name(f"{number_of}_label")) or number_of
            by_driver.setdefault(driver, []).append((label.lower(), Sensor(f"{driver} {label}", file)))
    labelled = next(iter(by_driver.values()), [])
    # Sums over all others (ibmpowernv), and over the cores of a socket (amd_energy).
    for total in ("system", "esocket"):
        if whole := [sensor for label, sensor in labelled if label.startswith(total)]:
            return whole
    return [sensor for _, sensor in labelled]
