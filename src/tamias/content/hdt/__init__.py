"""HDT 1.0: RDF packed into a dictionary and bitmaps. Pure functions over bytes and numpy arrays.

Here, below the steps, because one step reads it and another writes it.
"""
