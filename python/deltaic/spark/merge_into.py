"""`df.mergeInto(table, condition)` for Delta tables: PySpark's MERGE API for DataFrames, with the method
names of `MergeIntoWriter`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from deltaic.engine.spark.engine import enabled_as
from deltaic.engine.spark.native.column_text import Origins
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.spark import patches
from deltaic.spark.expressions import assignments, condition_text
from deltaic.spark.merge_builder import DeltaMergeBuilder
from deltaic.spark.raising import methods_raise_as_spark, raises_as_spark
from deltaic.spark.tables import DeltaTable, alias_of
from deltaic.spark.views import path_or_named
from deltaic.sql.tokens import requalified

_WRAPPED = "_deltaic_merge_into"
_TARGET = "__deltaic_t"


def wrap(frames: Any) -> None:
    """Replaces `mergeInto` of the session's DataFrame class, `frames`. A second call changes nothing."""
    own = getattr(frames, "mergeInto", None)
    if own is None or hasattr(own, _WRAPPED):
        return

    @raises_as_spark()
    @functools.wraps(own)
    def merged_into(self: Any, table: str, condition: Any) -> Any:
        path = path_or_named(self.sparkSession, table) if enabled_as(self.sparkSession) is not None else None
        return own(self, table, condition) if path is None else PathMerge(self, path, condition)

    merged_into.__dict__[_WRAPPED] = True
    patches.replace(frames, "mergeInto", merged_into)


@methods_raise_as_spark
class PathMerge:
    """Builds a MERGE into a Delta table; each action returns this object. Columns of the table may be
    qualified by its path: delta.`path`.x or `path`.x."""

    def __init__(self, frame: Any, path: str, condition: Any) -> None:
        self._names = dict.fromkeys((("delta", path), ("deltaic", path), (path,)), f"{_TARGET}.")
        source = alias_of(frame) or "__deltaic_s"
        self._origins = Origins(lambda: [(frame, source)], frame.sparkSession)
        table = DeltaTable.forPath(frame.sparkSession, path).alias(_TARGET)
        self._builder: DeltaMergeBuilder = table.merge(frame, self.text(condition))

    def text(self, condition: Any) -> str | None:
        """Returns a condition as text in which an alias replaces the table's path: delta.`path`.x becomes
        __deltaic_t.x."""
        condition = condition_text(condition, origins=self._origins)
        return None if condition is None else requalified(condition, self._names)

    def values(self, given: Any, what: str) -> dict[str, str]:
        """Returns assignments as text, with paths replaced as by `text`."""
        if not isinstance(given, Mapping) or not given:
            raise InvalidArgumentError(f"{what} needs columns and their values", found=repr(given)[:80])
        texts = assignments(given, what, self._origins)
        return {requalified(name, self._names): requalified(text, self._names) for name, text in texts.items()}

    def add(self, clause: str, *arguments: Any) -> PathMerge:
        """Adds a clause: `clause` is a method of `DeltaMergeBuilder`, called with `arguments`."""
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
        """Adds the DataFrame's new columns to the table."""
        return self.add("withSchemaEvolution")

    def merge(self) -> None:
        """Runs the MERGE as one commit."""
        self._builder.execute()


class _Actions:
    def __init__(self, merge: PathMerge, condition: str | None) -> None:
        self._merge, self._condition = merge, condition


@methods_raise_as_spark
class WhenMatched(_Actions):
    """Actions for a row of the table that a row of the DataFrame matches."""

    def updateAll(self) -> PathMerge:
        """Sets every column to the DataFrame's column of the same name."""
        return self._merge.add("whenMatchedUpdateAll", self._condition)

    def update(self, assignments: Mapping[str, Any]) -> PathMerge:
        """Sets columns: a dict from column to its new value."""
        return self._merge.add("whenMatchedUpdate", self._condition, self._merge.values(assignments, "update"))

    def delete(self) -> PathMerge:
        """Deletes the row."""
        return self._merge.add("whenMatchedDelete", self._condition)


@methods_raise_as_spark
class WhenNotMatched(_Actions):
    """Actions for a row of the DataFrame that matches no row of the table."""

    def insertAll(self) -> PathMerge:
        """Inserts the row."""
        return self._merge.add("whenNotMatchedInsertAll", self._condition)

    def insert(self, assignments: Mapping[str, Any]) -> PathMerge:
        """Inserts a row: a dict from column to its value."""
        return self._merge.add("whenNotMatchedInsert", self._condition, self._merge.values(assignments, "insert"))


@methods_raise_as_spark
class WhenNotMatchedBySource(_Actions):
    """Actions for a row of the table that no row of the DataFrame matches."""

    def updateAll(self) -> PathMerge:
        """Raises UnsupportedFeatureError: no row of the DataFrame has values for these rows."""
        raise UnsupportedFeatureError("whenNotMatchedBySource().updateAll()", expected="update() with values")

    def update(self, assignments: Mapping[str, Any]) -> PathMerge:
        """Sets columns: a dict from column to its new value."""
        return self._merge.add("whenNotMatchedBySourceUpdate", self._condition, self._merge.values(assignments, "update"))

    def delete(self) -> PathMerge:
        """Deletes the row."""
        return self._merge.add("whenNotMatchedBySourceDelete", self._condition)
