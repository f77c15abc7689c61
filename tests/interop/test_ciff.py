"""CIFF as `tamias` writes it, read by ciff-toolkit, which is not ours."""

import json
import subprocess

from servers.packages import pip

from tamias.features.exports.ciff import export_ciff, terms

TEXTS = {"http://a.example/": "The cat and the hat", "http://b.example/": "A hat, a HAT; \u00dcnder"}
READ = """
import json, sys
from ciff_toolkit.read import CiffReader
with CiffReader(sys.argv[1]) as ciff:
    lists = {each.term: [(p.docid, p.tf) for p in each.postings] for each in ciff.read_postings_lists()}
    records = [(each.docid, each.collection_docid, each.doclength) for each in ciff.read_documents()]
    print(json.dumps([ciff.header.total_terms_in_collection, lists, records]))
"""


def test_another_reader_of_ciff_reads_the_same_index(tmp_path):
    path = tmp_path / "index.ciff"
    with path.open("wb") as out:
        export_ciff(TEXTS.items(), out, "A test")
    python = pip("ciff-toolkit==0.2.2") / "python"
    done = subprocess.run([python, "-c", READ, path], check=True, capture_output=True, text=True)
    total, lists, records = json.loads(done.stdout)
    assert total == sum(len(list(terms(text))) for text in TEXTS.values())
    assert records == [[0, "http://a.example/", 5], [1, "http://b.example/", 5]]
    assert lists == {
        "a": [[1, 2]], "and": [[0, 1]], "cat": [[0, 1]], "hat": [[0, 1], [1, 2]], "the": [[0, 2]],
        "\u00fcnder": [[1, 1]],
    }  # fmt: skip
