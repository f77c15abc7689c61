"""What is known of sources: sites, catalogues, harvests, contexts, hints, rates of change."""
