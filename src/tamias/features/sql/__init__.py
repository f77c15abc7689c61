"""SQL: the archive's database in `psql`, or the rows of one statement, by a role that only reads."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="sql",
    about="reads the database with SQL",
    module=__name__,
    verbs={"sql": Verb("read the database with SQL, in psql or row by row", f"{__name__}.verb:command")},
)
