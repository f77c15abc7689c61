"""Strategy as SQL: links with their words are kept, and the user's functions say what is visited first."""
