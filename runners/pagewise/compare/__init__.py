"""Comparing: pure functions over records. No input or output, and nothing is launched from here."""
