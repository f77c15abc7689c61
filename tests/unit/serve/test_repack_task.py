"""The service repacks beside its other work, and outlives a repack that hangs or cannot be started."""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from tamias.features.service import run


@pytest.fixture
def plan(tmp_path):
    archive = SimpleNamespace(repack=True, repack_after=0.0, repack_seconds=0.05, captures_months=0)
    return SimpleNamespace(data=tmp_path, db=None, settings=SimpleNamespace(archive=archive))


class Background:
    """The session pool of the service, for an archive that owns its packs or not."""

    def __init__(self, is_borrowed):
        packs = SimpleNamespace(is_borrowed=is_borrowed)
        self.database = SimpleNamespace(reader=SimpleNamespace(packs=packs))

    async def run(self, asked):
        return asked(self.database)


def test_a_repack_that_hangs_is_ended(plan, tmp_path, monkeypatch):
    program = tmp_path / "hangs"
    program.write_text(f'#!/bin/sh\necho $$ > "{tmp_path}/pid"\nexec sleep 3600\n')
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    asyncio.run(asyncio.wait_for(run._repack(plan), 60))
    with suppress(FileNotFoundError):  # it may have been ended before it wrote anything
        pid = int((tmp_path / "pid").read_text())
        state = Path(f"/proc/{pid}/stat")
        assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_what_cannot_be_started_is_tried_again(plan, monkeypatch):
    monkeypatch.setattr(sys, "executable", os.devnull)
    monkeypatch.setattr(run, "SCHEDULE_SECONDS", 0.01)
    tries = repacks_of(plan, monkeypatch, is_borrowed=False)
    assert tries == 3


def test_packs_of_another_archive_are_left_alone(plan, monkeypatch):
    monkeypatch.setattr(run, "SCHEDULE_SECONDS", 0.01)
    assert repacks_of(plan, monkeypatch, is_borrowed=True) == 0


def repacks_of(plan, monkeypatch, *, is_borrowed):
    """How many repacks are begun, up to three, in a time that is enough for them."""
    tries, repack = 0, run._repack

    async def counted(plan):
        nonlocal tries
        tries += 1
        plan.settings.archive.repack = tries < 3
        await repack(plan)

    monkeypatch.setattr(run, "_repack", counted)

    async def often():
        with suppress(TimeoutError):
            await asyncio.wait_for(run._repack_often(plan, Background(is_borrowed)), 1 if is_borrowed else 60)

    asyncio.run(often())
    return tries
