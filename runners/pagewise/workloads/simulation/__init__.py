"""TLB and cache figures from a program's traced memory accesses: `pagewise model`, docs/model.md."""
