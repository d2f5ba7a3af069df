"""Parses the head of a statement: its first words, and the table that it is about."""

from __future__ import annotations

from itertools import pairwise

from deltaic.errors import InvalidArgumentError
from deltaic.sql.names import Name, read_name
from deltaic.sql.tokens import Reader
from deltaic.sql_text import spark_name

CHANGES = {"INSERT", "DELETE", "UPDATE", "MERGE", "TRUNCATE", "RESTORE", "ALTER"}
"""First words of statements that change a table."""
_EVOLUTION = ("WITH", "SCHEMA", "EVOLUTION")
_INTO = (("INTO", "TABLE"), ("OVERWRITE", "TABLE"), ("INTO",), ("OVERWRITE",))
# Words before the name of the table that a statement is about. Longer sequences stand before their own
# beginnings.
_HEADS: tuple[tuple[str, ...], ...] = (
    ("DELETE", "FROM"),
    ("UPDATE",),
    ("MERGE", *_EVOLUTION, "INTO"),
    ("MERGE", "INTO"),
    *(("INSERT", *evolves, *into) for evolves in ((), _EVOLUTION) for into in _INTO),
    ("TRUNCATE", "TABLE"),
    ("ALTER", "TABLE"),
    ("CREATE", "OR", "REPLACE", "TABLE"),
    *(
        ("CREATE", *external, "TABLE", *exists)
        for external in ((), ("EXTERNAL",))
        for exists in (("IF", "NOT", "EXISTS"), ())
    ),
    ("REPLACE", "TABLE"),
    ("DROP", "TABLE", "IF", "EXISTS"),
    ("DROP", "TABLE"),
    ("OPTIMIZE",),
    ("REORG", "TABLE"),
    ("VACUUM",),
    ("RESTORE", "TABLE"),
    ("RESTORE",),
    ("FSCK", "REPAIR", "TABLE"),
    ("SHOW", "COLUMNS", "IN"),
    ("SHOW", "COLUMNS", "FROM"),
    ("SHOW", "PARTITIONS"),
    ("SHOW", "TBLPROPERTIES"),
    ("SHOW", "CREATE", "TABLE"),
    ("ANALYZE", "TABLE"),
    ("MSCK", "REPAIR", "TABLE"),
    ("REPAIR", "TABLE"),
    ("COMMENT", "ON", "TABLE"),
)
_DESCRIBED = ("QUERY", "FUNCTION", "SCHEMA", "DATABASE", "NAMESPACE", "CATALOG", "PROCEDURE")
"""Words between DESCRIBE and something that is no table."""
_OF_HIVE = {("STORED", "AS"), ("STORED", "BY"), ("ROW", "FORMAT")}
BY_PATH = {"OPTIMIZE", "VACUUM", "DESCRIBE", "DESC", "REORG", "RESTORE"}
"""First words of statements that also take a path in quotes: VACUUM '/path'."""


def passes_head(reader: Reader) -> bool:
    """Moves the cursor to the name of the statement's table. Returns False if the statement has none there.
    GENERATE has its mode before the name, which may be any word."""
    if reader.accept("GENERATE"):
        reader.name()
        return reader.accept("FOR", "TABLE")
    if reader.accept("DESCRIBE") or reader.accept("DESC"):
        if any(reader.accept_option(word) for word in _DESCRIBED):
            return False
        if not (reader.accept_option("HISTORY") or reader.accept_option("DETAIL")):
            reader.accept_option("TABLE")
            reader.accept_option("EXTENDED") or reader.accept_option("FORMATTED")
        return True
    return any(reader.accept(*words) for words in _HEADS)


def needs_delta(reader: Reader) -> bool:
    """True for DESCRIBE HISTORY, DESCRIBE DETAIL, ALTER TABLE name DROP FEATURE and ALTER COLUMN ... SYNC
    IDENTITY, which only Delta tables have. `DESCRIBE history` shows the columns of a table."""
    start = Reader(reader.text)
    if start.accept("ALTER", "TABLE"):
        try:
            read_name(start)
        except InvalidArgumentError:
            return False
        return start.at("DROP", "FEATURE") or syncs_identity(start)
    return shows(reader, "HISTORY") or shows(reader, "DETAIL")


