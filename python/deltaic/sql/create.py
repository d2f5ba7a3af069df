"""CREATE TABLE and CREATE TABLE AS SELECT."""

from __future__ import annotations

from dataclasses import dataclass, field

from deltaic.commands.create import Wanted
from deltaic.commands.write import Write
from deltaic.errors import InvalidArgumentError, TableAlreadyExistsError, UnsupportedFeatureError
from deltaic.protocol.schema import path_text
from deltaic.scan.rows import Rows
from deltaic.sql.names import Name, Tables, read_name
from deltaic.sql.results import nothing
from deltaic.sql.tokens import Reader
from deltaic.table import DeltaTable


@dataclass
class _Clauses:
    """What may stand between the columns and AS, in any order, each once."""

    partition_by: list[str] | None = None
    cluster_by: list[str] | None = None
    comment: str | None = None
    properties: dict[str, str] | None = None
    seen: set[str] = field(default_factory=set)


def create(reader: Reader, tables: Tables) -> Rows:
    """CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name [(columns)] [USING delta] [clauses] [AS query], or REPLACE TABLE"""
    if reader.accept("REPLACE"):
        replace, must_exist = True, True
    else:
        reader.expect("CREATE")
        replace, must_exist = reader.accept("OR", "REPLACE"), False
    if reader.at("EXTERNAL") or reader.at("TEMPORARY") or reader.at("VIEW"):
        raise UnsupportedFeatureError("CREATE makes Delta tables only", found=reader.tokens[reader.position].text, expected="TABLE")
    reader.expect("TABLE")
    if_missing = not replace and reader.accept("IF", "NOT", "EXISTS")
    name = read_name(reader)
    columns = reader.inside("columns") if reader.at("(") else None
    clauses = _clauses(reader)
    reader.accept("AS")
    text = None if reader.done else reader.rest("a query")
    path = tables.path_of(name)
    exists = DeltaTable.exists(path, storage_options=tables.storage_options)
    if must_exist and not exists:
        raise InvalidArgumentError("REPLACE TABLE needs a table", found=str(name), expected="CREATE OR REPLACE TABLE")
    if exists and not replace:
        if if_missing:
            return nothing()
        raise TableAlreadyExistsError("a table is there already", where=path, expected="CREATE OR REPLACE TABLE, or IF NOT EXISTS")
    if text is not None:
        _create_as(path, clauses, columns, text, replace, tables)
    else:
        _create(path, clauses, columns, replace, name, tables)
    return nothing()


def _create(path: str, clauses: _Clauses, columns: str | None, replace: bool, name: Name, tables: Tables) -> None:
    if columns is None:
        raise InvalidArgumentError("a table needs columns", where=str(name), expected="(name type, ...) or AS SELECT")
    DeltaTable.create(
        path,
        columns,
        mode="overwrite" if replace else "error",
        partition_by=clauses.partition_by or (),
        cluster_by=clauses.cluster_by or (),
        description=clauses.comment,
        properties=clauses.properties,
        storage_options=tables.storage_options,
    )


def _create_as(path: str, clauses: _Clauses, columns: str | None, text: str, replace: bool, tables: Tables) -> None:
    if columns is not None:
        raise InvalidArgumentError("AS SELECT gives the columns; a list of them cannot stand beside it", found=columns)
    job = Write(
        mode="overwrite" if replace else "error",
        schema_mode="overwrite" if replace else None,
        wanted=Wanted.of(clauses.partition_by, clauses.cluster_by, None, clauses.comment, clauses.properties),
        defines=True,
    )
    tables.create(path, tables.query(text), job)


def _clauses(reader: Reader) -> _Clauses:
    clauses = _Clauses()
    while not (reader.done or reader.at("AS") or reader.at("SELECT") or reader.at("WITH") or reader.at("VALUES") or reader.at("(")):
        word = reader.tokens[reader.position].keyword
        if word in clauses.seen:
            reader.fail(f"{word} once")
        clauses.seen.add(word)
        if reader.accept("USING"):
            if (source := reader.name()).lower() not in ("delta", "deltaic"):
                raise UnsupportedFeatureError("tables of another format", found=f"USING {source}", expected="USING delta")
        elif reader.accept("PARTITIONED", "BY"):
            clauses.partition_by = [path_text(column) for column in reader.bracketed(reader.dotted)]
        elif reader.accept("CLUSTER", "BY"):
            clauses.cluster_by = [path_text(column) for column in reader.bracketed(reader.dotted)]
        elif reader.accept("COMMENT"):
            clauses.comment = reader.string()
        elif reader.accept("TBLPROPERTIES"):
            clauses.properties = read_properties(reader)
        elif reader.at("LOCATION") or reader.at("OPTIONS") or reader.at("CLONE") or reader.at("SHALLOW"):
            raise UnsupportedFeatureError(f"{word} of CREATE TABLE", expected="delta.`path` as the table's name")
        else:
            reader.fail("USING, PARTITIONED BY, CLUSTER BY, COMMENT, TBLPROPERTIES or AS")
    return clauses


def read_properties(reader: Reader) -> dict[str, str]:
    """('key' = 'value', key.of.words = 3, ...)"""
    return dict(reader.bracketed(lambda: _property(reader)))


def read_property_name(reader: Reader) -> str:
    return reader.string() if reader.tokens[reader.position].kind == "string" else ".".join(reader.dotted())


def _property(reader: Reader) -> tuple[str, str]:
    key = read_property_name(reader)
    reader.accept("=")
    if reader.done:
        reader.fail("a value")
    token = reader.tokens[reader.position]
    if token.kind == "string":
        return key, reader.string()
    if token.kind in ("number", "word"):
        reader.position += 1
        return key, token.text.lower() if token.keyword in ("TRUE", "FALSE") else token.text
    reader.fail("a value")
