"""Fill the tables and figures of a study with the values of results.

    .pagewise/venv/bin/python studies/fill.py STUDY RESULT... [--figures]

STUDY is one of the files next to this one, such as hager05, or the path of a further one. RESULT are folders
of `pagewise`; only manifest.json and the CSV files are read (docs/reference/studies.md).
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import yaml

Data = Mapping[str, Any]
#: A value by axes: `cell` is a number, or why there is none; all else is text.
Fact = dict[str, Any]
#: By test, program, compiler and pages: values by quantity.
Counts = dict[tuple[str, str, str, str], dict[str, float]]
#: The other columns of data.csv.
_NO_AXES = {"kernel", "title", "module", "target", "flags", "placement", "invalid", "cell"}
_NO_AXES |= {"quantity", "unit", "better", "value", "headline"}
_STRUCTURES = ("scheme", "layout", "table")


class StudyError(Exception):
    """A study or a result that cannot be used."""


class Table(NamedTuple):
    """A table or a part of one; cells are numbers, or why there are none. figure: empty, bars or lines."""

    title: str
    head: str
    columns: list[str]
    rows: list[tuple[str, list[float | str]]]
    figure: str = ""


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    """A CSV file of a result. Raises StudyError."""
    try:
        with (folder / name).open(newline="", encoding="utf-8") as stream:
            return list(csv.DictReader(stream))
    except OSError as fault:
        raise StudyError(f"{folder / name}: {fault.strerror}; write it: pagewise report {folder}") from fault


# The values of comparisons, and of counts.


def comparison_facts(study: Data, folder: Path, manifest: Data) -> Iterator[Fact]:
    """The rows of data.csv; `program`, `build`, `tasks`, `smt`, `headline` are further axes."""
    first: dict[str, str] = {}
    for row in rows_of(folder, "data.csv"):
        tasks = int(row["ranks"] or 1) * int(row["threads"])
        target = row["target"] if row["module"].endswith(f"-{row['target']}") else ""
        is_headline = first.setdefault(row["kernel"], row["quantity"]) == row["quantity"]
        why = f"excluded: {row['invalid']}" if row["invalid"] else "not measured"
        yield row | {
            "result": str(folder),
            "program": row["title"].removesuffix(".x"),
            "build": "-".join(filter(None, (target, row["flags"]))),
            "tasks": str(tasks),
            "smt": str(-(-tasks // int(row["cores"] or tasks))),
            "headline": "yes" if is_headline else "no",
            "form": "",
            "cell": float(row["value"]) if row["value"] else why,
        }


def counter_facts(study: Data, folder: Path, manifest: Data) -> Iterator[Fact]:
    """What was counted in the regions of the tests, per pass."""
    part, counts = manifest["counters"], Counts()
    events = part["events"]["reference"]
    names = {events[name]: study[name] for name in ("cycles", "instructions") if name in events}
    rows = rows_of(folder, "counters.csv")
    own = {
        "kernel",
        "module",
        "compiler",
        "hugepages",
        "quantity",
        "kind",
        "unit",
        "value",
        "rounds",
        "source",
    }
    shown = {*_STRUCTURES, *varying(rows, [name for row in rows[:1] for name in row if name not in own])}
    for row in rows:
        for test in study["tests"] if row["value"] else ():
            if test["programs"].get(row["kernel"], "") == part["region"]:
                options = (f"{name}={row[name]}" for name in row if name in shown and row[name])
                program = " ".join([row["kernel"], *options])
                values = counts.setdefault((test["title"], program, row["compiler"], row["hugepages"]), {})
                values[names.get(row["quantity"], row["quantity"])] = float(row["value"])
    return with_ratios(study, "measured", counts)


def simulation_facts(study: Data, folder: Path, manifest: Data) -> Iterator[Fact]:
    """What was simulated in the regions of the tests, and the rates of it."""
    kernel, counts = manifest["subjects"][0]["kernel"], Counts()
    program = " ".join([kernel["name"], *kernel.get("arguments", [])])
    compiler = manifest["configurations"][0]["compiler"]
    for row in rows_of(folder, "simulation.csv"):
        for test in study["tests"]:
            if test["programs"].get(row["kernel"]) == row["region"]:
                values = counts.setdefault((test["title"], program, compiler, row["policy"]), {})
                values[row["count"]] = float(row["simulated"])
    for values in counts.values():
        values |= {name: values[own] for name, own in study["simulated"].items() if own in values}
        for name, (above, below) in study["simulated_rates"].items():
            if above in values and values.get(below):
                values[name] = values[above] / values[below]
    return with_ratios(study, "simulated", counts)


def published_facts(study: Data) -> Iterator[Fact]:
    """The study's own numbers."""
    counts = Counts()
    for test in study["tests"]:
        for name, row in test["values"].items():
            for column, value in zip(study["columns"], row, strict=True):
                key = (test["title"], "FLASH", column["compiler"], column["hugepages"])
                counts.setdefault(key, {}).update({} if value is None else {name: value})
    return with_ratios(study, "published", counts)


