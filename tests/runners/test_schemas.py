"""Each schema takes what is right and names what is wrong."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

import json_schema
from builders import a_manifest, configuration, failed_record, record_data
from pagewise.core.errors import FormatError
from pagewise.core.kernel import Kernel, read_source, swept_name
from pagewise.core.reading import read_document
from pagewise.core.record import Record
from pagewise.core.structure import document, faults, to_data
from pagewise.workloads.counters.machine import EVENTS
from pagewise.workloads.simulation.geometry import FOLDER
from stage import ROOT, TRIAD

GOOD = record_data(configuration(), 1.0)


def changed(data: dict, path: str, value: object) -> dict:
    data = copy.deepcopy(data)
    *parents, last = path.split(".")
    part = data
    for name in parents:
        part = part[int(name)] if name.isdigit() else part[name]
    if value is DELETED:
        del part[last]
    else:
        part[last] = value
    return data


DELETED = object()


@pytest.mark.parametrize("name", sorted(json_schema.SCHEMAS))
def test_the_schemas_are_schemas(name):
    schema = json_schema.SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    assert schema["properties"]["schema"] == {"const": name} and "schema" in schema["required"]


def test_good_files_follow_their_generated_schemas():
    manifest = to_data(a_manifest(programs={"a": {}}, started_in=None))
    places = {fault.partition(":")[0] for fault in json_schema.faults("manifest", manifest)}
    assert places == {"configurations", "subjects", "programs.a"}
    files = [*ROOT.glob("kernels/m*/*/kernel.yaml"), *ROOT.glob("envs/suites/codes/*.yaml")]
    files += [*ROOT.glob("envs/sites/*/site.yaml"), *FOLDER.glob("*.yaml"), *EVENTS.glob("*.yaml")]
    names = set()
    for file in files:
        data = read_source(file) if file.name == "kernel.yaml" else yaml.safe_load(file.read_text())
        name = data["schema"].partition("/")[0].partition(".")[2]
        names.add(name)
        assert json_schema.faults(name, data) == [], file
    assert names == {"kernel", "suite", "site", "geometry", "events"}


REGION = {
    "name": "hydro",
    "path": "step/hydro",
    "calls": 100,
    "threads": 2,
    "seconds": 1.25,
    "seconds_mean_of_threads": 1.0,
    "seconds_exclusive": 0.5,
    "counts": {"perf::PAGE-FAULTS": 12},
}


def test_good_records_are_good():
    counted = {
        "counters": {"perf::PAGE-FAULTS": 12},
        "counters_source": "software",
        "counters_refused": {"no::such_event": "built without PAPI"},
        "regions": [
            REGION,
            changed(REGION, "counts", DELETED),
            {**REGION, "imbalance": {"perf::PAGE-FAULTS": 1.5}},
        ],
        "region_cost_seconds": 6e-8,
    }
    unavailable = to_data(failed_record(configuration(), "pages_unavailable", "no pages"))
    failed = to_data(failed_record(configuration(), "failed", "SIGSEGV"))
    assert [faults(Record, data) for data in (GOOD, GOOD | counted, unavailable, failed)] == [[]] * 4


#: They do not exist, or are not as the runner writes them.
MOMENTS = ("2026-99-99T99:99:99Z", "٢٠٢٦-01-01T00:00:00Z", "2026-01-01T00:00:00Z\n")


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("schema", "pagewise.record/2", "schema"),
        ("kernel", DELETED, "(top)"),
        ("status", "fine", "status"),
        ("started", "yesterday", "started"),
        *(("started", moment, "started") for moment in MOMENTS),
        ("seconds.repetitions", [], "seconds.repetitions"),
        ("seconds.repetitions", [0.0], "seconds.repetitions.0"),
        ("seconds.repetitions", [5e-324], "seconds.repetitions.0"),
        ("seconds.repetitions", [1e308], "seconds.repetitions.0"),
        ("seconds.repetitions", ["1"], "seconds.repetitions.0"),
        ("sizes.elements", 10**19, "sizes.elements"),
        ("pages", DELETED, "(top)"),
        ("pages.huge_coverage", 1.5, "pages.huge_coverage"),
        ("pages.arrays.0.bytes", -1, "pages.arrays.0.bytes"),
        ("placement.cpus", [0.5], "placement.cpus.0"),
        ("placement.threads", 1e300, "placement.threads"),
        ("placement.cpus_allowed", "3-1", "placement.cpus_allowed"),
        ("validation.passed", "yes", "validation.passed"),
        ("metrics.latency_ns", "3", "metrics.latency_ns"),
        ("metrics.latency_ns", 1e308, "metrics.latency_ns"),
        ("run.series", "other", "run.series"),
        ("run.round", 2**31, "run.round"),
        ("run.position", 10**12, "run.position"),
        ("surprise", 1, "(top)"),
        ("sizes.surprise", 1, "sizes"),
        ("counters", {"unavailable": "x", "cycles": 3}, "counters"),
        ("counters_source", "guess", "counters_source"),
        ("counters_refused", {"cycles": None}, "counters_refused.cycles"),
        ("regions", [changed(REGION, "path", DELETED)], "regions.0"),
        ("regions", [REGION, changed(REGION, "calls", 0)], "regions.1.calls"),
        ("regions", [changed(REGION, "name", "step/hydro")], "regions.0.name"),
        ("regions", [changed(REGION, "counts", {"unavailable": "x"})], "regions.0.counts.unavailable"),
        ("regions", [{**REGION, "imbalance": 1.5}], "regions.0.imbalance"),
        ("regions", [{**REGION, "imbalance": {"cycles": None}}], "regions.0.imbalance.cycles"),
        ("region_cost_seconds", -1.0, "region_cost_seconds"),
    ],
)
def test_a_bad_record_is_reported_with_its_place(path, value, place):
    bad = changed(GOOD, path, value)
    actual = faults(Record, bad)
    assert any(fault.startswith(place + ":") for fault in actual), actual
    # What functions find is not in the generated schema: contradictions, moments, lists of CPUs.
    by_function = path in ("counters", "pages", "placement.cpus_allowed") or value in MOMENTS
    assert by_function or json_schema.faults("record", bad)


SOFTWARE, ZFILL = {"prefetch": ("software",)}, {"stores": ("zfill",)}
#: The builds that have an option of kernels.
BUILDS = {
    "prefetch-distance": SOFTWARE,
    "prefetch-distance-l2": SOFTWARE,
    "--prefetched": SOFTWARE,
    "zero-distance": ZFILL,
}


def test_the_kernels_of_this_project_are_good():
    files = sorted((ROOT / "kernels").glob("m*/*/*.yaml"))
    for file in files:
        kernel = document(Kernel, read_source(file)).benchmark
        for sweep in kernel.sweeps:
            option = sweep.arguments[sweep.arguments.index("--sweep") + 1].split("=")[0]
            assert sweep.of_metric or swept_name(sweep.x) == option, file
            assert set(sweep.when) <= {*kernel.sensitive_to, *kernel.options}, file
            assert (option == "working-set") == sweep.of_working_set, file
            # Options of builds of some kind are swept in those builds only, and no other sweep is restricted.
            needed = [BUILDS[name] for name in (option, *sweep.arguments) if name in BUILDS]
            of_builds = {name: values for name, values in sweep.when.items() if name not in kernel.options}
            assert of_builds == (needed[0] if needed else {}), file


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("name", DELETED, "(top): 'name'"),
        ("sensitive_to", ["colour"], "sensitive_to.0: 'colour'"),
        ("metrics", [], "metrics: "),
        ("metrics.0.better", "more", "metrics.0.better"),
        ("compare.arguments", "--sweep", "compare.arguments"),
        ("compare.arguments", [1], "compare.arguments.0: 1 "),
        ("compare.default", "yes", "compare.default"),
        ("sweeps.0.x", "stride", "sweeps.0.x"),
        ("sweeps.0.x", "options.Stride", "sweeps.0.x"),
        ("sweeps.0.x", "metrics.speed", "sweeps.0.x: 'metrics.speed'"),
        ("sweeps.0.y", "speed", "sweeps.0.y: 'speed'"),
        ("sweeps.0.when", {"compiler": "gcc"}, "sweeps.0.when.compiler: 'gcc'"),
        ("sweeps.0.when", {"prefetch": []}, "sweeps.0.when.prefetch"),
        ("sweeps.0.when", {"prefetch": "sofware"}, "'sofware'"),
        ("sweeps.0.when", {"order": "source"}, "sweeps.0.when.order: 'source'"),
        ("sweeps", [*TRIAD["sweeps"]] * 2, "sweeps.1: |'working-set'"),
        ("sweeps.0.name", "Large sets", "sweeps.0.name"),
        ("options", {"placement": ["near", "far"]}, "options.placement"),
        ("structures", ["packing"], "options: 'packing'"),
        ("executable", "rm", "executable"),
        ("colour", "red", "(top): |'colour'"),
    ],
)
def test_a_bad_kernel_names_file_and_fault(tmp_path: Path, path, value, named):
    file = tmp_path / "triad.yaml"
    file.write_text(yaml.safe_dump(changed(TRIAD, path, value)))
    with pytest.raises(FormatError) as caught:
        read_document(Kernel, file)
    assert caught.value.where == str(file)
    lines = caught.value.message.splitlines()
    assert any(all(part in line for part in named.split("|")) for line in lines)
