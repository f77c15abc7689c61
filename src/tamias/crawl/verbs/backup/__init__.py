"""Backup and restore: rows as of one moment, and at least the bytes that they name."""
