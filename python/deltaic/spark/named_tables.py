"""Delta tables and views in Spark's session catalog (in memory, or a Hive metastore): finds, adds, renames
and removes entries.

An entry has the provider `delta` and a location, but no columns: those are in the table's log. delta-spark
writes the same entries, so deltaic finds tables that a Delta jar has added, and a Delta jar finds those of
deltaic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from deltaic.commands.create import making_managed
from deltaic.engine.spark.cached_rows import refresh_cached
from deltaic.engine.spark.native import catalog
from deltaic.engine.spark.native.session import delete_folder, has_jvm, has_temporary_view
from deltaic.errors import DeltaError, InvalidArgumentError, TableAlreadyExistsError, UnsupportedFeatureError
from deltaic.protocol.paths import decoded_path
from deltaic.spark.builders import FORMATS
from deltaic.spark.portable import names
from deltaic.spark.portable.arrow_values import spark_schema
from deltaic.spark.view_clauses import ViewClauses
from deltaic.sql.names import Existing, Name, read_name
from deltaic.sql.tokens import Reader
from deltaic.sql_text import spark_name
from deltaic.table import DeltaTable
from deltaic.transaction.transaction import new_uuid

SESSION_CATALOG = "spark_catalog"
_TABLE_NAME = re.compile("[A-Za-z0-9_]+")
"""Names that Spark's session catalog takes for tables."""


@dataclass(frozen=True)
class NamedTable:
    """A Delta table in the session catalog. `parts`: schema and name. `path`: the location, as `DeltaTable`
    takes it. `managed`: True if DROP TABLE deletes the files."""

    parts: tuple[str, str]
    path: str
    managed: bool


def parsed(identifier: Any) -> Name | None:
    """Parses a table name. Returns None for anything else."""
    if not isinstance(identifier, str):
        return None
    try:
        reader = Reader(identifier)
        name = read_name(reader)
        reader.end()
    except InvalidArgumentError:
        return None
    return name


def named_table(spark: Any, parts: Sequence[str]) -> NamedTable | None:
    """Returns the Delta table with this name; None for a temporary view, a table of another format, and an
    unknown name."""
    if (name_and_entry := _located(spark, parts)) is None:
        return None
    place, entry = name_and_entry
    if isinstance(entry, names.Entry):
        is_table = (entry.provider or "").lower() in FORMATS and entry.location is not None
        return NamedTable(place, path_at(str(entry.location)), entry.kind == "MANAGED") if is_table else None
    provider = entry.provider()
    if not provider.isDefined() or str(provider.get()).lower() not in FORMATS:
        return None
    return NamedTable(place, path_at(str(entry.location())), str(entry.tableType().name()) == "MANAGED")


def path_in_catalog(spark: Any, parts: Sequence[str]) -> str | None:
    """Returns the location of the Delta table with this name, or None."""
    table = named_table(spark, parts)
    return None if table is None else table.path


def is_temporary_view(spark: Any, parts: Sequence[str]) -> bool:
    """True if the session has a temporary view of this name."""
    if len(parts) != 1:
        return False
    return has_temporary_view(spark, parts[0]) if has_jvm(spark) else names.is_temporary_view(spark, parts[0])


@dataclass(frozen=True)
class OtherTable:
    """A table of the session catalog of another format than Delta, or a permanent view (`kind` VIEW).

    `provider`: the format as the catalog has it, `hive` for a table of Hive's own. `serde`: the class by
    which Hive reads its files. `location`: of its files, as the catalog has it.
    """

    parts: tuple[str, str]
    kind: str
    provider: str | None
    serde: str | None
    location: str | None


def other_table(spark: Any, parts: Sequence[str]) -> OtherTable | None:
    """Returns the table of another format with this name, or the permanent view; None for a temporary view
    and for an unknown name."""
    if (located := _located(spark, parts)) is None:
        return None
    place, entry = located
    if isinstance(entry, names.Entry):
        return OtherTable(place, entry.kind, entry.provider, entry.serde, entry.location)
    provider, serde, uri = (
        _text(each) for each in (entry.provider(), entry.storage().serde(), entry.storage().locationUri())
    )
    return OtherTable(place, str(entry.tableType().name()), provider, serde, uri)


def _text(option: Any) -> str | None:
    return str(option.get()) if option.isDefined() else None


@dataclass(frozen=True)
class ViewQuery:
    """A permanent view: its schema and name, the text of its query, the schema (database) in which the
    query's names are resolved, the names of the view's columns, and their names in the query."""

    parts: tuple[str, str]
    text: str
    schema: str
    columns: tuple[str, ...]
    query_columns: tuple[str, ...]


