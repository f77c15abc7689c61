"""The wiring: the steps put together into workers that crawl.

`visit` is the path of one URL; `worker` is a process full of visits; `supervisor` looks after the workers.
"""
