"""The place of a response in a WARC file: the row by which it is listed and replayed."""

from typing import Annotated

import msgspec

from tamias.model.capture import Column


class WarcExtent(msgspec.Struct, frozen=True, kw_only=True):
    """A response or revisit record, and its row of the table `warc_record`."""

    file: Annotated[str, Column("text")]
    """The name that the file has when it is complete."""
    position: Annotated[int, Column("int8")]
    length: Annotated[int, Column("int8")]
    """Of the record as it is compressed."""
    url: Annotated[str, Column("text")]
    captured_at: Annotated[int, Column("int8")]
    status: Annotated[int, Column("int2")]
    sha256: Annotated[str | None, Column("bytea")] = None
    """Of the body; None where the server said that it has not changed."""
    revisit: Annotated[bool, Column("bool")] = False
    """Whether the body stands in another record."""
    declared_type: Annotated[str | None, Column("text")] = msgspec.field(default=None, name="told_type")
    crawl: Annotated[int | None, Column("int4")] = None
    capture: Annotated[str | None, Column("uuid")] = None
    """The visit; None where it is not known."""
