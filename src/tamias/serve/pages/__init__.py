"""The pages for people: HTML made here, without scripts. What was crawled is never trusted.

Each page has its data as JSON. None of them is part of the API's description.
"""
