"""The archive told to machines: datasets and catalogue as RDF, JSON-LD in pages, VoID, sitemap, linksets."""
