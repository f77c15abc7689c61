"""The pages for people: HTML made here, which needs no script. What was crawled is never trusted.

Each page has its data as JSON, and as CSV where it is a table. None of them is part of the API's description.
"""
