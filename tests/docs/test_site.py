"""The site is built from the pages, and every page can be reached."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_site_is_built_without_a_warning(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(ROOT / "docs"), str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "python.html").read_text(encoding="utf-8")
    assert "tamias.Archive" in page
    # the search that a browser loads knows the words of the pages
    assert 'id="search-results"' in (tmp_path / "search.html").read_text(encoding="utf-8")
    assert '"tombston' in (tmp_path / "searchindex.js").read_text(encoding="utf-8")
