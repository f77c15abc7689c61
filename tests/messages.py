"""What a message must name, and how it is worded.

The option, file, limit or place in a message may not change, so a test names it. The sentence around it may:
sentences stand in `tests/messages.toml`, by test, and `make messages` writes it from what the tests get.
`…` stands for anything in a line.
"""

import fcntl
import json
import os
import re
import tomllib
from difflib import SequenceMatcher
from pathlib import Path

SENTENCES = Path(__file__).with_suffix(".toml")
ANYTHING = "…"
_TEST = re.compile(r"(?P<file>\w+)\.py::(?:\w+::)?test_(?P<test>\w+)")
_VARIABLE = re.compile(r"/(?:dev/shm|tmp)/[^\s'\"]*|\b127(?:\.\d+){3}(?::\d+)?|\blocalhost:\d+|\b\w+\.py:\d+")
_HEAD = """# How messages are worded, by test: `make messages` writes this file. … is anything in a line.
"""


def unnamed(message, *names):
    """The names that a message lacks."""
    return [name for name in names if str(name) not in str(message)]


def unsaid(message, *names, part=1):
    """The names that a message lacks, and the sentence of the running test, should no line be worded so.

    A test that compares several sentences numbers them as parts.
    """
    place = _TEST.search(os.environ["PYTEST_CURRENT_TEST"]).groupdict()
    key = place["test"] if part == 1 else f"{place['test']}-{part}"
    lines = str(message).splitlines() or [""]
    sentence = read(SENTENCES).get(place["file"], {}).get(key, f"nothing yet: make messages writes {key}")
    if not is_worded(lines, sentence) and os.environ.get("TAMIAS_MESSAGES") == "write":
        write(SENTENCES, place["file"], key, [each for each in lines if not unnamed(each, *names)] or lines)
        return unnamed(message, *names)
    return unnamed(message, *names) + [sentence] * (not is_worded(lines, sentence))


def saying(*names, part=1):
    """The `check` of a `pytest.raises`."""

    def check(error):
        missing = unsaid(error, *names, part=part)
        assert not missing, f"{error} lacks {missing}"
        return True

    return check


def read(file):
    """The sentences by test file, then by test."""
    return tomllib.loads(file.read_text(encoding="utf-8"))


def write(file, test_file, key, lines):
    """Puts the line that is most like the sentence that stood there into the file."""
    with file.open("r+", encoding="utf-8") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)  # tests run in several processes
        sentences = tomllib.loads(opened.read())
        stood = sentences.setdefault(test_file, {}).get(key, "")
        new = max(lines, key=lambda line: SequenceMatcher(None, stood, line, autojunk=False).ratio())
        sentences[test_file][key] = _VARIABLE.sub(ANYTHING, new)
        opened.seek(0)
        opened.truncate()
        opened.write(_HEAD)
        for name in sorted(sentences):
            opened.write(f"\n[{name}]\n")
            opened.writelines(
                f"{each} = {json.dumps(sentences[name][each], ensure_ascii=False)}\n"
                for each in sorted(sentences[name])
            )


def is_worded(lines, sentence):
    """Whether one of the lines is the sentence, in which … is anything."""
    pattern = ".*".join(map(re.escape, sentence.split(ANYTHING)))
    return any(re.fullmatch(pattern, line) for line in lines)
