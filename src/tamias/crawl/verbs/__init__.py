"""The work of commands besides crawling."""
