"""The table of deliberate faults: each is injected into a comparison by test_red_team.py.

docs/trust.md lists the same; test_red_team.py compares both.
"""

from __future__ import annotations

from dataclasses import dataclass

BASE, SOFTWARE, THP = (
    ("none", "hardware", "regular"),
    ("none", "software", "regular"),
    ("thp", "hardware", "regular"),
)


@dataclass(frozen=True)
class Fault:
    """A fault by name, and the code with which its configuration or result is excluded.

    An empty code: it is kept, with the verdict `cannot tell`. `label`: the configuration that has the fault.
    """

    name: str
    code: str
    label: tuple[str, str, str] = THP


#: Faults of one configuration in a comparison of stand-in kernels; what they do is in faulty.py.
OF_KERNELS = (
    Fault("nan-time", "failed"),
    Fault("infinite-time", "failed"),
    Fault("negative-time", "failed"),
    Fault("failed-check", "wrong_result"),
    Fault("failed-check-once", "wrong_result"),
    Fault("check-not-passed", "wrong_result"),
    Fault("crash", "failed"),
    Fault("crash-once", "failed"),
    Fault("no-record", "failed"),
    Fault("cut-record", "failed"),
    Fault("record-of-another-schema", "failed"),
    Fault("base-pages", "wrong_pages"),
    Fault("split-pages", "wrong_pages"),
    Fault("pages-split-later", "policy_not_kept"),
    Fault("smaller-pages", "wrong_pages"),
    Fault("another-policy", "wrong_pages"),
    Fault("huge-pages-on-base", "wrong_pages", SOFTWARE),
    Fault("pages-lost", "policy_not_kept"),
    Fault("another-core", "wrong_placement"),
    Fault("pages-migrated", "wrong_placement"),
    Fault("another-compiler", "wrong_build"),
    Fault("another-prefetch", "wrong_build"),
    Fault("another-store", "wrong_build"),
    Fault("without-openmp", "wrong_build"),
    Fault("dropped-flag", "wrong_build", ("thp", "block", "regular")),
    Fault("another-version", "wrong_build", ("thp", "software", "regular")),
    Fault("another-library", "wrong_build"),
    Fault("less-work", "wrong_work"),
    Fault("more-bytes", "wrong_work"),
    Fault("wrong-figure", "wrong_work"),
    Fault("work-once", "wrong_work"),
    Fault("hoisted-loop", "wrong_work"),
    Fault("options-differ", "settings_differ"),
    Fault("sizes-differ", "settings_differ"),
    Fault("clock-ahead", "wrong_times"),
    Fault("clock-back", "wrong_times"),
    Fault("earlier-record", "wrong_times"),
    Fault("program-replaced", "file_changed"),
    Fault("program-edited", "file_changed"),
    Fault("module-edited", "file_changed"),
    Fault("library-edited", "file_changed"),
    Fault("competing-load", "disturbed"),
    Fault("throttled-core", ""),
)
