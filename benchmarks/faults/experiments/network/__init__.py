"""Connections that break, and networks that go away."""
