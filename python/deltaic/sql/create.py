"""CREATE TABLE, CREATE TABLE AS SELECT, CREATE TABLE ... CLONE and CREATE TABLE ... LIKE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from deltaic.commands.create import TableOptions, refuse_other_files, requiring_table
from deltaic.commands.write_job import Write
from deltaic.errors import InvalidArgumentError, TableAlreadyExistsError, UnsupportedFeatureError
from deltaic.protocol.column_mapping import strip
from deltaic.protocol.properties import canonical_name
from deltaic.protocol.schema import CHAR_TYPES, Array, DataType, Map, Schema, Struct, path_text
from deltaic.protocol.versions import refuses_as_delta_spark
from deltaic.rows.rows import Rows
from deltaic.sql.names import Existing, Name, Tables, read_name, same_folder
from deltaic.sql.results import counts, nothing
from deltaic.sql.tokens import Reader
from deltaic.table import DeltaTable


@dataclass
class _Clauses:
    """The clauses between the columns and AS, in any order, each at most once. `partition_columns`: text of
    the columns that PARTITIONED BY defines, as in Hive. `seen`: first words of the parsed ones."""

    partition_by: list[str] | None = None
    partition_columns: str | None = None
    cluster_by: list[str] | None = None
    comment: str | None = None
    properties: dict[str, str] | None = None
    location: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def take_options(self, *, alone: bool) -> None:
        """Makes the option `path` the location, and other options properties (see `of_options`)."""
        path, properties = of_options(self.options, alone=alone)
        if path is not None and self.location is not None:
            raise InvalidArgumentError(
                "OPTIONS and LOCATION both name a path", found=f"{path} and {self.location}"
            )
        self.location = path or self.location
        if properties:
            self.properties = {**properties, **(self.properties or {})}

    def check(self, table: DeltaTable, columns: Schema | None) -> None:
        """Like `check_definition`, with the columns and these clauses."""
        check_definition(table, columns, self.partition_by, self.cluster_by, self.properties)


def of_options(options: Mapping[str, str], *, alone: bool = True) -> tuple[str | None, dict[str, str]]:
    """Returns the option `path` of a definition, and the other options as properties. As in delta-spark,
    CREATE TABLE without a query stores each one by its name and by `option.` with its name (`alone`); with a
    query or REPLACE, only those that begin with `delta.` are stored, by their names."""
    path = next((value for name, value in options.items() if name.lower() == "path"), None)
    others = {name: value for name, value in options.items() if name.lower() != "path"}
    if not alone:
        return path, {name: value for name, value in others.items() if name.lower().startswith("delta.")}
    return path, {**others, **{f"option.{name}": value for name, value in others.items()}}


def create(reader: Reader, tables: Tables) -> Rows:
    """CREATE [OR REPLACE | EXTERNAL] TABLE [IF NOT EXISTS] name [(columns)] [USING delta] [clauses] [AS
    query], or REPLACE TABLE; name SHALLOW | DEEP CLONE source [VERSION | TIMESTAMP AS OF ...] [TBLPROPERTIES
    (...)] -> delta-spark's metrics, where the source is a table, parquet.`path` or iceberg.`path`; CREATE
    TABLE [IF NOT EXISTS] name LIKE source [USING delta] [LOCATION ...] [TBLPROPERTIES (...)]"""
    replace, must_exist = _head(reader)
    if_missing = not replace and reader.accept("IF", "NOT", "EXISTS")
    name = read_name(reader)
    source, shallow = _cloned(reader)
    like = read_name(reader) if source is None and reader.accept("LIKE") else None
    columns = reader.inside("columns") if source is None and like is None and reader.at("(") else None
    clauses = _clauses(reader, of_clone=source is not None)
    reader.accept("AS")
    text = None if reader.done else reader.rest("a query")
    clauses.take_options(alone=text is None and not replace)
    if clauses.partition_columns is not None:
        columns = ", ".join(filter(None, (columns, clauses.partition_columns)))
    if source is not None:
        _check_clone(name, clauses, has_query=text is not None)
    replaces_other = must_exist and source is not None and tables.has_other(name)
    try:
        use: Existing = "use" if source is None else "replace"
        existing: Existing = use if replace else "ignore" if if_missing else "error"
        path, is_new_name, exists = _placed(name, clauses.location, existing, tables)
    except TableAlreadyExistsError:  # the name is that of a view, of another format, or of a lost table
        if if_missing:
            return nothing()
        raise
    if must_exist and (not exists or is_new_name) and not replaces_other:
        is_lost = not exists and not is_new_name and name.path is None
        raise _nothing_to_replace(name, clones=source is not None, is_lost=is_lost)
    if exists and not replace:
        if (origin := source or like) is not None:
            tables.check_source(origin)
        if is_new_name and text is None and origin is None:
            clauses.check(tables.opened(path), None if columns is None else Schema.from_ddl(columns))
        elif not if_missing or is_new_name:
            by_place = is_new_name and (source is not None or text is not None)
            by_place = by_place or (source is not None and name.path is not None)
            raise _exists(path, clones=source is not None, by_place=by_place)
        return nothing()
    if not exists and (not replace or (text is None and source is None)):
        has_place_alone = (columns, text, like, source) == (None,) * 4
        expects_table = not replace and clauses.location is not None and has_place_alone
        _check_folder(path, name, source, tables, expects_table=expects_table)
    if source is not None:
        return counts(**tables.cloned(source, path, shallow, replace, clauses.properties))
    if like is not None:
        if text is not None or clauses.seen - {"USING", "TBLPROPERTIES", "LOCATION"} or replace:
            raise InvalidArgumentError(
                "a table LIKE another one has its definition",
                found=str(name),
                expected="USING, TBLPROPERTIES and LOCATION alone",
            )
        _create_like(path, clauses, like, name, tables)
    else:
        with requiring_table(must_exist), tables.defining():
            if text is not None:
                _create_as(path, clauses, columns, text, replace, tables)
            else:
                _create(path, clauses, columns, replace, name, tables)
    return nothing()


def _placed(name: Name, location: str | None, existing: Existing, tables: Tables) -> tuple[str, bool, bool]:
    """Returns the location of a table to create, and two flags: its name is new in the catalog, and there is
    a table. Raises TableAlreadyExistsError for a name of the catalog whose files are gone, unless it is
    replaced."""
    path, is_new_name = tables.place(name, location, existing)
    exists = DeltaTable.exists(path, storage_options=tables.storage_options)
    if existing in ("error", "ignore") and not (exists or is_new_name) and name.path is None:
        raise _exists(path, clones=False, by_place=False)
    return path, is_new_name, exists


def _nothing_to_replace(name: Name, *, clones: bool, is_lost: bool) -> InvalidArgumentError:
    """The error of REPLACE TABLE without a table. `is_lost`: True if the catalog still has the name of a
    table whose files are gone."""
    condition = "[DELTA_CANNOT_REPLACE_MISSING_TABLE] " if clones else ""
    condition = "[DELTA_METADATA_ABSENT_EXISTING_CATALOG_TABLE] " if is_lost else condition
    return InvalidArgumentError(
        f"{condition}REPLACE TABLE needs a table", found=str(name), expected="CREATE OR REPLACE TABLE"
    )


def _exists(path: str, *, clones: bool, by_place: bool) -> TableAlreadyExistsError:
    """The error of a statement that finds a table at the place of its new table. `by_place`: True if
    delta-spark's condition names the place: for a new name with AS SELECT, and for a clone at a path."""
    what = "the table of the clone already exists" if clones else "a table already exists here"
    condition = "[DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION] " if by_place else ""
    return TableAlreadyExistsError(
        f"{condition}{what}", where=path, expected="CREATE OR REPLACE TABLE, or IF NOT EXISTS"
    )


