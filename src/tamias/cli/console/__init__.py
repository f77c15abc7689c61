"""What the commands share: options, opening the archive, output, progress and plots."""
