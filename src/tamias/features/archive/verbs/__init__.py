"""The commands about what is watched, and its versions."""
