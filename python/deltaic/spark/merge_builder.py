"""`DeltaMergeBuilder` of delta-spark's Python API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltaic.commands.merge import Merge
from deltaic.engine.spark.native.column_text import Origins
from deltaic.spark.expressions import assignments, condition_text
from deltaic.spark.raising import methods_raise_as_spark
from deltaic.spark.results import frame_of
from deltaic.sql.merge import merge_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Clause = Callable[[Merge], Merge]


@dataclass(frozen=True)
class MergeStart:
    """The start of a MERGE and its clauses so far. `begin` makes the merge, with schema evolution if its
    argument is True. `origins`: the DataFrames whose columns conditions and values may refer to."""

    spark: Any
    begin: Callable[[bool], Merge]
    clauses: tuple[Clause, ...] = ()
    evolution: bool = False
    origins: Origins | None = None


@methods_raise_as_spark
class DeltaMergeBuilder:
    """Builds the clauses of a MERGE; each method returns a new builder, and `execute` runs it. For each row,
    the first clause of its kind whose condition is true applies. Conditions and values are text in Spark's
    SQL dialect or Columns; None as condition is always true.

    >>> merge = table.alias("t").merge(news, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    >>> merge.execute().first().asDict()
    {'num_affected_rows': 2, 'num_updated_rows': 1, 'num_deleted_rows': 0, 'num_inserted_rows': 1}
    """

    def __init__(self, start: MergeStart) -> None:
        self._start = start

    def whenMatchedUpdate(self, condition: Any = None, set: Any = None) -> DeltaMergeBuilder:
        """Updates a matched row of the table. `set`: a dict from column to its value, which may use both
        rows.

        >>> done = merge.whenMatchedUpdate("s.delay > t.delay", {"delay": "s.delay"}).execute()
        """
        values, where = assignments(set, "'set' in whenMatchedUpdate", self._start.origins), self._condition(condition)
        return self._with(lambda merge: merge.when_matched_update(values, where))

    def whenMatchedUpdateAll(self, condition: Any = None) -> DeltaMergeBuilder:
        """Updates a matched row of the table: every column gets the source's value of the same name.

        >>> done = merge.whenMatchedUpdateAll().execute()
        """
        where = self._condition(condition)
        return self._with(lambda merge: merge.when_matched_update_all(where))

    def whenMatchedDelete(self, condition: Any = None) -> DeltaMergeBuilder:
        """Deletes a matched row of the table.

        >>> done = merge.whenMatchedDelete("s.delay IS NULL").execute()
        """
        where = self._condition(condition)
        return self._with(lambda merge: merge.when_matched_delete(where))

    def whenNotMatchedInsert(self, condition: Any = None, values: Any = None) -> DeltaMergeBuilder:
        """Inserts a row for a source row without a match. `values`: a dict from column to its value, which
        may use the source row; other columns get their default, or null.

        >>> done = merge.whenNotMatchedInsert(values={"id": "s.id", "origin": "'JFK'"}).execute()
        """
        columns, where = assignments(values, "'values' in whenNotMatchedInsert", self._start.origins), self._condition(condition)
        return self._with(lambda merge: merge.when_not_matched_insert(columns, where))

    def whenNotMatchedInsertAll(self, condition: Any = None) -> DeltaMergeBuilder:
        """Inserts a source row without a match: every column gets the value of the same name.

        >>> done = merge.whenNotMatchedInsertAll().execute()
        """
        where = self._condition(condition)
        return self._with(lambda merge: merge.when_not_matched_insert_all(where))

    def whenNotMatchedBySourceUpdate(self, condition: Any = None, set: Any = None) -> DeltaMergeBuilder:
        """Updates a row of the table that no source row matches. Condition and values use that row alone.

        >>> done = merge.whenNotMatchedBySourceUpdate(set={"delay": "0"}).execute()
        """
        values, where = assignments(set, "'set' in whenNotMatchedBySourceUpdate", self._start.origins), self._condition(condition)
        return self._with(lambda merge: merge.when_not_matched_by_source_update(values, where))

    def whenNotMatchedBySourceDelete(self, condition: Any = None) -> DeltaMergeBuilder:
        """Deletes a row of the table that no source row matches.

        >>> done = merge.whenNotMatchedBySourceDelete("delay IS NULL").execute()
        """
        where = self._condition(condition)
        return self._with(lambda merge: merge.when_not_matched_by_source_delete(where))

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Adds the columns to the table that only the source has, if a clause of all columns writes them.

        >>> done = merge.withSchemaEvolution().whenMatchedUpdateAll().execute()
        """
        return DeltaMergeBuilder(replace(self._start, evolution=True))

    def execute(self) -> DataFrame:
        """Runs the MERGE as one commit, and returns one row: num_affected_rows, num_updated_rows,
        num_deleted_rows, num_inserted_rows.

        Raises MergeCardinalityError if two source rows match one row of the table, and the errors of
        concurrent commits.

        >>> merge.whenMatchedDelete().execute().first().num_deleted_rows
        1
        """
        merge = self._start.begin(self._start.evolution)
        for clause in self._start.clauses:
            merge = clause(merge)
        return frame_of(self._start.spark, merge_rows(merge.execute()))

    def _condition(self, value: Any) -> str | None:
        return condition_text(value, origins=self._start.origins)

    def _with(self, clause: Clause) -> DeltaMergeBuilder:
        return DeltaMergeBuilder(replace(self._start, clauses=(*self._start.clauses, clause)))
