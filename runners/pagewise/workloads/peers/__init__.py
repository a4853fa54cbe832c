"""Our kernels beside peer benchmarks, alternately in one run."""
