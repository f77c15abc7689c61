"""Changes of due times and scores of URLs, other than by a put or a finish."""
