"""A journal that names foreign paths or values restores nothing, and is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pagewise.core.errors import RefusedError
from pagewise.machine.settings.journal import Journal, JournalFolder, SettingChange, shared_folder
from pagewise.machine.settings.kinds import Attribute, Msr, Pool, Setting, Switch
from pagewise.machine.settings.session import restore


@pytest.mark.parametrize(
    ("setting", "before"),
    [
        (Pool(Path("/elsewhere/pool")), "1"),
        (Switch(Path("/else\0where")), "never"),
        (Attribute(Path("/elsewhere"), 1), "0x1"),
        (Msr(Path("/elsewhere"), 0x1A4, 15), "0x1"),
    ],
)
def test_a_journal_with_foreign_paths(tmp_path: Path, setting: Setting, before: str):
    folder = JournalFolder.made(shared_folder(tmp_path))
    journal = Journal(folder)
    journal.changes = [SettingChange(setting, before)]
    journal._write()
    folder.close()
    with pytest.raises(RefusedError):
        restore(tmp_path)


def test_a_value_that_a_setting_cannot_have(tmp_path: Path):
    folder = tmp_path / "hugepages-2048kB"
    folder.mkdir()
    (folder / "nr_hugepages").write_text("3")
    with pytest.raises(RefusedError):
        SettingChange(Pool(folder), "many").undo(print)
    assert (folder / "nr_hugepages").read_text() == "3"
