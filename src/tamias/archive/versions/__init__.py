"""Resources and their versions: whether what came is a new one, and the rows that say so."""
