"""The commit of visits as rows and segments, in an order that survives a crash at any point."""
