"""Runs `df.mergeInto(table, condition)` of an enabled session for Delta tables. The methods are those of
PySpark's `MergeIntoWriter`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deltaic.engine.spark.engine import enabled_as
from deltaic.engine.spark.native.column_text import Origins
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.spark.aliases import alias_of
from deltaic.spark.expressions import assignments, condition_text
from deltaic.spark.merge_builder import DeltaMergeBuilder
from deltaic.spark.named_tables import SESSION_CATALOG, named_table, parsed
from deltaic.spark.raising import methods_raise_as_spark
from deltaic.spark.tables import DeltaTable
from deltaic.spark.views import path_of_view

_TARGET = "__deltaic_t"


def merge_frame(merge_into: Any, frame: Any, table: str, condition: Any) -> Any:
    """Runs `frame.mergeInto(table, condition)`. `merge_into`: Spark's own method, which runs it for tables of
    other formats."""
    name = parsed(table) if enabled_as(frame.sparkSession) is not None else None
    named = None if name is None or name.path else named_table(frame.sparkSession, name.parts)
    if name is not None and name.path:
        return PathMerge(frame, name.path, condition)
    if named is not None:
        return PathMerge(frame, named.path, condition, named.parts)
    viewed = None if name is None else path_of_view(frame.sparkSession, name)
    if name is not None and viewed is not None:
        return PathMerge(frame, viewed, condition, name.parts)
    return merge_into(frame, table, condition)


@methods_raise_as_spark
class PathMerge:
    """A MERGE of a DataFrame into a Delta table, which `df.mergeInto` returns. `merge` runs it. Columns of
    the table may be qualified by its path, delta.`path`.x or `path`.x, by its name, flights.x or
    default.flights.x, or by the name of a temporary view of the whole table. Conditions and values are SQL
    text or Columns; a condition None is always true.

    >>> deltaic.spark.enable(spark)
    >>> merge = news.mergeInto("delta.`/data/flights`", "s.id = delta.`/data/flights`.id")
    >>> merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()
    >>> table.toDF().count()
    5
    """

    def __init__(self, frame: Any, path: str, condition: Any, parts: Sequence[str] = ()) -> None:
        """`parts`: schema and name of a table, or the name of a view, by which the table was given."""
        source = alias_of(frame) or "__deltaic_s"
        if parts and source.lower() == parts[-1].lower():
            raise InvalidArgumentError(
                "source and target need different aliases",
                found=f"{source!r}, the DataFrame's alias and the table's name",
                expected="another alias of the DataFrame",
            )
        ends = [(SESSION_CATALOG, *parts), (*parts,), (*parts[-1:],)] if parts else []
        qualifiers = [("delta", path), ("deltaic", path), (path,), *ends]
        names = dict.fromkeys(qualifiers, f"{_TARGET}.")
        self._origins = Origins(lambda: [(frame, source)], frame.sparkSession, names)
        table = DeltaTable.forPath(frame.sparkSession, path).alias(_TARGET)
        self._has_clause = False
        self._builder: DeltaMergeBuilder = table.merge(frame, self.text(condition))

    def text(self, condition: Any) -> str | None:
        """Returns a condition as text in which an alias replaces the table's path: delta.`path`.x becomes
        __deltaic_t.x."""
        return condition_text(condition, origins=self._origins)

    def values(self, columns: Any, what: str) -> dict[str, str]:
        """Returns a dict from column to value as text, with paths replaced as by `text`."""
        if not isinstance(columns, Mapping):
            raise InvalidArgumentError(f"{what} needs columns and their values", found=repr(columns)[:80])
        return assignments(columns, what, self._origins)

    def add(self, clause: str, *arguments: Any) -> PathMerge:
        """Adds a clause. `clause`: name of the method of `DeltaMergeBuilder` that is called with
        `arguments`."""
        self._has_clause = self._has_clause or clause.startswith("when")
        self._builder = getattr(self._builder, clause)(*arguments)
        return self

    def whenMatched(self, condition: Any = None) -> WhenMatched:
        """Begins a clause for rows of the table that a row of the DataFrame matches."""
        return WhenMatched(self, self.text(condition))

    def whenNotMatched(self, condition: Any = None) -> WhenNotMatched:
        """Begins a clause for rows of the DataFrame that match no row of the table."""
        return WhenNotMatched(self, self.text(condition))

    def whenNotMatchedBySource(self, condition: Any = None) -> WhenNotMatchedBySource:
        """Begins a clause for rows of the table that no row of the DataFrame matches."""
        return WhenNotMatchedBySource(self, self.text(condition))

    def withSchemaEvolution(self) -> PathMerge:
        """Turns schema evolution on: columns that only the DataFrame has are added to the table."""
        return self.add("withSchemaEvolution")

    def merge(self) -> None:
        """Runs the MERGE as one commit. Raises MergeCardinalityError if two rows of the DataFrame match one
        row of the table, and the errors of concurrent commits."""
        if not self._has_clause:
            raise InvalidArgumentError(
                "[NO_MERGE_ACTION_SPECIFIED] the merge has no clause",
                expected="whenMatched().delete(), for example",
            )
        self._builder.execute()


class _Actions:
    """A WHEN of a MERGE without its action. Each action of a subclass adds the clause, and returns the
    merge."""

    def __init__(self, merge: PathMerge, condition: str | None) -> None:
        self._merge, self._condition = merge, condition


@methods_raise_as_spark
class WhenMatched(_Actions):
    """Actions for a row of the table that a row of the DataFrame matches."""

    def updateAll(self) -> PathMerge:
        """Sets every column to the DataFrame's column of the same name."""
        return self._merge.add("whenMatchedUpdateAll", self._condition)

    def update(self, assignments: Mapping[str, Any]) -> PathMerge:
        """Sets columns of the row. `assignments`: a dict from column to value; an empty one does what
        `updateAll` does, as in Spark."""
        if assignments == {}:
            return self.updateAll()
        return self._merge.add(
            "whenMatchedUpdate", self._condition, self._merge.values(assignments, "update")
        )

    def delete(self) -> PathMerge:
        """Deletes the row."""
        return self._merge.add("whenMatchedDelete", self._condition)


