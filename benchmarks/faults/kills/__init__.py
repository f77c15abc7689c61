"""A crawl through the frontier alone while its processes are killed: nothing may be lost or done by two."""
