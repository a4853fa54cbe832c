"""Comparisons on the nodes of a cluster: run by ReFrame (runners/reframe), read and compared here."""
