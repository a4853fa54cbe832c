"""The session of a measurement: its round loop, and how it is interrupted and resumed."""
