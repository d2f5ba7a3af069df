"""Delta tables and views in Spark's session catalog (in memory, or a Hive metastore): finds, adds, renames
and removes entries.

An entry has the provider `delta` and a location, but no columns, as delta-spark writes it; the table's log
has the rest. So deltaic finds tables that a Delta jar has added, and a Delta jar finds those of deltaic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from deltaic.commands.create import making_managed
from deltaic.engine.spark.native import catalog
from deltaic.engine.spark.native.session import delete_folder, has_jvm, has_temporary_view
from deltaic.errors import DeltaError, InvalidArgumentError, TableAlreadyExistsError, UnsupportedFeatureError
from deltaic.protocol.paths import decoded_path
from deltaic.spark.frame_writes import FORMATS
from deltaic.spark.portable import names
from deltaic.sql.names import Existing, Name, read_name
from deltaic.sql.tokens import Reader
from deltaic.sql_text import spark_name
from deltaic.table import DeltaTable

SESSION_CATALOG = "spark_catalog"


@dataclass(frozen=True)
class NamedTable:
    """A Delta table in the session catalog. `path`: its location, as `DeltaTable` takes it. `managed`: DROP
    TABLE deletes its files."""

    parts: tuple[str, str]
    path: str
    managed: bool


def parsed(identifier: Any) -> Name | None:
    """Parses a table name; None for anything else."""
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
    if (located := _located(spark, parts)) is None:
        return None
    place, entry = located
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


@dataclass(frozen=True)
class OtherTable:
    """A table of the session catalog of another format than Delta, or a persistent view (`kind` VIEW).

    `provider`: the format as the catalog has it, `hive` for a table of Hive's own. `serde`: the class by
    which Hive reads its files. `location`: of its files, as the catalog has it.
    """

    parts: tuple[str, str]
    kind: str
    provider: str | None
    serde: str | None
    location: str | None


def other_table(spark: Any, parts: Sequence[str]) -> OtherTable | None:
    """Returns the table of another format with this name, or the persistent view; None for a temporary view
    and for an unknown name."""
    if (located := _located(spark, parts)) is None:
        return None
    place, entry = located
    if isinstance(entry, names.Entry):
        return OtherTable(place, entry.kind, entry.provider, entry.serde, entry.location)
    provider, serde, uri = (_text(each) for each in (entry.provider(), entry.storage().serde(), entry.storage().locationUri()))
    return OtherTable(place, str(entry.tableType().name()), provider, serde, uri)


def _text(option: Any) -> str | None:
    return str(option.get()) if option.isDefined() else None


@dataclass(frozen=True)
class ViewQuery:
    """A persistent view: the text of its query, the schema (database) in which the query's names are
    resolved, the names of the view's columns, and their names in the query."""

    text: str
    schema: str
    columns: tuple[str, ...]
    query_columns: tuple[str, ...]


def query_of_view(spark: Any, parts: Sequence[str]) -> ViewQuery | None:
    """Returns the persistent view with this name; None for a temporary view, a table, and an unknown
    name."""
    if (located := _located(spark, parts)) is None:
        return None
    place, entry = located
    if isinstance(entry, names.Entry):
        if entry.view is None:
            return None
        view = entry.view
        return ViewQuery(view.text, view.schema or place[0], view.columns, view.query_columns or view.columns)
    text = entry.viewText()
    if str(entry.tableType().name()) != "VIEW" or not text.isDefined():
        return None
    within = list(entry.viewCatalogAndNamespace().mkString("\n").split("\n"))
    schema = within[-1] if len(within) > 1 else place[0]
    columns = tuple(str(name) for name in entry.schema().fieldNames())
    count = entry.viewQueryColumnNames().length()
    return ViewQuery(str(text.get()), schema, columns, tuple(str(entry.viewQueryColumnNames().apply(at)) for at in range(count)) or columns)


def _located(spark: Any, parts: Sequence[str]) -> tuple[tuple[str, str], Any] | None:
    """Finds a table or persistent view of the session catalog: returns its schema and name, and its entry (a
    CatalogTable of the JVM; on Connect, a `names.Entry`). None for a temporary view, which hides tables of
    its name, for a name of another catalog, and for an unknown name."""
    ours = _in_session_catalog(parts)
    if ours is None:
        return None
    if not has_jvm(spark):
        known = names.entry_of(spark, ours)
        return None if known is None else ((known.schema, ours[-1]), known)
    if len(ours) == 1 and has_temporary_view(spark, ours[0]):
        return None
    place = _qualified(spark, ours)
    entry = catalog.entry_of(spark, place)
    return None if entry is None else (place, entry)


