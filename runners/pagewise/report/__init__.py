"""Reports of a result, made from its folder: views per kind of result, renderers per format."""
