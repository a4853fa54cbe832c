"""One module per format: each renders any Report."""
