"""Files with a description of what they are: BagIt and RO-Crate."""