def with_ratios(study: Data, kind: str, counts: Counts) -> Iterator[Fact]:
    """Values, and their ratios to base pages, of simulations the first pages, and to the first compiler."""
    first, base = next(iter(study["compilers"])), "none"
    for (test, program, compiler, pages), values in counts.items():
        family = compiler.partition("-")[0]
        of = {"kind": kind, "test": test, "program": program, "compiler": compiler, "family": family}
        of |= {"hugepages": pages, "result": ""}
        yield from (of | {"form": "values", "quantity": name, "cell": n} for name, n in values.items())
        base = next(iter(counts))[3] if kind == "simulated" else base
        for other, others in counts.items():
            if other[:2] != (test, program) or others is values:
                continue
            by_pages = other[2] == compiler and other[3] == base
            if by_pages or (other[3] == pages and other[2].partition("-")[0] == first != family):
                of |= {"form": "pages" if by_pages else "compilers"}
                shared = [name for name in values if others.get(name)]
                yield from (of | {"quantity": n, "cell": values[n] / others[n]} for n in shared)


# Tables: rows and columns are axes.


def key_of(axes: Sequence[Data], fact: Fact) -> tuple[str, ...]:
    """Where a fact is on axes."""
    return tuple(fact[axis["axis"]] for axis in axes)


def order_keys(axes: Sequence[Data], facts: Sequence[Fact]) -> list[tuple[str, ...]]:
    """The keys of facts: first the study's words, then numbers by size, then words as they were measured."""
    ranks = []
    for axis in axes:
        texts = list(dict.fromkeys(fact[axis["axis"]] for fact in facts))
        texts.sort(key=lambda text: float(text) if re.fullmatch(r"[\d.]+(e\+?\d+)?", text) else 0)
        words = [text for text in axis.get("words", ()) if text in texts]
        texts = [*words, *(text for text in texts if text not in words)]
        ranks.append(texts)
    keys = dict.fromkeys(key_of(axes, fact) for fact in facts)
    return sorted(keys, key=lambda key: [texts.index(text) for texts, text in zip(ranks, key, strict=True)])


def words_of(axes: Sequence[Data], key: tuple[str, ...]) -> str:
    """A key in the study's words."""
    pairs = zip(axes, key, strict=True)
    return ", ".join(
        filter(None, (axis.get("words", {}).get(text, text or "default") for axis, text in pairs))
    )


def varying(facts: Sequence[Fact], names: Iterable[str]) -> list[str]:
    """Those of the axes in which facts differ."""
    return [name for name in names if len({fact[name] for fact in facts}) > 1]


