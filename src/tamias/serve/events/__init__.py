"""What happened in the archive, numbered: kept in the database, and streamed to pages that live."""
