"""Reads and changes the entries of tables and views in Spark's session catalog, by private classes of Spark
4.1 to 4.3. The argument `name` is a pair (schema, name).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deltaic.engine.spark.native.session import analyzed_plan, java_class, same_frame, session_catalog

_CATALOG = "org.apache.spark.sql.catalyst.catalog."
_numbers = itertools.count()
SCHEMA_MODE, _QUERY_COLUMNS = "view.schemaMode", "view.query.out."
"""Properties of a permanent view."""


def identifier(spark: Any, name: tuple[str, str]) -> Any:
    """Returns the Catalyst TableIdentifier of a name."""
    schema = java_class(spark, "scala.Some")(name[0])
    return java_class(spark, "org.apache.spark.sql.catalyst.TableIdentifier")(name[1], schema)


def current_schema(spark: Any) -> str:
    """Returns the schema (database) in which names without a schema are looked up."""
    return str(session_catalog(spark).getCurrentDatabase())


def is_taken(spark: Any, name: tuple[str, str]) -> bool:
    """True if a table of any format, or a permanent view, has the name."""
    return bool(session_catalog(spark).tableExists(identifier(spark, name)))


def entry_of(spark: Any, name: tuple[str, str]) -> Any | None:
    """Returns the CatalogTable of a table or permanent view; None if there is none."""
    catalog, place = session_catalog(spark), identifier(spark, name)
    return catalog.getTableMetadata(place) if catalog.tableExists(place) else None


def default_location(spark: Any, name: tuple[str, str]) -> str:
    """Returns the URI of the warehouse folder of a managed table."""
    return str(session_catalog(spark).defaultTablePath(identifier(spark, name)))


def enter_table(
    spark: Any, name: tuple[str, str], location: str, comment: str | None, *, managed: bool
) -> None:
    """Creates the entry of a Delta table: provider `delta`, a location, a comment, no columns."""
    jvm = spark._jvm
    option = jvm.scala.Option.apply
    uri = option(jvm.org.apache.hadoop.fs.Path(location).toUri())
    entry = _new_entry(
        spark, name, "MANAGED" if managed else "EXTERNAL", jvm.org.apache.spark.sql.types.StructType(), uri
    )
    whole = _copied(entry, provider=option("delta"), comment=option(comment))
    session_catalog(spark).createTable(whole, False, False)


def describe_table(spark: Any, name: tuple[str, str], schema_json: str, comment: str | None) -> None:
    """Stores columns and comment of a table in its entry, where SHOW TABLE EXTENDED and other readers of a
    metastore find them. The columns may be any others than before."""
    jvm, catalog = spark._jvm, session_catalog(spark)
    catalog.alterTable(_copied(entry_of(spark, name), comment=jvm.scala.Option.apply(comment)))
    schema = jvm.org.apache.spark.sql.types.DataType.fromJson(schema_json)
    catalog.externalCatalog().alterTableDataSchema(*name, schema)  # the session's catalog drops no column


def enter_view(
    spark: Any,
    name: tuple[str, str],
    text: str,
    schema_json: str,
    comment: str | None,
    properties: Mapping[str, str],
    *,
    replaces: bool,
) -> None:
    """Creates the entry of a permanent view, or replaces it. `text`: the view's query. `schema_json`: its
    columns. `properties`: Spark's properties of views (`view.query.out.…`); the session's SQL settings, under
    which Spark reads the view, are added to them."""
    jvm = spark._jvm
    option = jvm.scala.Option.apply
    schema = jvm.org.apache.spark.sql.types.DataType.fromJson(schema_json)
    whole = _copied(
        _new_entry(spark, name, "VIEW", schema, jvm.scala.Option.empty()),
        properties=_scala_map(spark, {**properties, **_settings(spark)}),
        viewText=option(text),
        viewOriginalText=option(text),
        comment=option(comment),
    )
    if replaces and is_taken(spark, name):
        session_catalog(spark).alterTable(whole)
    else:
        session_catalog(spark).createTable(whole, False, False)


def change_view(
    spark: Any, name: tuple[str, str], text: str, schema_json: str, properties: Mapping[str, str]
) -> None:
    """Gives a permanent view another query, as `enter_view` does. The view keeps its comment, its schema
    mode and the properties that its user gave it."""
    entry = entry_of(spark, name)
    assert entry is not None
    kept = {
        key: value
        for key, value in _properties(spark, entry).items()
        if not key.startswith("view.") or key == SCHEMA_MODE
    }
    option = spark._jvm.scala.Option.apply
    changed = _copied(
        entry,
        schema=spark._jvm.org.apache.spark.sql.types.DataType.fromJson(schema_json),
        properties=_scala_map(spark, {**properties, **_settings(spark), **kept}),
        viewText=option(text),
        viewOriginalText=option(text),
    )
    session_catalog(spark).alterTable(changed)


def query_columns(columns: Sequence[str]) -> dict[str, str]:
    """Returns the properties that hold the names of the columns of a view's query."""
    names = {f"{_QUERY_COLUMNS}col.{at}": column for at, column in enumerate(columns)}
    return {f"{_QUERY_COLUMNS}numCols": str(len(columns)), **names}


