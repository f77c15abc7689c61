"""The port between a worker and where it stands, and what goes through it."""
