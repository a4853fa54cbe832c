"""Clocks: governor and boost are set while asked for, read back, and as before whatever happens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pagewise.core.errors import RefusedError, SelectionError
from pagewise.machine.host import read_host
from pagewise.machine.settings.clocks import clocks_set, find_clocks, governors_here
from pagewise.machine.settings.kinds import Word, described, setting_of
from pagewise.machine.settings.session import traces
from stage import CHASE, Stage

CPUS = Path("sys/devices/system/cpu")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Two CPUs with a clock each, and boost as acpi-cpufreq has it."""
    for number in (0, 1):
        folder = tmp_path / CPUS / "cpufreq" / f"policy{number}"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text("schedutil\n")
        (folder / "scaling_available_governors").write_text("performance schedutil\n")
        (tmp_path / CPUS / f"cpu{number}").mkdir()
        (tmp_path / CPUS / f"cpu{number}" / "cpufreq").symlink_to(folder)
    (tmp_path / CPUS / "cpufreq" / "boost").write_text("1\n")
    return tmp_path


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
    assert governors_here(machine) == ["performance", "schedutil"]


@pytest.mark.parametrize(("value", "word"), [("on", "0"), ("off", "1")])
def test_the_switch_of_intel_pstate_means_the_opposite(machine: Path, value: str, word: str) -> None:
    file = machine / CPUS / "intel_pstate" / "no_turbo"
    file.parent.mkdir()
    file.write_text("10"[int(word)] + "\n")
    with clocks_set((f"boost={value}",), machine):
        assert file.read_text().strip() == word and read_host(machine).boost is (value == "on")
    assert file.read_text().strip() != word


def test_what_a_governor_changes_is_restored_with_it(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the kernel does: userspace forgets its frequency, and amd-pstate keeps the other preference."""
    folder = machine / CPUS / "cpufreq" / "policy0"
    governor, speed, preference = (
        folder / name for name in ("scaling_governor", "scaling_setspeed", "energy_performance_preference")
    )
    governor.write_text("userspace\n")
    speed.write_text("1800000\n")
    preference.write_text("balance_power\n")

    def write(file: Path, value: str, what: str) -> None:
        file.write_text(f"{value}\n")
        if file == governor:
            speed.write_text("3000000\n" if value == "userspace" else "<unsupported>\n")
            preference.write_text("performance\n")

    monkeypatch.setattr("pagewise.machine.settings.kinds._write", write)
    with clocks_set(("governor=performance",), machine):
        assert preference.read_text() == "performance\n"
    found = [file.read_text().strip() for file in (governor, speed, preference)]
    assert (found, traces(machine)) == (["userspace", "1800000", "balance_power"], [])


def test_an_unreadable_setting_names_its_own_option(machine: Path) -> None:
    file = machine / CPUS / "cpufreq" / "boost"
    file.unlink()
    file.mkdir()
    with pytest.raises(RefusedError) as caught, clocks_set(("boost=off",), machine):
        pass
    assert str(file) in str(caught.value.where) and "prefetchers" not in str(caught.value.remedy)


def test_a_setting_without_effect_is_an_error(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = machine / CPUS / "cpufreq" / "boost"
    written: list[str] = []
    monkeypatch.setattr("pagewise.machine.settings.kinds._write", lambda *given: written.append(given[1]))
    with pytest.raises(RefusedError), clocks_set(("boost=off",), machine):
        pass
    assert written[0] == "0" and file.read_text() == "1\n"
    word = Word(file)
    assert setting_of(described(word)) == word


@pytest.mark.parametrize(
    "requested",
    [
        ("turbo=on",),
        ("boost",),
        ("boost=fast",),
        ("governor=fast",),
        ("boost=on", "boost=off"),
        ("governor=",),
    ],
)
def test_unknown_settings_are_refused(machine: Path, requested: tuple[str, ...]) -> None:
    with pytest.raises(SelectionError):
        find_clocks(requested, machine)


@pytest.mark.parametrize("requested", ["governor=performance", "boost=on", "eco=2"])
def test_what_a_machine_does_not_have_is_refused(tmp_path: Path, requested: str) -> None:
    with pytest.raises(RefusedError):
        find_clocks((requested,), tmp_path)


@pytest.mark.long
def test_compare_refuses_before_it_measures(stage: Stage) -> None:
    stage.add("gcc-12.2.0", ("none", "hardware", "regular"), [CHASE])
    assert stage.compare("--plan", "--vary", "clocks=eco=2").returncode == 4
    assert stage.compare("--plan", "--vary", "clocks=boost=fast").returncode == 2
    assert stage.run("compare", "--plan", "--vary", "clocks=eco=2", "--", "true").returncode == 4
    assert not stage.results.exists()
    done = stage.compare("--rounds", "1", "--no-sweep", "--json")
    assert done.returncode == 0
    assert "clocks" not in json.loads((stage.result() / "manifest.json").read_text())
