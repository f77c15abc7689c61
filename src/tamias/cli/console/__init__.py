"""What the commands share: options, opening the archive, output and progress."""
