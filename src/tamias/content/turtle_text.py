"""Turtle, TriG and N3 as text: what hides a sign, and where statements and directives end. Pure."""

import re

_STRING = (
    rb'"""(?:[^"\\]++|\\.|"(?!""))*(?:"""|\Z)|\'\'\'(?:[^\'\\]++|\\.|\'(?!\'\'))*(?:\'\'\'|\Z)'
    rb'|"(?:[^"\\\n]++|\\.)*["\n]?|\'(?:[^\'\\\n]++|\\.)*[\'\n]?'
)
_IRI = rb'<(?:[^<>"{}|^`\\\s]++|\\[uU])*>?'
ATOM = rb"(?:%b|%b|#[^\n]*|\\.)" % (_STRING, _IRI)
"""What hides every sign in it; a string that is not closed ends with its line."""
DIRECTIVES = (
    rb"(?P<directive>^[ \t]*(?i:prefix[ \t]+[^\s:<]*:\s*<[^<>\s]*>|base\s*<[^<>\s]*>))"
    rb"|(?P<before>^[ \t]*@(?:prefix|base)\b)"
)
DOT = rb"(?P<dot>\.(?![\w:%\\.\-\x80-\xff]))"
BRACES = rb"(?P<open>\{)|(?P<close>\})"
BOUNDARY = re.compile(ATOM + rb"|" + DIRECTIVES + rb"|" + DOT, re.DOTALL | re.MULTILINE)
BOUNDARY_OR_BRACE = re.compile(
    ATOM + rb"|" + DIRECTIVES + rb"|" + DOT + rb"|" + BRACES, re.DOTALL | re.MULTILINE
)
"""Ends of statements and directives, and where a graph or formula begins and ends."""
