"""The command line for shells: completion, and the manual page."""
