"""The archive at work: what is under watch, what is kept of it, when it is visited again."""
