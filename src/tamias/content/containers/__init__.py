"""Archives (zip, tar, 7z) and compressed files (gzip, xz, zstd, …), unpacked within limits."""
