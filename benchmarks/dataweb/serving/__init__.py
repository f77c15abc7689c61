"""The web on loopback addresses: HTTP and FTP servers as processes, and how fast they are alone."""
