"""What stands in WARC files, whoever wrote them: records, and the HTTP messages in them."""
