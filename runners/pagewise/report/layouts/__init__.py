"""Tables of publications whose rows and columns are axes of comparisons: threads, build, SMT (`*.yaml`)."""
