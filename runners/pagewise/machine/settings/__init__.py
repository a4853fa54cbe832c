"""Settings of the machine: changed for the length of a session, and restored whatever ends it."""
