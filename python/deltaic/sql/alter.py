"""ALTER TABLE: parses each action, and calls the method of `table.alter` that runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.column_mapping import MODE, check_mode_change
from deltaic.protocol.ddl import parse_column_type
from deltaic.protocol.edits import UNCHANGED, add_columns
from deltaic.protocol.schema import (
    CHAR_TYPES,
    Array,
    DataType,
    Field,
    Map,
    Schema,
    Struct,
    path_text,
    type_name,
)
from deltaic.rows.rows import Rows
from deltaic.sql.create import compared, read_properties, read_property_name, refuse_reserved
from deltaic.sql.names import Tables, read_name
from deltaic.sql.results import nothing
from deltaic.sql.tokens import Reader
from deltaic.sql_text import string_value
from deltaic.table import DeltaTable


def alter(reader: Reader, tables: Tables) -> Rows:
    """ALTER TABLE name action"""
    reader.expect("ALTER", "TABLE")
    name = read_name(reader)
    actions = [*_ACTIONS]
    actions += [(words, partial(action, tables)) for words, action in _ACTIONS_OF_HOST]
    for words, action in actions:
        if reader.accept(*words):
            change = action(reader)
            reader.end()
            change(tables.table(name))
            return nothing()
    reader.fail("an action of ALTER TABLE")


_Change = Callable[[DeltaTable], object]


@dataclass(frozen=True)
class _Place:
    """The new position of a column: after the column `after`; None: the first."""

    after: str | None


def _read_place(reader: Reader) -> _Place | None:
    """[FIRST | AFTER name]"""
    if reader.accept("FIRST"):
        return _Place(None)
    return _Place(reader.name()) if reader.accept("AFTER") else None


def _add_columns(reader: Reader) -> _Change:
    """ADD COLUMN[S] [(] name type [NOT NULL] [COMMENT text] [FIRST | AFTER name], ... [)]"""
    bracketed = reader.at("(")
    definitions = (
        reader.bracketed(lambda: _definition(reader))
        if bracketed
        else reader.listed(lambda: _definition(reader))
    )
    places = {path_text(path): place.after for path, _, place in definitions if place is not None}
    folded = [tuple(part.lower() for part in path) for path, _, _ in definitions]
    if twice := next((path for path in folded if folded.count(path) > 1), None):
        raise InvalidArgumentError("[COLUMN_ALREADY_EXISTS] a column comes twice", found=path_text(twice))

    def change(table: DeltaTable) -> None:
        new = Schema([])
        for path, text, _ in definitions:
            (field,) = Schema.from_ddl(f"{path_text(path[-1:])} {text}")
            if len(path) > 1 and CHAR_TYPES in field.metadata:
                where = path_text(path)
                raise UnsupportedFeatureError(
                    "a new field with the type CHAR or VARCHAR is not supported",
                    where=where,
                    found=text,
                    expected="STRING",
                )
            new = add_columns(new, Schema([_within(table.schema, path, field) if len(path) > 1 else field]))
        table.alter.add_columns(new, places=places)

    return change


def _definition(reader: Reader) -> tuple[tuple[str, ...], str, _Place | None]:
    if reader.at("IF", "NOT", "EXISTS"):
        reader.fail("a new column: Spark's ADD COLUMN has no IF NOT EXISTS")
    path = reader.dotted()
    return path, reader.slice(",", "FIRST", "AFTER", expected="a type", of_type=True), _read_place(reader)


def _within(schema: Schema, path: tuple[str, ...], new: Field) -> Field:
    """Returns the column that contains a new field, with only the structs on the path to it: for `a.b.c`, the
    struct `a` with the struct `b` with the field `c`."""
    names, above = schema.find(path[:-1])
    if not isinstance(above.type, Struct):
        raise InvalidArgumentError(
            "only a struct gets new fields", where=path_text(names), found=type_name(above.type)
        ).with_values(path=path, above=names)
    inner: DataType = Struct([new])
    for end in range(len(names) - 1, 0, -1):
        outer = schema.find(names[:end])[1].type
        if isinstance(outer, Struct):
            inner = Struct([Field(names[end], inner)])
        elif isinstance(outer, Array):
            inner = Array(inner)
        elif isinstance(outer, Map):
            inner = Map(inner, UNCHANGED) if names[end] == "key" else Map(UNCHANGED, inner)
    return Field(names[0], inner)


def _replace_columns(reader: Reader) -> _Change:
    """REPLACE COLUMNS (name type [NOT NULL] [COMMENT text], ...)"""
    columns = Schema.from_ddl(reader.inside("columns"))
    return lambda table: table.alter.replace_columns(columns)


def _rename_column(reader: Reader) -> _Change:
    """RENAME COLUMN name TO name. As in Spark, the names must differ in more than case."""
    old = path_text(reader.dotted())
    reader.expect("TO")
    new = reader.name()

    def change(table: DeltaTable) -> None:
        path, _ = table.schema.find(old)
        if path[-1].lower() == new.lower():
            raise InvalidArgumentError(
                "the column exists already", where=path_text((*path[:-1], new))
            ).with_values(op="rename", path=(*path[:-1], new), struct=type_name(Struct(table.schema)))
        table.alter.rename_column(old, new)

    return change


def _drop_columns(tables: Tables, reader: Reader) -> _Change:
    """DROP COLUMN[S] [IF EXISTS] name, ... with or without brackets"""
    if_exists = reader.accept("IF", "EXISTS")
    paths = reader.bracketed(reader.dotted) if reader.at("(") else reader.listed(reader.dotted)

    def change(table: DeltaTable) -> None:
        columns = [path for path in paths if not if_exists or _has(table, path)]
        if columns:
            names = [path_text(table.schema.find(path)[0]) for path in columns]
            tables.check_drop(names)
            table.alter.drop_columns(*names)

    return change


def _has(table: DeltaTable, path: tuple[str, ...]) -> bool:
    try:
        table.schema.find(path)
    except InvalidArgumentError:
        return False
    return True


_Arguments = Callable[[DeltaTable], dict[str, Any]]
"""Returns the arguments of `change_column` for the column of a table."""


def _alter_column(reader: Reader) -> _Change:
    """ALTER | CHANGE [COLUMN] name change, ... The change SYNC IDENTITY stands alone."""
    name = path_text(reader.dotted())
    if reader.accept("SYNC", "IDENTITY"):
        return lambda table: table.alter.sync_identity(name)
    changes = {name: _column_change(reader, name)}
    while reader.accept(","):
        name = path_text(reader.dotted())
        if name in changes:
            raise InvalidArgumentError(
                "[NOT_SUPPORTED_CHANGE_SAME_COLUMN] a column is changed twice", where=name
            )
        changes[name] = _column_change(reader, name)

    def change(table: DeltaTable) -> None:
        arguments = {name: arguments_of(table) for name, arguments_of in changes.items()}
        if len(arguments) == 1:
            ((name, only),) = arguments.items()
            table.alter.change_column(name, **only)
        else:
            table.alter.change_columns(arguments)

    return change


def _column_change(reader: Reader, name: str) -> _Arguments:
    """TYPE type | COMMENT text | FIRST | AFTER name | DROP NOT NULL | SET NOT NULL | SET DEFAULT expression |
    DROP DEFAULT, or a definition in Hive's form"""
    if reader.accept("TYPE"):
        text = reader.slice(",", expected="a type", of_type=True)
        return lambda table: {"type": _checked_type(table, name, text, parse_column_type(text)[0])}
    if reader.accept("COMMENT"):
        return _always(comment=reader.string())
    if (place := _read_place(reader)) is not None:
        return _always(first=place.after is None, after=place.after)
    if reader.accept("DROP", "NOT", "NULL"):
        return _always(nullable=True)
    if reader.accept("SET", "NOT", "NULL"):
        return _always(nullable=False)
    if reader.accept("SET", "DEFAULT"):
        return _always(default=reader.slice(",", expected="an expression"))
    if reader.accept("DROP", "DEFAULT"):
        return _always(default="")
    if reader.at("SYNC") or reader.at("DROP"):
        raise UnsupportedFeatureError(
            "this change of a column is not supported", found=reader.rest("a change")
        )
    return _redefined_column(reader, name)


