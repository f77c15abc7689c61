"""Named tokens with scopes, and the log of writing calls."""
