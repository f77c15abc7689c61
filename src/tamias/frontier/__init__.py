"""The frontier: knows every URL, lends hosts to workers, loses nothing.

`postgres` is the real one, its statements in `frontier.sql`.
"""
