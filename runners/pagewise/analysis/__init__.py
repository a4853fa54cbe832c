"""Statistics and verdicts: pure functions over records."""
