"""The machine: what it is, and its settings."""
