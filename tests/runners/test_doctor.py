"""`pagewise doctor`: which environment it examines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pagewise import cli
from pagewise.workloads.doctor import FindingsDocument


def examined(monkeypatch: pytest.MonkeyPatch, root: str, *arguments: str) -> str:
    """The environment that doctor examines in a checkout."""
    seen: list[str] = []

    def examine(environment: str, *_: Any) -> FindingsDocument:
        seen.append(environment)
        return FindingsDocument("pagewise.findings/1", True, (), None)

    monkeypatch.setattr("pagewise.workloads.doctor.examine", examine)
    monkeypatch.setenv("PAGEWISE_ROOT", root)
    done = CliRunner().invoke(cli.root, ["doctor", "--json", *arguments])
    assert done.exit_code == 0, done.output
    (environment,) = seen
    return environment


@pytest.mark.parametrize(
    ("built", "arguments", "named", "environment"),
    [
        ((), (), None, "default"),
        (("default", "libraries"), (), None, "default"),
        (("quick", "libraries"), (), None, "libraries"),
        (("quick.new",), (), None, "default"),
        (("quick",), ("--env", "default"), None, "default"),
        (("quick",), (), "stores", "stores"),
    ],
)
def test_doctor_examines_what_is_named_or_else_built(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    built: Sequence[str],
    arguments: Sequence[str],
    named: str | None,
    environment: str,
):
    for name in built:
        (tmp_path / ".pagewise" / "modules" / name).mkdir(parents=True)
    if named is None:
        monkeypatch.delenv("PAGEWISE_ENV", raising=False)
    else:
        monkeypatch.setenv("PAGEWISE_ENV", named)
    assert examined(monkeypatch, str(tmp_path), *arguments) == environment
