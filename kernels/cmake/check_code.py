"""check_code CHECK OBJDUMP PROCESSOR OBJECTS FACT...: check the instructions of timed code; lists with ';'.

CHECK and its facts: `contains PATTERN...`, `instructions PREFETCH STORES`, `width WIDTH`, or `difference
REFERENCE PREFETCH STORES LOOP`. Reads what objdump of GNU or LLVM prints.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field

X86 = re.search(r"x86_64|AMD64", sys.argv[3]) is not None
JUMP = re.compile(r"j" if X86 else r"(b|b\.[a-z]+|cbn?z|tbn?z)$")
CALL = re.compile(r"call" if X86 else r"blr?$")
PREFETCH = re.compile(r"prefetch" if X86 else r"prf")
VECTOR = re.compile(r"%[xyz]mm" if X86 else r"[{ ,][vqdszh][0-9]+[., }]")
STREAM = re.compile(r"v?movnt" if X86 else r"(stnp|stnt1)")
WORD = re.compile(r"(mov|add|sub|xor|or|and)[lq]?$" if X86 else r"(str|stp|stur)$")
ARITHMETIC = re.compile(
    r"v?(add|sub|mul|div|sqrt|max|min|fn?m(add|sub)|p(add|sub|mul)|cvt)"
    if X86
    else r"f?(add|sub|mul|div|sqrt|max|min|mla|mls|mad|msb|madd|msub|nmadd|nmsub|cvt)"
)
#: In the instructions of a variant that names them: a pattern each.
NAMED = {
    "prefetch": r"prefetch(t0|t1|t2|nta|w)" if X86 else r"prf(m|um|d|b|w|h)[ \t]",
    "nontemporal": r"v?movnt(pd|ps|dq|i|q)" if X86 else r"stnp|stnt1",
    "zfill": r"$^" if X86 else r"dc[ \t]zva",
}
#: Arithmetic on doubles by width. SVE's instructions have none: the build fixes the length that they use.
X86_ARITHMETIC, ARM_ARITHMETIC = r"\tv?(add|mul|fn?madd[0-9]+)", r"\t(fadd|fmul|fmla|fmad|fmadd)[ \t]+"
SVE = ARM_ARITHMETIC + r"z[0-9]+\.d"
WIDTHS = (
    {
        "scalar": X86_ARITHMETIC + r"sd[ \t]",
        "128": X86_ARITHMETIC + r"pd[ \t][^\n]*%xmm",
        "256": X86_ARITHMETIC + r"pd[ \t][^\n]*%ymm",
        "512": X86_ARITHMETIC + r"pd[ \t][^\n]*%zmm",
    }
    if X86
    else {
        "scalar": ARM_ARITHMETIC + r"d[0-9]",
        "128": ARM_ARITHMETIC + r"v[0-9]+\.2d",
        "256": SVE,
        "512": SVE,
        "vla": SVE,
    }
)


@dataclass
class Loop:
    """What an innermost loop does in all of its instructions."""

    prefetched: int = 0
    streamed: int = 0  # bytes of non-temporal stores
    stored: int = 0  # of other stores
    loaded: int = 0
    arithmetic: Counter[str] = field(default_factory=Counter)  # by register and instruction
    packed: bool = False  # on vectors
    words: int = 0  # stores of integers, and updates among them
    updates: int = 0
    vectorial: bool = False
    seen: set[object] = field(default_factory=set)
    written: Counter[str] = field(default_factory=Counter)

    @property
    def bytes(self) -> int:
        """Bytes of all stores."""
        return self.stored + self.streamed

    @property
    def unrolled(self) -> int:
        """The largest number of equal iterations, by what is stored and computed."""
        return math.gcd(self.bytes, *self.arithmetic.values()) or 1

    def work(self, iterations: int) -> tuple[object, ...]:
        """Bytes stored and arithmetic of an iteration."""
        return self.bytes // iterations, *(
            (name, n // iterations) for name, n in sorted(self.arithmetic.items())
        )

    def signature(self) -> tuple[int, tuple[object, ...]]:
        """Bytes loaded and the work, of scalar loops per iteration: compilers unroll these as they like."""
        iterations = 1 if self.packed else math.gcd(self.unrolled, self.loaded or self.unrolled)
        return self.loaded // iterations, self.work(iterations)

    def kinds(self) -> set[str]:
        """Instructions without width, precision and number: the same of vectors and single elements."""
        return {re.sub(r"(madd|mla)$", "ma", re.sub(r"[sp][sd]$", "", name[1:])) for name in self.arithmetic}


class Function:
    """The instructions of a function: names, operands, and the places of jumps."""

    def __init__(self, lines: list[str]) -> None:
        parts = [
            re.match(r"\s*0*([0-9a-f]+):\s+(?:(?:bnd|notrack|lock|rep|repz|repnz) +)*(\S+)\s*(.*)", each)
            for each in lines
        ]
        matches = [each for each in parts if each]
        at = {each[1]: place for place, each in enumerate(matches)}
        self.code = [(each[2], re.sub(r"\s*#.*$", "", each[3].strip())) for each in matches]
        # A function with a frame pointer keeps values there that do not fit into registers.
        framed = any(operands == "%rsp,%rbp" for _, operands in self.code)
        self.stack = re.compile(r"%rsp|%rip|%rbp" if framed else r"%rsp|%rip")
        self.target: dict[int, int] = {}
        for place, (name, operands) in enumerate(self.code):
            jump = re.search(r"([0-9a-f]+) <", operands) if JUMP.match(name) else None
            if jump:
                self.target[place] = at.get(jump[1].lstrip("0"), -1)

    def loops(self) -> list[Loop]:
        """The innermost loops that compute."""
        nearest: dict[int, int] = {}
        ends: dict[int, int] = {}
        for place, target in self.target.items():
            if 0 <= target <= place:
                ends[target] = place
                nearest.setdefault(target, place)
        ends = {
            first: last for first, last in ends.items() if any(map(self.is_work, self.code[first : last + 1]))
        }
        loops = []
        for first, last in ends.items():
            # Code that lies elsewhere may also enter a loop by a jump backwards: then its nearest end counts,
            # if it stores before.
            if self.is_inner(first, last, ends):
                loops.append(self.describe(first, last, stores=False))
            elif self.is_inner(first, nearest[first], ends):
                loops.append(self.describe(first, nearest[first], stores=True))
        return [each for each in loops if each]

    def is_work(self, instruction: tuple[str, str]) -> bool:
        """Whether an instruction is on vectors, prefetches, or stores a word."""
        name, operands = instruction
        return bool(
            VECTOR.search(operands)
            or STREAM.match(name)
            or PREFETCH.match(name)
            or self.stores_word(name, operands)
        )

    def stores_word(self, name: str, operands: str) -> bool:
        """Whether an instruction on other registers stores or updates a word; loads are also of addresses."""
        if not WORD.match(name) or VECTOR.search(operands):
            return False
        return operands.endswith(")") and not self.stack.search(operands) if X86 else "[sp" not in operands

    def is_inner(self, first: int, last: int, ends: dict[int, int]) -> bool:
        """Whether instructions are a loop without a loop in it, and without calls.

        They jump to at most one place outside: a loop around another one, whose code lies elsewhere, jumps to
        several.
        """
        if any(first < start and end <= last for start, end in ends.items()):
            return False
        jumps = {self.target[place] for place in range(first, last + 1) if place in self.target}
        outside = [each for each in jumps if not first <= each <= last]
        return len(outside) <= 1 and not any(CALL.match(name) for name, _ in self.code[first : last + 1])

    def describe(self, first: int, last: int, *, stores: bool) -> Loop | None:
        """Describe a loop that computes; one that must store only if it does."""
        loop = Loop()
        for name, operands in self.code[first : last + 1]:
            if PREFETCH.match(name):
                loop.prefetched += 1
            elif X86:
                self.x86(loop, name, operands)
            else:
                self.arm(loop, name, operands)
        # Next to vectors, words that are stored are addresses for which there was no register.
        if not loop.vectorial:
            loop.stored += 8 * loop.words
            loop.loaded += 8 * loop.updates
            loop.arithmetic += Counter({"update": loop.updates})
        if not (loop.arithmetic or loop.bytes or loop.prefetched) or (stores and not loop.bytes):
            return None
        # Sums are combined between passes, from registers.
        return None if loop.arithmetic and not loop.loaded + loop.prefetched else loop

    def x86(self, loop: Loop, name: str, operands: str) -> None:
        """Add an instruction of x86."""
        size = x86_bytes(name, operands)
        if STREAM.match(name):
            loop.streamed += size if VECTOR.search(operands) else 8
            loop.packed |= re.search(r"(p[sd]|dq)$", name) is not None
            return
        memory = "(" in operands and not self.stack.search(operands)
        register = re.search(r"%[er]([^,)]*)$", operands)
        if register and not re.match(r"cmp|test", name):
            loop.written[register[1]] += 1
        if not VECTOR.search(operands):
            stores = self.stores_word(name, operands)
            loop.words += stores
            loop.updates += stores and not name.startswith("mov")
            return
        loop.vectorial = True
        arithmetic = ARITHMETIC.match(name)
        if (memory or arithmetic) and re.search(r"p[sd]$|^v?p|^v?movdq", name):
            loop.packed |= not re.search(r"pinsr|pextr|mov[lh]p", name)
        if operands.endswith(")") and memory and not re.search(r"^v?u?comis|^v?cmp|test", name):
            loop.stored += size
        elif memory:
            # Not what the loop has loaded before, its registers unchanged: a compiler may load an element
            # twice instead of keeping it in a register.
            address = re.search(r"[^ ,]*\([^)]*\)", operands)
            text = address[0] if address else operands
            element = (size, text, *((key, n) for key, n in sorted(loop.written.items()) if key in text))
            loop.loaded += 0 if element in loop.seen else size
            loop.seen.add(element)
        if arithmetic:
            width = next((each for each in "zy" if f"%{each}mm" in operands), "x")
            loop.arithmetic[width + re.sub(r"132|213|231", "", name, count=1)] += 1

    def arm(self, loop: Loop, name: str, operands: str) -> None:
        """Add an instruction of aarch64."""
        loop.words += self.stores_word(name, operands)
        if not VECTOR.search(f" {operands},"):
            return
        loop.vectorial = True
        loop.packed |= re.search(r"v[0-9]+\.|z[0-9]+\.|(^| )q[0-9]", operands) is not None
        register = re.sub(r"[{} ]", "", operands)[0]
        size = {"z": 64, "q": 16, "v": 16, "d": 8, "s": 4}.get(register, 2) * (2 if name.endswith("p") else 1)
        if re.match(r"ld|st", name):
            if "[sp" in operands:
                return
            if STREAM.match(name):
                loop.streamed += size
            elif name.startswith("st"):
                loop.stored += size
            else:
                loop.loaded += size
        elif ARITHMETIC.match(name):
            loop.arithmetic[register + name] += 1


def x86_bytes(name: str, operands: str) -> int:
    """Bytes that an instruction of x86 on vector registers reads or writes in memory."""
    if re.search(r"(pinsr|pextr)w$", name):
        return 2
    wide = 64 if "%zmm" in operands else 32 if "%ymm" in operands else 16
    if re.search(r"cvt(ph2ps|ps2ph)", name):
        return wide // 2
    if re.search(r"(ss|movd)$|(pinsr|pextr)d$", name):
        return 4
    if re.search(r"(sd|movq|movl[dp]s|mov[lh]p[sd]|movddup)$|(pinsr|pextr)q$", name):
        return 8
    return 16 if wide == 32 and "128" in name else wide


def disassembly(objdump: str, objects: str) -> str:
    """Return the disassembly of objects, without their names."""
    words = [objdump, "-d", "--no-show-raw-insn", *objects.split(";")]
    text = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    return re.sub(r".*file format.*", "", text)


def split(text: str) -> tuple[list[Loop], list[Loop]]:
    """Return the loops in a disassembly, and those of them that compilers make for remaining elements."""
    loops: list[Loop] = []
    for function in re.split(r"^[0-9a-f]+ <.*>:$", text, flags=re.MULTILINE)[1:]:
        loops += Function(function.splitlines()).loops()
    # Around loops that sum, the one over passes has vectors, but stores a single sum.
    if any(each.packed and each.loaded and not each.bytes for each in loops):
        loops = [each for each in loops if not each.packed or not 0 < each.bytes <= 8]
    vectors = [each for each in loops if each.packed]

    def remains(loop: Loop) -> bool:
        """Whether another loop does its work on more elements at once."""
        if loop.prefetched + loop.streamed:
            return False
        if not loop.packed:
            return any(loop.kinds() == each.kinds() for each in vectors)
        return any(
            loop.work(loop.unrolled) == each.work(each.unrolled) and loop.unrolled < each.unrolled
            for each in vectors
        )

    return loops, [each for each in loops if remains(each)]


def missing(loops: list[Loop], others: list[Loop]) -> list[tuple[int, tuple[object, ...]]]:
    """Return the signatures without an equal one among others; an eighth of the bytes loaded may differ."""
    signatures = {each.signature() for each in loops} - {(0, (0,))}
    known = [each.signature() for each in others]
    return [
        each
        for each in signatures
        if not any(each[1] == other[1] and 8 * abs(each[0] - other[0]) <= each[0] for other in known)
    ]


def difference(objdump: str, objects: str, reference: str, prefetch: str, *others: str) -> None:
    """Check that loops differ from those of the reference in the instructions that the variant names alone.

    Their arithmetic, by instruction, register and number, and the bytes loaded and stored are the same.
    Addresses, integers and moves between registers are free. How a loop is written changes all of it. Where
    the compiler inserts the prefetches, it also chooses how it unrolls, vectorises and contracts the loop:
    only the prefetches are checked.
    """
    stores, written = others
    plain_code, code = disassembly(objdump, reference), disassembly(objdump, objects)
    assert plain_code != code, "the same instructions as in the reference"
    if written == "compiler" and prefetch != "compiler":
        return
    (plain, plain_remainders), (loops, remainders) = split(plain_code), split(code)
    if prefetch != "compiler":
        # Compilers add remainders to one variant and not to the other.
        plain_main = [each for each in plain if each not in plain_remainders]
        assert plain_main, "the reference has no loop that computes"
        here = missing([each for each in loops if each not in remainders], plain)
        there = missing(plain_main, loops)
        assert not here + there, f"loops of one only: {here} of the variant, {there} of the reference"
    prefetching = [each for each in loops if each.prefetched]
    if prefetch in ("software", "compiler"):
        assert prefetching, "no loop has prefetches"
    else:
        named = [each for each in prefetching if prefetch != "block" or each.signature() != (0, (0,))]
        assert not named, f"prefetches in loops of a variant that names none: {named}"
    streaming = [each for each in loops if each.streamed]
    if stores != "nontemporal":
        assert not streaming, f"non-temporal stores in a variant that names none: {streaming}"
        return
    assert streaming, "no loop has non-temporal stores"
    assert not any(each.stored for each in streaming), (
        f"loops with non-temporal and other stores: {streaming}"
    )
    assert re.search(r"\t(sfence|dmb[ \t])", code), "no fence after non-temporal stores"


def contains(objdump: str, objects: str, *patterns: str) -> None:
    """Check that the objects have instructions of each pattern."""
    text = disassembly(objdump, objects)
    for pattern in patterns:
        assert re.search(pattern, text), f"no instruction matches {pattern}"


def instructions(objdump: str, objects: str, prefetch: str, stores: str) -> None:
    """Check that the objects have the instructions that their variant names, and those of no other."""
    text = disassembly(objdump, objects)
    wanted = {
        "prefetch": prefetch in ("compiler", "software"),
        "nontemporal": stores == "nontemporal",
        "zfill": stores == "zfill",
    }
    for name, pattern in NAMED.items():
        # A block is loaded into the cache by loads, or by prefetches if the user requests them.
        if name != "prefetch" or prefetch != "block":
            assert bool(re.search(rf"\t({pattern})", text)) == wanted[name], (
                f"{name} instructions: expected {wanted[name]}"
            )


def width(objdump: str, objects: str, wanted: str) -> None:
    """Check that arithmetic on doubles has a SIMD width and no wider one; remainders have narrower ones."""
    text = disassembly(objdump, objects)
    # Explicit vectors without a fixed length are NEON's.
    wanted = "128" if wanted == "vla" and "explicit" in objects else wanted
    pattern = WIDTHS[wanted]
    assert re.search(pattern, text), f"no arithmetic in the requested width {wanted}"
    for wider in list(WIDTHS)[list(WIDTHS).index(wanted) + 1 :]:
        assert WIDTHS[wider] == pattern or not re.search(WIDTHS[wider], text), (
            f"arithmetic in {wider} instead of {wanted}"
        )


if __name__ == "__main__":
    check, program, processor, *facts = sys.argv[1:]
    if re.search(r"x86_64|AMD64|aarch64|arm64", processor):
        {"difference": difference, "contains": contains, "instructions": instructions, "width": width}[check](
            program, *facts
        )
    else:
        print(f"no table of instructions for {processor}")
