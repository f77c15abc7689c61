"""Recognise a response that asks for a payment, and say what it asks for. Pure."""

from tamias.analyse.links.discovery import parsed_links
from tamias.model.capture import Capture

PAYMENT_REQUIRED = 402
_HEADERS = ("crawler-price", "www-authenticate", "retry-after")
_LONGEST = 200


def refuse(capture: Capture) -> str | None:
    """Return the terms of a response that asks for a payment; None for any other."""
    if capture.status != PAYMENT_REQUIRED or not capture.hops:
        return None
    hop = capture.hops[-1]
    found = [f"{name}: {value[:_LONGEST]}" for name in _HEADERS if (value := hop.header(name))]
    links = [value for name, value in hop.headers if name.lower() == "link"]
    found += [
        f"license: {link.target[:_LONGEST]}"
        for link in parsed_links(", ".join(links))
        if {"license", "payment"} & {*link.relations}
    ]
    return "terms: 402 Payment Required" + (f" ({'; '.join(found)})" if found else "")
