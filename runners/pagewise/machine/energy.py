"""The energy that this node uses: counters of RAPL (powercap) or hwmon, or hwmon's averages of power.

Sources: Linux, Documentation/power/powercap/powercap.rst and Documentation/hwmon/sysfs-interface.rst.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

from pagewise.core.manifest import EnergyPart
from pagewise.core.record_parts import ENERGY, POWER, PowerInterval
from pagewise.machine.host import number, read

#: Stands for / (tests pass another).
ROOT = Path("/")
_POWERCAP, _HWMON = Path("sys/class/powercap"), Path("sys/class/hwmon")
# Counters of RAPL wrap after 65 kJ or more: no package uses 1 kW for a minute.
_COUNTER_SECONDS, _POWER_SECONDS = 60.0, 1.0
# Power over time. RAPL updates its counters about every millisecond: an interval is a hundred times that.
_INTERVAL_SECONDS, _MOST_INTERVALS = 0.1, 128
# An interval may be longer by this share of the time between readings.
_LONGER = 0.25
# No socket uses more: its counter did not wrap but was reset, as when its driver is loaded again.
_MOST_WATTS = 10_000
# Their sensors are not those of the node.
_GPUS = ("amdgpu", "i915", "nouveau", "radeon", "xe")


@dataclass(frozen=True)
class Sensor:
    """A file with a counter of energy in microjoules, or with an average of power in microwatts.

    wrap: the value after which a counter begins at 0; None if it does not wrap. is_power: the file has the
    average of power over `interval` seconds.
    """

    name: str
    file: Path
    wrap: int | None = None
    is_power: bool = False
    interval: float = 0.0

    def microjoules(self, before: int | None, after: int | None, seconds: float) -> float | None:
        """The energy between two readings; None if one is missing, or if a counter was reset."""
        if before is None or after is None:
            return None
        if self.is_power:
            return after * seconds
        if after >= before:
            return after - before
        used = None if self.wrap is None else after - before + self.wrap
        return None if used is None or used > _MOST_WATTS * 1e6 * seconds else used


@dataclass(frozen=True)
class _Interval:
    """The energy of an interval; None if a sensor failed in it."""

    seconds: float
    microjoules: float | None

    def __add__(self, other: _Interval) -> _Interval:
        failed = self.microjoules is None or other.microjoules is None
        used = None if failed else (self.microjoules or 0.0) + (other.microjoules or 0.0)
        return _Interval(self.seconds + other.seconds, used)


class Reading:
    """The energy since it was made, up to the last `advance`, and its course in intervals.

    period: seconds between calls of `advance`, the length of an interval; that doubles with too many of them.
    """

    def __init__(self, sensors: Sequence[Sensor], period: float = _COUNTER_SECONDS) -> None:
        self._sensors, self._length, self._tolerance = sensors, period, _LONGER * period
        self._values = [number(sensor.file) for sensor in sensors]
        self._time = time.monotonic()
        self._total = _Interval(0.0, 0.0 if sensors else None)
        self._intervals: list[_Interval] = []

    def advance(self) -> None:
        """Adds the energy since the last call."""
        values, now = [number(sensor.file) for sensor in self._sensors], time.monotonic()
        seconds = now - self._time
        new = _Interval(seconds, 0.0)
        for sensor, before, after in zip(self._sensors, self._values, values, strict=True):
            new += _Interval(0.0, sensor.microjoules(before, after, seconds))
        self._total += new
        self._values, self._time = values, now
        last = self._intervals[-1] if self._intervals else None
        if last is not None and last.seconds + seconds <= self._length + self._tolerance:
            self._intervals[-1] = last + new
        else:
            self._intervals.append(new)
        if len(self._intervals) == _MOST_INTERVALS:
            self._length *= 2
            pairs = zip(self._intervals[::2], self._intervals[1::2], strict=True)
            self._intervals = [first + second for first, second in pairs]

    @property
    def metrics(self) -> dict[str, float]:
        """Joules and watts for a record; empty if a sensor failed, or if the run was too short for it."""
        if not self._total.microjoules or self._is_short:
            return {}
        joules = self._total.microjoules / 1e6
        return {ENERGY: joules, POWER: joules / self._total.seconds}

    @property
    def power_over_time(self) -> tuple[PowerInterval, ...]:
        """The mean power of each interval; empty if none has one, or if the run was short for a sensor."""
        ends = accumulate(each.seconds for each in self._intervals)
        watts = [
            None if each.microjoules is None else round(each.microjoules / 1e6 / each.seconds, 3)
            for each in self._intervals
        ]
        if self._is_short or not any(watts):
            return ()
        return tuple(PowerInterval(round(end, 3), power) for end, power in zip(ends, watts, strict=True))

    @property
    def _is_short(self) -> bool:
        """Whether a sensor averages over more time than has passed."""
        return self._total.seconds <= max((sensor.interval for sensor in self._sensors), default=0.0)


@dataclass(frozen=True)
class Meter:
    """The sensors that measure the energy of this node; none if it is `part.unavailable`.

    interval: seconds between readings, None: as few readings as sensors need. cpus: where to read.
    """

    part: EnergyPart
    sensors: tuple[Sensor, ...] = ()
    interval: float | None = None
    cpus: tuple[int, ...] = ()

    def over_time(self, interval: float | None, cpus: Sequence[int]) -> Meter:
        """The same, which reads counters every `interval` seconds (None: the default) on these CPUs."""
        return replace(self, interval=interval or _INTERVAL_SECONDS, cpus=tuple(cpus))

    @property
    def period(self) -> float:
        """Seconds between readings: at least those over which a sensor averages power."""
        if self.sensors[0].is_power:
            return max(_POWER_SECONDS, *(sensor.interval for sensor in self.sensors))
        return min(_COUNTER_SECONDS, self.interval or _COUNTER_SECONDS)

    @contextmanager
    def measuring(self) -> Iterator[Reading]:
        """Measures the energy while the block runs."""
        if not self.sensors:
            yield Reading(())
            return
        period, over = self.period, threading.Event()
        reading = Reading(self.sensors, period)

        def watch() -> None:
            if self.cpus:
                os.sched_setaffinity(0, self.cpus)
            while not over.wait(period):
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
    sources = {
        "powercap": _powercap(root),
        "hwmon energy": _hwmon(root, "energy*_input"),
        "hwmon power": _hwmon(root, "power*_average"),
    }
    refused: list[Path] = []
    for source, sensors in sources.items():
        unreadable = [sensor.file for sensor in sensors if number(sensor.file) is None]
        if sensors and not unreadable:
            return Meter(EnergyPart(source, tuple(sensor.name for sensor in sensors)), tuple(sensors))
        refused = refused or unreadable
    if refused:
        files = " ".join(map(str, refused))
        remedy = f"as root: chmod a+r {files} (see docs/explanation/energy.md), or run as root"
        return Meter(EnergyPart(unavailable=f"{refused[0]} cannot be read", remedy=remedy))
    reason = f"no package in {root / _POWERCAP}, and no sensor of energy or power in {root / _HWMON}"
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


def _hwmon(root: Path, pattern: str) -> list[Sensor]:
    """The sensors of all devices of the first driver that has them; older drivers have them in `device`."""
    by_driver: dict[str, list[tuple[str, Sensor]]] = {}
    is_power = pattern.startswith("power")
    for folder in sorted((root / _HWMON).glob("hwmon*")):
        driver = read(folder / "name") or read(folder / "device/name") or folder.name
        files = sorted(folder.glob(pattern)) or sorted((folder / "device").glob(pattern))
        for file in files if driver not in _GPUS else ():
            number_of = file.name.partition("_")[0]
            label = read(file.with_name(f"{number_of}_label")) or number_of
            milliseconds = number(file.with_name(f"{file.name}_interval")) or 1000
            interval = milliseconds / 1000 if is_power else 0.0
            sensor = Sensor(f"{driver} {label}", file, is_power=is_power, interval=interval)
            by_driver.setdefault(driver, []).append((label.lower(), sensor))
    labelled = next(iter(by_driver.values()), [])
    # Sums over all others (ibmpowernv), and over the cores of a socket (amd_energy).
    for total in ("system", "esocket"):
        if whole := [sensor for label, sensor in labelled if label.startswith(total)]:
            return whole
    return [sensor for _, sensor in labelled]
