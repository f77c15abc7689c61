"""What an archive takes: captures of small files, its catalogue in SPARQL, histories after a repack."""
