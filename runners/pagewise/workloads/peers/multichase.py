"""multichase: latency of dependent loads along a random cycle."""

from __future__ import annotations

import re

from pagewise.workloads.peers.peer import Ask, Call, Peer, UnableError, UnreadableError

_SAMPLES = 2  # of half a second


class Multichase(Peer):
    """multichase. `-T` is equal to `-m`: by default it stays inside 256 KiB, which hides the page walks."""

    name = "multichase"
    program = "multichase"
    source = "https://github.com/google/multichase"

    def call(self, ask: Ask) -> Call:
        """Every cache line of the working set once, as ours; the binding is left to us (`-X`)."""
        if ask.threads != 1:
            raise UnableError("several threads of it share the memory in another way than ours")
        if ask.pages not in ("none", "thp"):
            raise UnableError(f"it is not asked for {ask.pages} pages")
        size = str(ask.working_set)
        huge = ("-H",) if ask.pages == "thp" else ()
        return Call(("-X", "-s", "64", "-m", size, "-T", size, "-n", str(_SAMPLES), *huge))

    def value(self, output: str, ask: Ask) -> float:
        """Nanoseconds a load, the best sample."""
        told = [line.strip() for line in output.splitlines() if line.strip()]
        if not told or not re.fullmatch(r"\d+(\.\d+)?", told[-1]) or float(told[-1]) == 0:
            raise UnreadableError(f"its last line is no latency: {told[-1] if told else 'no output'}")
        return float(told[-1])
