"""Records of portals as datasets."""