@dataclass(frozen=True)
class NewTable:
    """A name that a statement gives to a table at `path`. `enters`: the name is not in the catalog yet.
    `managed`: the path is a folder of the warehouse."""

    parts: tuple[str, str]
    path: str
    enters: bool
    managed: bool


def place_of(spark: Any, name: Name, location: str | None, existing: Existing = "use") -> NewTable:
    """Returns the location of a named table, existing or new: `location`, else a folder of the warehouse.
    Raises TableAlreadyExistsError if a view or a table of another format has the name. `existing`: what the
    call does with a Delta table of the name; "use" raises InvalidArgumentError if that is at another
    place."""
    ours = _in_session_catalog(name.parts)
    if ours is None:
        raise UnsupportedFeatureError("tables by name outside of the session catalog", found=str(name), expected="delta.`path`")
    if (known := named_table(spark, ours)) is not None:
        if location is not None and path_at(location).rstrip("/") != known.path.rstrip("/"):
            if existing == "error":
                error = TableAlreadyExistsError("the name is that of a table at another place", where=str(name), found=known.path)
                raise error.with_values(**naming(spark, known.parts))
            if existing == "ignore" and DeltaTable.exists(known.path):
                return NewTable(known.parts, known.path, False, known.managed)
            mismatch = InvalidArgumentError(
                "[DELTA_TABLE_LOCATION_MISMATCH] the name is that of a table at another place", found=location, expected=known.path
            )
            raise mismatch.with_values(**naming(spark, known.parts))
        return NewTable(known.parts, known.path, False, known.managed)
    place = _qualified(spark, ours)
    if not spark.catalog.databaseExists(place[0]):
        raise InvalidArgumentError("[SCHEMA_NOT_FOUND] there is no such schema", found=place[0]).with_values(**naming(spark, place))
    if _is_taken(spark, place):
        error = TableAlreadyExistsError("the name is that of a view, or of a table of another format", where=str(name))
        raise error.with_values(**naming(spark, place))
    if location is not None:
        return NewTable(place, location, True, False)
    return NewTable(place, path_at(_default_path(spark, place)), True, True)


def naming(spark: Any, parts: Sequence[str]) -> dict[str, str]:
    """Returns the forms of a table's name that messages of Spark have, as values of an error. Of the table
    `t` these are:

    - `table`: spark_catalog.default.t, or delta.`path`
    - `quoted_table`: `spark_catalog`.`default`.`t`
    - `relation`: `default`.`t`
    - `schema`: `spark_catalog`.`default`
    - `relation_path`: [`spark_catalog`.`default`], the schemas in which Spark has looked for the name
    - `search_path`: those of a name without a schema, which may be one of a temporary view
    """
    is_path = len(parts) == 2 and parts[0].lower() in FORMATS
    ours = tuple(parts) if is_path else _in_session_catalog(parts)
    place = tuple(parts[-2:]) if ours is None else _qualified(spark, ours)
    known = SESSION_CATALOG if ours is not None else parts[0]
    relation, schema = ".".join(map(spark_name, place)), ".".join(map(spark_name, (known, *place[:-1])))
    return {
        "table": f"delta.{spark_name(place[1])}" if is_path else ".".join((known, *place)),
        "quoted_table": f"{spark_name(known)}.{relation}",
        "relation": relation,
        "schema": schema,
        "relation_path": f"[{schema}]",
        "search_path": f"[`system`.`session`, {schema}]",
    }


@contextmanager
def entering(spark: Any, new: NewTable | None) -> Iterator[None]:
    """Adds the name of a table to the catalog if the body, which creates the table, succeeds. Errors of the
    body get the table's name."""
    try:
        with making_managed(new is not None and new.managed), _entering(spark, new):
            yield
    except DeltaError as error:
        if new is not None:
            error.with_values(**naming(spark, new.parts))
        raise


@contextmanager
def _entering(spark: Any, new: NewTable | None) -> Iterator[None]:
    if new is None or not new.enters:
        yield
    elif has_jvm(spark):
        yield
        catalog.enter_table(spark, new.parts, new.path, managed=new.managed)
    elif new.managed:
        with names.reserved(spark, new.parts):
            yield
            names.set_columns(spark, new.parts, new.path)
    else:
        yield
        names.enter(spark, new.parts, new.path)


