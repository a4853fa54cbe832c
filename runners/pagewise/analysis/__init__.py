"""Pure functions over records: what may be ranked. No input or output, and nothing is launched from here."""
