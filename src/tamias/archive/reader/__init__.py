"""The archive for its readers: resources, versions, and their content as bytes, text and tables."""
