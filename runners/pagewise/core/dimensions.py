"""What configurations differ in, as data: tables, sentences and verdicts take all of these alike.

A further dimension is a row here and a field of Configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pagewise.core.configuration import Configuration
from pagewise.core.kernel import Kernel
from pagewise.core.page_policy import PagePolicy


@dataclass(frozen=True, eq=False)
class Dimension:
    """One of them: the field `name` of a configuration, and how reports speak of it.

    `rule` goes without saying; `empty` stands in a table where there is no value. `question` is what a
    comparison of its values answers, `yes` which outcome is a yes: `use` of another value than that of the
    baseline, or to `keep` that. `said` are values in words, `other` those of the rest. What is there `always`
    has a column of tables even where nothing differs in it. `same` is the sentence where all verdicts are
    inconclusive.
    """

    name: str
    title: str
    noun: str
    question: str
    rule: str = ""
    empty: str = ""
    yes: str = ""
    said: Mapping[str, str] = field(default_factory=dict)
    other: str = "{}"
    always: bool = False
    same: str = "{noun} makes no significant difference on this node."
    words: Callable[[str], str] | None = None

    def of(self, configuration: Configuration) -> str:
        """Its value in a configuration."""
        return str(getattr(configuration, self.name))

    def brief(self, configuration: Configuration) -> str:
        """Its value where a label needs it, else nothing."""
        value = self.of(configuration)
        if self.name == "target":
            return value if configuration.names_target else ""
        if self.name == "simd" and value:
            return f"simd={value}"
        return "" if value == self.rule else value

    def cell(self, configuration: Configuration) -> str:
        """Its value in a table's column."""
        return self.of(configuration) or self.empty

    def text(self, value: str) -> str:
        """A value in a sentence."""
        if self.words is not None:
            return self.words(value)
        return self.said.get(value, self.other.format(value))

    @property
    def nothing(self) -> str:
        """The sentence for no difference."""
        text = self.same.format(noun=self.noun)
        return text[:1].upper() + text[1:]


PAGES = Dimension(
    "hugepages",
    "Pages",
    "the pages",
    "Do huge pages pay?",
    always=True,
    rule="-",
    same="Huge pages make no significant difference on this node.",
    words=lambda policy: PagePolicy(policy).text,
)
COMPILER = Dimension("compiler", "Compiler", "the compiler", "Which compiler?")
DIMENSIONS = (
    PAGES,
    Dimension(
        "prefetch",
        "Prefetch",
        "prefetching",
        "Does prefetching by software pay?",
        rule="hardware",
        yes="use",
        always=True,
        said={
            "hardware": "prefetching by the hardware alone",
            "software": "prefetching by software",
            "compiler": "prefetching by the compiler",
            "block": "prefetching by blocks",
        },
    ),
    Dimension(
        "stores",
        "Stores",
        "the type of stores",
        "Do other stores pay?",
        rule="regular",
        yes="use",
        always=True,
        said={"nontemporal": "non-temporal stores", "zfill": "stores that zero lines"},
        other="{} stores",
    ),
    Dimension(
        "library",
        "Library",
        "the library",
        "Which library?",
        empty="system's",
        said={"": "the system's own library"},
    ),
    Dimension(
        "runtime",
        "OpenMP",
        "the library of OpenMP's threads",
        "Which library for OpenMP's threads?",
        empty="compiler's",
        said={"": "the compiler's own library for OpenMP"},
    ),
    Dimension(
        "simd",
        "Vectors",
        "the width of vectors",
        "Which width of vectors?",
        empty="flags'",
        said={
            "": "the width that the flags ask for",
            "scalar": "scalar code",
            "vla": "vectors of any length",
        },
        other="vectors of {} bits",
    ),
    Dimension(
        "target",
        "Target",
        "the target",
        "Does a tuned build pay?",
        yes="keep",
        said={"native": "the build for this processor"},
        other="the build for {}",
    ),
    Dimension(
        "placement",
        "Placement",
        "the placement",
        "Which placement of threads and memory?",
        other="the placement {}",
    ),
)
BY_NAME = {one.name: one for one in (*DIMENSIONS, COMPILER)}


def values_of(configuration: Configuration) -> dict[str, str | None]:
    """A row of data on a configuration: each dimension by its name, None where there is no value."""
    return {one.name: one.of(configuration) or None for one in (COMPILER, *DIMENSIONS)}


def sensitive_dimensions(kernel: Kernel) -> list[Dimension]:
    """The dimensions that a kernel is sensitive to."""
    return [dimension for dimension in DIMENSIONS if kernel.is_sensitive_to(dimension.name)]


def differ_only_in(dimension: str, first: Configuration, second: Configuration) -> bool:
    """Whether two configurations agree in all other dimensions, compilers included."""
    others = (item for item in BY_NAME.values() if item.name != dimension)
    return all(item.of(first) == item.of(second) for item in others)
