"""The archive: a row for every attempt, the files of its quads, and the versions of what is watched."""