def _head(reader: Reader) -> tuple[bool, bool]:
    """CREATE [OR REPLACE | EXTERNAL] TABLE, or REPLACE TABLE. Returns True if an existing table is replaced,
    and True if there must be one."""
    if reader.accept("REPLACE"):
        replace, must_exist = True, True
    else:
        reader.expect("CREATE")
        replace, must_exist = reader.accept("OR", "REPLACE"), False
        if not replace:
            reader.accept("EXTERNAL")  # LOCATION alone decides where the table lies
    if any(map(reader.at, ("TEMPORARY", "TEMP", "GLOBAL", "VIEW"))):
        raise UnsupportedFeatureError(
            "CREATE makes Delta tables only",
            found=reader.tokens[reader.position].text,
            expected="TABLE; instead of a view, give the rows of a query a name in tables=",
        )
    reader.expect("TABLE")
    return replace, must_exist


def _cloned(reader: Reader) -> tuple[Name | None, bool]:
    """[SHALLOW | DEEP] CLONE source. Returns the source (None without this clause), and True for a shallow
    clone."""
    shallow = reader.accept("SHALLOW", "CLONE")
    if not (shallow or reader.accept("DEEP", "CLONE") or reader.accept("CLONE")):
        return None, False
    return read_name(reader, travel=True), shallow


