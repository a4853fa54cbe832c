"""A program that fails in one run of its session: PW_FAKE_OWN names the fault (docs/explanation/trust.md)."""

import os
import sys
import time
from pathlib import Path

# The first runs are trial runs.
LATER = 6
FOLDER, FAULT = Path(os.environ["PW_FAKE_FOLDER"]), os.environ["PW_FAKE_OWN"]


def replace(file: Path) -> None:
    other = file.with_suffix(".other")
    other.write_bytes(file.read_bytes() + b"\n")
    other.chmod(file.stat().st_mode)
    other.replace(file)


counter = FOLDER / "runs"
with counter.open("ab") as stream:
    stream.write(b"1")
number = counter.stat().st_size
time.sleep(0.03)
if number == LATER:
    if FAULT == "own-crash-once":
        os.abort()
    if FAULT == "own-check-failed-once":
        print("all is lost")
        sys.exit(0)
    files = {"program": "program", "library": "libwork.so", "input": "input.txt"}
    replace(FOLDER / files[FAULT.split("-")[1]])
print("all is well")
