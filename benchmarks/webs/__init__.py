"""Servers on loopback addresses or in network namespaces, polite and broken, that log every request."""
