"""Values that shells offer, from this checkout and this machine; no module is loaded for them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from pagewise.core.errors import PagewiseError

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
#: The values with a description of each, or None; or what finds them for the parameters given so far.
Values = Mapping[str, str | None] | Callable[[click.Context], Mapping[str, str | None]]
_SETTING = re.compile(r'^setenv\("PAGEWISE_([A-Z]+)", *"([^"]*)"\)', re.MULTILINE)
_RESULTS = Path("results")


def one_of(values: Values) -> Completer:
    """Completes a value."""

    def complete(context: click.Context, option: click.Parameter, begun: str) -> list[CompletionItem]:
        return [
            CompletionItem(name, help=text) for name, text in _all(values, context) if name.startswith(begun)
        ]

    return complete


def list_of(values: Values) -> Completer:
    """Completes the last part of a list with commas, by those that are not in it yet."""

    def complete(context: click.Context, option: click.Parameter, begun: str) -> list[CompletionItem]:
        before, comma, last = begun.rpartition(",")
        given = set(before.split(","))
        return [
            CompletionItem(before + comma + item.value, help=item.help)
            for item in one_of(values)(context, option, last)
            if item.value not in given
        ]

    return complete


def names_in(module: str, attribute: str) -> Values:
    """The names that a module contains or its function returns; it is imported when a shell asks for them."""

    def find(context: click.Context) -> dict[str, str | None]:
        names = getattr(importlib.import_module(f"pagewise.{module}"), attribute)
        return dict.fromkeys(names() if callable(names) else names)

    return find


def kernels(context: click.Context) -> dict[str, str | None]:
    """The kernels of the environment with their titles, and the globs of their groups."""
    titles: dict[str, str | None] = {}
    groups: dict[str, str | None] = {}
    for prefix in _prefixes(context):
        for file in sorted(_kernel_files(prefix)):
            if file.stem not in titles:
                facts = dict(re.findall(r"^(title|group): *(.+)$", file.read_text(encoding="utf-8"), re.M))
                titles[file.stem] = facts.get("title")
                groups[f"{facts.get('group')}/*"] = "a group of kernels"
    return titles | groups


def kernel_options(context: click.Context) -> dict[str, str | None]:
    """The options of the environment's kernels that a comparison can vary, with all their values."""
    from pagewise.core.kernel import Kernel

    files = [file for prefix in _prefixes(context) for file in sorted(_kernel_files(prefix))]
    known = (Kernel.from_file(file).options.items() for file in files)
    return {f"{name}={','.join(options)}": None for every in known for name, options in every}


def _kernel_files(prefix: Path) -> Iterator[Path]:
    return (prefix / "share" / "pagewise" / "kernels").glob("*.yaml")


def configurations(context: click.Context) -> dict[str, str | None]:
    """The configurations of the environment, from the compiler on."""
    names = ("COMPILER", "HUGEPAGES", "PREFETCH", "STORES")
    known = [settings for settings in _modules(context) if settings.keys() >= set(names)]
    loops = ("-loop-compiler" if settings.get("LOOP") == "compiler" else "" for settings in known)
    labels = ("{COMPILER}/{HUGEPAGES}/{PREFETCH}-{STORES}".format_map(settings) for settings in known)
    return dict.fromkeys(map("".join, zip(labels, loops, strict=True)))


def baselines(context: click.Context) -> dict[str, str | None]:
    """The configurations without their compiler."""
    return dict.fromkeys(name.split("/", 1)[1] for name in configurations(context))


def programs(context: click.Context) -> dict[str, str | None]:
    """The programs of the environment's modules."""
    return dict.fromkeys(
        file.name for prefix in _prefixes(context) for file in sorted((prefix / "bin").glob("pw-*"))
    )


def page_sizes(context: click.Context) -> dict[str, str | None]:
    """The page policies with a size that this kernel knows."""
    from pagewise.core.page_policy import size_name
    from pagewise.machine.host import read_host

    host = read_host()
    sizes = (int(size.removesuffix("kB")) << 10 for size in (host.thp.sizes if host.thp else ()))
    return {
        **{f"thp:{size_name(size)}": "transparent huge pages of this size" for size in sizes},
        **{f"hugetlbfs:{size_name(pool.page_bytes)}": "of the reserved pool" for pool in host.pools},
    }


def policies(context: click.Context) -> dict[str, str | None]:
    """The page policies of a program, and further page sizes of kernels."""
    from pagewise.workloads.program.table import PARTS

    return {name: part.meaning for name, part in PARTS.items()} | page_sizes(context)


