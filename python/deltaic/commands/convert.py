"""CONVERT: makes a Delta table of existing Parquet files by adding a log beside them. No row is read or
written."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.commands.clone import CloneSource
from deltaic.commands.create import TableOptions, check_rules, existing
from deltaic.commands.data_files import write_target
from deltaic.commands.sink_log import sink_files
from deltaic.errors import (
    DeltaError,
    InvalidArgumentError,
    ProtocolError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from deltaic.log.snapshot import Snapshot, table_schema
from deltaic.options import CommitOptions
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.column_mapping import MODE, assign_existing
from deltaic.protocol.evolution import nullable_everywhere
from deltaic.protocol.paths import url_path
from deltaic.protocol.properties import TableProperties
from deltaic.protocol.schema import Array, DataType, Field, Map, Schema, Struct, path_text, type_name, walk
from deltaic.protocol.widening import is_upcast, is_widening
from deltaic.sql_text import spark_name
from deltaic.transaction.transaction import Transaction, already_committed

log = logging.getLogger("deltaic.commands")

Partitioning = Literal["hive", "directory"]
Mode = Literal["error", "ignore"]

_HIDDEN = r"(^|/)(?:[_.][^/=]*(/|$)|[_.][^/]*$)"
"""Pattern of hidden files and folders, which have no data: `_logs/x`, `.x`. A folder of a partition may begin
with `_`, as it has an `=`."""
_ICEBERG = r"^metadata/[^/]*\.metadata\.json$"
"""Pattern of the files in which an Iceberg table keeps its metadata."""
# Types that are inferred for partition values, with the pattern that all texts must match; the narrowest
# first.
_PATTERNS: tuple[tuple[str, str], ...] = (
    ("integer", r"-?[0-9]{1,9}"),
    ("long", r"-?[0-9]{1,18}"),
    ("double", r"-?[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?"),
    ("date", r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"),
)


@dataclass(frozen=True)
class CatalogTable:
    """A Parquet table of a catalog, which decides about the columns and the files of the Delta table.

    `name`: quoted, for the history. `schema`: all columns. `partition_columns`: their names. `files`: paths
    relative to the table's folder.
    """

    name: str
    schema: Schema
    partition_columns: tuple[str, ...]
    files: Collection[str]

    @property
    def partition_schema(self) -> Schema:
        return Schema(field for field in self.schema if field.name in self.partition_columns)


def convert(
    store: _core.Store,
    *,
    partition_schema: Any = None,
    partitioning: Partitioning = "hive",
    statistics: bool = True,
    mode: Mode = "error",
    wanted: TableOptions | None = None,
    commit: CommitOptions | None = None,
    known: CatalogTable | None = None,
) -> Snapshot:
    """Commits all Parquet files in the store as version 0; of a table of a catalog (`known`), the files that
    the catalog has. See `DeltaTable.convert`."""
    if partitioning not in ("hive", "directory"):
        raise InvalidArgumentError(
            "unknown partitioning", found=repr(partitioning), expected="'hive' or 'directory'"
        )
    check_mode(mode)
    wanted = wanted or TableOptions()
    if (current := existing(store)) is not None:
        if mode == "ignore" or already_committed(current, commit):
            return current
        raise TableAlreadyExistsError(
            "a Delta table already exists here",
            where=store.location,
            expected="Parquet files, or mode='ignore'",
        )
    given = None if partition_schema is None else Schema.of(partition_schema)
    if known is not None and given is not None and not _same_columns(given, known.partition_schema):
        raise InvalidArgumentError(
            "PARTITIONED BY has other columns than the catalog",
            where=known.name,
            found=_columns_text(given),
            expected=f"{_columns_text(known.partition_schema)}, or no PARTITIONED BY",
        ).with_values(given=given, known=known.partition_schema)
    try:
        protocol, metadata, adds = _surveyed(store, given, partitioning, statistics, wanted, known)
    except ProtocolError as error:
        raise _of_file(error) from error.__cause__
    partitioned_by = metadata.partition_columns if known is None else [field.name for field in given or ()]
    parameters: dict[str, Any] = {
        **({} if known is None else {"catalogTable": known.name}),
        "numFiles": adds.num_rows,
        "partitionedBy": list(partitioned_by),
        "collectStats": statistics,
        "sourceFormat": "parquet",
    }
    transaction = Transaction(None, "CONVERT", parameters, commit, store=store)
    transaction.read()  # no blind append: it takes the files that are there
    transaction.set_protocol(protocol)
    transaction.set_metadata(metadata)
    transaction.add(adds)
    return transaction.commit({"num_converted_files": adds.num_rows})


def _of_file(error: ProtocolError) -> DeltaError:
    """Returns the error of CONVERT for a file or a folder that a table cannot have."""
    if error.message.startswith("text that is not a value"):
        return SchemaMismatchError(
            "the name of a folder is not a value of the partition column's type",
            where=error.where,
            found=str(error.found).strip('"'),
            expected=error.expected,
        )
    if "Parquet" in error.message:
        return ProtocolError(
            f"a file to convert cannot be read: {error.message}",
            where=error.where,
            found=error.found,
            expected=error.expected,
        )
    return error


def clone_source(store: _core.Store) -> CloneSource:
    """Returns all Parquet files below the store's folder as the source of a clone. Types of partition columns
    are inferred."""
    if existing(store) is not None:
        where = f"parquet.{spark_name(store.location)}"
        raise InvalidArgumentError(
            "the files are those of a Delta table",
            where=where,
            expected=f"delta.{spark_name(store.location)}",
        )
    protocol, metadata, adds = _surveyed(store, None, "hive", True, TableOptions())
    return CloneSource(
        name=f"parquet.{spark_name(store.location)}",
        store=store,
        protocol=protocol,
        metadata=metadata,
        adds=adds,
    )


def _surveyed(
    store: _core.Store,
    partition_schema: Any,
    partitioning: Partitioning,
    statistics: bool,
    wanted: TableOptions,
    known: CatalogTable | None = None,
) -> tuple[Protocol, Metadata, pa.Table]:
    """Returns the definition of a table of the Parquet files below the store's folder, and their add actions.
    With `known`, only the files that the catalog has are taken."""
    files = _files(store, known)
    given = partition_schema if known is None else known.partition_schema
    levels = _levels(store, files, given, partitioning)  # before the footers are read, which may take long
    report = partial(log.info, "%s: %d of %d footers read", store.location)
    survey = _core.Survey(
        store, files, hive=partitioning == "hive", progress=lambda done: report(done, files.num_rows)
    )
    partitions = [
        Field(item, _inferred(survey.values(level))) if isinstance(item, str) else item
        for level, item in enumerate(levels)
    ]
    schema = _schema(survey, partitions) if known is None else _schema_of(known, survey, partitions)
    protocol, metadata = _definition(schema, tuple(item.name for item in partitions), wanted)
    check_rules(metadata)
    target = write_target(store, metadata, protocol)
    return (
        protocol,
        metadata,
        survey.adds(table_schema(protocol, metadata), target.options_json, statistics=statistics),
    )


def _definition(
    schema: Schema, partition_by: tuple[str, ...], wanted: TableOptions
) -> tuple[Protocol, Metadata]:
    """Returns the definition of the table. With column mapping in mode `name`, the physical names are the
    names in the files."""
    options = replace(wanted, partition_by=partition_by)
    protocol, metadata = options.new(schema)
    properties = TableProperties(metadata.configuration)
    mode = properties.column_mapping_mode
    if compat := properties.iceberg_compat:
        raise UnsupportedFeatureError(
            "Iceberg readers find columns by field ids, and files that others wrote have none or other ones",
            where=f"delta.enableIcebergCompatV{compat[0]}",
            found="true",
            expected="a conversion without it, and alter.upgrade_uniform afterwards",
        )
    if mode == "id":
        raise UnsupportedFeatureError(
            "columns of files that others wrote are found by their names",
            where=MODE,
            found=mode,
            expected="'none' or 'name'",
        )
    if mode == "none":
        return protocol, metadata
    mapped, last = assign_existing(schema)
    return options.new(mapped, max_known_id=last)


def check_mode(mode: str) -> None:
    """Raises InvalidArgumentError for a mode that CONVERT does not have."""
    if mode not in ("error", "ignore"):
        raise InvalidArgumentError(
            "unknown mode of convert", found=repr(mode), expected="'error' or 'ignore'"
        )


def _files(store: _core.Store, known: CatalogTable | None = None) -> pa.Table:
    listing = store.list_from("", recursive=True)
    if known is None and (of_stream := sink_files(store, listing["path"])) is not None:
        chosen = pc.is_in(listing["path"], of_stream)
    elif known is None:
        chosen = pc.invert(pc.match_substring_regex(listing["path"], _HIDDEN))
    else:
        chosen = pc.is_in(listing["path"], pa.array(known.files, pa.string()))
    files = listing.filter(pc.and_(chosen, pc.greater(listing["size"], 0)))
    if not files.num_rows:
        raise InvalidArgumentError(
            "there are no Parquet files", where=store.location, expected="one at least"
        )
    if pc.any(pc.match_substring_regex(files["path"], _ICEBERG)).as_py():
        raise InvalidArgumentError(
            "the folder is that of an Iceberg table, which may have deleted some of its rows and files",
            where=store.location,
            expected="DeltaTable.convert_iceberg, or iceberg.`path` in SQL",
        )
    return files.combine_chunks()


def _levels(
    store: _core.Store, files: pa.Table, partition_schema: Any, partitioning: Partitioning
) -> Sequence[Field | str]:
    """Returns the partition columns in the order of the folders; without `partition_schema` the names that
    the folders have. Raises InvalidArgumentError if the folders of a file do not fit, or are those of other
    columns than of another file."""
    hive = partitioning == "hive"
    folders = _core.partition_folders(files, hive=hive)
    given = Schema([]) if partition_schema is None else Schema.of(partition_schema)
    by_name = {field.name.lower(): field for field in given}
    for names, path in folders if partition_schema is not None else ():
        lowered = {name.lower() for name in names}
        if len(names) != len(given) or (hive and lowered != by_name.keys()):
            raise _unfit_folders(store, tuple(given.names), names, path, hive)
    first, first_path = min(folders, key=lambda entry: len(entry[0]))
    for names, path in folders:
        if [name.lower() for name in names] != [name.lower() for name in first]:
            error = InvalidArgumentError(
                "two files lie in folders of different partition columns",
                where=path,
                found=_shown(names),
                expected=f"{_shown(first)}, as {first_path}",
            )
            raise _with_folders(error, store, tuple(first), names, path)
    if partition_schema is not None:
        return [by_name[name.lower()] for name in first] if hive else list(given)
    if not hive and first:
        raise InvalidArgumentError(
            "partitioning='directory' needs column names",
            expected=f"partition_schema= of {len(first)} columns",
        )
    return first


def _unfit_folders(
    store: _core.Store, columns: tuple[str, ...], names: list[str], path: str, hive: bool
) -> InvalidArgumentError:
    message, differing = "the folders do not fit partition_schema=", ("", "")
    expected = ", ".join(columns) or "no partition column"
    if hive and len(names) == len(columns):
        message = "a folder has another name than the partition column"
        pairs = list(zip(columns, names, strict=True))
        differing = next((pair for pair in pairs if pair[0].lower() != pair[1].lower()), pairs[0])
    elif hive and not names and "/" in path:
        expected += ", as name=value, or partitioning='directory'"
    error = InvalidArgumentError(
        message,
        where=path,
        found=f"folders of {', '.join(names) or 'no column'}" if hive else _shown(names),
        expected=expected,
    ).with_values(column=differing[0], folder=differing[1])
    return _with_folders(error, store, columns, names, path)


def _with_folders(
    error: InvalidArgumentError, store: _core.Store, columns: tuple[str, ...], names: list[str], path: str
) -> InvalidArgumentError:
    """Adds the values of delta-spark's message to the error of a file."""
    root = store.location if "://" in store.location else f"file:{url_path(store.location)}"
    return error.with_values(
        columns=columns,
        columns_size=len(columns),
        folders=tuple(names),
        folders_size=len(names),
        path=f"{root.rstrip('/')}/{path}",
    )


