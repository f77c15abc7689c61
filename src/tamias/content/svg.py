"""Elements of SVG as text, for the charts of pages and commands: values and text are escaped."""

from functools import cache

from markupsafe import Markup, escape


def element(tag: str, *inside: str, **attributes: object) -> Markup:
    """Return an element. `class_` is written as class, and `text_anchor` as text-anchor.

    >>> print(element("text", "a < b", class_="by", text_anchor="end"))
    <text class="by" text-anchor="end">a &lt; b</text>
    """
    written = "".join([f' {_spelled(name)}="{escape(value)}"' for name, value in attributes.items()])
    end = f">{''.join(map(escape, inside))}</{tag}>" if inside else "/>"
    return Markup(f"<{tag}{written}{end}")  # noqa: S704 - escaped above


@cache
def _spelled(name: str) -> str:
    return name.rstrip("_").replace("_", "-")
