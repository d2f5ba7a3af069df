"""Replaces methods of `spark.catalog` in an enabled session, for delta.`path` and for Delta tables of the
session catalog: createTable, tableExists, getTable, listTables, listColumns, cacheTable, isCached,
uncacheTable, refreshTable. Spark's own methods handle all other names."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from deltaic.engine.spark.cached_rows import is_cached
from deltaic.engine.spark.engine import enabled_as
from deltaic.engine.spark.stores import opening
from deltaic.errors import DeltaError, UnsupportedFeatureError
from deltaic.plan.literal import col, lit
from deltaic.spark import patches
from deltaic.spark.builders import FORMATS
from deltaic.spark.frames import newest
from deltaic.spark.named_tables import SESSION_CATALOG, NamedTable, ViewQuery, named_table, parsed
from deltaic.spark.references import references_of_view, view_over_delta
from deltaic.spark.views import path_named
from deltaic.spark_sql.values import type_text
from deltaic.sql.create import of_options
from deltaic.table import DeltaTable


def _exists(spark: Any, path: str) -> bool:
    with opening(spark):
        return DeltaTable.exists(path)


def _cache(frame: Any, storageLevel: Any = None) -> None:
    if storageLevel is None:
        frame.cache()
    else:
        frame.persist(storageLevel)


def _uncache(frame: Any) -> None:
    frame.unpersist()


def _rows(call: Callable[..., Any], spark: Any, path: str, *args: Any, **named: Any) -> Any:
    return call(newest(spark, path), *args, **named)


def _columns(spark: Any, path: str) -> list[Any]:
    from pyspark.sql.catalog import Column

    with opening(spark):
        table = DeltaTable(path)
    partitions, clusters = set(table.metadata.partition_columns), set(table.detail().clustering_columns)
    return [
        Column(
            name=field.name,
            description=field.metadata.get("comment"),
            dataType=type_text(field.type),
            nullable=field.nullable,
            isPartition=field.name in partitions,
            isBucket=False,
            isCluster=field.name in clusters,
        )
        for field in table.schema
    ]


def _table_named(spark: Any, entry: NamedTable) -> Any:
    from pyspark.sql.catalog import Table

    with opening(spark):
        description = DeltaTable(entry.path).metadata.description
    kind = "MANAGED" if entry.managed else "EXTERNAL"
    return Table(entry.parts[1], SESSION_CATALOG, [entry.parts[0]], description, kind, isTemporary=False)


def _refresh(spark: Any, path: str) -> None:
    spark.catalog.refreshByPath(path)


def _refresh_view(spark: Any, view: ViewQuery) -> None:
    for each in references_of_view(view, spark):
        if each.view is None:
            _refresh(spark, each.path)
        else:
            _refresh_view(spark, each.view)


_ON_ROWS: dict[str, Callable[..., Any]] = {
    "cacheTable": _cache,
    "isCached": is_cached,
    "uncacheTable": _uncache,
}
"""Methods that need the rows of a table, or of a permanent view over Delta tables, as a DataFrame."""
_CALLS: dict[str, Callable[..., Any]] = {
    **{name: functools.partial(_rows, call) for name, call in _ON_ROWS.items()},
    "tableExists": _exists,
    "listColumns": _columns,
    "refreshTable": _refresh,
}
# Methods that work for a name of the session catalog, and not only by the path of its table.
_BY_NAME: dict[str, Callable[[Any, NamedTable], Any]] = {
    "tableExists": lambda spark, entry: True,
    "getTable": _table_named,
}
_REFUSED = {"getTable": "DESCRIBE DETAIL delta.`path`"}
"""Method that raises UnsupportedFeatureError for a table by path -> the statement to use instead."""


def _create(
    spark: Any,
    name: str,
    path: str | None = None,
    schema: Any = None,
    description: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Creates a table and returns its DataFrame. Without `schema`, the name of an existing table at `path` is
    added to the catalog."""
    from deltaic.spark.statements import sql
    from deltaic.spark.tables import DeltaTable as TableOnSpark

    texts_of_options = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (options or {}).items()
    }
    location, properties = of_options(texts_of_options)
    location = path if location is None else location
    if schema is None:
        texts = [f"LOCATION {lit(location)}"] if location is not None else []
        texts += [f"COMMENT {lit(description)}"] if description is not None else []
        pairs = (f"{lit(key)} = {lit(value)}" for key, value in properties.items())
        texts += [f"TBLPROPERTIES ({', '.join(pairs)})"] if properties else []
        sql(spark, " ".join([f"CREATE TABLE {name} USING delta", *texts]))
        return spark.table(name)
    builder = TableOnSpark.create(spark).tableName(name).addColumns(schema)
    builder = builder if location is None else builder.location(location)
    for key, value in properties.items():
        builder = builder.property(key, value)
    (builder if description is None else builder.comment(description)).execute()
    return spark.table(name)


