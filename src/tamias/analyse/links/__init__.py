"""Where a document leads: Link headers, link sets, FTP listings, and statements that name other sources."""
