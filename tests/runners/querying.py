"""Commands of pagewise in this process, and rows that results answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from json_schema import faults
from pagewise.cli import root

NODES, DATES = 6, 2


def invoked(*words: object) -> Result:
    """The end of a command: what it printed, and what it returned or raised."""
    return CliRunner().invoke(root, [*map(str, words)], standalone_mode=False)


def pagewise(*words: object) -> Result:
    done = invoked(*words)
    if done.exception is not None:
        raise done.exception
    return done


def data(schema: str, *arguments: object) -> dict[str, Any]:
    done = pagewise(*arguments, "--json")
    reported = json.loads(done.stdout)
    assert reported["schema"] == f"pagewise.{schema}/1" and faults(schema, reported) == []
    return reported


def answer(folder: Path, question: str) -> dict[str, Any]:
    return data("answer", "results", "query", question, folder)


def rows(folder: Path, question: str) -> list[dict[str, Any]]:
    return answer(folder, question)["rows"]


def count(folder: Path, table: str = "records") -> int:
    return rows(folder, f"SELECT count(*) AS n FROM {table}")[0]["n"]
