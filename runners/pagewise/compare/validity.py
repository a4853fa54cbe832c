"""Which records may be ranked: the result passed its check, and the pages were those asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pagewise.units import bytes_text

ENOUGH_COVERAGE = 0.99


def invalid_reason(record: Mapping[str, Any]) -> str | None:
    """Why this record must not be ranked, or None when it may."""
    status = record["status"]
    if status != "ok":
        message = record["failure"]["message"]
        return {
            "check_failed": f"the result failed its check: {message}",
            "pages_unavailable": f"the pages could not be had: {message}",
        }.get(status, message)
    if not record["validation"]["passed"]:
        return f"the result failed its check ({record['validation']['method']})"
    told = record.get("run", {}).get("pages")
    return _wrong_pages(record["pages"], told or record["configuration"]["hugepages"])


def _wrong_pages(pages: Mapping[str, Any], wanted: str) -> str | None:
    policy, coverage = pages["policy"], pages["huge_coverage"]
    if policy != wanted:
        return f"wrong pages: the run used the policy {policy}, the configuration is {wanted}"
    if policy in ("none", "fjmpg-none"):
        return f"wrong pages: {coverage:.1%} on huge pages, where none were wanted" if coverage > 0 else None
    enough = pages.get("enough_coverage", ENOUGH_COVERAGE)
    if coverage < enough:
        return f"wrong pages: {coverage:.1%} on huge pages, where at least {enough:.0%} are needed"
    requested, observed = pages["page_size_requested_bytes"], pages["page_size_observed_bytes"]
    if requested != observed:
        return f"wrong pages: {bytes_text(observed)} observed, {bytes_text(requested)} requested"
    return None
