"""What a session can run."""