@methods_raise_as_spark
class WhenNotMatched(_Actions):
    """Actions for a row of the DataFrame that matches no row of the table."""

    def insertAll(self) -> PathMerge:
        """Inserts the row: each column gets the DataFrame's value of the same name."""
        return self._merge.add("whenNotMatchedInsertAll", self._condition)

    def insert(self, assignments: Mapping[str, Any]) -> PathMerge:
        """Inserts a row. `assignments`: a dict from column to value; an empty one does what `insertAll`
        does, as in Spark."""
        if assignments == {}:
            return self.insertAll()
        return self._merge.add(
            "whenNotMatchedInsert", self._condition, self._merge.values(assignments, "insert")
        )


@methods_raise_as_spark
class WhenNotMatchedBySource(_Actions):
    """Actions for a row of the table that no row of the DataFrame matches."""

    def updateAll(self) -> PathMerge:
        """Raises UnsupportedFeatureError: no row of the DataFrame has values for these rows."""
        raise UnsupportedFeatureError(
            "whenNotMatchedBySource().updateAll() is not supported", expected="update() with values"
        )

    def update(self, assignments: Mapping[str, Any]) -> PathMerge:
        """Sets columns of the row. `assignments`: a dict from column to value, with one entry or more."""
        if assignments == {}:
            return self.updateAll()
        return self._merge.add(
            "whenNotMatchedBySourceUpdate", self._condition, self._merge.values(assignments, "update")
        )

    def delete(self) -> PathMerge:
        """Deletes the row."""
        return self._merge.add("whenNotMatchedBySourceDelete", self._condition)
