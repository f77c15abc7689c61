"""The wiring: the steps put together into workers that crawl.

`visits` is the path of one URL, `reading` and `commits` its two ends, `archiving` what is kept and when it is
seen again; `worker` is a process full of visits, and `supervisor` looks after the workers.
"""
