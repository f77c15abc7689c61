"""Doors: addresses that are more than a document, walked request by request (`protocols.Door`)."""
