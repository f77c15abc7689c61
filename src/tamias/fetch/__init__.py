"""Fetching: one attempt on one address, within limits of bytes, time, redirects and ratio.

Touches sockets and spool files; knows nothing of queues, robots rules or what a body means.
"""
