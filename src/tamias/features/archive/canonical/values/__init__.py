"""The values of a column: their form."""
