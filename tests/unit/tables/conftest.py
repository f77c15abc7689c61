"""Profiles of bytes, as if they had been fetched under a name."""

from types import SimpleNamespace

import pytest

from tamias.features.tables.body import profile
from tamias.features.tables.limits import ProfileLimits
from tests.workbook_files import encrypted, huge_xlsx, ods, xlsx


@pytest.fixture
def profiled(tmp_path):
    """`profiled(data, name)` is the profile of a body; `media_type` is what it was found to be."""

    def make(data, name="table.csv", media_type="text/csv", declared_type=None, **limits):
        path = tmp_path / "body"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return profile(
            path,
            media_type=media_type,
            declared_type=declared_type,
            name=name,
            limits=ProfileLimits(**limits),
            scratch=tmp_path,
        )

    return make


@pytest.fixture
def columns(profiled):
    """`columns(text)` are the columns of the one table in a text, by name."""

    def make(text, **limits):
        (table,) = profiled(text, **limits).tables
        return {column.name: column for column in table.columns}

    return make


@pytest.fixture
def workbooks():
    """Makers of workbooks: XLSX, ODS, one that asks for much memory, and the shell of an encrypted one."""
    return SimpleNamespace(xlsx=xlsx, ods=ods, huge=huge_xlsx, encrypted=encrypted)