def rows_of_view(
    spark: Any, name: tuple[str, str], text: str, views: Iterable[str], functions: Iterable[str]
) -> Any:
    """Returns the rows of a permanent view as a DataFrame. Spark resolves `text` in place of the view's
    query, as it resolves any view: with the SQL settings under which the view was created, and with the
    columns that the view's schema mode asks for. `views`, `functions`: the temporary views and table
    functions that `text` reads."""
    from pyspark.sql import DataFrame

    entry = entry_of(spark, name)
    assert entry is not None
    properties = _properties(spark, entry)
    read = {
        "view.referredTempViewNames": json.dumps([[view] for view in views]),
        "view.referredTempFunctionsNames": json.dumps(list(functions)),
    }
    changed = _copied(
        entry,
        viewText=spark._jvm.scala.Option.apply(text),
        properties=_scala_map(spark, {**properties, **read}),
    )
    # Spark resolves a view apart from the rest of a plan only if it finds the view by a name.
    relation = java_class(spark, _CATALOG + "TemporaryViewRelation")(changed, spark._jvm.scala.Option.empty())
    alias = f"__deltaic_permanent_view_{next(_numbers)}"
    session_catalog(spark).createTempView(alias, relation, True)
    try:
        # The plan of `same_frame` has no names any more.
        frame = same_frame(DataFrame(spark._jsparkSession.table(alias), spark))
    finally:
        session_catalog(spark).dropTempView(alias)
    if properties.get(SCHEMA_MODE) in ("EVOLUTION", "TYPE EVOLUTION"):
        _store_columns(spark, entry, properties, analyzed_plan(frame).schema())
    return frame


def _store_columns(spark: Any, entry: Any, properties: Mapping[str, str], schema: Any) -> None:
    """Stores the columns with which a view was read, if they differ from those of its entry."""
    if schema.equals(entry.schema()):
        return
    stored = dict(properties)
    if properties[SCHEMA_MODE] == "EVOLUTION":
        stored = {key: value for key, value in stored.items() if not key.startswith(_QUERY_COLUMNS)}
        stored |= query_columns(list(schema.fieldNames()))
    session_catalog(spark).alterTable(_copied(entry, schema=schema, properties=_scala_map(spark, stored)))


def _settings(spark: Any) -> dict[str, str]:
    """Returns the properties of a view that hold the session's SQL settings."""
    views = java_class(spark, "org.apache.spark.sql.execution.command.ViewHelper")
    return _dictionary(
        spark, views.sqlConfigsToProps(spark._jsparkSession.sessionState().conf(), "view.sqlConfig.")
    )


def _properties(spark: Any, entry: Any) -> dict[str, str]:
    return _dictionary(spark, entry.properties())


def _dictionary(spark: Any, scala_map: Any) -> dict[str, str]:
    return dict(java_class(spark, "scala.jdk.javaapi.CollectionConverters").asJava(scala_map))


def _scala_map(spark: Any, pairs: Mapping[str, str]) -> Any:
    return java_class(spark, "org.apache.spark.api.python.PythonUtils").toScalaMap(dict(pairs))


def remove(spark: Any, name: tuple[str, str], *, purges: bool) -> None:
    """Removes the entry of a table. The in-memory catalog does not delete the files of a managed table."""
    session_catalog(spark).dropTable(identifier(spark, name), True, purges)


def rename(spark: Any, name: tuple[str, str], new: tuple[str, str]) -> None:
    """Renames an entry. The files of a managed table move to the folder of the new name."""
    session_catalog(spark).renameTable(identifier(spark, name), identifier(spark, new))


def relocate(spark: Any, name: tuple[str, str], location: str) -> None:
    """Changes the location of a table's entry. No file moves."""
    entry = entry_of(spark, name)
    assert entry is not None
    uri = spark._jvm.org.apache.hadoop.fs.Path(location).toUri()
    storage = _copied(entry.storage(), locationUri=spark._jvm.scala.Option.apply(uri))
    session_catalog(spark).alterTable(_copied(entry, storage=storage))


def convert(spark: Any, name: tuple[str, str]) -> None:
    """Makes the entry of a table that of a Delta table at the same location, managed or external as before:
    provider `delta`, no columns, no properties. A Hive metastore keeps the columns."""
    entry = entry_of(spark, name)
    assert entry is not None
    jvm = spark._jvm
    option, nothing = jvm.scala.Option.apply, jvm.scala.Option.empty()
    no_properties = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({})
    storage = _copied(
        entry.storage(), inputFormat=nothing, outputFormat=nothing, serde=nothing, properties=no_properties
    )
    changed = _copied(
        entry,
        provider=option("delta"),
        schema=jvm.org.apache.spark.sql.types.StructType(),
        partitionColumnNames=jvm.org.apache.spark.api.python.PythonUtils.toSeq([]),
        bucketSpec=nothing,
        properties=no_properties,
        storage=storage,
    )
    session_catalog(spark).alterTable(changed)
    session_catalog(spark).refreshTable(identifier(spark, name))  # forgets the relation over Parquet files


def _new_entry(spark: Any, name: tuple[str, str], kind: str, schema: Any, location: Any) -> Any:
    """Returns a new CatalogTable. `location`: a Scala Option of a URI."""
    jvm = spark._jvm
    entries = jvm.org.apache.spark.sql.catalyst.catalog
    storage = _copied(entries.CatalogStorageFormat.empty(), locationUri=location)
    maker = getattr(getattr(jvm, _CATALOG + "CatalogTable$"), "MODULE$")
    constructors = jvm.java.lang.Class.forName(_CATALOG + "CatalogTable").getConstructors()
    fields = int(max(each.getParameterCount() for each in constructors))
    defaults = [getattr(maker, f"apply$default${number}")() for number in range(5, fields + 1)]
    return maker.apply(
        identifier(spark, name), getattr(entries.CatalogTableType, kind)(), storage, schema, *defaults
    )


def _copied(record: Any, **changes: Any) -> Any:
    """Returns a copy of a Scala case class with other values in some fields. All fields are passed by their
    names, because newer versions of Spark have more of them."""
    fields = range(record.productArity())
    return record.copy(
        *(changes.get(str(record.productElementName(at)), record.productElement(at)) for at in fields)
    )
