"""The session of a measurement: what begins it, goes on with it and repeats it."""
