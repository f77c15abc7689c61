"""The profile of a body: its types, tables, structure, places, members and statements, as plain values.

A profile is made of one version of one resource. It is small whatever the body's size, and becomes JSON.
"""

import msgspec

XSD = "http://www.w3.org/2001/XMLSchema#"


class Types(msgspec.Struct, frozen=True, kw_only=True):
    """The media types by the server, by the name and by the bytes."""

    declared: str | None = msgspec.field(default=None, name="told")
    named: str | None = None
    found: str
    agree: bool = True
    """Whether all that was claimed is true; what claims nothing, such as `application/octet-stream`, is."""


class TopValue(msgspec.Struct, frozen=True):
    """A frequent value, cut to a bearable length, and how often it stands there."""

    value: str
    count: int


class Meaning(msgspec.Struct, frozen=True, kw_only=True):
    """A guess of what the values of a column are, such as dates, countries or places."""

    type: str
    """A word of `tamias.features.tables.meaning.meanings`: `date`, `country`, `latitude`, `email`, ..."""
    confidence: float
    """From 0 to 1: the share of the values that fit, more if the header says so, less if it does not."""
    range: str | None = None
    """The IRI of a public class that such values name or identify, where one fits."""


class ColumnProfile(msgspec.Struct, frozen=True, kw_only=True):
    """A column. Numbers, times and truth values are in the forms of XML Schema."""

    name: str
    number: int
    """Counted from 1."""
    datatype: str = "string"
    """The local name of an XML Schema datatype."""
    format: str | None = None
    """How the datatype is written here: a date pattern such as `dd.MM.yyyy`, `#.##0,0`, `ja|nein`."""
    nulls: int | None = None
    null_words: tuple[str, ...] = ()
    """What is written for a missing number, time or truth value, such as `NA`; empty cells are not listed."""
    invalid: int = 0
    """Values that are not of the datatype: a few in a column of numbers, such as a sum's footnote."""
    distinct: int | None = None
    """Exact in tables of moderate size, an estimate in larger ones."""
    unique: bool = False
    """No value stands there twice, and none is missing."""
    min: str | None = None
    max: str | None = None
    mean: float | None = None
    histogram: tuple[int, ...] = ()
    """Of a column of numbers: how many are in each of some equally wide parts from `min` to `max`; of a large
    column, how many of 1,000 values."""
    top: tuple[TopValue, ...] = ()
    pattern: str | None = None
    """The shape that most values have: `9{5}`, `A{2}-9{3}`; None where they have no shape in common."""
    meaning: Meaning | None = None
    sketch: bytes = b""
    """The smallest hashes of the values (`tamias.features.tables.joins`); empty where none is needed."""

    @property
    def read_as(self) -> str:
        """The datatype that all values have: as CSVW, Croissant and `Content.table` have the column."""
        return "string" if self.invalid else self.datatype

    @property
    def datatype_iri(self) -> str:
        """The IRI of that datatype."""
        return XSD + self.read_as


class TableProfile(msgspec.Struct, frozen=True, kw_only=True):
    """A table: a CSV file, a sheet, a Parquet file."""

    name: str
    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    header: bool = False
    skipped: int = 0
    """Lines before the header, such as a title."""
    rows: int
    width: int
    """How many columns there are; the profile may tell of fewer."""
    unnamed: int = 0
    """Empty columns behind these, where lines end with delimiters."""
    columns: tuple[ColumnProfile, ...] = ()
    complete: bool = True
    """Whether all rows were counted."""


class PathProfile(msgspec.Struct, frozen=True):
    """A place that recurs in JSON (`$.features[].id`) or XML (`/catalog/book/@id`), with counts by type."""

    path: str
    types: dict[str, int]


class Structure(msgspec.Struct, frozen=True, kw_only=True):
    """The structure of JSON or XML."""

    syntax: str
    """`json`, `json-lines` or `xml`."""
    items: int
    """Lines of JSON lines, elements of an outermost array, elements of XML; else 1."""
    paths: tuple[PathProfile, ...] = ()
    namespaces: tuple[str, ...] = ()
    depth: int = 0
    complete: bool = True


class Geography(msgspec.Struct, frozen=True, kw_only=True):
    """The places in a GeoJSON document."""

    features: int
    geometries: dict[str, int]
    bbox: tuple[float, float, float, float] | None = None
    """West, south, east, north of all positions; in degrees if `crs` is None."""
    crs: str | None = None
    """The coordinate system, where the document names another than that of GeoJSON."""
    properties: tuple[str, ...] = ()
    complete: bool = True


class MemberProfile(msgspec.Struct, frozen=True):
    """A file in an archive."""

    name: str
    size: int
    encrypted: bool = False


class Members(msgspec.Struct, frozen=True, kw_only=True):
    """The files in an archive."""

    count: int
    size: int
    """Of all members, unpacked, as the archive says."""
    encrypted: int = 0
    members: tuple[MemberProfile, ...] = ()
    complete: bool = True


class TermUsage(msgspec.Struct, frozen=True):
    """A class and its instances, or a property and its triples."""

    iri: str
    count: int


class StatementCounts(msgspec.Struct, frozen=True, kw_only=True):
    """RDF in figures, as VoID tells them. Distinct terms are estimates where there are many."""

    triples: int
    subjects: int
    objects: int
    graphs: int = 0
    """Named graphs."""
    class_count: int = 0
    property_count: int = 0
    classes: tuple[TermUsage, ...] = ()
    properties: tuple[TermUsage, ...] = ()
    complete: bool = True


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The profile of one decoded body."""

    size: int
    types: Types
    tables: tuple[TableProfile, ...] = ()
    structure: Structure | None = None
    geography: Geography | None = None
    members: Members | None = None
    statements: StatementCounts | None = None
    encoding: str | None = None
    lines: int | None = None
    """Of text that is nothing else."""
    problems: tuple[str, ...] = ()
    """What could not be read, and which limit was hit."""
