"""Parses the clauses of CREATE VIEW, and names the columns of its query by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deltaic.sql.create import read_properties
from deltaic.sql.tokens import Reader
from deltaic.sql_text import quote_name


@dataclass(frozen=True)
class ViewClauses:
    """The clauses of CREATE VIEW between its name and AS. `columns`: their names, empty for those of the
    query. `comments`: texts of columns by name. `comment`: that of the view."""

    columns: tuple[str, ...] = ()
    comments: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def read(reader: Reader) -> ViewClauses:
        """Reads [(name [COMMENT text], ...)] [COMMENT text] [TBLPROPERTIES ('key' = 'value', ...)]."""
        given = reader.bracketed(lambda: (reader.name(), _comment(reader))) if reader.at("(") else []
        comment, properties = _comment(reader), {}
        if reader.accept("TBLPROPERTIES"):
            properties = read_properties(reader)
        return ViewClauses(
            columns=tuple(name for name, _ in given),
            comments={name: text for name, text in given if text is not None},
            comment=_comment(reader) if comment is None else comment,
            properties=properties,
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
