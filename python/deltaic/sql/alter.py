"""ALTER TABLE: each action to the call of `table.alter` that does it."""

from __future__ import annotations

from collections.abc import Callable

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.schema import path_text
from deltaic.scan.rows import Rows
from deltaic.sql.create import read_properties, read_property_name
from deltaic.sql.names import Tables, read_name
from deltaic.sql.results import nothing
from deltaic.sql.tokens import Reader, string_value
from deltaic.table import DeltaTable


def alter(reader: Reader, tables: Tables) -> Rows:
    """ALTER TABLE name action"""
    reader.expect("ALTER", "TABLE")
    name = read_name(reader)
    for words, action in _ACTIONS:
        if reader.accept(*words):
            change = action(reader)
            reader.end()
            change(tables.table(name))
            return nothing()
    reader.fail("an action of ALTER TABLE")


_Change = Callable[[DeltaTable], object]


def _add_columns(reader: Reader) -> _Change:
    """ADD COLUMN[S] [(] name type [NOT NULL] [COMMENT text] [FIRST | AFTER name], ... [)]"""
    bracketed = reader.at("(")
    definitions = reader.bracketed(lambda: _definition(reader)) if bracketed else reader.listed(lambda: _definition(reader))

    def change(table: DeltaTable) -> None:
        nested = [path for path, _ in definitions if len(path) > 1]
        if nested:
            raise UnsupportedFeatureError(
                "a nested field in ADD COLUMNS",
                found=path_text(nested[0]),
                expected="table.alter.add_columns with the struct that gets the field",
            )
        table.alter.add_columns(", ".join(f"{path_text(path)} {rest}" for path, rest in definitions))

    return change


def _definition(reader: Reader) -> tuple[tuple[str, ...], str]:
    path = reader.dotted()
    text = reader.slice(",", "FIRST", "AFTER", expected="a type")
    if reader.at("FIRST") or reader.at("AFTER"):
        raise UnsupportedFeatureError("the place of a new column", found=reader.rest("a place"), expected="new columns at the end")
    return path, text


def _rename_column(reader: Reader) -> _Change:
    """RENAME COLUMN name TO name"""
    old = path_text(reader.dotted())
    reader.expect("TO")
    new = reader.name()
    return lambda table: table.alter.rename_column(old, new)


def _drop_columns(reader: Reader) -> _Change:
    """DROP COLUMN[S] [IF EXISTS] name, ... with or without brackets"""
    if_exists = reader.accept("IF", "EXISTS")
    paths = reader.bracketed(reader.dotted) if reader.at("(") else reader.listed(reader.dotted)

    def change(table: DeltaTable) -> None:
        wanted = [path for path in paths if not if_exists or _has(table, path)]
        if wanted:
            table.alter.drop_columns(*(path_text(path) for path in wanted))

    return change


def _has(table: DeltaTable, path: tuple[str, ...]) -> bool:
    try:
        table.schema.find(path)
    except InvalidArgumentError:
        return False
    return True


def _change_column(reader: Reader) -> _Change:
    """ALTER | CHANGE [COLUMN] name TYPE type | COMMENT text | DROP NOT NULL | SET NOT NULL | SET DEFAULT expression | DROP DEFAULT"""
    name = path_text(reader.dotted())
    if reader.accept("TYPE"):
        data_type = reader.rest("a type")
        return lambda table: table.alter.change_column(name, type=data_type)
    if reader.accept("COMMENT"):
        comment = reader.string()
        return lambda table: table.alter.change_column(name, comment=comment)
    if reader.accept("DROP", "NOT", "NULL"):
        return lambda table: table.alter.change_column(name, nullable=True)
    if reader.accept("SET", "NOT", "NULL"):
        return lambda table: table.alter.change_column(name, nullable=False)
    if reader.accept("SET", "DEFAULT"):
        default = reader.rest("an expression")
        return lambda table: table.alter.change_column(name, default=default)
    if reader.accept("DROP", "DEFAULT"):
        return lambda table: table.alter.change_column(name, default="NULL")
    if not reader.done and reader.tokens[reader.position].keyword in ("FIRST", "AFTER", "DROP", "SYNC"):
        raise UnsupportedFeatureError("this change of a column", found=reader.rest("a change"))
    reader.fail("TYPE, COMMENT, DROP NOT NULL, SET NOT NULL, SET DEFAULT or DROP DEFAULT")


def _set_properties(reader: Reader) -> _Change:
    """SET TBLPROPERTIES ('key' = 'value', ...)"""
    properties = read_properties(reader)
    return lambda table: table.alter.set_properties(properties)


def _unset_properties(reader: Reader) -> _Change:
    """UNSET TBLPROPERTIES [IF EXISTS] ('key', ...)"""
    if_exists = reader.accept("IF", "EXISTS")
    names = reader.bracketed(lambda: read_property_name(reader))
    return lambda table: table.alter.unset_properties(*names, if_exists=if_exists)


def _add_constraint(reader: Reader) -> _Change:
    """ADD CONSTRAINT name CHECK (condition)"""
    name = reader.name()
    reader.expect("CHECK")
    condition = reader.inside("a condition")
    return lambda table: table.alter.add_constraints({name: condition})


def _drop_constraint(reader: Reader) -> _Change:
    """DROP CONSTRAINT [IF EXISTS] name"""
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.name()
    return lambda table: table.alter.drop_constraint(name, if_exists=if_exists)


def _drop_feature(reader: Reader) -> _Change:
    """DROP FEATURE name [TRUNCATE HISTORY]"""
    token = reader.tokens[reader.position] if not reader.done else reader.fail("a feature")
    name = string_value(token.text) if token.kind == "string" else token.text
    reader.position += 1
    truncate = reader.accept("TRUNCATE", "HISTORY")
    return lambda table: table.alter.drop_feature(name, truncate_history=truncate)


def _cluster_by(reader: Reader) -> _Change:
    """CLUSTER BY (name, ...) | NONE"""
    columns = [] if reader.accept("NONE") else [path_text(column) for column in reader.bracketed(reader.dotted)]
    return lambda table: table.alter.cluster_by(*columns)


_ACTIONS: tuple[tuple[tuple[str, ...], Callable[[Reader], _Change]], ...] = (
    (("ADD", "CONSTRAINT"), _add_constraint),
    (("ADD", "COLUMNS"), _add_columns),
    (("ADD", "COLUMN"), _add_columns),
    (("RENAME", "COLUMN"), _rename_column),
    (("DROP", "COLUMNS"), _drop_columns),
    (("DROP", "COLUMN"), _drop_columns),
    (("DROP", "CONSTRAINT"), _drop_constraint),
    (("DROP", "FEATURE"), _drop_feature),
    (("ALTER", "COLUMN"), _change_column),
    (("CHANGE", "COLUMN"), _change_column),
    (("SET", "TBLPROPERTIES"), _set_properties),
    (("UNSET", "TBLPROPERTIES"), _unset_properties),
    (("CLUSTER", "BY"), _cluster_by),
)
