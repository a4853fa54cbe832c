"""Kernels in their installed configurations, compared with each other."""
