"""Tokens: named secrets of the service, each for some scopes, hosts or portals."""

from tamias.plugins import Feature

FEATURE = Feature(name="tokens", about="named tokens and what they allow", module=__name__)
