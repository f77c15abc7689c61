"""Graphs that are hard to copy, as N-Quads, and their comparison as graphs."""

from collections import Counter
from collections.abc import Iterable, Iterator

from tamias.content.blank_nodes import Colours, with_gaps

EX = "http://example.org/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
SEVERAL = ("hard", "records")
XSD = "http://www.w3.org/2001/XMLSchema#"
LITERALS = [
    '""', '""@en', '"plain"', '"plain"@en', '"plain"@de-CH', '"plain"@zh-Hant-TW',
    r'"a \"quoted\" word"', '"\'"', r'"back\\slash \\u0041 \\n"', r'"two\nlines"', r'"\r\n\t"',
    r'"\u0001\u0008\u000C\u001B\u007F"',
    '"täglich 日本 \N{GRINNING FACE} \N{FAMILY}"',
    '"e\N{COMBINING ACUTE ACCENT} \N{LATIN SMALL LETTER E WITH ACUTE}"',
    '"<b>&amp;</b>"', '" leading and trailing "', f'"{"long " * 5_000}"',
    f'"{10**40}"^^<{XSD}integer>', f'"-{10**18}"^^<{XSD}integer>', f'"7"^^<{XSD}integer>',
    f'"0.{"123456789" * 4}"^^<{XSD}decimal>', f'"1.5E300"^^<{XSD}double>', f'"true"^^<{XSD}boolean>',
    f'"2026-02-28"^^<{XSD}date>', f'"not a number"^^<{XSD}integer>', f'"x"^^<{EX}datatype>',
    f'"<p>one</p>"^^<{RDF}XMLLiteral>', f'"http://example.org/"^^<{XSD}anyURI>',
]  # fmt: skip


def statement(subject: str, predicate: str, value: str, graph: str | None = None) -> str:
    """A line; a graph is a name under example.org."""
    return f"{subject} <{EX}{predicate}> {value}{f' <{EX}{graph}>' if graph else ''} .\n"


def literals(graph: str | None) -> Iterator[str]:
    """Hard literals, of an IRI and of a blank node."""
    for number, literal in enumerate(LITERALS):
        yield statement(f"<{EX}literals>", f"p{number % 5}", literal, graph)
        yield statement("_:literals", f"p{number % 5}", literal, graph)


def structures(graph: str | None, count: int) -> Iterator[str]:
    """Lists, trees, rings, and nodes that several statements share."""
    where = f" <{EX}{graph}>" if graph else ""
    mark = graph or "default"
    for number in range(count):
        node = f"_:{mark}{number}"
        yield statement(f"<{EX}thing{number}>", "list", f"{node}l0", graph)
        for item in range(3):
            rest = f"{node}l{item + 1}" if item < 2 else f"<{RDF}nil>"
            yield f'{node}l{item} <{RDF}first> "{number * item}"{where} .\n'
            yield f"{node}l{item} <{RDF}rest> {rest}{where} .\n"
        yield statement(f"<{EX}thing{number}>", "tree", f"{node}t", graph)
        yield statement(f"{node}t", "branch", f"{node}u", graph)
        yield statement(f"{node}t", "branch", f"{node}v", graph)
        yield statement(f"{node}u", "leaf", f'"{number}"', graph)
        yield statement(f"{node}v", "leaf", f"<{EX}thing{number + 1}>", graph)
        for turn in range(3):
            yield statement(f"{node}r{turn}", "next", f"{node}r{(turn + 1) % 3}", graph)
        yield statement(f"{node}r0", "starts", f"<{EX}thing{number}>", graph)
        yield statement(f"<{EX}thing{number}>", "shares", f"_:{mark}shared", graph)


def records(graph: str | None, count: int) -> Iterator[str]:
    """A catalogue without blank nodes, ten statements for each subject."""
    for number in range(count):
        subject, turn = divmod(number, 10)
        value = (
            f'"value {number} of some length, as titles have"@en' if turn % 2 else f"<{EX}o{number % 977}>"
        )
        yield statement(f"<{EX}record{subject}>", f"p{turn}", value, graph)


def many_graphs(count: int) -> Iterator[str]:
    """Small graphs, some with blank nodes of their own, all with one that they share."""
    for number in range(count):
        graph = f"many/{number}"
        for each in range(number % 7):
            yield statement(f"<{EX}member{each}>", "in", f'"{number}"', graph)
        yield statement("_:everywhere", "in", f'"{number}"', graph)
        yield statement(f"_:own{number}", "label", f'"{number}"', graph)
        yield statement(f"_:own{number}", "of", "_:everywhere", graph)


def dataset(size: int, graphs: int) -> str:
    """About `size` statements in a default graph, two large graphs and some small ones."""
    things = max(3, size // 250)
    lines = [
        *literals(None),
        *literals("hard"),
        *structures(None, max(1, things // 4)),
        *structures("structures", things),
        *records(None, size // 10),
        *records("records", size - size // 10 - 25 * things),
        *many_graphs(graphs),
        *(statement(f"<{EX}both>", f"in{each}", '"several"', graph) for each in "abc" for graph in SEVERAL),
    ]  # fmt: skip
    return "".join(dict.fromkeys(lines))


def as_graph(lines: Iterable[bytes]) -> Counter[bytes]:
    """A multiset of statements in which every blank node has the colour of what is said around it."""
    plain: Counter[bytes] = Counter()
    blank = []
    for line in lines:
        found = with_gaps(line)
        if found is None:
            plain[line] += 1
        else:
            blank.append(found)
    names = {node: b"_:" + colour.hex().encode() for node, colour in Colours(blank).of.items()}
    plain.update(each.written(names) for each in blank)
    return plain
