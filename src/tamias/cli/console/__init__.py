"""The console: options, opening the archive, output and progress."""
