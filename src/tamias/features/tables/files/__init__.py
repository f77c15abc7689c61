"""Files that are profiled by their structure: workbooks, Parquet, JSON, XML, archives."""
