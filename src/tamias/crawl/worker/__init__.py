"""Worker processes: leases, visits side by side, and what starts and restarts them."""
