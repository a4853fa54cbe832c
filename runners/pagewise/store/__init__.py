"""Results over many nodes and dates: one store of them, comparing two, repeating one."""
