"""What a shell knows of the command line: completion, and the manual page."""
