"""Comparisons on the nodes of a cluster: run by ReFrame, read and compared here."""