def belonging(table: Data, facts: Iterable[Fact]) -> list[Fact]:
    """The facts that a table shows."""
    axes = [axis for axis in (*table["rows"], *table["columns"]) if axis["axis"] == "quantity"]
    where = {"sweep": [""], **{axis["axis"]: list(axis["words"]) for axis in axes}, **table["where"]}
    mine = [
        fact
        for fact in facts
        if all(any(fnmatchcase(fact.get(axis, ""), glob) for glob in globs) for axis, globs in where.items())
    ]
    # Only options that were compared have a column in data.csv.
    names = {each["axis"] for each in (*table["rows"], *table["columns"])}.union(*mine)
    return [dict.fromkeys(names, "") | fact for fact in mine]


def fill_tables(table: Data, facts: Iterable[Fact]) -> Iterator[Table]:
    """A table in parts by all axes that are neither rows nor columns: nothing is averaged."""
    mine, rows, columns = belonging(table, facts), table["rows"], table["columns"]
    used = [axis["axis"] for axis in (*rows, *columns)]
    others = (mine[0].keys() if mine else set()) - {*_NO_AXES, *used, *table.get("follows", ())}
    by = varying(mine, sorted(others))
    compares = [axis["axis"] for axis in (rows if table.get("relative") == "efficiency" else columns)]
    places = {tuple(fact[name] for name in (*by, *used)) for fact in mine}
    parts: dict[str, list[Fact]] = {}
    for fact in mine:
        names = [*by, "placement"] if len(places) < len(mine) and "placement" in fact else by
        texts = (f"{name} {fact[name]}" if fact[name].isdecimal() else fact[name] for name in names)
        parts.setdefault(", ".join(filter(None, texts)), []).append(fact)
    if "relative" in table:
        parts = {part: of_part for part, of_part in parts.items() if varying(of_part, compares)}
    for part, of_part in parts.items():
        relatives = list(relative(table, of_part)) if "relative" in table else []
        every = [*of_part, *relatives]
        heads = [axis for axis in columns if varying(every, [axis["axis"]])] or columns[:1]
        heads = [{"axis": "form", "words": {"": ""}}, *heads] if relatives else heads
        cells: dict[Any, float | str] = {}
        for fact in every:
            place = key_of(rows, fact), key_of(heads, fact)
            cells[place] = "several values" if place in cells else fact["cell"]
        keys = order_keys(heads, every)
        lines = [
            (words_of(rows, row), [cells.get((row, key), "no value") for key in keys])
            for row in order_keys(rows, every)
        ]
        units = {fact["unit"] for fact in of_part if fact.get("unit")}
        title = f"{table['name']}. {table['caption']}" + (f" [{units.pop()}]" if len(units) == 1 else "")
        head = ", ".join(axis.get("title", axis["axis"]) for axis in rows)
        figure = table.get("figure", "") if relatives or "relative" not in table else ""
        title = ": ".join(filter(None, (title, part)))
        yield Table(title, head, [words_of(heads, key) for key in keys], lines, figure)
    if "published" in table and parts:
        own = table["published"]
        lines = [(str(row[0]), ["" if x is None else x for x in row[1:]]) for row in own["rows"]]
        yield Table(f"{table['name']}, published", own["columns"][0], own["columns"][1:], lines)


def relative(table: Data, facts: Sequence[Fact]) -> Iterator[Fact]:
    """Performance, above 1 is faster: to the first column or cell, or by task to the first row."""
    form, rows, columns = table["relative"], table["rows"], table["columns"]
    first_row, first = order_keys(rows, facts)[0], order_keys(columns, facts)[0]
    cells = {(key_of(rows, fact), key_of(columns, fact)): fact for fact in facts}
    for (row, column), fact in cells.items():
        places = {"row": (row, first), "part": (first_row, first), "efficiency": (first_row, column)}
        base = cells.get(places[form], fact)
        mine, other = fact["cell"], base["cell"]
        if base is not fact and all(isinstance(cell, float) and cell for cell in (mine, other)):
            ratio = mine / other if fact["better"] == "higher" else other / mine
            ratio *= int(base["tasks"]) / int(fact["tasks"]) if form == "efficiency" else 1
            yield fact | {"form": "efficiency" if form == "efficiency" else "relative", "cell": ratio}


