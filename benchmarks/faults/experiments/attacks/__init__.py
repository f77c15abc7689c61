"""Strangers who look for a way in or out."""
