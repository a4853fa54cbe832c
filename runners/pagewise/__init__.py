"""Compares huge pages, prefetching, store type and compilers on this node, with evidence."""

__version__ = "0.2.0"
