"""The reader of WARC files of any origin: records, and the HTTP messages in them."""
