"""What is installed, and whether it stays as it was."""
