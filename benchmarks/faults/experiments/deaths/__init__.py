"""Processes that are killed or frozen."""