def query_of_view(spark: Any, parts: Sequence[str]) -> ViewQuery | None:
    """Returns the permanent view with this name; None for a temporary view, a table, and an unknown
    name."""
    if (name_and_entry := _located(spark, parts)) is None:
        return None
    place, entry = name_and_entry
    if isinstance(entry, names.Entry):
        if entry.view is None:
            return None
        view = entry.view
        return ViewQuery(
            place, view.text, view.schema or place[0], view.columns, view.query_columns or view.columns
        )
    text = entry.viewText()
    if str(entry.tableType().name()) != "VIEW" or not text.isDefined():
        return None
    within = list(entry.viewCatalogAndNamespace().mkString("\n").split("\n"))
    schema = within[-1] if len(within) > 1 else place[0]
    columns = tuple(entry.schema().fieldNames())
    count = entry.viewQueryColumnNames().length()
    return ViewQuery(
        place,
        str(text.get()),
        schema,
        columns,
        tuple(str(entry.viewQueryColumnNames().apply(at)) for at in range(count)) or columns,
    )


def _located(spark: Any, parts: Sequence[str]) -> tuple[tuple[str, str], Any] | None:
    """Finds a table or permanent view of the session catalog. Returns the pair (schema, name) and the entry
    (a CatalogTable of the JVM; on Connect, a `names.Entry`). Returns None for a temporary view, which hides
    tables of its name, for a name of another catalog, and for an unknown name."""
    local_parts = _in_session_catalog(spark, parts)
    if local_parts is None:
        return None
    if not has_jvm(spark):
        connect_entry = names.entry_of(spark, local_parts)
        return None if connect_entry is None else ((connect_entry.schema, local_parts[-1]), connect_entry)
    if len(local_parts) == 1 and has_temporary_view(spark, local_parts[0]):
        return None
    place = _qualified(spark, local_parts)
    entry = catalog.entry_of(spark, place)
    return None if entry is None else (place, entry)


def is_in_catalog(spark: Any, parts: Sequence[str]) -> bool:
    """True if a name is that of a table or permanent view of the session catalog."""
    return _located(spark, parts) is not None


@dataclass(frozen=True)
class NewTable:
    """The name and location of a table that a statement writes. `parts`: schema and name. `enters`: True if
    the name is not in the catalog yet. `managed`: True if `path` is a folder of the warehouse."""

    parts: tuple[str, str]
    path: str
    enters: bool
    managed: bool


def place_of(spark: Any, name: Name, location: str | None, existing: Existing = "use") -> NewTable:
    """Returns name and location of an existing or a new table. A new table is at `location`, or else in a
    folder of the warehouse. `existing`: what the caller does with an existing table: "error", "ignore" or
    "use".

    Raises TableAlreadyExistsError if a view or a table of another format has the name, or if `existing` is
    "error" and the table is not at `location`; InvalidArgumentError for another location with "use"."""
    local_parts = _in_session_catalog(spark, name.parts)
    if local_parts is None:
        raise UnsupportedFeatureError(
            "tables by name outside of the session catalog are not supported",
            found=str(name),
            expected="delta.`path`",
        )
    if (existing_table := named_table(spark, local_parts)) is not None:
        if location is not None and path_at(location).rstrip("/") != existing_table.path.rstrip("/"):
            if existing == "error":
                error = TableAlreadyExistsError(
                    "the name is that of a table at another place", where=str(name), found=existing_table.path
                )
                raise error.with_values(**naming(spark, existing_table.parts))
            if existing == "ignore" and DeltaTable.exists(existing_table.path):
                return NewTable(existing_table.parts, existing_table.path, False, existing_table.managed)
            mismatch = InvalidArgumentError(
                "[DELTA_TABLE_LOCATION_MISMATCH] the name is that of a table at another place",
                found=location,
                expected=existing_table.path,
            )
            raise mismatch.with_values(**naming(spark, existing_table.parts))
        return NewTable(existing_table.parts, existing_table.path, False, existing_table.managed)
    place = _qualified(spark, local_parts)
    if not spark.catalog.databaseExists(f"{SESSION_CATALOG}.{spark_name(place[0])}"):
        raise InvalidArgumentError("[SCHEMA_NOT_FOUND] there is no such schema", found=place[0]).with_values(
            **naming(spark, place)
        )
    if _is_taken(spark, place):
        raise _taken(spark, name, place, existing)
    if not _TABLE_NAME.fullmatch(place[1]):  # the catalog would refuse it after the table is written
        raise InvalidArgumentError(
            "[INVALID_SCHEMA_OR_RELATION_NAME] the name of a table in the catalog has another character",
            found=spark_name(place[1]),
            expected="letters, digits and _",
        )
    if location is not None:
        return NewTable(place, location, True, False)
    return NewTable(place, path_at(_default_path(spark, place)), True, True)