def _shown(names: list[str]) -> str:
    return f"{len(names)} levels of folders" if names and not names[0] else ", ".join(names) or "none"


def _inferred(values: pa.Array) -> str:
    """Infers the type of a partition column from its values, like Spark: a number, a date or a string."""
    texts = pc.unique(values.drop_null())
    for name, pattern in _PATTERNS if len(texts) else ():
        if pc.all(pc.match_substring_regex(texts, f"^(?:{pattern})$")).as_py():
            return name
    return "string"


def _schema(survey: _core.Survey, partitions: list[Field]) -> Schema:
    """Returns the columns of all files, nullable at every level, and then the partition columns. A partition
    column that is in the files, too, is listed only as a partition column."""
    first: dict[str, str] = {}
    fields: tuple[Field, ...] = ()
    for text, file in survey.schemas:
        fields = _united(fields, tuple(Schema.from_json(text)), (), file, first)
    names = {field.name.lower() for field in partitions}
    whole = nullable_everywhere(
        Struct([*(field for field in fields if field.name.lower() not in names), *partitions])
    )
    assert isinstance(whole, Struct)
    return Schema(whole.fields)


def _schema_of(known: CatalogTable, survey: _core.Survey, partitions: list[Field]) -> Schema:
    """Returns the columns of a catalog's table, nullable at every level, with the partition columns last, and
    the names of columns spelled as in the files. Raises SchemaMismatchError if a file has a type that Spark
    would not read as the type in the catalog."""
    columns = {field.name.lower(): field for field in known.schema}
    partitioned = {field.name.lower() for field in partitions}
    spelled: dict[str, str] = {}
    for text, file in survey.schemas:
        for field in Schema.from_json(text):
            column = columns.get(field.name.lower())
            if column is None or column.name.lower() in partitioned:
                continue
            stored, read_as = nullable_everywhere(field.type), nullable_everywhere(column.type)
            if stored != read_as and not is_widening(stored, read_as):
                raise SchemaMismatchError(
                    "a file has another type for a column than the catalog",
                    where=f"{file}, column {field.name}",
                    found=type_name(stored),
                    expected=type_name(read_as),
                )
            if spelled.setdefault(column.name, field.name) != field.name:
                raise SchemaMismatchError(
                    "a column's name is spelled in two ways",
                    where=f"{file}, column {field.name}",
                    found=field.name,
                    expected=spelled[column.name],
                )
    whole = [
        field.with_(
            name=spelled.get(field.name, field.name), type=nullable_everywhere(field.type), nullable=True
        )
        for field in known.schema
    ]
    return Schema(sorted(whole, key=lambda field: field.name.lower() in partitioned))


