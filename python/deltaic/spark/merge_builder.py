"""`DeltaMergeBuilder` of delta-spark's Python API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltaic.commands.merge import Merge
from deltaic.spark.column_text import Origins
from deltaic.spark.expressions import assignments, condition_text
from deltaic.spark.raising import methods_raise_as_spark
from deltaic.spark.results import frame_of
from deltaic.sql.merge import merge_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Clause = Callable[[Merge], Merge]


@dataclass(frozen=True)
class MergeStart:
    """A merge without clauses: `begin` makes it, with or without schema evolution. `origins`: of columns of the two DataFrames."""

    spark: Any
    begin: Callable[[bool], Merge]
    clauses: tuple[Clause, ...] = ()
    evolution: bool = False
    origins: Origins | None = None


@methods_raise_as_spark
class DeltaMergeBuilder:
    """A merge in the making; each call gives a new one. Conditions and values are text in Spark's SQL or Columns."""

    def __init__(self, start: MergeStart) -> None:
        self._start = start

    def whenMatchedUpdate(self, condition: Any = None, set: Any = None) -> DeltaMergeBuilder:
        """Updates the matched row by `set` (column to expression) where the condition is true."""
        values, where = assignments(set, "'set' in whenMatchedUpdate", self._start.origins), self._condition(condition)
        return self._with(lambda merge: merge.when_matched_update(values, where))

    def whenMatchedUpdateAll(self, condition: Any = None) -> DeltaMergeBuilder:
        """Sets every column to the source's of the same name."""
        where = self._condition(condition)
        return self._with(lambda merge: merge.when_matched_update_all(where))

    def whenMatchedDelete(self, condition: Any = None) -> DeltaMergeBuilder:
        """Deletes the matched row."""
        where = self._condition(condition)
        return self._with(lambda merge: merge.when_matched_delete(where))

    def whenNotMatchedInsert(self, condition: Any = None, values: Any = None) -> DeltaMergeBuilder:
        """Inserts a row of `values` for a source row without a match."""
        found, where = assignments(values, "'values' in whenNotMatchedInsert", self._start.origins), self._condition(condition)
        return self._with(lambda merge: merge.when_not_matched_insert(found, where))

    def whenNotMatchedInsertAll(self, condition: Any = None) -> DeltaMergeBuilder:
        """Inserts the source row."""
        where = self._condition(condition)
        return self._with(lambda merge: merge.when_not_matched_insert_all(where))

    def whenNotMatchedBySourceUpdate(self, condition: Any = None, set: Any = None) -> DeltaMergeBuilder:
        """Updates a target row that no source row matches."""
        values, where = assignments(set, "'set' in whenNotMatchedBySourceUpdate", self._start.origins), self._condition(condition)
        return self._with(lambda merge: merge.when_not_matched_by_source_update(values, where))

    def whenNotMatchedBySourceDelete(self, condition: Any = None) -> DeltaMergeBuilder:
        """Deletes a target row that no source row matches."""
        where = self._condition(condition)
        return self._with(lambda merge: merge.when_not_matched_by_source_delete(where))

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """The source's new columns become columns of the table."""
        return DeltaMergeBuilder(replace(self._start, evolution=True))

    def execute(self) -> DataFrame:
        """Runs it -> num_affected_rows, num_updated_rows, num_deleted_rows, num_inserted_rows."""
        merge = self._start.begin(self._start.evolution)
        for clause in self._start.clauses:
            merge = clause(merge)
        return frame_of(self._start.spark, merge_rows(merge.execute()))

    def _condition(self, value: Any) -> str | None:
        return condition_text(value, origins=self._start.origins)

    def _with(self, clause: Clause) -> DeltaMergeBuilder:
        return DeltaMergeBuilder(replace(self._start, clauses=(*self._start.clauses, clause)))
