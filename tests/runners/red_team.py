"""The table of deliberate faults: each is injected into a comparison by test_red_team.py.

docs/explanation/trust.md lists the same; test_red_team.py compares both.
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

    An empty code: it is kept, with the verdict `inconclusive`. `label`: the configuration that has the fault.
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
    Fault("another-loop", "wrong_build"),
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

#: Changes of a result's records after or during its session: see test_altered.py and faulty.py.
OF_RECORDS = (
    Fault("times-divided", "records_altered"),
    Fault("rounds-removed", "records_altered"),
    Fault("run-removed", "records_altered"),
    Fault("run-repeated", "records_altered"),
    Fault("order-changed", "records_altered"),
    Fault("line-cut", "records_altered"),
    Fault("records-emptied", "records_altered"),
    Fault("records-edited-during-the-session", "records_altered"),
)

#: Faults of the user's own program under page policies.
OF_PROGRAMS = (
    Fault("own-program-replaced", "file_changed"),
    Fault("own-library-edited", "file_changed"),
    Fault("own-input-changed", "file_changed"),
    Fault("own-check-failed-once", "wrong_result"),
    Fault("own-crash-once", "failed"),
)

#: Faults of programs whose events are counted.
OF_COUNTERS = (
    Fault("counted-program-replaced", "file_changed"),
    Fault("counted-check-failed-once", "wrong_result"),
    Fault("counted-pages-lost", "policy_not_kept"),
    Fault("counted-records-edited", "records_altered"),
)

#: Faults of simulations: their figures are left out, with a reason.
OF_MODEL = (
    Fault("simulated-program-replaced", "file_changed"),
    Fault("simulated-records-edited", "skipped by queries"),
)

#: Faults in the memory of real kernels, by a preloaded library: see sabotage.c.
OF_MEMORY = (
    Fault("nan-in-memory", "wrong_result"),
    Fault("wrong-element", "wrong_result"),
    Fault("real-pages-split", "wrong_pages"),
    Fault("last-element-skipped", "wrong_result"),
)

#: Settings of the machine that are changed during a session of real kernels.
OF_MACHINE = (Fault("thp-switched-off", "policy_not_kept"), Fault("pool-emptied", "policy_not_kept"))

ALL = (
    *OF_KERNELS,
    *OF_RECORDS,
    *OF_PROGRAMS,
    *OF_COUNTERS,
    *OF_MODEL,
    *OF_MEMORY,
    *OF_MACHINE,
)
