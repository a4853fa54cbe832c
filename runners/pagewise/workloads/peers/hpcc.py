"""HPC Challenge: RandomAccess and PTRANS of a single process."""

from __future__ import annotations

import math
import re

from pagewise.workloads.peers.peer import Ask, Call, Peer, Statistic, UnableError, UnreadableError, with_thp

_WORD = 8
_SMALL_ORDER = 256

# The square of HPL's matrix order (line 6) is the memory that RandomAccess takes. Lines 33 to 36 add sizes
# for PTRANS, which runs half of HPL's order too.
_INPUT = """HPLinpack benchmark input file
for a single process
HPL.out      output file name
8            device out
1            # of problems sizes (N)
{order}      Ns
1            # of NBs
80           NBs
0            PMAP process mapping
1            # of process grids (P x Q)
1            Ps
1            Qs
16.0         threshold
1            # of panel fact
2            PFACTs
1            # of recursive stopping criterium
4            NBMINs
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs
1            # of broadcast
1            BCASTs
1            # of lookahead depth
1            DEPTHs
2            SWAP
64           swapping threshold
0            L1 in
0            U  in
1            Equilibration
8            memory alignment in double
##### This line (no. 32) is ignored (it serves as a separator). ######
{count}      Number of additional problem sizes for PTRANS
{matrix}     values of N
0            number of additional blocking sizes for PTRANS
80           values of NB
"""


class Hpcc(Peer):
    """hpcc. It cannot be told to run one test: sizes keep the others short, and it is ended after ours."""

    name = "hpcc"
    program = "hpcc"
    source = "https://hpcchallenge.org/"

    def call(self, ask: Ask) -> Call:
        """Started by itself it is one MPI process: no mpirun."""
        if ask.threads != 1:
            raise UnableError("it is compared as one process")
        if ask.test == "SingleRandomAccess":
            text = _INPUT.format(order=math.isqrt(ask.working_set // _WORD - 1) + 1, count=0, matrix=0)
        elif ask.test == "PTRANS":
            text = _INPUT.format(order=_SMALL_ORDER, count=1, matrix=matrix_order(ask.working_set))
        else:
            raise UnableError(f"it is not asked for {ask.test}")
        environment = {**with_thp(ask), "OMP_NUM_THREADS": "1"}
        until = f"End of {ask.test} section."
        return Call((), environment, {"hpccinf.txt": text}, "hpccoutf.txt", until)

    def value(self, output: str, ask: Ask) -> float:
        """Updates a second, of the table asked for; or GB/s by its own convention: 8 bytes an element."""
        section = re.search(rf"^Begin of {ask.test} section\.$(.*?)^End of", output, re.MULTILINE | re.DOTALL)
        if section is None:
            raise UnreadableError(f"no whole section {ask.test}")
        if ask.test == "PTRANS":
            return _transposed(section[1], matrix_order(ask.working_set))
        return _updated(section[1], ask.working_set // _WORD)

    def statistic(self, test: str) -> Statistic:
        """RandomAccess times all updates in one; of five transposes PTRANS tells the slowest."""
        return "worst" if test == "PTRANS" else "mean"


def matrix_order(working_set: int) -> int:
    """The order of two square matrices that take so many bytes."""
    return math.isqrt(working_set // (2 * _WORD))


def _updated(section: str, words: int) -> float:
    table = re.search(r"^Main table size\s+= 2\^\d+ = (\d+) words$", section, re.MULTILINE)
    rate = re.search(r"^(\d+\.\d+) Billion\(10\^9\) Updates\s+per second", section, re.MULTILINE)
    if table is None or rate is None or float(rate[1]) == 0:
        raise UnreadableError("no rate of updates")
    if int(table[1]) != words:
        raise UnreadableError(f"its table has {table[1]} words, asked for {words}")
    if "(passed)" not in section:
        raise UnreadableError("it found too many errors in its table")
    return float(rate[1]) * 1e9


def _transposed(section: str, order: int) -> float:
    lines = re.findall(
        rf"^WALL\s+{order}\s+{order}\s.*?\s(\w+)\s+(\d+\.\d+)\s+\S+\s*$", section, re.MULTILINE
    )
    if not lines:
        raise UnreadableError(f"no transpose of order {order}")
    if any(check != "PASSED" for check, _ in lines):
        raise UnreadableError("a transpose failed its check")
    return float(lines[-1][1])
