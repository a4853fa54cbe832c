#!/usr/bin/env python3
"""Writes a geometry file as the kernel tlb does.

FAKE_TLB_RUNS: a file of its runs, by page policy. FAKE_TLB_WITHOUT: a policy whose pages are unavailable.
"""

import os
import sys
from pathlib import Path

given = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
policy, runs = given["--pages"], Path(os.environ["FAKE_TLB_RUNS"])
with runs.open("a") as stream:
    stream.write(f"{policy}\n")
if policy == os.environ.get("FAKE_TLB_WITHOUT"):
    sys.exit(3)
file, pages = Path(given["--geometry"]), {"none": "base", "thp": "huge"}[policy]
is_new = not file.exists()
with file.open("a") as stream:
    if is_new:
        stream.write("schema: pagewise.geometry/1\nname: node\ntitle: test\n")
        stream.write("pages: {base: 4096, huge: 2097152, source: test}\n")
        stream.write(
            "caches:\n  - {level: 1, bytes: 32768, ways: 8, line_bytes: 64, inclusion: none, source: test}\n"
        )
        stream.write("tlbs:\n")
    stream.write(f"  - {{level: 1, entries: 64, ways: 4, replacement: lru, pages: {pages},\n")
    stream.write("     miss_ns: 12, source: test}\n")
