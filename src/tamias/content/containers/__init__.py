"""What holds other files (zip, tar, 7z) or is packed itself (gzip, xz, zstd, …), unpacked within limits."""
