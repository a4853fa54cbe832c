"""A command a file (run_policies.py: run-policies); its function is named `command`."""
