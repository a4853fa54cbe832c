"""Comparisons on the nodes of a cluster: ReFrame runs them (runners/reframe), this reads what became of them."""