def clones(reader: Reader) -> bool:
    """True for CREATE or REPLACE TABLE name [SHALLOW | DEEP] CLONE source."""
    start = Reader(reader.text)
    if not (start.at("CREATE") or start.at("REPLACE")) or not passes_head(start):
        return False
    try:
        read_name(start)
    except InvalidArgumentError:
        return False
    start.accept("SHALLOW") or start.accept("DEEP")
    return start.at("CLONE")


def syncs_identity(reader: Reader) -> bool:
    """True for a statement that ends with SYNC IDENTITY."""
    words = [token.keyword for token in reader.tokens if token.text not in ("", ";")]
    return words[-2:] == ["SYNC", "IDENTITY"]


def shows(reader: Reader, what: str) -> bool:
    """True for DESCRIBE HISTORY name (`what` is HISTORY) or DESCRIBE DETAIL name at the start."""
    start = Reader(reader.text)
    return (start.accept("DESCRIBE") or start.accept("DESC")) and start.accept_option(what)


def target_of(reader: Reader) -> Name | None:
    """Returns the table that a statement is about; None for a query and for other statements. The cursor does
    not move."""
    if reader.at("SHOW", "COLUMNS"):
        reader = Reader(by_name(reader.text))
    start = reader.position
    try:
        if passes_head(reader):
            return read_name(reader, path=reader.tokens[0].keyword in BY_PATH)
    except InvalidArgumentError:
        return None
    finally:
        reader.position = start
    return None


def provider_of(reader: Reader) -> str | None:
    """Returns the provider after USING in a CREATE TABLE, "delta" for a clone, "hive" if a clause of _OF_HIVE
    describes the files, else None."""
    depth, cursor = 0, Reader(reader.text)
    try:
        if passes_head(cursor):
            read_name(cursor)  # it may be `clone`
    except InvalidArgumentError:
        cursor.position = 0
    tokens = cursor.tokens[cursor.position :]
    for token, after in pairwise(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.keyword == "AS":
            return None
        if depth == 0 and token.keyword == "CLONE":
            return "delta"
        if depth == 0 and (token.keyword, after.keyword) in _OF_HIVE:
            return "hive"
        if depth == 0 and token.keyword == "USING":
            return after.text.strip("`")
    return None


def by_name(text: str) -> str:
    """Writes the table of a statement as one name: VACUUM '/path' becomes VACUUM delta.`/path`, and SHOW
    COLUMNS IN t IN s becomes SHOW COLUMNS IN s.t."""
    reader = Reader(text)
    if reader.accept("SHOW", "COLUMNS"):
        return _with_schema(reader)
    if reader.tokens[0].keyword not in BY_PATH:
        return text
    passes_head(reader)
    if reader.done or (token := reader.tokens[reader.position]).kind != "string":
        return text
    path = spark_name(reader.string())
    return f"{text[: token.start]}delta.{path}{text[token.end :]}"


def _with_schema(reader: Reader) -> str:
    """Returns SHOW COLUMNS IN | FROM name IN | FROM schema with the schema before the name. The cursor is
    behind SHOW COLUMNS."""
    try:
        if not (reader.accept("IN") or reader.accept("FROM")):
            return reader.text
        table = reader.dotted()
        if not (reader.accept("IN") or reader.accept("FROM")):
            return reader.text
        schema = reader.dotted()
    except InvalidArgumentError:
        return reader.text
    agrees = len(table) == 1 or [part.lower() for part in table[:-1]] == [part.lower() for part in schema]
    if not agrees or not reader.done:
        return reader.text
    return f"SHOW COLUMNS IN {'.'.join(map(spark_name, (*schema, table[-1])))}"
