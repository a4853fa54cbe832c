"""Specs that Spack refuses, with what to change; solved in one process."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from conftest import environment, spack

MICRO = "pagewise-micro@develop"
#: Specs, and what the answer names.
SPECS = {
    f"{MICRO} prefetch=compiler %pagewise-llvm": "prefetch=software",
    "pagewise-ember@develop prefetch=compiler %pagewise-llvm": "prefetch=software",
    f"{MICRO} %c,fortran=nvhpc": "nvhpc",
    f"{MICRO} %pagewise-nag": "pagewise-nag",
    f"{MICRO} hugepages=giant %pagewise-gcc": "giant",
    f"{MICRO} )( hugepages=thp": ")(",
    f"{MICRO} loop=compiler prefetch=software %pagewise-gcc": "loop=explicit",
    f"{MICRO} loop=compiler prefetch=block %pagewise-gcc": "loop=explicit",
    f"{MICRO} loop=compiler stores=nontemporal %pagewise-gcc": "loop=explicit",
    f"{MICRO} loop=explicit prefetch=compiler %pagewise-gcc": "loop=compiler",
    f"{MICRO} sector=isolate loop=compiler %pagewise-gcc": "target=a64fx",
    f"{MICRO} sector=isolate prefetch=software %pagewise-gcc": "sector=isolate",
    f"{MICRO} needs=blas stores=nontemporal %pagewise-gcc": "needs=blas",
    f"{MICRO} target=x86_64_v9 %pagewise-gcc": "x86_64_v9",
}
#: On x86-64.
OF_X86 = {
    f"{MICRO} simd=vla %pagewise-gcc": "target=a64fx:",
    f"{MICRO} simd=512 target=x86_64_v3 %pagewise-gcc": "x86_64_v4:",
    f"{MICRO} target=a64fx %pagewise-gcc": "a64fx",
}
SCRIPT = """
import json, sys
import spack.main
solve, answers = spack.main.SpackCommand("spec"), {}
for spec in json.loads(sys.argv[1]):
    output = solve(spec, fail_on_error=False)
    answers[spec] = [solve.returncode, f"{output}{solve.error}"]
print("ANSWERS" + json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(checkout: Path) -> dict[str, tuple[int, str]]:
    """Spack's exit codes and answers."""
    folder = environment(checkout, "refused", f"{MICRO} %pagewise-gcc")
    script = folder / "solve.py"
    script.write_text(SCRIPT)
    done = spack(checkout, folder, "python", str(script), json.dumps([*SPECS, *OF_X86]))
    return dict(json.loads(done.stdout.rpartition("ANSWERS")[2]))


@pytest.mark.parametrize("spec", SPECS)
def test_a_wrong_spec_is_refused_by_spack(answers: dict[str, tuple[int, str]], spec: str) -> None:
    code, answer = answers[spec]
    assert code != 0 and SPECS[spec] in answer


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the targets are those of x86")
@pytest.mark.parametrize("spec", OF_X86)
def test_features_that_the_target_does_not_support_are_refused(
    answers: dict[str, tuple[int, str]], spec: str
) -> None:
    code, answer = answers[spec]
    assert code != 0 and OF_X86[spec] in answer
