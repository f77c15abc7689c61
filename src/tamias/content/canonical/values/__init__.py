"""The values of a column: their form, what they mean, and the words and names that say so."""
