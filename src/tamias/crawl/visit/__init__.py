"""The stages of a visit, from a leased URL to its results."""
