"""Event counters: what is counted on which machine, counting it, and what is derived from it."""
