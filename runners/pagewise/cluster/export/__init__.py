"""The configurations and figures of merit for other tools that run benchmarks."""