def event_files(context: click.Context) -> dict[str, str | None]:
    """The event files that came with the programs."""
    return {name: data.get("title") for name, data in _events(context)}


def event_groups(context: click.Context) -> dict[str, str | None]:
    """The groups of the event file that was named, or of all of them."""
    named = context.params.get("events")
    files = [data for name, data in _events(context) if named in (None, name)]
    return {group["name"]: group.get("title") for data in files for group in data["groups"]}


def listed(context: click.Context) -> dict[str, str | None]:
    """What `pagewise list KIND` takes."""
    find = {"configurations": configurations, "kernels": kernels, "policies": policies}
    return find[context.params["kind"]](context) if context.params.get("kind") in find else {}


def prefetchers(context: click.Context) -> dict[str, str | None]:
    """The hardware prefetchers that can be switched off or adjusted here, and all of them."""
    import os

    from pagewise.machine.settings.prefetchers import ALL, find_control

    control = find_control([ALL], os.sched_getaffinity(0))
    return {ALL: "all of them", **dict.fromkeys((*control.names, *control.adjustable))} | _unchanged(context)


def clocks(context: click.Context) -> dict[str, str | None]:
    """The settings of clocks, with the governors of this machine."""
    from pagewise.machine.settings.clocks import governors_here

    governors = (f"governor={name}" for name in governors_here())
    return dict.fromkeys(("boost=on", "boost=off", *governors)) | _unchanged(context)


def _unchanged(context: click.Context) -> dict[str, str | None]:
    """The setting that changes nothing, for commands that compare settings."""
    return {"unchanged": "as the machine has them"} if context.info_name in ("compare", "counters") else {}


def simulated_policies(context: click.Context) -> dict[str, str | None]:
    """The page policies of kernels, and those that are assumed for any program."""
    from pagewise.workloads.simulation.run import ASSUMED

    return dict.fromkeys(("none", "thp", *ASSUMED))


def results(context: click.Context) -> dict[str, str | None]:
    """The results in the folder where they are made, the newest first, with what they are."""
    folder = context.params.get("results") or _RESULTS
    files = sorted(folder.glob("*/manifest.json"), reverse=True) if isinstance(folder, Path) else []
    return {str(file.parent): _state(file) for file in files}


def folders_of_results(context: click.Context) -> dict[str, str | None]:
    """The folder of results, if it exists, and each result in it."""
    return ({str(_RESULTS): "all results in it"} if _RESULTS.is_dir() else {}) | results(context)


def questions(context: click.Context) -> dict[str, str | None]:
    """The known questions to a store, and files of SQL."""
    from pagewise.store.query import known

    return {**known(), **{str(file): "a file of SQL" for file in sorted(Path().glob("*.sql"))}}


def interrupted(context: click.Context) -> dict[str, str | None]:
    """The results that can be resumed."""
    return {name: state for name, state in results(context).items() if state != "complete"}


def _all(values: Values, context: click.Context) -> Iterable[tuple[str, str | None]]:
    try:
        return (values(context) if callable(values) else values).items()
    except (PagewiseError, OSError):
        return ()


def _modules(context: click.Context) -> Iterator[dict[str, str]]:
    """What the modules of the environment set, read without Lmod, which takes a second."""
    from pagewise.stack.catalog import module_files
    from pagewise.stack.paths import module_tree

    tree = module_tree(context.params.get("environment") or "default", context.params.get("modules"))
    for file in module_files(tree).values():
        yield dict(_SETTING.findall(file.read_text(encoding="utf-8")))


def _prefixes(context: click.Context) -> dict[Path, None]:
    return dict.fromkeys(Path(settings["PREFIX"]) for settings in _modules(context) if "PREFIX" in settings)


def _events(context: click.Context) -> Iterator[tuple[str, dict[str, Any]]]:
    from pagewise.core.reading import parse_yaml, read_file
    from pagewise.workloads.counters.machine import EVENTS

    prefix = next(iter(_prefixes(context)), Path("/nonexistent"))
    for file in sorted((*EVENTS.glob("*.yaml"), *(prefix / "share" / "pagewise" / "events").glob("*.yaml"))):
        yield file.stem, parse_yaml(read_file(file))


def _state(manifest: Path) -> str | None:
    from pagewise.core.reading import parse_json, read_file

    try:
        return str(parse_json(read_file(manifest))["state"])
    except (OSError, ValueError, LookupError, TypeError):
        return None
