"""Harvesters to data portals: each turns its records into `model.dataset.Dataset`, and those into DCAT."""
