"""Queries over Delta tables of any version and over data that was handed in. Lazy: each exit of the rows runs them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltaic import configuration
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.schema import Schema
from deltaic.scan.rows import Rows
from deltaic.sql.names import Name, Tables
from deltaic.sql.tokens import Reader
from deltaic.table import DeltaTable

if TYPE_CHECKING:
    from sqlglot import exp

    from deltaic.relation.plan import Data, Scan


def select(reader: Reader, tables: Tables) -> Rows:
    """SELECT | WITH | VALUES | FROM | TABLE | (query)"""
    return query(reader.rest("a query"), tables)


def query(text: str, tables: Tables) -> Rows:
    """The rows of a query, not yet computed. Its tables are opened here, so it sees them as they are now."""
    from deltaic.engine.local import LocalEngine
    from deltaic.relation.expression import parse_statement
    from deltaic.relation.query import translate_query

    reader = Reader(text)
    if reader.accept("TABLE"):
        text = f"SELECT * FROM {reader.rest('a table')}"
    tree = parse_statement(text)
    leaves = _bind(tree, tables, LocalEngine())
    translated = translate_query(
        tree, {name: leaf.schema for name, leaf in leaves.items()}, time_zone=configuration.current().time_zone or "UTC"
    )
    engine = LocalEngine()
    relation = engine.query(translated, leaves)
    return Rows(relation.schema, lambda: engine.to_arrow(relation), lambda: engine.to_table(relation))


def renamed(rows: Rows, names: Sequence[str]) -> Rows:
    """The same columns under other names, by position."""
    fields = [field.with_(name=name) for field, name in zip(rows.schema, names, strict=True)]

    def opened() -> pa.RecordBatchReader:
        reader = rows.to_reader()
        schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, names, strict=True)])
        return pa.RecordBatchReader.from_batches(schema, (batch.rename_columns(list(names)) for batch in reader))

    return Rows(Schema(fields), opened)


def _bind(tree: exp.Expr, tables: Tables, engine: Any) -> dict[str, Scan | Data]:
    """Gives each table of the tree a name of its own and the rows behind it. Names that WITH defines are left alone."""
    from sqlglot import exp

    leaves: dict[str, Scan | Data] = {}
    for node in list(tree.find_all(exp.Table)):
        if not isinstance(node.this, exp.Identifier) or _is_defined(node):
            continue
        if (alias := node.args.get("alias")) is not None and not isinstance(alias.this, (exp.Identifier, type(None))):
            raise UnsupportedFeatureError("what follows a table is no alias", found=alias.this.sql(dialect="databricks"))
        name = _name(node)
        if node.args.get("joins") and not isinstance(node.parent, (exp.From, exp.Join)):
            raise UnsupportedFeatureError("a join in this place", found=str(name))
        leaf_name = f"__deltaic_table_{len(leaves)}"
        leaves[leaf_name] = _leaf(tables.data(name), leaf_name, engine)
        if not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(name.parts[-1], quoted=True)))
        for part in ("db", "catalog", "version", "when"):
            node.set(part, None)
        node.set("this", exp.to_identifier(leaf_name, quoted=True))
    return leaves


def _leaf(data: Any, name: str, engine: Any) -> Scan | Data:
    if isinstance(data, DeltaTable):
        from deltaic.scan.scan import plan as plan_scan

        snapshot = data._snapshot
        return plan_scan(snapshot, engine, None).scan(snapshot.schema.names, alias=name)
    leaf: Data = engine.source(data, name)
    return leaf


def _is_defined(node: exp.Table) -> bool:
    """Whether a WITH in sight defines this name: one of the same query or of a query around it, and before it where the table stands in
    a definition itself."""
    from sqlglot import exp

    if node.args.get("db") or node.args.get("version"):
        return False
    wanted = node.name.lower()
    inner: exp.Expr = node
    scope = node.parent
    while scope is not None:
        defined = scope.args.get("with_") or scope.args.get("with")
        if isinstance(scope, exp.With):
            before = list(takewhile(lambda item, here=inner: item is not here, scope.expressions))  # type: ignore[misc]
            if any(item.alias.lower() == wanted for item in before):
                return True
        elif isinstance(defined, exp.With) and inner is not defined and any(item.alias.lower() == wanted for item in defined.expressions):
            return True
        inner, scope = scope, scope.parent
    return False


def _name(node: exp.Table) -> Name:
    from sqlglot import exp

    parts = tuple(part.name for part in node.parts)
    version = node.args.get("version") or node.args.get("when")
    if version is None:
        return Name(parts)
    moment = version.expression
    if version.args.get("kind") != "AS OF" or not isinstance(moment, exp.Expr):
        raise UnsupportedFeatureError(
            "this kind of time travel", found=version.sql(dialect="databricks"), expected="VERSION | TIMESTAMP AS OF"
        )
    while isinstance(moment, (exp.Paren, exp.Cast)):
        moment = moment.this
    if not isinstance(moment, exp.Literal):
        raise UnsupportedFeatureError("a version or time that is computed", found=version.sql(dialect="databricks"), expected="a literal")
    if str(version.name).upper() in ("TIMESTAMP", "SYSTEM_TIME"):
        return Name(parts, timestamp=moment.name)
    if not moment.name.isdecimal():
        raise InvalidArgumentError("not a version of a table", found=moment.name, expected="a whole number")
    return Name(parts, version=int(moment.name))
