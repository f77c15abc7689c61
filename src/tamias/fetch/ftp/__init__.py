"""FTP and FTPS."""
