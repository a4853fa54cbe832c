"""Clocks: governor and boost are set when requested, read back, and always restored."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_root import CPUS, tree
from pagewise.core.errors import RefusedError, SelectionError
from pagewise.machine.host import read_host
from pagewise.machine.settings.clocks import clocks_set, find_clocks
from pagewise.machine.settings.session import traces


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Two CPUs with a clock each, and boost as acpi-cpufreq has it."""
    for number in (0, 1):
        policy = f"{CPUS}/cpufreq/policy{number}"
        names = {"scaling_governor": "schedutil", "scaling_available_governors": "performance schedutil"}
        tree(tmp_path, {f"{policy}/{name}": text for name, text in names.items()})
        (tmp_path / CPUS / f"cpu{number}").mkdir()
        (tmp_path / CPUS / f"cpu{number}" / "cpufreq").symlink_to(tmp_path / policy)
    return tree(tmp_path, {f"{CPUS}/cpufreq/boost": "1"})


def test_clocks_are_set_recorded_and_restored(machine: Path) -> None:
    with pytest.raises(ZeroDivisionError), clocks_set(("governor=performance", "boost=off"), machine) as made:
        host = read_host(machine)
        assert (host.governors, host.boost) == (("performance",), False)
        assert [(Path(each.file).parent.name, each.before, each.now) for each in made] == [
            ("policy0", "schedutil", "performance"),
            ("policy1", "schedutil", "performance"),
            ("cpufreq", "1", "0"),
        ]
        assert len(traces(machine)) == 1
        raise ZeroDivisionError
    host = read_host(machine)
    assert (host.governors, host.boost, traces(machine)) == (("schedutil",), True, [])


@pytest.mark.parametrize(("value", "word"), [("on", "0"), ("off", "1")])
def test_the_switch_of_intel_pstate_means_the_opposite(machine: Path, value: str, word: str) -> None:
    name = f"{CPUS}/intel_pstate/no_turbo"
    file = tree(machine, {name: "10"[int(word)]}) / name
    with clocks_set((f"boost={value}",), machine):
        assert file.read_text().strip() == word and read_host(machine).boost is (value == "on")
    assert file.read_text().strip() != word


def test_changes_by_a_governor_are_restored_with_it(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the kernel does: userspace forgets its frequency, and amd-pstate keeps the other preference."""
    before = {
        "scaling_governor": "userspace",
        "scaling_setspeed": "1800000",
        "energy_performance_preference": "balance_power",
    }
    folder = f"{CPUS}/cpufreq/policy0"
    tree(machine, {f"{folder}/{name}": text for name, text in before.items()})
    governor, speed, preference = (machine / folder / name for name in before)

    def write(file: Path, value: str, label: str) -> None:
        file.write_text(f"{value}\n")
        if file == governor:
            speed.write_text("3000000\n" if value == "userspace" else "<unsupported>\n")
            preference.write_text("performance\n")

    monkeypatch.setattr("pagewise.machine.settings.kinds._write", write)
    with clocks_set(("governor=performance",), machine):
        assert preference.read_text() == "performance\n"
    assert [file.read_text().strip() for file in (governor, speed, preference)] == list(before.values())
    assert traces(machine) == []


def test_a_setting_without_effect_is_an_error(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = machine / CPUS / "cpufreq/boost"
    written: list[str] = []
    monkeypatch.setattr("pagewise.machine.settings.kinds._write", lambda *given: written.append(given[1]))
    with pytest.raises(RefusedError), clocks_set(("boost=off",), machine):
        pytest.fail("the block must not run")
    assert written[0] == "0" and file.read_text() == "1\n"


@pytest.mark.parametrize(
    "requested",
    [
        *(("turbo=on",), ("boost",), ("boost=fast",), ("governor=fast",), ("eco=2",)),
        *(("boost=on", "boost=off"), ("governor=",)),
    ],
)
def test_unknown_settings_are_refused(machine: Path, requested: tuple[str, ...]) -> None:
    with pytest.raises(SelectionError):
        find_clocks(requested, machine)


@pytest.mark.parametrize("requested", ["governor=performance", "boost=on"])
def test_settings_that_a_machine_does_not_have_are_refused(tmp_path: Path, requested: str) -> None:
    with pytest.raises(RefusedError):
        find_clocks((requested,), tmp_path)
