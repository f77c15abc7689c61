"""Links of a document: Link headers, link sets, FTP listings, and statements that name other sources."""