def _same_columns(given: Schema, known: Schema) -> bool:
    return [(field.name.lower(), field.type) for field in given] == [
        (field.name.lower(), field.type) for field in known
    ]


def _columns_text(schema: Schema) -> str:
    return ", ".join(f"{field.name} {type_name(field.type)}" for field in schema) or "no column"


def _united(
    known: tuple[Field, ...], new: tuple[Field, ...], path: tuple[str, ...], file: str, first: dict[str, str]
) -> tuple[Field, ...]:
    """Unites the fields of some files with those of another file. `first`: the first file with each column,
    at any depth, for error messages."""
    united = {field.name.lower(): field for field in known}
    for field in new:
        place = (*path, field.name)
        before = united.get(field.name.lower())
        if before is None:
            first |= {path_text(below): file for below, _ in walk((field,), path)}
            united[field.name.lower()] = field
        elif before.name != field.name:
            where = f"{file}, column {path_text(place)}"
            raise SchemaMismatchError(
                "a column's name is spelled in two ways", where=where, found=field.name, expected=before.name
            )
        else:
            united[field.name.lower()] = Field(
                field.name, _one_type(before.type, field.type, place, file, first), metadata=before.metadata
            )
    return tuple(united.values())


def _one_type(
    known: DataType, new: DataType, path: tuple[str, ...], file: str, first: dict[str, str]
) -> DataType:
    if isinstance(known, Struct) and isinstance(new, Struct):
        return Struct(_united(tuple(known.fields), tuple(new.fields), path, file, first))
    if isinstance(known, Array) and isinstance(new, Array):
        return Array(_one_type(known.element, new.element, (*path, "element"), file, first))
    if isinstance(known, Map) and isinstance(new, Map):
        sides = ((known.key, new.key, "key"), (known.value, new.value, "value"))
        key, value = (_one_type(before, after, (*path, name), file, first) for before, after, name in sides)
        return Map(key, value)
    if is_upcast(known, new) or is_upcast(new, known):  # the wider type, as in delta-spark
        return new if is_upcast(known, new) else known
    if known != new:
        first_file = first.get(path_text(path))
        raise SchemaMismatchError(
            "a column has two types",
            where=f"{file}, column {path_text(path)}",
            found=type_name(new),
            expected=type_name(known) + (f", as in {first_file}" if first_file else ""),
        )
    return known
