"""The dimensions in which configurations differ, as data for tables, sentences and verdicts.

A new dimension is a row here and a field of Configuration. Those of options are from the kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from pagewise.core.benchmark import Benchmark
from pagewise.core.configuration import Configuration
from pagewise.core.page_policy import COSTS, PagePolicy


@dataclass(frozen=True, eq=False)
class Dimension:
    """A dimension: the field `name` of a configuration, and the texts of reports.

    question: what a comparison of its values answers. Title, noun and question follow from the name if they
    are not given. rule: the value that labels omit. empty: what a table shows without a value. yes: which
    outcome means yes: to `use` another value than the baseline's, or to `keep` that. neither: the outcomes
    that mean neither yes nor no. by_compiler: whether each compiler has its own answer. texts: values in
    words; other: the words for the rest. always: whether tables have its column even if nothing differs in
    it. prefixed: whether labels show its name with its value. same: the sentence if all verdicts are
    inconclusive. cost: what a program needs for another value; costs: by value.
    """

    name: str
    title: str = ""
    noun: str = ""
    question: str = ""
    rule: str = ""
    empty: str = ""
    yes: str = ""
    neither: tuple[str, ...] = ("choose",)
    by_compiler: bool = False
    texts: Mapping[str, str] = field(default_factory=dict)
    other: str = "{}"
    always: bool = False
    prefixed: bool = False
    same: str = "{noun} makes no significant difference on this node."
    cost: str = "a rebuild"
    costs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = self.name
        usual = {"title": name.capitalize(), "noun": f"the {name}", "question": f"Which {name}?"}
        for field_name, text in usual.items():
            if not getattr(self, field_name):
                object.__setattr__(self, field_name, text)

    def of(self, configuration: Configuration) -> str:
        """Its value in a configuration."""
        return configuration.value(self.name)

    def brief(self, configuration: Configuration) -> str:
        """Its value if a label needs it, else nothing."""
        value = self.of(configuration)
        if self.name == "target":
            return value if configuration.names_target else ""
        if self.name == "openmp":
            return "" if configuration.has_threads else "serial"
        if value == self.rule:
            return ""
        return f"{self.name}={value}" if self.prefixed else value

    def cell(self, configuration: Configuration) -> str:
        """Its value in a table's column."""
        return self.of(configuration) or self.empty

    def text(self, value: str) -> str:
        """A value in a sentence."""
        if self.name == "hugepages":
            return PagePolicy(value).text
        return self.texts.get(value, self.other.format(value))

    def cost_of(self, value: str) -> str:
        """What a program needs for a value."""
        return self.costs.get(value.partition(":")[0], self.cost)

    @property
    def nothing(self) -> str:
        """The sentence for no difference."""
        text = self.same.format(noun=self.noun)
        return text[:1].upper() + text[1:]


PAGES = Dimension(
    "hugepages",
    title="Pages",
    noun="the pages",
    question="Are huge pages worth it?",
    always=True,
    rule="-",
    same="Huge pages make no significant difference on this node.",
    cost="a setting of each run",
    costs=COSTS,
)
LOOP = Dimension(
    "loop",
    noun="the way the loop is written",
    question="Does the compiler's loop reach the explicit one?",
    rule="explicit",
    prefixed=True,
    yes="use",
    neither=("choose", "same"),
    by_compiler=True,
    texts={"explicit": "the explicit loop", "compiler": "the compiler's loop"},
    cost="vector intrinsics in the source code",
    costs={"compiler": "no change: plain loops"},
)
COMPILER = Dimension("compiler", cost="a rebuild with this compiler")


@cache
def _option(name: str) -> Dimension:
    """The dimension of a program's option; its values are its own words."""
    return Dimension(
        name,
        empty="default",
        prefixed=True,
        texts={"": f"the default {name}"},
        other=f"the {name} {{}}",
        cost="an option of each run",
    )


