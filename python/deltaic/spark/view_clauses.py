"""Parses the clauses of CREATE VIEW, and names the columns of its query by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.sql.create import read_properties
from deltaic.sql.tokens import Reader
from deltaic.sql_text import quote_name

_MODES = (("BINDING",), ("COMPENSATION",), ("TYPE", "EVOLUTION"), ("EVOLUTION",))


@dataclass(frozen=True)
class ViewClauses:
    """The clauses of CREATE VIEW between its name and AS. `columns`: names of the view's columns; empty if
    they are those of the query. `comments`: the comment of each column that has one, by name. `comment`: the
    view's comment. `schema_mode`: what happens to the view's columns when those of its query change.
    `collation`: the default collation of its text columns."""

    columns: tuple[str, ...] = ()
    comments: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    schema_mode: str | None = None
    collation: str | None = None

    @staticmethod
    def read(reader: Reader) -> ViewClauses:
        """Reads [(name [COMMENT text], ...)] and then, in any order, [COMMENT text] [TBLPROPERTIES ('key' =
        'value', ...)] [WITH SCHEMA mode] [DEFAULT COLLATION name]."""
        given = reader.bracketed(lambda: (reader.name(), _comment(reader))) if reader.at("(") else []
        clauses = ViewClauses(
            columns=tuple(name for name, _ in given),
            comments={name: text for name, text in given if text is not None},
        )
        seen: set[str] = set()
        while not reader.done and (first := reader.tokens[reader.position].keyword) != "AS":
            if first in seen:
                raise InvalidArgumentError("[DUPLICATE_CLAUSES] a clause comes twice", found=first)
            seen.add(first)
            if reader.at("COMMENT"):
                clauses = replace(clauses, comment=_comment(reader))
            elif reader.accept("TBLPROPERTIES"):
                clauses = replace(clauses, properties=read_properties(reader))
            elif mode := next((mode for mode in _MODES if reader.accept("WITH", "SCHEMA", *mode)), None):
                clauses = replace(clauses, schema_mode=" ".join(mode))
            elif reader.accept("DEFAULT", "COLLATION"):
                clauses = replace(clauses, collation=".".join(reader.dotted()))
            else:
                break
        if clauses.columns and clauses.schema_mode == "EVOLUTION":  # columns that are named keep their names
            return replace(clauses, schema_mode="TYPE EVOLUTION")
        return clauses

    def refuse_collation(self) -> None:
        """Raises UnsupportedFeatureError for DEFAULT COLLATION, which is the type of texts in the query."""
        if self.collation is not None:
            raise UnsupportedFeatureError(
                "DEFAULT COLLATION of a view over Delta tables is not supported",
                found=self.collation,
                expected="COLLATE on the columns of the view's query",
            )

    def of(self, frame: Any) -> Any:
        """Returns the DataFrame of the query with the names and comments of the view's columns."""
        named = frame.toDF(*self.columns) if self.columns else frame
        if not self.comments:
            return named
        from pyspark.sql import functions as F

        metadata = {
            column.name: {**column.metadata, "comment": self.comments[column.name]}
            if column.name in self.comments
            else column.metadata
            for column in named.schema
        }
        return named.select(
            *(F.col(quote_name(name)).alias(name, metadata=kept) for name, kept in metadata.items())
        )


def _comment(reader: Reader) -> str | None:
    return reader.string() if reader.accept("COMMENT") else None
