"""Who may do what: named tokens with scopes, whom a request comes from, and the log of writing calls."""
