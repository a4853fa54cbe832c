"""TLB and cache figures from a program's traced memory accesses: `pagewise simulate`, docs/simulation.md."""
