"""The check of `make check` that finds what the type checker does not."""

import runpy
from pathlib import Path

import pytest

TOOL = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "shadowed_names.py"))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("bare = [bare(each) for each in leases]", ["bare"]),
        ("held = [bare(each) for each in leases]", []),
        ("return [bare for bare in leases]", ["bare"]),
        ("math = 1", ["math"]),
        ("leases = [each for each in leases]", []),
    ],
)
def test_a_local_that_hides_a_name_of_its_module_is_found(tmp_path, body, found):
    file = tmp_path / "scratch.py"
    file.write_text(f"import math\n\ndef bare(x):\n    return x\n\ndef renew(leases):\n    {body}\n")
    assert [line.split("'")[1] for line in TOOL["shadowed"](file)] == found
