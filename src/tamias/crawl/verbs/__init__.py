"""The work of commands besides crawling: read, check, repack, audit."""
