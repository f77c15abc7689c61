"""The lines that a person sees."""

from tamias.features.diffs.text import collection_lines, diff_lines, escaped
from tamias.model.diff import Change, CollectionDiff, Columns, Diff, DiffKind, What


def test_rows_are_told_by_key_with_signs():
    found = Diff(
        kind=DiffKind.ROWS,
        key="id",
        added=1234,
        removed=1,
        changed=1,
        changes=[
            Change(What.CHANGED, "2", {"b": "y", "c": ""}, {"b": "z", "c": "1"}),
            Change(What.ADDED, "4", None, {"id": "4", "a": ""}),
            Change(What.REMOVED, "3", {"id": "3"}, None),
        ],
        truncated=True,
        columns=Columns(added=["n"], removed=["o"], renamed=[("p", "q")], moved=True),
        notes=["something"],
    )
    assert list(diff_lines(found)) == [
        "rows by id: 1,234 added, 1 removed, 1 changed",
        "+ column n",
        "- column o",
        "~ column p → q",
        "~ columns in another order",
        "~ 2: b y → z, c (empty) → 1",
        "+ 4: id=4, a=(empty)",
        "- 3: id=3",
        "… and 1,233 more",
        "note: something",
    ]


def test_json_values_are_told_as_json():
    found = Diff(
        kind=DiffKind.JSON,
        changed=1,
        removed=1,
        changes=[Change(What.CHANGED, "$.a", None, [1, 2.5]), Change(What.REMOVED, "$.b", True, None)],
    )
    assert list(diff_lines(found))[1:] == ["~ $.a: null → [1,2.5]", "- $.b: true"]


def test_nothing_from_outside_reaches_the_terminal_unescaped():
    evil = "a\x1b[2Jb\r\n\u202e\u2028\x00\x9b"
    found = Diff(
        kind=DiffKind.ROWS,
        key=evil,
        changes=[
            Change(What.CHANGED, evil, {evil: evil}, {evil: "x"}),
            Change(What.ADDED, evil, None, evil),
            Change(What.REMOVED, evil, {evil: [evil]}, None),
        ],
        columns=Columns(added=[evil], removed=[evil], renamed=[(evil, evil)]),
        notes=[evil],
    )
    assert all(line.isprintable() for line in diff_lines(found))
    assert all(line.isprintable() for line in collection_lines(CollectionDiff([], [], [evil])))


def test_letters_of_all_scripts_stay_as_they_are():
    assert escaped("Österreich 東京 Ελλάδα") == "Österreich 東京 Ελλάδα"


def test_a_collection_is_told_by_what_came_changed_and_went():
    found = CollectionDiff(added=[], changed=["http://b"], gone=["http://a"])
    assert list(collection_lines(found)) == [
        "resources: 0 added, 1 changed, 1 gone",
        "~ http://b",
        "- http://a",
    ]