def refuse_relative(spark: Any, name: Name) -> None:
    """Raises an error for a new table delta.`path` whose path is relative: Spark means a table of the schema
    `delta` then, and no folder of the working directory."""
    path = name.path
    if path is None or is_absolute(path):
        return
    expected = "an absolute path, as in delta.`/data/t`, or another schema"
    if spark.catalog.databaseExists(f"{SESSION_CATALOG}.{spark_name(name.parts[0])}"):
        raise UnsupportedFeatureError(
            "tables of a schema called delta are not supported", found=str(name), expected=expected
        )
    raise InvalidArgumentError(
        "[SCHEMA_NOT_FOUND] there is no such schema", found=str(name), expected=expected
    ).with_values(**naming(spark, name.parts))


def _taken(spark: Any, name: Name, place: tuple[str, str], existing: Existing) -> TableAlreadyExistsError:
    """Returns the error of a new table whose name is that of a view, or of a table of another format."""
    condition = ""
    if existing == "use":
        other = other_table(spark, place)
        is_view = other is not None and other.kind == "VIEW"
        condition = f"[{'DELTA_CANNOT_WRITE_INTO_VIEW' if is_view else 'DELTA_NOT_A_DELTA_TABLE'}] "
    message = f"{condition}the name is that of a view, or of a table of another format"
    error = TableAlreadyExistsError(message, where=str(name))
    return error.with_values(**naming(spark, place), name=place[-1])


def naming(spark: Any, parts: Sequence[str]) -> dict[str, str]:
    """Returns the forms of a table's name that Spark's messages use, as values of an error. For the table `t`
    they are:

    - `table`: spark_catalog.default.t, or delta.`path`
    - `catalog_table`: spark_catalog.default.t, missing for delta.`path`
    - `short_table`: default.t, or delta.`path`
    - `quoted_table`: `spark_catalog`.`default`.`t`
    - `relation`: `default`.`t`
    - `schema`: `spark_catalog`.`default`
    - `relation_path`: [`spark_catalog`.`default`], the schemas in which Spark looks for a name with a schema
    - `search_path`: [`system`.`session`, `spark_catalog`.`default`], those for a name without a schema, which
      may be the name of a temporary view
    """
    is_path = len(parts) == 2 and parts[0].lower() in FORMATS
    local_parts = tuple(parts) if is_path else _in_session_catalog(spark, parts)
    place = tuple(parts[-2:]) if local_parts is None else _qualified(spark, local_parts)
    catalog_name = SESSION_CATALOG if local_parts is not None else parts[0]
    relation, schema = (
        ".".join(map(spark_name, place)),
        ".".join(map(spark_name, (catalog_name, *place[:-1]))),
    )
    short = f"delta.{spark_name(place[1])}" if is_path else ".".join(place)
    return {
        **({} if is_path else {"catalog_table": f"{catalog_name}.{short}"}),
        "table": short if is_path else f"{catalog_name}.{short}",
        "short_table": short,
        "quoted_table": f"{spark_name(catalog_name)}.{relation}",
        "relation": relation,
        "schema": schema,
        "relation_path": f"[{schema}]",
        "search_path": f"[`system`.`session`, {schema}]",
    }


@contextmanager
def entering(spark: Any, new: NewTable | None, *, replaces: bool = False) -> Iterator[None]:
    """Adds the name of a table to the catalog after the body, which creates the table. If the body raises a
    DeltaError, the name is not added, and the error gets the forms of the name. `new` None: does nothing.
    `replaces`: the body replaces the table of a name that is in the catalog. As delta-spark does, it stores
    the new columns and comment in the catalog then."""
    try:
        with making_managed(new is not None and new.managed), _entering(spark, new, replaces):
            yield
        if new is not None and new.enters:  # rows of an earlier table at this place may be cached
            refresh_cached(spark, new.path)
    except DeltaError as error:
        if new is not None:
            error.with_values(**naming(spark, new.parts))
        raise


