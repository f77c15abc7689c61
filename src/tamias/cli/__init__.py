"""What users type: one verb, one file."""
