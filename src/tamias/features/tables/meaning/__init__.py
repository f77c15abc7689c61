"""Meanings of the values of a column, and the words and names that say so."""
