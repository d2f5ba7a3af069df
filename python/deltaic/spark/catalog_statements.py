"""Statements about names of the session catalog that Spark would ask a data source about, and lasting views over Delta tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deltaic.errors import InvalidArgumentError, TableAlreadyExistsError, UnsupportedFeatureError
from deltaic.spark.named_tables import drop, enter_view, named_table, rename
from deltaic.spark.references import references
from deltaic.sql.names import Name, read_name
from deltaic.sql.tokens import Reader


def run_in_catalog(spark: Any, text: str, query: Callable[[str], Any]) -> bool:
    """True if the statement is one of these; it has been run then. `query`: the DataFrame of a query.

    DROP TABLE [IF EXISTS] name [PURGE] · ALTER TABLE name RENAME TO name · REFRESH TABLE name · CACHE [LAZY] TABLE name · UNCACHE TABLE
    name · CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name [(columns)] AS query
    """
    reader = Reader(text)
    if reader.at("CREATE"):
        return _makes_view(spark, reader, query)
    for words, call in _STATEMENTS.items():
        if reader.accept(*words):
            reader.accept("IF", "EXISTS")
            try:
                name = read_name(reader)
            except InvalidArgumentError:
                return False
            return name.path is None and named_table(spark, name.parts) is not None and call(spark, name, reader)
    return False


def _drop(spark: Any, name: Name, reader: Reader) -> bool:
    purges = reader.accept("PURGE")
    reader.end()
    drop(spark, name, purges=purges)
    return True


def _rename(spark: Any, name: Name, reader: Reader) -> bool:
    if not reader.accept("RENAME", "TO"):
        return False
    new = read_name(reader)
    reader.end()
    rename(spark, name, new)
    return True


def _refresh(spark: Any, name: Name, reader: Reader) -> bool:
    reader.end()
    spark.catalog.refreshTable(str(name))
    return True


def _cache(spark: Any, name: Name, reader: Reader) -> bool:
    if not reader.done:
        return False
    spark.catalog.cacheTable(str(name))
    spark.table(str(name)).count()
    return True


def _cache_later(spark: Any, name: Name, reader: Reader) -> bool:
    if not reader.done:
        return False
    spark.catalog.cacheTable(str(name))
    return True


def _uncache(spark: Any, name: Name, reader: Reader) -> bool:
    reader.end()
    spark.catalog.uncacheTable(str(name))
    return True


_STATEMENTS: dict[tuple[str, ...], Callable[[Any, Name, Reader], bool]] = {
    ("DROP", "TABLE"): _drop,
    ("ALTER", "TABLE"): _rename,
    ("REFRESH", "TABLE"): _refresh,
    ("CACHE", "TABLE"): _cache,
    ("CACHE", "LAZY", "TABLE"): _cache_later,
    ("UNCACHE", "TABLE"): _uncache,
}


def _makes_view(spark: Any, reader: Reader, query: Callable[[str], Any]) -> bool:
    reader.expect("CREATE")
    replaces = reader.accept("OR", "REPLACE")
    if not reader.accept("VIEW"):
        return False
    if_missing = reader.accept("IF", "NOT", "EXISTS")
    name = read_name(reader)
    columns = tuple(reader.bracketed(reader.name)) if reader.at("(") else ()
    comment = reader.string() if reader.accept("COMMENT") else None
    if not reader.accept("AS"):
        return False
    text = reader.rest("a query")
    found = references(Reader(text), spark)
    if not found:
        return False
    if any(each.by_path for each in found):
        raise UnsupportedFeatureError("a lasting view of a table by path", expected="a table by name, or CREATE TEMPORARY VIEW")
    if spark.catalog.tableExists(str(name)):
        if if_missing:
            return True
        if not replaces:
            raise TableAlreadyExistsError("the name is that of another table or view", where=str(name), expected="CREATE OR REPLACE VIEW")
    frame = query(text)
    tables = [(each.parts, each.path) for each in found if each.view is None and each.parts]
    schema = (frame.toDF(*columns) if columns else frame).schema
    enter_view(spark, name, text, frame.columns, schema, comment, tables, replaces=replaces)
    return True
