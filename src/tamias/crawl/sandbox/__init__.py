"""Documents that are large or suspicious, analysed in supervised child processes behind walls."""