@contextmanager
def _entering(spark: Any, new: NewTable | None, replaces: bool) -> Iterator[None]:
    if new is None or not (new.enters or (replaces and has_jvm(spark))):
        yield
    elif has_jvm(spark):
        yield
        table = DeltaTable(new.path, spark=spark)
        if new.enters:
            catalog.enter_table(spark, new.parts, new.path, table.metadata.description, managed=new.managed)
        else:
            columns = spark_schema(table.schema).json()
            catalog.describe_table(spark, new.parts, columns, table.metadata.description)
    elif new.managed:
        with names.reserved(spark, new.parts):
            yield
            names.set_columns(spark, new.parts, new.path)
    else:
        yield
        names.enter(spark, new.parts, new.path)


@contextmanager
def replacing(frame: Any, table: OtherTable) -> Iterator[None]:
    """Drops a table of another format, whose name the body gives to a Delta table with the rows of `frame`:
    see `set_aside`. Raises InvalidArgumentError if the rows come from the table itself."""
    spark, location = frame.sparkSession, path_at(table.location or "")
    folder = location.rstrip("/") + "/"
    if location and any(path_at(file).startswith(folder) for file in frame.inputFiles()):
        error = InvalidArgumentError(
            "[UNSUPPORTED_OVERWRITE.TABLE] the table that is overwritten is also read", found=table.parts[1]
        )
        raise error.with_values(**naming(spark, table.parts))
    with set_aside(spark, table):
        yield


@contextmanager
def set_aside(spark: Any, table: OtherTable) -> Iterator[None]:
    """Drops a table of another format, whose name the body gives to a Delta table. If the body fails, the
    table is as it was: it has another name until the Delta table is complete.

    Raises UnsupportedFeatureError for a managed table whose files do not move with its name, as those of one
    at a location of its own."""
    location = path_at(table.location or "")
    aside = (table.parts[0], f"{table.parts[1]}_{new_uuid().replace('-', '_')}")
    _rename(spark, table.parts, aside)
    is_managed, has_moved = table.kind == "MANAGED", False
    try:
        moved = other_table(spark, aside)
        has_moved = moved is not None and path_at(moved.location or "") != location
        if is_managed and not has_moved:
            raise UnsupportedFeatureError(
                "overwriting a managed table at a location of its own is not supported",
                found=location,
                expected="DROP TABLE",
            )
        yield
    except BaseException:
        try:
            # The files go back to the folder that the new table has begun.
            if is_managed and has_moved and has_jvm(spark):
                delete_folder(spark, location)
        finally:
            _rename(spark, aside, table.parts)
        raise
    _remove(spark, aside, purges=False)


def enter_view(
    spark: Any,
    name: Name,
    text: str,
    query_columns: Sequence[str],
    schema: Any,
    clauses: ViewClauses | None,
    tables: Sequence[tuple[Sequence[str], str]],
    *,
    replaces: bool,
) -> None:
    """Adds a permanent view to the catalog. `text`: the view's query. `query_columns`: names of the query's
    columns. `schema`: the view's columns, a pyspark StructType. `clauses`: None to change the query of an
    existing view, which keeps its clauses. `tables`: name and path of each table that the query reads."""
    local_parts = _in_session_catalog(spark, name.parts)
    if local_parts is None:
        raise UnsupportedFeatureError(
            "views outside of the session catalog are not supported", found=str(name)
        )
    if not has_jvm(spark):
        for table in tables:
            names.set_columns(spark, *table)
        if clauses is None:
            names.change_view(spark, local_parts, text)
        else:
            names.enter_view(spark, local_parts, text, schema, clauses, replaces=replaces)
        return
    place, properties = (
        _qualified(spark, local_parts),
        {
            "view.catalogAndNamespace.numParts": "2",
            "view.catalogAndNamespace.part.0": SESSION_CATALOG,
            "view.catalogAndNamespace.part.1": catalog.current_schema(spark),
            **catalog.query_columns(query_columns),
        },
    )
    if clauses is None:
        catalog.change_view(spark, place, text, schema.json(), properties)
        return
    mode = clauses.schema_mode or "COMPENSATION"  # Spark's default
    properties |= {**clauses.properties, catalog.SCHEMA_MODE: mode}
    catalog.enter_view(spark, place, text, schema.json(), clauses.comment, properties, replaces=replaces)


def drop(spark: Any, name: Name, *, purges: bool) -> None:
    """Removes a table from the catalog, and deletes its files if it is managed. `purges`: True for DROP TABLE
    … PURGE."""
    existing_table = named_table(spark, name.parts)
    assert existing_table is not None
    _remove(spark, existing_table.parts, purges=purges)
    # an in-memory catalog does not delete the files of a format that it does not know
    if existing_table.managed and has_jvm(spark):
        delete_folder(spark, existing_table.path)


