"""A result as one object for programs: what the tables say, and what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.program import memory_rows, metric_rows
from pagewise.analysis.result import trusted_records
from pagewise.analysis.statistics import Ratio
from pagewise.core.result import Result
from pagewise.report import words
from pagewise.report.advice import answers, headline
from pagewise.report.csv import summary_rows
from pagewise.report.findings import findings
from pagewise.report.program import is_program, metric_row


def about(result: Result) -> dict[str, Any]:
    """What every such object tells of its result."""
    manifest = result.manifest
    return {
        "folder": str(result.folder),
        "name": manifest["name"],
        "state": manifest["state"],
        "rounds": manifest["rounds"],
        "rounds_done": manifest["rounds_done"],
        "seed": manifest["seed"],
        "threads": manifest["threads"],
        "timing": manifest["timing"],
        "until": manifest.get("until"),
        "left_out": [str(line) for line in result.skipped],
    }


def verdicts(result: Result, kernels: Sequence[KernelResult]) -> dict[str, Any]:
    """Schema pagewise.verdicts/1: each configuration with its figures, ratio and verdict."""
    told = {
        "schema": "pagewise.verdicts/1",
        **about(result),
        "altered": result.altered,
        "headline": headline(kernels),
        "findings": [asdict(one) for one in findings(kernels)],
        "answers": [asdict(one) for one in answers(kernels)],
        "notes": words.notes(result.manifest, kernels, result.records),
        "kernels": [_kernel(one) for one in kernels],
    }
    if is_program(result):
        told["program"] = {
            "metrics": [metric_row(result, row) for row in metric_rows(result)],
            "memory": [
                {**asdict(row), "coverage": row.coverage, "peak_coverage": row.peak_coverage}
                for row in memory_rows(trusted_records(result))
            ],
        }
    return told


def _kernel(one: KernelResult) -> dict[str, Any]:
    return {
        "name": one.kernel.name,
        "title": one.kernel.title,
        "metrics": [asdict(metric) for metric in one.kernel.metrics],
        "configurations": list(summary_rows([one])),
        "compilers": [
            {
                "compiler": versus.compiler,
                "reference": versus.reference,
                **_ratio(versus.time_ratio),
                "noise_floor": versus.floor,
                "verdict": versus.verdict,
                "reason": versus.reason,
            }
            for versus in one.versus
        ],
        "policies": [
            {
                "quantity": ratio.quantity,
                "compiler": ratio.compiler,
                "hugepages": ratio.policy,
                "reference": ratio.reference,
                **_ratio(ratio.ratio),
            }
            for ratio in one.by_policy
        ],
    }


def _ratio(ratio: Ratio) -> dict[str, Any]:
    return {"ratio": ratio.median, "low": ratio.low, "high": ratio.high, "pairs": ratio.pairs}
