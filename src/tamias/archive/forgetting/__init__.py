"""What was forgotten: tombstones, and the rows that go with what they cover."""
