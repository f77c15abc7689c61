"""Structure of XML: the paths of its elements and attributes, with counts, in bounded memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from lxml import etree

from tamias.features.tables.files.json_shape import JsonPlace, Places
from tamias.features.tables.limits import ProfileLimit, ProfileRun
from tamias.model.profile import Structure

_CHUNK = 1 << 16


class XmlReader:
    """Reads one file of XML."""

    def __init__(self, path: Path, run: ProfileRun) -> None:
        self._path = path
        self._run = run
        self._places = Places(run.limits.paths)
        self._root = JsonPlace("")
        self._open: list[JsonPlace | None] = []
        self._namespaces: dict[str, None] = {}
        self._depth = 0
        self._elements = 0
        self._complete = True

    def read(self) -> Structure | None:
        """Return the structure as far as the XML is well-formed; None for a body that is not XML."""
        parser = etree.XMLPullParser(
            ("start", "end", "start-ns"),
            resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False,
            remove_comments=True, remove_pis=True,
        )  # fmt: skip
        try:
            self._feed(parser)
        except etree.XMLSyntaxError as error:
            self._complete = False
            self._run.problems.append(f"no well-formed XML: {error.msg}")
        except ProfileLimit as limit:
            self._complete = False
            self._run.problems.append(str(limit))
        if not self._elements:
            return None
        return Structure(
            syntax="xml",
            items=self._elements,
            paths=self._places.profiles,
            namespaces=tuple(self._namespaces),
            depth=self._depth,
            complete=self._complete and self._places.complete,
        )

    def _feed(self, parser: "etree.XMLPullParser") -> None:
        left = self._run.limits.bytes
        with self._path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                self._run.check()
                left -= len(chunk)
                if left < 0:
                    raise self._run.beyond_bytes()
                try:
                    parser.feed(chunk)
                finally:
                    self._take(parser)
        parser.close()
        self._take(parser)

    def _take(self, parser: "etree.XMLPullParser") -> None:
        # Its events have other types than they are declared with.
        for event, element in cast(
            "Iterator[tuple[str, etree._Element | tuple[str, str]]]", parser.read_events()
        ):
            if isinstance(element, tuple):
                if len(self._namespaces) < self._run.limits.paths:
                    self._namespaces[str(element[1])[:300]] = None
            elif event == "start":
                self._start(element)
            else:
                self._end(element)

    def _start(self, element: "etree._Element") -> None:
        above = self._open[-1] if self._open else self._root
        place = None if above is None else self._places.below(above, element.tag, _step)
        self._open.append(place)
        self._elements += 1
        self._depth = max(self._depth, len(self._open))
        if place is None:
            self._complete = False
            return
        place.count("element")
        for name in element.attrib:
            attribute = self._places.below(place, (name,), _attribute)
            if attribute is not None:
                attribute.count("attribute")

    def _end(self, element: "etree._Element") -> None:
        place = self._open.pop()
        if place is not None and len(element) == 0 and element.text and element.text.strip():
            place.count("text")
        element.clear()
        parent = element.getparent()
        while parent is not None and parent[0] is not element:
            del parent[0]


def _step(tag: object) -> str:
    return "/" + str(tag).rpartition("}")[2][:100]


def _attribute(key: tuple[object]) -> str:
    return "/@" + str(key[0]).rpartition("}")[2][:100]
