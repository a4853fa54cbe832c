"""Comparing the user's own program, unchanged, under the page policies that need no rebuild."""
