"""Finds the tables that a query names, and gives each a name of its own in DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeVar

from sqlglot import exp

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.sql_text import spark_name

T = TypeVar("T")


CHANGE_FUNCTIONS = ("table_changes", "table_changes_by_path")
"""Table functions that return the change data feed of a table, given by name, or by path."""


@dataclass(frozen=True)
class ChangeRange:
    """The range of the change data feed that a table function returns: each end is a version (int), or the
    SQL expression of a version or timestamp (str)."""

    start: int | str
    end: int | str | None = None
    by_path: bool = False


@dataclass(frozen=True)
class TableName:
    """A table in a query: the parts of its name, and the version or timestamp to read. A timestamp is an SQL
    expression, such as `date'2026-01-31'`. `changes`: the query reads the table's change data feed; `parts`
    then has one item, the text in the call of the table function."""

    parts: tuple[str, ...]
    version: int | None = None
    timestamp: str | None = None
    changes: ChangeRange | None = None

    def __str__(self) -> str:
        return ".".join(map(spark_name, self.parts))


def bind(
    tree: exp.Expr,
    leaf_of: Callable[[TableName, str], T],
    given: Sequence[str] = (),
    prefix: str = "__deltaic_table_",
) -> dict[str, T]:
    """Renames each table of the tree to `prefix` and a number; returns the new name -> the result of
    `leaf_of` for the table. Names that WITH defines, and those in `given`, stay as they are."""
    leaves: dict[str, T] = {}
    for node in list(tree.find_all(exp.Table)):
        changes = _changes(node)
        if changes is None and (
            not isinstance(node.this, exp.Identifier) or node.name in given or _is_defined(node)
        ):
            continue
        if (alias := node.args.get("alias")) is not None and not isinstance(
            alias.this, (exp.Identifier, type(None))
        ):
            raise UnsupportedFeatureError(
                "what follows a table is no alias", found=alias.this.sql(dialect="databricks")
            )
        name = _name(node) if changes is None else changes
        if node.args.get("joins") and not isinstance(node.parent, (exp.From, exp.Join, exp.Subquery)):
            raise UnsupportedFeatureError("a join in this place is not supported", found=str(name))
        leaf_name = f"{prefix}{len(leaves)}"
        leaves[leaf_name] = leaf_of(name, leaf_name)
        if not node.alias:
            shown = name.parts[-1] if changes is None else node.this.name
            node.set("alias", exp.TableAlias(this=exp.to_identifier(shown, quoted=True)))
        for part in ("db", "catalog", "version", "when"):
            node.set(part, None)
        node.set("this", exp.to_identifier(leaf_name, quoted=True))
        node.meta["source"] = repr(name)
    return leaves


def mentioned_names(tree: exp.Expr) -> frozenset[str] | None:
    """Returns all names in a query, in lower case, which include those of all columns that it reads. Returns
    None if the query may read columns without naming them: by a star, NATURAL join, PIVOT, the pipe syntax,
    or `TABLE t`."""
    implied: tuple[type[exp.Expr], ...] = (exp.Star, exp.Pivot, exp.Table, exp.Join, exp.Select)
    for node in tree.find_all(*implied):
        above = node.parent
        if isinstance(node, exp.Star):
            counted = isinstance(above, exp.Anonymous) and above.name.lower() == "count"
            only_exists = isinstance(above, exp.Select) and isinstance(above.parent, exp.Exists)
            known = counted or only_exists
        elif isinstance(node, exp.Table):
            known = isinstance(above, (exp.From, exp.Join))
        elif isinstance(node, exp.Join):
            known = not node.args.get("method")
        else:
            known = isinstance(node, exp.Select) and bool(node.expressions) and "operators" not in node.meta
        if not known:
            return None
    return frozenset(node.name.lower() for node in tree.find_all(exp.Identifier))


def _changes(node: exp.Table) -> TableName | None:
    """Returns the table and range in a call of `CHANGE_FUNCTIONS`, or None for any other table."""
    call = node.this
    if not isinstance(call, exp.Anonymous) or (function := call.name.lower()) not in CHANGE_FUNCTIONS:
        return None
    form = f"{function}(name, start [, end])"
    if node.args.get("db") or node.args.get("version") or node.args.get("when"):
        raise InvalidArgumentError(
            f"the table function {function} has no schema before its name and no version after it",
            found=node.sql(dialect="databricks")[:80],
            expected=form,
        )
    if not 2 <= len(call.expressions) <= 3:
        raise InvalidArgumentError(
            f"the table function {function}", found=f"{len(call.expressions)} arguments", expected=form
        )
    name, *ends = (argument.unnest() for argument in call.expressions)
    if not isinstance(name, exp.Literal) or not name.is_string:
        raise InvalidArgumentError(
            f"the table function {function} with a name that is no text",
            found=name.sql(dialect="databricks")[:80],
            expected=form,
        )
    start, end = _end(ends[0]), _end(ends[1]) if len(ends) == 2 else None
    return TableName((str(name.name),), changes=ChangeRange(start, end, function == CHANGE_FUNCTIONS[1]))


def _end(node: exp.Expr) -> int | str:
    is_version = isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()
    return int(node.name) if is_version else _timestamp(node)


def _timestamp(node: exp.Expr) -> str:
    """The text of an expression that is evaluated without a table."""
    if node.find(exp.Query):
        raise UnsupportedFeatureError(
            "a subquery in a timestamp is not supported", found=node.sql(dialect="databricks")[:80]
        )
    return str(node.sql(dialect="databricks"))


def _is_defined(node: exp.Table) -> bool:
    """True if a WITH of this query or of an outer one defines the name of this table. Within a definition of
    WITH, only the definitions before it count."""
    if node.args.get("db") or node.args.get("version"):
        return False
    name = node.name.lower()
    inner: exp.Expr = node
    scope = node.parent
    while scope is not None:
        defined = scope.args.get("with_") or scope.args.get("with")
        if isinstance(scope, exp.With):
            before = list(
                takewhile(lambda item, here=inner: item is not here, scope.expressions)  # type: ignore[misc]
            )
            itself = [inner] if scope.args.get("recursive") else []
            if any(item.alias.lower() == name for item in [*before, *itself]):
                return True
        elif (
            isinstance(defined, exp.With)
            and inner is not defined
            and any(item.alias.lower() == name for item in defined.expressions)
        ):
            return True
        inner, scope = scope, scope.parent
    return False


def _name(node: exp.Table) -> TableName:
    parts = tuple(part.name for part in node.parts)
    version = node.args.get("version") or node.args.get("when")
    if version is None:
        return TableName(parts)
    moment = version.expression
    if version.args.get("kind") != "AS OF" or not isinstance(moment, exp.Expr):
        raise UnsupportedFeatureError(
            "this kind of time travel is not supported",
            found=version.sql(dialect="databricks"),
            expected="VERSION | TIMESTAMP AS OF",
        )
    if str(version.name).upper() in ("TIMESTAMP", "SYSTEM_TIME"):
        return TableName(parts, timestamp=_timestamp(moment))
    moment = moment.unnest()
    if not isinstance(moment, exp.Literal) or not moment.name.isdecimal():
        raise InvalidArgumentError(
            "not a version of a table", found=moment.sql(dialect="databricks"), expected="a whole number"
        )
    return TableName(parts, version=int(moment.name))
