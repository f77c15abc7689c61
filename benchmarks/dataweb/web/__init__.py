"""The web as values: drawn, filled with what its nodes answer, and the truth about it."""
