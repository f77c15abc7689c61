"""Harvesters: read what is more than a document, request by request (`protocols.Harvester`)."""
