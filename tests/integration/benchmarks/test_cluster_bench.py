"""Benchmarks that need a program of others say that they are not run where nobody names it."""

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import command
from tamias.model.errors import UsageError


@pytest.mark.parametrize("words", [["citus"], ["faults", "--cluster"]])
@pytest.mark.parametrize("folder", ["", "empty"])
def test_without_an_installed_citus_it_is_not_run(words, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("TAMIAS_CITUS", str(tmp_path) if folder else "")
    outcome = CliRunner().invoke(command, words).exception
    assert isinstance(outcome, UsageError)
    assert "not run" in str(outcome)
    assert "TAMIAS_CITUS" in str(outcome)