def rename(spark: Any, name: Name, new: Name) -> None:
    """Renames a table or a permanent view. The files of a managed table move to the folder of the new name.
    Raises TableAlreadyExistsError if a table or view has the new name."""
    old, local_parts = _qualified(spark, name.parts[-2:]), _in_session_catalog(spark, new.parts)
    if local_parts is None:
        raise UnsupportedFeatureError(
            "names outside of the session catalog are not supported", found=str(new)
        )
    parts = local_parts if len(local_parts) == 2 else (old[0], local_parts[0])
    if _is_taken(spark, (parts[0], parts[1])):
        error = TableAlreadyExistsError("the name is that of another table or view", where=str(new))
        raise error.with_values(**naming(spark, parts))
    _rename(spark, old, (parts[0], parts[1]))


def _rename(spark: Any, old: tuple[str, str], new: tuple[str, str]) -> None:
    (catalog if has_jvm(spark) else names).rename(spark, old, new)


def _remove(spark: Any, parts: tuple[str, str], *, purges: bool) -> None:
    (catalog.remove if has_jvm(spark) else names.drop)(spark, parts, purges=purges)


def relocate(spark: Any, name: Name, path: str) -> None:
    """Changes the location of a catalog entry to `path`. No file moves. On Spark Connect a managed table
    raises UnsupportedFeatureError: the entry would have to be dropped, and DROP deletes its files."""
    existing_table = named_table(spark, name.parts)
    assert existing_table is not None
    if has_jvm(spark):
        catalog.relocate(spark, existing_table.parts, path)
    elif existing_table.managed:
        raise UnsupportedFeatureError(
            "SET LOCATION of a managed table on Spark Connect is not supported",
            found=str(name),
            expected="an external table",
        )
    else:
        names.drop(spark, existing_table.parts, purges=False)
        names.enter(spark, existing_table.parts, path)


def convert(spark: Any, table: OtherTable) -> None:
    """Makes the entry of a table of Parquet files that of the Delta table at its location. On Spark Connect,
    the table must be external."""
    if has_jvm(spark):
        catalog.convert(spark, table.parts)
    else:
        names.drop(spark, table.parts, purges=False)
        names.enter(spark, table.parts, path_at(str(table.location)))


def _is_taken(spark: Any, place: tuple[str, str]) -> bool:
    """True if a table of any format, or a permanent view, has the name."""
    return catalog.is_taken(spark, place) if has_jvm(spark) else names.entry_of(spark, place) is not None


def _default_path(spark: Any, place: tuple[str, str]) -> str:
    return catalog.default_location(spark, place) if has_jvm(spark) else names.default_path(spark, place)


def _in_session_catalog(spark: Any, parts: Sequence[str]) -> tuple[str, ...] | None:
    """Returns the parts of a name without the part of the session catalog; None for a name of another
    catalog."""
    if len(parts) == 3 and parts[0].lower() == SESSION_CATALOG:
        return tuple(parts[1:])
    if len(parts) > 2:
        return None
    if not has_jvm(spark):  # each name would cost one more request
        return tuple(parts)
    if len(parts) == 2 and spark.conf.get(f"spark.sql.catalog.{parts[0]}", None) is not None:
        return None  # Spark looks for a catalog first, and then for a schema
    return tuple(parts) if spark.catalog.currentCatalog() == SESSION_CATALOG else None


def is_too_long(spark: Any, parts: Sequence[str]) -> bool:
    """True for a name with several parts before the table's, of which the first is no catalog: a.b.t."""
    if len(parts) < 3 or parts[0].lower() == SESSION_CATALOG:
        return len(parts) > 3
    return spark.conf.get(f"spark.sql.catalog.{parts[0]}", None) is None


def schema_and_name(spark: Any, parts: Sequence[str]) -> tuple[str, ...]:
    """Returns schema and name of a table of the session catalog; no parts for a name of another catalog."""
    local_parts = _in_session_catalog(spark, parts)
    return () if local_parts is None else _qualified(spark, local_parts)


def _qualified(spark: Any, parts: Sequence[str]) -> tuple[str, str]:
    if len(parts) == 2:
        return parts[0], parts[1]
    return (catalog.current_schema(spark) if has_jvm(spark) else spark.catalog.currentDatabase()), parts[0]


def is_absolute(path: str) -> bool:
    """True for an absolute path and for a URI with a scheme."""
    return path.startswith("/") or bool(urlsplit(path).scheme)


def path_at(location: str) -> str:
    """Converts a local URI to a path: `file:/a%20b` becomes `/a b`. Other locations stay as they are."""
    split = urlsplit(location)
    return decoded_path(split.path) if split.scheme == "file" else location