_OF_BUILDS = (
    PAGES,
    Dimension(
        "prefetch",
        noun="prefetch",
        question="Is software prefetch worth it?",
        rule="hardware",
        yes="use",
        always=True,
        texts={
            "hardware": "hardware prefetch only",
            "software": "software prefetch",
            "compiler": "compiler prefetch",
            "block": "block prefetch",
        },
        cost="prefetch instructions in the source code",
        costs={"compiler": "a rebuild with the compiler's prefetch option"},
    ),
    Dimension(
        "stores",
        noun="the store type",
        question="Are other stores worth it?",
        rule="regular",
        yes="use",
        always=True,
        texts={"nontemporal": "non-temporal stores", "zfill": "zero-fill stores"},
        other="{} stores",
        cost="store intrinsics in the source code",
    ),
    LOOP,
    Dimension(
        "library",
        empty="system's",
        texts={"": "the system's library"},
        cost="a program that is linked with this library",
    ),
    Dimension(
        "runtime",
        title="OpenMP",
        noun="the OpenMP library",
        question="Which OpenMP library?",
        empty="compiler's",
        texts={"": "the compiler's OpenMP library"},
        cost="a program that is linked with this library",
    ),
    Dimension(
        "openmp",
        title="OpenMP build",
        noun="OpenMP",
        question="Is the build without OpenMP faster?",
        rule="on",
        prefixed=True,
        yes="use",
        texts={"on": "the build with OpenMP", "off": "the build without OpenMP"},
    ),
    Dimension(
        "simd",
        title="SIMD",
        noun="the SIMD width",
        question="Which SIMD width?",
        prefixed=True,
        empty="flags'",
        texts={
            "": "the SIMD width of the flags",
            "scalar": "scalar code",
            "vla": "vector-length-agnostic code",
        },
        other="{}-bit SIMD",
    ),
    Dimension(
        "sector",
        title="Sectors",
        noun="the sector cache",
        question="Are sectors of the cache worth it?",
        prefixed=True,
        empty="none",
        yes="use",
        texts={"": "no sectors", "isolate": "a sector for reused arrays"},
        other="the sectors {}",
    ),
    Dimension(
        "flags",
        noun="the set of flags",
        question="Which compiler flags?",
        empty="pagewise's",
        texts={"": "pagewise's flags"},
        other="the flags {}",
    ),
    Dimension(
        "target",
        question="Is a tuned build worth it?",
        yes="keep",
        texts={"native": "the build for this processor"},
        other="the build for {}",
    ),
)
_OF_RUNS = (
    Dimension(
        "placement",
        question="Which placement of threads and memory?",
        other="the placement {}",
        cost="an option of each run",
    ),
    Dimension(
        "node_state",
        title="Node state",
        noun="the state of the node",
        question="Does the state of the node's memory matter?",
        empty="as found",
        yes="keep",
        texts={"": "the node as found", "fresh": "compacted memory", "aged": "fragmented memory"},
        cost="another state of the node's memory",
    ),
    Dimension(
        "prefetchers",
        title="Hardware prefetchers",
        noun="the setting of the hardware prefetchers",
        question="Which setting of the hardware prefetchers?",
        empty="as found",
        prefixed=True,
        texts={
            "": "the hardware prefetchers as found",
            "unchanged": "the hardware prefetchers as found",
            "off": "the hardware prefetchers off",
        },
        other="the hardware prefetchers {}",
        cost="a setting of the machine (root)",
    ),
    Dimension(
        "clocks",
        noun="the setting of the clocks",
        empty="as found",
        texts={"": "the clocks as found", "unchanged": "the clocks as found"},
        other="the clocks {}",
        cost="a setting of the machine (root)",
    ),
    Dimension(
        "setting",
        question="Which environment variables?",
        empty="-",
        other="the setting {}",
        cost="environment variables of each run",
    ),
)
#: Those that all configurations have.
DIMENSIONS = (*_OF_BUILDS, *_OF_RUNS)
#: What configurations should not differ in: reports say where they do.
NO_DIMENSIONS = ("package", "version", "builder", "papi")
_BY_NAME = {dimension.name: dimension for dimension in (*DIMENSIONS, COMPILER)}


def dimension_of(name: str) -> Dimension:
    """The dimension of this name: one of all configurations, or an option of a kernel."""
    return _BY_NAME.get(name) or _option(name)


def dimensions_of(kernels: Iterable[Benchmark]) -> tuple[Dimension, ...]:
    """All dimensions of these kernels, with their options, in the order of reports; not the compiler."""
    options = dict.fromkeys(name for kernel in kernels for name in kernel.options)
    return (*_OF_BUILDS, *map(_option, options), *_OF_RUNS)


def sensitive_dimensions(kernel: Benchmark) -> list[Dimension]:
    """The dimensions that a kernel is sensitive to."""
    return [each for each in dimensions_of([kernel]) if kernel.is_sensitive_to(each.name)]


def differing(kernel: Benchmark, first: Configuration, second: Configuration) -> tuple[str, ...]:
    """In what two configurations differ that may matter to a kernel: dimensions, and what is none."""
    names = [dimension.name for dimension in sensitive_dimensions(kernel)]
    names += [COMPILER.name] if kernel.is_sensitive_to(COMPILER.name) else []
    return tuple(name for name in (*names, *NO_DIMENSIONS) if first.value(name) != second.value(name))


def differ_only_in(dimension: str, first: Configuration, second: Configuration) -> bool:
    """Whether two configurations agree in all other dimensions, compilers included."""
    names = {*_BY_NAME, *first.settings.options, *second.settings.options} - {dimension}
    return all(first.value(name) == second.value(name) for name in names)
