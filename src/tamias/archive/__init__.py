"""What was found and is kept: a row for every attempt, and the files that its quads stand in."""
