"""Requests to the Web: one gate, robots.txt, politeness, and who can be reached."""
