"""`df.mergeInto(table, condition)` of a Delta table by path: PySpark's own MERGE of a DataFrame, with the names of `MergeIntoWriter`."""

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
    """`frames`: the session's class of DataFrames. Idempotent."""
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
    """A merge in the making; each action gives back the same object. The table's columns may be qualified: delta.`path`.x,
    `path`.x."""

    def __init__(self, frame: Any, path: str, condition: Any) -> None:
        self._names = dict.fromkeys((("delta", path), ("deltaic", path), (path,)), f"{_TARGET}.")
        source = alias_of(frame) or "__deltaic_s"
        self._origins = Origins(lambda: [(frame, source)], frame.sparkSession)
        table = DeltaTable.forPath(frame.sparkSession, path).alias(_TARGET)
        self._builder: DeltaMergeBuilder = table.merge(frame, self.text(condition))

    def text(self, condition: Any) -> str | None:
        """A condition, with the table's columns under the alias of this merge."""
        found = condition_text(condition, origins=self._origins)
        return None if found is None else requalified(found, self._names)

    def values(self, given: Any, what: str) -> dict[str, str]:
        """Assignments, likewise."""
        if not isinstance(given, Mapping) or not given:
            raise InvalidArgumentError(f"{what} needs columns and their values", found=repr(given)[:80])
        found = assignments(given, what, self._origins)
        return {requalified(name, self._names): requalified(text, self._names) for name, text in found.items()}

    def add(self, clause: str, *arguments: Any) -> PathMerge:
        """One more clause: a method of `DeltaMergeBuilder` with its arguments."""
        self._builder = getattr(self._builder, clause)(*arguments)
        return self

    def whenMatched(self, condition: Any = None) -> WhenMatched:
        """Actions for a row of the table that a row of the DataFrame matches."""
        return WhenMatched(self, self.text(condition))

    def whenNotMatched(self, condition: Any = None) -> WhenNotMatched:
        """Actions for a row of the DataFrame that matches none."""
        return WhenNotMatched(self, self.text(condition))

    def whenNotMatchedBySource(self, condition: Any = None) -> WhenNotMatchedBySource:
        """Actions for a row of the table that no row of the DataFrame matches."""
        return WhenNotMatchedBySource(self, self.text(condition))

    def withSchemaEvolution(self) -> PathMerge:
        """The DataFrame's new columns become columns of the table."""
        return self.add("withSchemaEvolution")

    def merge(self) -> None:
        """Runs it, as one commit."""
        self._builder.execute()


class _Actions:
    def __init__(self, merge: PathMerge, condition: str | None) -> None:
        self._merge, self._condition = merge, condition


@methods_raise_as_spark
class WhenMatched(_Actions):
    """Actions for a row of the table that a row of the DataFrame matches."""

    def updateAll(self) -> PathMerge:
        """Sets every column to the DataFrame's of the same name."""
        return self._merge.add("whenMatchedUpdateAll", self._condition)

    def update(self, assignments: Mapping[str, Any]) -> PathMerge:
        """Sets these columns."""
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
        """Inserts a row of these values."""
        return self._merge.add("whenNotMatchedInsert", self._condition, self._merge.values(assignments, "insert"))


@methods_raise_as_spark
class WhenNotMatchedBySource(_Actions):
    """Actions for a row of the table that no row of the DataFrame matches."""

    def updateAll(self) -> PathMerge:
        """There is no row to take values from."""
        raise UnsupportedFeatureError("whenNotMatchedBySource().updateAll()", expected="update() with values")

    def update(self, assignments: Mapping[str, Any]) -> PathMerge:
        """Sets these columns."""
        return self._merge.add("whenNotMatchedBySourceUpdate", self._condition, self._merge.values(assignments, "update"))

    def delete(self) -> PathMerge:
        """Deletes the row."""
        return self._merge.add("whenNotMatchedBySourceDelete", self._condition)