def _check_folder(path: str, name: Name, source: Name | None, tables: Tables, *, expects_table: bool) -> None:
    """Refuses the folder of a new table if it has files. A clone onto itself has an error of its own."""
    if source is None or source.parts[-1] != path:
        is_named = name.path is None or source is not None
        values = {"log": f"{path.rstrip('/')}/_delta_log"} if expects_table else {}
        refuse_other_files(path, tables.storage_options, values if is_named else None)


def _check_clone(name: Name, clauses: _Clauses, *, has_query: bool) -> None:
    location, path = clauses.location, name.path
    if location is not None and path is not None and not same_folder(location, path):
        raise InvalidArgumentError(
            "the clone has a path as its name, and a LOCATION",
            found=f"{name} LOCATION '{location}'",
            expected="one of the two",
        )
    if (
        location is not None
        and refuses_as_delta_spark()
        and not location.startswith("/")
        and ":" not in location
    ):
        raise InvalidArgumentError(
            "[DELTA_INVALID_CLONE_PATH] the LOCATION of a clone is absolute",
            found=repr(location),
            expected="a path that begins with /, or a URL",
        ).with_values(path=str(name))
    if has_query or clauses.seen - {"TBLPROPERTIES", "LOCATION"}:
        raise InvalidArgumentError(
            "a clone has the definition of its source",
            found=str(name),
            expected="TBLPROPERTIES and LOCATION alone",
        )


def check_definition(
    table: DeltaTable,
    new: Schema | None,
    partition_by: Iterable[str] | None,
    cluster_by: Iterable[str] | None,
    properties: Mapping[str, str] | None,
) -> None:
    """Raises InvalidArgumentError if a CREATE TABLE that gives an existing table a new name has other
    columns (`new`), partition columns, clustering columns or properties than the table. A statement with
    columns must have the partition columns and the clustering columns, too."""
    from deltaic.sql.show import shown_properties

    metadata, place, known = table.metadata, table.location, shown_properties(table)
    if new is not None and _by_name(new) != _by_name(table.schema):
        raise InvalidArgumentError(
            "[DELTA_CREATE_TABLE_SCHEME_MISMATCH] the table at this place has other columns",
            where=place,
            found=new.to_ddl(),
            expected=table.schema.to_ddl(),
        ).with_values(specified=new, existing=table.schema)
    for kind, what, listed, existing in (
        ("PARTITIONING", "partition", partition_by, tuple(metadata.partition_columns)),
        ("CLUSTERING", "clustering", cluster_by, table.detail().clustering_columns),
    ):
        specified = tuple(listed or ())
        if (listed or new is not None) and _folded(specified) != _folded(existing):
            raise InvalidArgumentError(
                f"[DELTA_CREATE_TABLE_WITH_DIFFERENT_{kind}] the table there has other {what} columns",
                where=place,
                found=list(specified),
                expected=list(existing),
            ).with_values(specified=specified, existing=existing)
    wanted = {canonical_name(key): text for key, text in (properties or {}).items()}
    if differing := {key: text for key, text in wanted.items() if known.get(key) != text}:
        raise InvalidArgumentError(
            "[DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY] the table at this place has other properties",
            where=place,
            found=differing,
        ).with_values(specified=_lines(wanted), existing=_lines(metadata.configuration))


