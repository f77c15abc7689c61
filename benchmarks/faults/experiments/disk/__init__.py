"""Disks that are full, fail, lie or rot."""
