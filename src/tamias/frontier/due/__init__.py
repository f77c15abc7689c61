"""When URLs are due, other than by a put and a finish: at once, again, later, by another score."""
