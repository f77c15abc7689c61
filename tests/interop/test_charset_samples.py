"""Tables of real words, from texts that chardet has, are read right without a declared charset."""

import random
import re
import subprocess
import sys
from collections import Counter

import pytest
from servers.packages import NotRun, installed

import tamias

CHARDET = "chardet==5.2.0"
CENTRAL, TURKISH = ("cp1250", "iso8859-2", "cp852", "mac-latin2"), ("cp1254", "iso8859-9", "cp857")
CYRILLIC = ("cp1251", "koi8-r", "cp866", "iso8859-5", "mac-cyrillic", "cp855")
FOLDERS = {
    "windows-1250": ("cp1250", CENTRAL), "iso-8859-2": ("iso8859-2", CENTRAL),
    "windows-1254": ("cp1254", TURKISH), "iso-8859-9": ("iso8859-9", TURKISH),
    "windows-1251": ("cp1251", CYRILLIC), "KOI8-R": ("koi8-r", CYRILLIC), "IBM866": ("cp866", CYRILLIC),
    "iso-8859-5": ("iso8859-5", CYRILLIC), "windows-1252": ("cp1252", ("cp1252",)),
    "iso-8859-1": ("cp1252", ("cp1252",)),
}  # fmt: skip
"""What the names of folders begin with, the charset of their files, and those that tables are written in."""
WORDS = 400


@pytest.fixture(scope="module")
def samples():
    """The folder of texts in chardet's source distribution."""
    words = ["-q", "--no-deps", "--no-binary", ":all:", CHARDET]

    def install(folder):
        subprocess.run([sys.executable, "-m", "pip", "download", *words], cwd=folder, check=True)
        (archive,) = folder.glob("chardet*.tar.gz")
        subprocess.run(["tar", "xzf", archive, "--strip-components=1"], cwd=folder, check=True)

    try:
        return installed(f"{CHARDET} texts", install) / "tests"
    except (NotRun, subprocess.CalledProcessError) as error:
        pytest.skip(f"chardet's texts not run: {error}")


def tables(path, charset):
    """Some consecutive words of a text, three in a row."""
    text = re.sub(r"<[^>]*>|&\w+;", " ", path.read_bytes().decode(charset, "ignore"))
    words = re.findall(r"[^\W\d_]+", text)
    first = random.Random(path.name).randrange(max(1, len(words) - WORDS))
    words = words[first : first + WORDS]
    rows = [";".join([*words[at : at + 3], str(at)]) for at in range(0, len(words) - 2, 3)]
    return "a;b;c;n\n" + "\n".join(rows) + "\n"


def test_tables_of_real_words_read_right_in_each_code_page_of_their_language(samples):
    read, wrong = Counter(), []
    for folder in sorted(samples.iterdir()):
        found = next(
            (found for name, found in FOLDERS.items() if re.fullmatch(f"{name}(-.*)?", folder.name)), None
        )
        charset, charsets = found or ("", ())
        for path in sorted(folder.iterdir()) if found else ():
            table = tables(path, charset)
            for each in () if table.isascii() else charsets:
                try:
                    body = table.encode(each)
                except UnicodeEncodeError:
                    continue  # of a letter that this code page has not
                [profile] = tamias.read(body, media_type="text/csv").profile.tables
                read[each] += 1
                if body.decode(profile.encoding) != table:
                    wrong.append((each, folder.name, path.name, profile.encoding))
    assert set(read) == {*CENTRAL, *TURKISH, *CYRILLIC, "cp1252"}, read
    assert wrong == []
