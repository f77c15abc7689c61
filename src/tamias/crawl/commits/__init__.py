"""What becomes true together: records, segments, and what puts a dead worker's affairs right."""
