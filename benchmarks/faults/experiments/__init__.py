"""The experiments, one file each, in the order of the table."""
