"""TLB and cache figures from a program's traced memory accesses (docs/explanation/simulation.md)."""
