"""A client for harvesters that asks real servers, without a delay and without robots.txt."""

from tamias.content.containers.documents import documents
from tamias.crawl.analysis.analysers import Analysers
from tamias.model.document import Document
from tamias.settings import Settings


class PlainClient:
    """Carries out `protocols.PoliteClient`."""

    def __init__(self, fetcher):
        self._fetcher = fetcher
        self._analysers = Analysers(Settings())

    async def ask(self, request):
        async def follow(_target):
            return None

        return await self._fetcher.fetch(request, follow)

    def body(self, capture, most):
        return (capture.body.data or b"")[:most] if capture.body else b""

    def read(self, capture):
        for part in documents(capture.body, url=capture.final_url, declared_type=capture.declared_type):
            if isinstance(part, Document):
                yield from self._analysers[part.media_type].analyse(part)
            else:
                yield part