def _create_table(
    create_table: Any,
    self: Any,
    /,
    tableName: str,
    path: str | None = None,
    source: str | None = None,
    schema: Any = None,
    description: str | None = None,
    **options: Any,
) -> Any:
    spark = self._sparkSession
    format = source or spark.conf.get("spark.sql.sources.default", "parquet")
    if enabled_as(spark) is None or str(format).lower() not in FORMATS:
        return create_table(self, tableName, path, source, schema, description, **options)
    return _create(spark, tableName, path, schema, description, options)


def _listed(spark: Any, table: Any) -> Any:
    """Returns an element of `listTables` with the comment and the kind of a Delta table. Spark has None for
    its comment and, before 4.3, for its kind."""
    if table.description is not None or table.tableType == "VIEW" or len(table.namespace or ()) != 1:
        return table
    entry = named_table(spark, (*table.namespace, table.name))
    try:
        return table if entry is None else _table_named(spark, entry)
    except DeltaError:  # its folder is gone, for example; the other tables are listed nevertheless
        return table


def _list_tables(list_tables: Any, self: Any, /, *args: Any, **named: Any) -> list[Any]:
    tables, spark = list_tables(self, *args, **named), self._sparkSession
    return tables if enabled_as(spark) is None else [_listed(spark, table) for table in tables]


def wrap(catalogs: Any) -> None:
    """Replaces the methods of a session's class of catalogs. A second call changes nothing."""
    patches.replace(catalogs, "createTable", _create_table)
    patches.replace(catalogs, "listTables", _list_tables)
    refusals = {name: functools.partial(_refuse, name, instead) for name, instead in _REFUSED.items()}
    for name, call in (_CALLS | refusals).items():
        patches.replace(catalogs, name, functools.partial(_call, name, call))


def _refuse(name: str, instead: str, spark: Any, path: str) -> None:
    raise UnsupportedFeatureError(f"spark.catalog.{name} of a table by path", found=path, expected=instead)


def _call(
    name: str, call: Callable[..., Any], method: Any, self: Any, tableName: str, *args: Any, **named: Any
) -> Any:
    """Calls the method `name` of a catalog: `call` for a Delta table, else `method`, Spark's own."""
    spark = self._sparkSession
    if enabled_as(spark) is None:
        return method(self, tableName, *args, **named)
    database = args[0] if args and isinstance(args[0], str) else named.get("dbName")
    path = path_named(tableName) if database is None else None
    if path is None:
        text = tableName if database is None else f"{col(database)}.{col(tableName)}"
        table_name = parsed(text)
        entry = None
        if table_name is not None and table_name.path is None:
            entry = named_table(spark, table_name.parts)
        if entry is not None and name in _BY_NAME:
            return _BY_NAME[name](spark, entry)
        path = None if entry is None else entry.path
        if entry is None and table_name is not None and name in (*_ON_ROWS, "refreshTable"):
            view = view_over_delta(spark, table_name.parts)
            if view is not None and name == "refreshTable":
                return _refresh_view(spark, view)
            if view is not None:
                return _ON_ROWS[name](spark.table(tableName), *args, **named)
        args, named = (
            (args[1:] if args and isinstance(args[0], str) else args),
            {k: v for k, v in named.items() if k != "dbName"},
        )
    if path is None:
        return (
            method(self, tableName, *args, **named) if database is None else method(self, tableName, database)
        )
    return call(spark, path, *args, **named)
