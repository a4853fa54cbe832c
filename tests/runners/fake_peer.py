"""A stand-in for likwid-bench: lists its tests, and prints the output that MODE selects."""

import random
import sys
import time
from pathlib import Path

MODE = "ok"
OUTPUT = Path(__file__).parent / "output.txt"
TESTS = ("triad", "triad_avx", "triad_mem_avx_fma", "triad_sp_avx", "copy")


def option(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1]


if "-a" in sys.argv:
    print("\n".join(f"{name} - Double-precision loop, {name}" for name in TESTS))
    sys.exit(0)
time.sleep(0.01)
if MODE == "hang":
    time.sleep(600)
if MODE == "fail":
    print("Error: cannot pin thread", file=sys.stderr)
    sys.exit(3)
if MODE == "garbage":
    print("MByte/s: many")
    sys.exit(0)
speed = {"triad": 10e3, "triad_avx": 39e3, "triad_mem_avx_fma": 40e3}[option("-t")]
text = OUTPUT.read_text().replace("Test: triad_mem_avx_fma", f"Test: {option('-t')}")
print(text.replace("10935.91", f"{speed * random.uniform(0.995, 1.005):.2f}"))
