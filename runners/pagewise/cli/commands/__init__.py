"""One file per command; its function is named `command`."""