def enter_view(
    spark: Any,
    name: Name,
    text: str,
    query_columns: Sequence[str],
    schema: Any,
    comment: str | None,
    tables: Sequence[tuple[Sequence[str], str]],
    *,
    replaces: bool,
) -> None:
    """Adds a view to the catalog. `query_columns`: the names of the query's columns. `schema`: the view's
    columns, a pyspark StructType. `tables`: name and path of each table that the query reads."""
    ours = _in_session_catalog(name.parts)
    if ours is None:
        raise UnsupportedFeatureError("views outside of the session catalog", found=str(name))
    if not has_jvm(spark):
        for table in tables:
            names.set_columns(spark, *table)
        names.enter_view(spark, ours, text, schema.names, comment, replaces=replaces)
        return
    properties = {
        "view.catalogAndNamespace.numParts": "2",
        "view.catalogAndNamespace.part.0": SESSION_CATALOG,
        "view.catalogAndNamespace.part.1": catalog.current_schema(spark),
        "view.query.out.numCols": str(len(query_columns)),
        **{f"view.query.out.col.{at}": column for at, column in enumerate(query_columns)},
    }
    catalog.enter_view(spark, _qualified(spark, ours), text, schema.json(), comment, properties, replaces=replaces)


def drop(spark: Any, name: Name, *, purges: bool) -> None:
    """Removes a table from the catalog, and deletes its files if it is managed."""
    known = named_table(spark, name.parts)
    assert known is not None
    if not has_jvm(spark):
        names.drop(spark, known.parts, purges=purges)
        return
    catalog.remove(spark, known.parts, purges=purges)
    if known.managed:  # an in-memory catalog does not delete the files of a format that it does not know
        delete_folder(spark, known.path)


def rename(spark: Any, name: Name, new: Name) -> None:
    """Renames a table; the files of a managed one move with it. Raises TableAlreadyExistsError if the new
    name is taken."""
    known = named_table(spark, name.parts)
    assert known is not None
    ours = _in_session_catalog(new.parts)
    if ours is None:
        raise UnsupportedFeatureError("names outside of the session catalog", found=str(new))
    parts = ours if len(ours) == 2 else (known.parts[0], ours[0])
    if _is_taken(spark, (parts[0], parts[1])):
        error = TableAlreadyExistsError("the name is that of another table or view", where=str(new))
        raise error.with_values(**naming(spark, parts))
    if has_jvm(spark):
        catalog.rename(spark, known.parts, (parts[0], parts[1]))
    else:
        names.rename(spark, known.parts, parts)


def relocate(spark: Any, name: Name, path: str) -> None:
    """Lets a name stand for the table at another path. On Spark Connect, UnsupportedFeatureError for a
    managed table: only DROP takes its name away there, and its files too."""
    known = named_table(spark, name.parts)
    assert known is not None
    if has_jvm(spark):
        catalog.relocate(spark, known.parts, path)
    elif known.managed:
        raise UnsupportedFeatureError("SET LOCATION of a managed table on Spark Connect", found=str(name), expected="an external table")
    else:
        names.drop(spark, known.parts, purges=False)
        names.enter(spark, known.parts, path)


def convert(spark: Any, table: OtherTable) -> None:
    """Makes the entry of a table of Parquet files that of the Delta table at its location. On Spark Connect,
    the table must be external."""
    if has_jvm(spark):
        catalog.convert(spark, table.parts)
    else:
        names.drop(spark, table.parts, purges=False)
        names.enter(spark, table.parts, path_at(str(table.location)))


def _is_taken(spark: Any, place: tuple[str, str]) -> bool:
    """True if a table of any format, or a persistent view, has the name."""
    return catalog.is_taken(spark, place) if has_jvm(spark) else names.entry_of(spark, place) is not None


def _default_path(spark: Any, place: tuple[str, str]) -> str:
    return catalog.default_location(spark, place) if has_jvm(spark) else names.default_path(spark, place)


def _in_session_catalog(parts: Sequence[str]) -> tuple[str, ...] | None:
    """Returns the parts of a name without the session catalog's; None for a name of another catalog."""
    if len(parts) == 3 and parts[0].lower() == SESSION_CATALOG:
        return tuple(parts[1:])
    return tuple(parts) if len(parts) in (1, 2) else None


def _qualified(spark: Any, parts: Sequence[str]) -> tuple[str, str]:
    if len(parts) == 2:
        return parts[0], parts[1]
    return (catalog.current_schema(spark) if has_jvm(spark) else spark.catalog.currentDatabase()), parts[0]


def path_at(location: str) -> str:
    """Converts a local URI to a path: `file:/a%20b` becomes `/a b`. Other locations stay as they are."""
    split = urlsplit(location)
    return decoded_path(split.path) if split.scheme == "file" else location