def _always(**arguments: Any) -> _Arguments:
    return lambda table: arguments


def _redefined_column(reader: Reader, name: str) -> _Arguments:
    """The rest of CHANGE COLUMN name, in Hive's form: name type [COMMENT text] [FIRST | AFTER name], with the
    same name"""
    if reader.done or reader.tokens[reader.position].kind not in ("word", "quoted"):
        reader.fail("TYPE, COMMENT, FIRST, AFTER, DROP NOT NULL, SET NOT NULL, SET DEFAULT or DROP DEFAULT")
    again = reader.name()
    (field,) = Schema.from_ddl(
        f"{path_text((again,))} {reader.slice('FIRST', 'AFTER', expected='a type', of_type=True)}"
    )
    if computed := sorted(field.metadata.keys() - {"comment", CHAR_TYPES}):
        raise UnsupportedFeatureError(
            "CHANGE COLUMN sets a type, a comment and a position", where=again, found=computed[0]
        )
    if not field.nullable:
        raise InvalidArgumentError(
            "[_LEGACY_ERROR_TEMP_0034] CHANGE COLUMN cannot set NOT NULL",
            where=again,
            expected="ALTER COLUMN ... SET NOT NULL or DROP NOT NULL",
        ).with_values(operation="NOT NULL", advice=", please run ALTER COLUMN ... SET/DROP NOT NULL instead")
    place = _read_place(reader)

    def arguments(table: DeltaTable) -> dict[str, Any]:
        path, _ = table.schema.find(name)
        if path[-1].lower() != again.lower():
            raise UnsupportedFeatureError(
                "[_LEGACY_ERROR_TEMP_0034] CHANGE COLUMN cannot rename a column",
                where=path_text(path),
                found=again,
                expected="RENAME COLUMN",
            ).with_values(operation="Renaming column", advice=", please run RENAME COLUMN instead")
        first, after = (False, None) if place is None else (place.after is None, place.after)
        return {
            "type": _checked_type(table, name, field.metadata.get(CHAR_TYPES, field.type), field.type),
            "comment": field.metadata.get("comment"),
            "first": first,
            "after": after,
        }

    return arguments