def _folded(names: Iterable[str]) -> list[str]:
    return [name.lower() for name in names]


def _lines(properties: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={properties[key]}" for key in sorted(properties))


def _by_name(schema: Schema) -> dict[str, object]:
    """Returns what delta-spark compares of each column: its type, NOT NULL, comment, length and generation
    expression."""
    keys = ("comment", CHAR_TYPES, "delta.generationExpression")
    return {
        field.name: (compared(field.type), field.nullable, *map(field.metadata.get, keys)) for field in schema
    }


def compared(data_type: DataType) -> object:
    """Returns what Spark compares of a type: names, types, nullability and comments of its fields."""
    if isinstance(data_type, Struct):
        return [
            (field.name, field.nullable, field.metadata.get("comment"), compared(field.type))
            for field in data_type.fields
        ]
    if isinstance(data_type, Array):
        return "array", compared(data_type.element), data_type.contains_null
    if isinstance(data_type, Map):
        return "map", compared(data_type.key), compared(data_type.value), data_type.value_contains_null
    return data_type


def _create(
    path: str, clauses: _Clauses, columns: str | Schema | None, replace: bool, name: Name, tables: Tables
) -> None:
    if columns is None and (replace or clauses.partition_by or clauses.cluster_by):
        raise InvalidArgumentError(
            "a table needs columns", where=str(name), expected="(name type, ...) or AS SELECT"
        )
    DeltaTable.create(
        path,
        columns or Schema(()),
        mode="overwrite" if replace else "error",
        partition_by=clauses.partition_by or (),
        cluster_by=clauses.cluster_by or (),
        description=clauses.comment,
        properties=tables.table_properties(clauses.properties),
        commit=tables.commit_options(),
        storage_options=tables.storage_options,
    )


def _create_like(path: str, clauses: _Clauses, like: Name, name: Name, tables: Tables) -> None:
    """Creates an empty table with the columns, partitioning, clustering, comment and properties of another
    Delta table, or with the columns and partitioning of a table of another format or a view."""
    from deltaic.sql.show import own_properties

    if (definition := tables.other_definition(like)) is not None:
        columns, clauses.partition_by = definition
        _create(path, clauses, columns, False, name, tables)
        return
    source = tables.table(like)
    DeltaTable.create(
        path,
        strip(source.schema),
        partition_by=source.metadata.partition_columns,
        cluster_by=source.detail().clustering_columns,
        description=source.metadata.description,
        properties={**own_properties(source), **(clauses.properties or {})},
        commit=tables.commit_options(),
        storage_options=tables.storage_options,
    )


def _create_as(
    path: str, clauses: _Clauses, columns: str | None, text: str, replace: bool, tables: Tables
) -> None:
    if columns is not None:
        raise InvalidArgumentError(
            "AS SELECT gives the columns; a list of them cannot stand beside it", found=columns
        )
    job = Write(
        mode="overwrite" if replace else "error",
        schema_mode="overwrite" if replace else None,
        wanted=TableOptions.of(
            clauses.partition_by, clauses.cluster_by, None, clauses.comment, clauses.properties
        ),
        defines=True,
    )
    tables.create(path, tables.query(text), job)


def _clauses(reader: Reader, *, of_clone: bool) -> _Clauses:
    clauses = _Clauses()
    while not (
        reader.done
        or reader.at("AS")
        or reader.at("SELECT")
        or reader.at("WITH")
        or reader.at("VALUES")
        or reader.at("(")
    ):
        word = reader.tokens[reader.position].keyword
        if word in clauses.seen:
            reader.fail(f"{word} once")
        clauses.seen.add(word)
        if reader.accept("USING"):
            if (source := reader.name()).lower() not in ("delta", "deltaic"):
                raise UnsupportedFeatureError(
                    "tables of another format are not supported",
                    found=f"USING {source}",
                    expected="USING delta",
                )
        elif reader.accept("PARTITIONED", "BY"):
            clauses.partition_by, clauses.partition_columns = _partitioning(reader)
        elif reader.accept("CLUSTER", "BY"):
            clauses.cluster_by = [path_text(column) for column in reader.bracketed(reader.dotted)]
        elif reader.accept("COMMENT"):
            clauses.comment = reader.string()
        elif reader.accept("TBLPROPERTIES"):
            clauses.properties = read_properties(reader, of_table=not of_clone)
        elif reader.accept("LOCATION"):
            clauses.location = reader.string()
        elif reader.accept("OPTIONS"):
            clauses.options = read_properties(reader)
        elif reader.at("CLUSTERED"):
            raise UnsupportedFeatureError(
                "buckets of a Delta table are not supported", found="CLUSTERED BY", expected="CLUSTER BY"
            )
        else:
            reader.fail("USING, PARTITIONED BY, CLUSTER BY, COMMENT, LOCATION, OPTIONS, TBLPROPERTIES or AS")
    return clauses


def _partitioning(reader: Reader) -> tuple[list[str], str | None]:
    """(column, ...), or (name type [COMMENT text], ...) as in Hive. Returns the names, and in the second case
    the text in the brackets."""
    start = reader.position
    text = reader.inside("partition columns")
    tokens = Reader(text).tokens
    if len(tokens) > 1 and tokens[1].kind == "word":
        return Schema.from_ddl(text).names, text
    reader.position = start
    return reader.bracketed(lambda: _partition_column(reader)), None


def _partition_column(reader: Reader) -> str:
    path = reader.dotted()
    if reader.at("("):
        raise no_partition_column(path[-1], f"{path_text(path)}(...)")
    if len(path) > 1:
        raise no_partition_column("", path_text(path))
    return path[0]


def no_partition_column(function: str, text: str) -> UnsupportedFeatureError:
    """Returns the error of a partition column that is the call of a function, such as `years(day)`."""
    message = (
        "buckets of a Delta table are not supported"
        if function.lower() == "bucket"
        else "a partition by an expression is not supported"
    )
    return UnsupportedFeatureError(message, found=text, expected="a column")


def read_properties(reader: Reader, *, of_table: bool = False) -> dict[str, str]:
    """Reads properties in brackets: ('key' = 'value', key.of.words = 3, ...). `of_table`: True if
    Spark's parser refuses reserved names there."""
    properties = dict(reader.bracketed(lambda: _property(reader)))
    if of_table:
        refuse_reserved(properties)
    return properties


_RESERVED = {
    "provider": "please use the USING clause to specify it",
    "location": "please use the LOCATION clause to specify it",
    "owner": "it will be set to the current user",
    "external": "please use CREATE EXTERNAL TABLE",
    "collation": "please use the DEFAULT COLLATION clause to specify it",
    "table_type": "please remove it from the TBLPROPERTIES list.",
    "is_managed_location": "please remove it from the TBLPROPERTIES list.",
}
"""Names that TBLPROPERTIES cannot have -> the advice of Spark's message."""


def refuse_reserved(names: Iterable[str]) -> None:
    """Raises InvalidArgumentError for a property that Spark reserves for a part of the table's definition."""
    if name := next((name for name in names if name in _RESERVED), None):
        raise InvalidArgumentError(
            "[UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY] the name of this property is reserved", found=name
        ).with_values(advice=_RESERVED[name])


def read_property_name(reader: Reader) -> str:
    """Reads the name of a property: 'key', or the words key.of.words"""
    if not reader.done and reader.tokens[reader.position].kind == "string":
        return reader.string()
    return ".".join(reader.dotted())


def _property(reader: Reader) -> tuple[str, str]:
    key = read_property_name(reader)
    reader.accept_equals()
    if reader.done:
        reader.fail("a value")
    token = reader.tokens[reader.position]
    if token.kind == "string":
        return key, reader.string()
    if token.kind in ("number", "word"):
        reader.position += 1
        return key, token.text.lower() if token.keyword in ("TRUE", "FALSE") else token.text
    reader.fail("a value")
