"""A report as blocks, written as Markdown and as one HTML page. Pure."""

from collections.abc import Sequence
from html import escape

import msgspec

STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:1rem 0;font-size:14px}"
    "td,th{border-bottom:1px solid #ccc;padding:.2rem .6rem;text-align:right}"
    "td:first-child,th:first-child{text-align:left}code{background:#f2f2f2}pre{white-space:pre-wrap}svg{max-width:100%}"
)


class Title(msgspec.Struct, frozen=True):
    """A heading."""

    text: str
    level: int = 2


class TextBlock(msgspec.Struct, frozen=True):
    """A paragraph."""

    text: str


class Points(msgspec.Struct, frozen=True):
    """A list."""

    texts: Sequence[str]


class CodeBlock(msgspec.Struct, frozen=True):
    """What to type into a shell."""

    text: str


class TableBlock(msgspec.Struct, frozen=True):
    """Rows of cells, the first of them the head."""

    rows: Sequence[Sequence[str]]


class Figure(msgspec.Struct, frozen=True):
    """A plot; `name` is that of its file beside the Markdown."""

    name: str
    caption: str
    svg: str


Block = Title | TextBlock | Points | CodeBlock | TableBlock | Figure


def markdown(blocks: Sequence[Block]) -> str:
    """Figures are references to files."""
    return "\n\n".join(map(_markdown, blocks)) + "\n"


def page(blocks: Sequence[Block], title: str) -> str:
    """One file with everything in it."""
    body = "\n".join(map(_html, blocks))
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def _markdown(block: Block) -> str:
    match block:
        case Title():
            return f"{'#' * block.level} {block.text}"
        case TextBlock():
            return block.text
        case Points():
            return "\n".join(f"- {text}" for text in block.texts)
        case CodeBlock():
            return f"```sh\n{block.text}\n```"
        case Figure():
            return f"![{block.caption}]({block.name}.svg)\n\n{block.caption}"
        case TableBlock():
            head, *rows = ("| " + " | ".join(row) + " |" for row in block.rows)
            return "\n".join([head, "|" + "---|" * len(block.rows[0]), *rows])


def _html(block: Block) -> str:
    match block:
        case Title():
            return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
        case TextBlock():
            return f"<p>{coded(block.text)}</p>"
        case Points():
            return "<ul>" + "".join(f"<li>{coded(text)}</li>" for text in block.texts) + "</ul>"
        case CodeBlock():
            return f"<pre><code>{escape(block.text)}</code></pre>"
        case Figure():
            return f"<figure>{block.svg}<figcaption>{escape(block.caption)}</figcaption></figure>"
        case TableBlock():
            head, *rows = block.rows
            top = "".join(f"<th>{coded(cell)}</th>" for cell in head)
            lines = "".join(
                "<tr>" + "".join(f"<td>{coded(cell)}</td>" for cell in row) + "</tr>" for row in rows
            )
            return f"<table><tr>{top}</tr>{lines}</table>"


def coded(text: str) -> str:
    """What stands between backticks as code, what stands between double asterisks as strong."""
    for mark, tag in (("`", "code"), ("**", "strong")):
        parts = (escape(text) if mark == "`" else text).split(mark)
        text = "".join(f"<{tag}>{part}</{tag}>" if turn % 2 else part for turn, part in enumerate(parts))
    return text