def _checked_type(table: DeltaTable, name: str, given: DataType, parsed: DataType) -> DataType:
    """Returns `given`, the new type of the column or field `name`. As in Spark, InvalidArgumentError is
    raised if it is a struct, an array or a map that differs from the old type in a name, a type, a comment or
    NOT NULL. `parsed`: the same type, parsed."""
    path, field = table.schema.find(name)
    if isinstance(parsed, (Struct, Array, Map)) and compared(parsed) != compared(field.type):
        kind = type(parsed).__name__.lower()
        inner = {"struct": "its fields", "array": f"{name}.element", "map": f"{name}.key or {name}.value"}
        article = "an" if kind == "array" else "a"
        raise InvalidArgumentError(
            f"[CANNOT_UPDATE_FIELD.{kind.upper()}_TYPE] the type of {article} {kind} cannot be changed as a"
            " whole",
            where=path_text(path),
            expected=f"a change of {inner[kind]}",
        ).with_values(path=path)
    return given


def _set_properties(tables: Tables, reader: Reader) -> _Change:
    """SET TBLPROPERTIES ('key' = 'value', ...)"""
    properties = read_properties(reader, of_table=True)

    def change(table: DeltaTable) -> None:
        if any(name.lower() == MODE.lower() and properties[name].lower() == "none" for name in properties):
            _remove_mapping(tables, table)
        table.alter.set_properties(properties)

    return change


def _unset_properties(tables: Tables, reader: Reader) -> _Change:
    """UNSET TBLPROPERTIES [IF EXISTS] ('key', ...); a property that is not set is no error, as in Spark"""
    reader.accept("IF", "EXISTS")
    names = reader.bracketed(lambda: read_property_name(reader))
    refuse_reserved(names)

    def change(table: DeltaTable) -> None:
        if MODE.lower() in (name.lower() for name in names):
            _remove_mapping(tables, table)
        table.alter.unset_properties(*names, if_exists=True)

    return change


