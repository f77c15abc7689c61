"""One visit: from a leased URL to what it brought."""