# Output.


def markdown(table: Table) -> str:
    """A table in Markdown."""

    def text(cell: float | str) -> str:
        return cell if isinstance(cell, str) else f"{cell:.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"

    lines = [[table.head, *table.columns], ["---", *["---:"] * len(table.columns)]]
    lines += [[name, *map(text, cells)] for name, cells in table.rows]
    return "\n".join([f"## {table.title}\n", *(f"| {' | '.join(line)} |" for line in lines), ""])


def draw(table: Table, file: Path) -> None:
    """Bars of ratios, or curves."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    relatives = [name for name in table.columns if name.startswith("relative")] or table.columns
    for place, column in enumerate(relatives):
        cells = [cells[table.columns.index(column)] for _, cells in table.rows]
        points = [(n, cell) for n, cell in enumerate(cells) if not isinstance(cell, str)]
        ys = [y for _, y in points]
        if table.figure == "lines":
            axes.plot([float(table.rows[n][0]) for n, _ in points], ys, label=column)
        else:
            axes.barh(
                [n + 0.8 * place / len(relatives) for n, _ in points], ys, 0.8 / len(relatives), label=column
            )
    axes.set_xscale("log")
    if table.figure == "bars":
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_yticks(range(len(table.rows)), [name for name, _ in table.rows])
        axes.invert_yaxis()
    axes.set_title(table.title, fontsize="small", wrap=True)
    axes.legend(fontsize="small")
    figure.savefig(file)
    plt.close(figure)


def write(study: Data, name: str, folders: Sequence[Path], output: Path, figures: bool = False) -> str:
    """Writes tables.md, a CSV file with a row for each cell, and figures; the text of the tables."""
    readers = {"counters": counter_facts, "simulation": simulation_facts} if "tests" in study else {}
    kinds = readers or dict.fromkeys(("kernels", "program", "programs"), comparison_facts)
    facts: list[Fact] = []
    for folder in folders:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        if manifest["kind"] not in kinds:
            raise StudyError(f"{folder}: {name} needs results of the kinds {', '.join(kinds)}")
        facts += kinds[manifest["kind"]](study, folder, manifest)
    if not any(True for table in study["tables"] for _ in fill_tables(table, facts)):
        raise StudyError(f"nothing here belongs to {name}; docs/reference/studies.md has its commands")
    facts += published_facts(study) if readers else []
    output.mkdir(parents=True, exist_ok=True)
    parts = [f"# {study['title']}\n\n{study['source']}\n\nResults: {', '.join(map(str, folders))}\n"]
    with (output / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(("table", "row", "column", "value"))
        for table in (made for each in study["tables"] for made in fill_tables(each, facts)):
            parts.append(markdown(table))
            for row, cells in table.rows:
                rows.writerows((table.title, row, *pair) for pair in zip(table.columns, cells, strict=True))
            if figures and table.figure:
                file = "-".join(re.findall(r"[a-z0-9]+", table.title.lower())) + ".svg"
                draw(table, output / file)
                parts.append(f"![{table.title}]({file})\n")
    (output / "tables.md").write_text("\n".join(parts), encoding="utf-8")
    return "\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("study", help="a file of this folder by its name, such as pearc23, or a path")
    parser.add_argument("result", nargs="+", type=Path, help="folder of a result")
    parser.add_argument(
        "--output", type=Path, help="folder for the files (default: STUDY in the first RESULT)"
    )
    parser.add_argument("--figures", action="store_true", help="also draw the figures, as SVG")
    given = parser.parse_args(arguments)
    path = Path(given.study)
    file = path if path.suffix == ".yaml" else Path(__file__).parent / f"{path}.yaml"
    try:
        study = yaml.safe_load(file.read_text(encoding="utf-8"))
        output = given.output or given.result[0] / file.stem
        print(write(study, file.stem, given.result, output, given.figures))
    except (OSError, ValueError, StudyError) as fault:
        print(f"fill.py: error: {fault}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