def _remove_mapping(tables: Tables, table: DeltaTable) -> None:
    """Raises UnsupportedFeatureError for a table with mapped columns if the host keeps column mapping."""
    if not tables.removes_mapping:
        check_mode_change(table.metadata.configuration.get(MODE, "none"), "none")


def _add_constraint(reader: Reader) -> _Change:
    """ADD CONSTRAINT name CHECK (condition)"""
    name = reader.name()
    if not reader.done and reader.tokens[reader.position].keyword in ("PRIMARY", "FOREIGN", "UNIQUE"):
        raise UnsupportedFeatureError(
            "a table constraint other than CHECK is not supported",
            found=reader.rest("a constraint"),
            expected="CHECK (condition)",
        )
    reader.expect("CHECK")
    condition = reader.inside("a condition")
    return lambda table: table.alter.add_constraints({name: condition})


def _drop_constraint(tables: Tables, reader: Reader) -> _Change:
    """DROP CONSTRAINT [IF EXISTS] name"""
    if_exists = reader.accept("IF", "EXISTS") or not tables.requires_constraint
    name = reader.name()
    return lambda table: table.alter.drop_constraint(name, if_exists=if_exists)


def _drop_feature(reader: Reader) -> _Change:
    """DROP FEATURE name [TRUNCATE HISTORY]"""
    token = reader.tokens[reader.position] if not reader.done else reader.fail("a feature")
    name = string_value(token.text) if token.kind == "string" else token.name
    reader.position += 1
    truncate = reader.accept("TRUNCATE", "HISTORY")
    return lambda table: table.alter.drop_feature(name, truncate_history=truncate)


def _cluster_by(reader: Reader) -> _Change:
    """CLUSTER BY (name, ...) | NONE"""
    columns = (
        [] if reader.accept("NONE") else [path_text(column) for column in reader.bracketed(reader.dotted)]
    )
    return lambda table: table.alter.cluster_by(*columns)


def _refused(message: str) -> Callable[[Reader], _Change]:
    def refuse(reader: Reader) -> _Change:
        raise UnsupportedFeatureError(message, expected="an action of Delta tables")

    return refuse


_PARTITIONS = _refused("ALTER TABLE of single partitions: the files of a Delta table say which there are")
_ACTIONS: tuple[tuple[tuple[str, ...], Callable[[Reader], _Change]], ...] = (
    (("ADD", "CONSTRAINT"), _add_constraint),
    (("ADD", "COLUMNS"), _add_columns),
    (("ADD", "COLUMN"), _add_columns),
    (("REPLACE", "COLUMNS"), _replace_columns),
    (("RENAME", "COLUMN"), _rename_column),
    (("DROP", "FEATURE"), _drop_feature),
    (("ALTER", "COLUMN"), _alter_column),
    (("ALTER",), _alter_column),
    (("CHANGE", "COLUMN"), _alter_column),
    (("CHANGE",), _alter_column),
    (("CLUSTER", "BY"), _cluster_by),
    (("SET", "LOCATION"), _refused("ALTER TABLE SET LOCATION")),
    (("SET", "SERDE"), _refused("ALTER TABLE SET SERDE")),
    (("SET", "SERDEPROPERTIES"), _refused("ALTER TABLE SET SERDEPROPERTIES")),
    (("RECOVER", "PARTITIONS"), _refused("ALTER TABLE RECOVER PARTITIONS")),
    *((words, _PARTITIONS) for words in (("ADD", "PARTITION"), ("DROP", "PARTITION"), ("PARTITION",))),
    *(
        (words, _PARTITIONS)
        for words in (("ADD", "IF", "NOT", "EXISTS", "PARTITION"), ("DROP", "IF", "EXISTS", "PARTITION"))
    ),
)
_ACTIONS_OF_HOST: tuple[tuple[tuple[str, ...], Callable[[Tables, Reader], _Change]], ...] = (
    (("DROP", "COLUMNS"), _drop_columns),
    (("DROP", "COLUMN"), _drop_columns),
    (("DROP", "CONSTRAINT"), _drop_constraint),
    (("SET", "TBLPROPERTIES"), _set_properties),
    (("UNSET", "TBLPROPERTIES"), _unset_properties),
)
"""Actions for which a host has rules, which `Tables` has."""
