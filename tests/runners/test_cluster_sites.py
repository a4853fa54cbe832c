"""The scheduler of a site as a configuration for ReFrame; no job is submitted."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from pagewise.cluster.sites import FILE, located, of_site
from pagewise.core.errors import SelectionError, SetupError
from pagewise.stack.site import Site, read_site

ROOT = Path(__file__).parents[2]


def site(tmp_path: Path, name: str, **scheduler: Any) -> Site:
    """A copy of a site of the checkout with another scheduler."""
    folder = shutil.copytree(ROOT / "envs" / "sites" / name, tmp_path / name)
    content = yaml.safe_load((folder / "site.yaml").read_text())
    content["scheduler"] = scheduler or content["scheduler"]
    (folder / "site.yaml").write_text(yaml.safe_dump(content))
    return read_site(str(folder), ROOT)


def partitions(system: dict[str, Any]) -> list[dict[str, Any]]:
    """The partitions of the only system."""
    (only,) = system["systems"]
    return only["partitions"]


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for sinfo, the only command of Slurm that is called: two partitions, no accounting."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sinfo").write_text("#!/bin/sh\nprintf 'batch\\nlong\\nbatch\\n'\n")
    (programs / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))


def test_slurm_gets_the_sites_account_options_launcher_and_modules(slurm: None, tmp_path: Path) -> None:
    scheduler = {"partition": "long", "account": "perf", "launcher": "srun", "options": ["--exclusive"]}
    (partition,) = partitions(of_site(site(tmp_path, "rocky", kind="slurm", **scheduler)))
    assert (partition["name"], partition["scheduler"], partition["launcher"]) == ("long", "squeue", "srun")
    assert partition["access"] == ["--partition=long", "--account=perf", "--exclusive"]
    modules = "gnu12/12.2.0 cmake/3.24.2 openmpi4/4.1.6 hdf5/1.14.0"
    assert partition["prepare_cmds"] == [". /etc/profile.d/lmod.sh", f"module load {modules}"]


def test_the_requested_partition_overrides_the_sites(slurm: None, tmp_path: Path) -> None:
    ours = site(tmp_path, "rocky", kind="slurm", partition="long")
    for requested in ("batch", "rocky:batch"):
        assert [entry["name"] for entry in partitions(of_site(ours, requested))] == ["batch"]
    with pytest.raises(SelectionError) as caught:
        of_site(ours, "short")
    assert {"short", "batch", "long"} <= set(re.findall(r"\w+", caught.value.what))


def test_a_site_that_names_no_partition_has_all(slurm: None, tmp_path: Path) -> None:
    entries = partitions(of_site(site(tmp_path, "debian", kind="slurm")))
    assert [(entry["name"], entry["access"]) for entry in entries] == [
        ("batch", ["--partition=batch"]),
        ("long", ["--partition=long"]),
    ]
    assert {entry["launcher"] for entry in entries} == {"local"} and "prepare_cmds" not in entries[0]


def test_other_schedulers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = {"partition": "normal", "account": "perf", "options": ["-l place=excl"]}
    (entry,) = partitions(of_site(site(tmp_path / "pbs", "debian", kind="pbs", **scheduler)))
    assert (entry["name"], entry["scheduler"]) == ("normal", "pbs")
    assert entry["access"] == ["-q normal", "-A perf", "-l place=excl"]
    (entry,) = partitions(of_site(site(tmp_path / "none", "debian")))
    assert (entry["name"], entry["scheduler"]) == ("local", "local")
    with pytest.raises(SetupError, match="pjm"):
        of_site(site(tmp_path / "pjm", "fugaku"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="sinfo"):
        of_site(site(tmp_path / "away", "ookami"))


def test_a_sites_reframe_file_overrides_its_site_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGEWISE_CLUSTER_WORK", str(tmp_path))
    monkeypatch.delenv("PAGEWISE_SITE", raising=False)
    folder = site(tmp_path, "debian").folder
    with located(str(folder)) as (_, file):
        content = yaml.safe_load(file.read_text())
        assert content["systems"][0]["name"] == "debian" and partitions(content)[0]["name"] == "local"
    assert not file.exists()
    (folder / FILE).write_text("systems: []\n")
    with located(str(folder)) as (_, file):
        assert file == folder / FILE
    (tmp_path / "empty").mkdir()
    with (
        pytest.raises(SelectionError, match=FILE),
        located(str(tmp_path / "empty")),
    ):
        pass
