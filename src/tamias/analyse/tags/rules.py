"""Rules that give tags to URLs: a regular expression and the tag of all URLs in which it is found."""

import re
from collections.abc import Iterable

from tamias.model.errors import ConfigError


class TagRules:
    """The rules of the setting `tags.rules`, each written as `PATTERN TAG`."""

    def __init__(self, rules: Iterable[str]) -> None:
        self._rules = [_rule(text) for text in rules]

    def added(self, url: str, tags: tuple[str, ...]) -> tuple[str, ...]:
        """The tags of a URL, those of the rules added.

        >>> TagRules([r"/sitemap[^/]*[.]xml$ sitemap"]).added("http://a.example/sitemap-1.xml", ("at",))
        ('at', 'sitemap')
        """
        if not self._rules:
            return tags
        told = [tag for pattern, tag in self._rules if tag not in tags and pattern.search(url)]
        return (*tags, *dict.fromkeys(told)) if told else tags


def _rule(text: str) -> tuple[re.Pattern[str], str]:
    pattern, _, tag = text.strip().rpartition(" ")
    if not pattern or not tag:
        raise ConfigError(
            f"'{text}' in tags.rules is not a rule; write a regular expression, a space, and a tag"
        )
    try:
        return re.compile(pattern.strip()), tag
    except re.error as error:
        raise ConfigError(f"'{pattern}' in tags.rules is not a valid regular expression: {error}") from error
