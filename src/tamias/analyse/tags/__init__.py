"""Tags of pages: from their addresses by rules, and from what stands in them. Pure: bytes in, words out."""
