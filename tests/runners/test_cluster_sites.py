"""What a site says of its scheduler, as a configuration for ReFrame; nothing is submitted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from pagewise.cluster.sites import FILE, located
from pagewise.cluster.systems import of_site
from pagewise.core.errors import SelectionError, SetupError
from pagewise.stack.site.folder import Site, read_site

ROOT = Path(__file__).parents[2]


def site(tmp_path: Path, name: str, **scheduler: Any) -> Site:
    """A copy of a site of the checkout with another scheduler."""
    folder = shutil.copytree(ROOT / "envs" / "sites" / name, tmp_path / name)
    told = yaml.safe_load((folder / "site.yaml").read_text())
    told["scheduler"] = scheduler or told["scheduler"]
    (folder / "site.yaml").write_text(yaml.safe_dump(told))
    return read_site(str(folder), ROOT)


def partitions(system: dict[str, Any]) -> list[dict[str, Any]]:
    """Of the only system."""
    (one,) = system["systems"]
    return one["partitions"]


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the one command of Slurm's that is asked: two partitions, no accounting."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sinfo").write_text("#!/bin/sh\nprintf 'batch\\nlong\\nbatch\\n'\n")
    (programs / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))


def test_slurm_gets_the_sites_account_options_launcher_and_modules(slurm: None, tmp_path: Path) -> None:
    told = {"partition": "long", "account": "perf", "launcher": "srun", "options": ["--exclusive"]}
    (one,) = partitions(of_site(site(tmp_path, "rocky", kind="slurm", **told)))
    assert (one["name"], one["scheduler"], one["launcher"]) == ("long", "squeue", "srun")
    assert one["access"] == ["--partition=long", "--account=perf", "--exclusive"]
    modules = "gnu12/12.2.0 cmake/3.24.2 openmpi4/4.1.6 hdf5/1.14.0"
    assert one["prepare_cmds"] == [". /etc/profile.d/lmod.sh", f"module load {modules}"]


def test_the_partition_asked_for_goes_before_the_sites(slurm: None, tmp_path: Path) -> None:
    ours = site(tmp_path, "rocky", kind="slurm", partition="long")
    for asked in ("batch", "rocky:batch"):
        assert [one["name"] for one in partitions(of_site(ours, asked))] == ["batch"]
    with pytest.raises(SelectionError, match="no partition 'short'; it has: batch, long"):
        of_site(ours, "short")


def test_a_site_that_names_no_partition_has_all(slurm: None, tmp_path: Path) -> None:
    found = partitions(of_site(site(tmp_path, "debian", kind="slurm")))
    assert [(one["name"], one["access"]) for one in found] == [
        ("batch", ["--partition=batch"]),
        ("long", ["--partition=long"]),
    ]
    assert {one["launcher"] for one in found} == {"local"} and "prepare_cmds" not in found[0]


def test_other_schedulers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"partition": "normal", "account": "perf", "options": ["-l place=excl"]}
    (one,) = partitions(of_site(site(tmp_path / "pbs", "debian", kind="pbs", **told)))
    assert (one["name"], one["scheduler"]) == ("normal", "pbs")
    assert one["access"] == ["-q normal", "-A perf", "-l place=excl"]
    (one,) = partitions(of_site(site(tmp_path / "none", "debian")))
    assert (one["name"], one["scheduler"]) == ("local", "local")
    with pytest.raises(SetupError, match="has no scheduler pjm"):
        of_site(site(tmp_path / "pjm", "fugaku"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="sinfo is not here"):
        of_site(site(tmp_path / "away", "ookami"))


def test_a_sites_own_file_for_reframe_goes_before_its_site_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGEWISE_CLUSTER_WORK", str(tmp_path))
    monkeypatch.delenv("PAGEWISE_SITE", raising=False)
    folder = site(tmp_path, "debian").folder
    with located(str(folder)) as (_, file):
        told = yaml.safe_load(file.read_text())
        assert told["systems"][0]["name"] == "debian" and partitions(told)[0]["name"] == "local"
    assert not file.exists()
    (folder / FILE).write_text("systems: []\n")
    with located(str(folder)) as (_, file):
        assert file == folder / FILE
    (tmp_path / "empty").mkdir()
    with (
        pytest.raises(SelectionError, match=f"neither site.yaml nor {FILE}"),
        located(str(tmp_path / "empty")),
    ):
        pass
