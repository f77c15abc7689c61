"""What a body holds: opened, analysed, written to segments, its links handed on."""
