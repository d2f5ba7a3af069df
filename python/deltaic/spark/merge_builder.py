"""`DeltaMergeBuilder`, which builds and runs a MERGE, as in delta-spark's Python API. `deltaic.spark.tables`
has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltaic.commands.merge import Merge
from deltaic.commands.merge_clauses import Clause, Kind
from deltaic.engine.spark.native.column_text import Origins
from deltaic.spark.expressions import assignments, condition_text
from deltaic.spark.frames import frame_of
from deltaic.spark.raising import methods_raise_as_spark
from deltaic.sql.merge import merge_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AddClause = Callable[[Merge], Merge]


@dataclass(frozen=True)
class MergeStart:
    """The start of a MERGE and its clauses so far. `begin`: a function that creates the merge, with schema
    evolution if its argument is True. `origins`: the DataFrames whose columns conditions and values may
    use; `of_source`: those of inserts."""

    spark: Any
    begin: Callable[[bool], Merge]
    clauses: tuple[AddClause, ...] = ()
    evolution: bool = False
    origins: Origins | None = None
    of_source: Origins | None = None


@methods_raise_as_spark
class DeltaMergeBuilder:
    """A MERGE with its clauses. Each method returns a new builder with one clause more, and `execute` runs
    the MERGE. There are three kinds of clauses: whenMatched..., whenNotMatched... and
    whenNotMatchedBySource.... For each row, the first clause of its kind whose condition is true applies.

    `condition`: text in Spark's SQL dialect or a Column; None is always true. `set`, `values`: a dict from
    column name to value (SQL text or a Column). A clause raises InvalidArgumentError without its dict, and
    InvalidTypeError for an argument of another type; `execute` raises errors in conditions and values.

    >>> merge = table.alias("t").merge(news, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    >>> merge.execute().first().asDict()
    {'num_affected_rows': 2, 'num_updated_rows': 1, 'num_deleted_rows': 0, 'num_inserted_rows': 1}
    """

    def __init__(self, start: MergeStart) -> None:
        self._start = start

    def __repr__(self) -> str:
        count = len(self._start.clauses)
        clauses = "1 clause" if count == 1 else f"{count} clauses"
        return f"<DeltaMergeBuilder with {clauses}; not run yet: call execute()>"

    def whenMatchedUpdate(self, condition: Any = None, set: Any = None) -> DeltaMergeBuilder:
        """Updates a row of the table that a source row matches. Values may use the columns of both rows.

        `condition`: SQL text or a Column; None for all such rows. `set`: a dict from column name to SQL text
        or a Column. Errors: see `DeltaMergeBuilder`.

        >>> metrics = merge.whenMatchedUpdate("s.delay > t.delay", {"delay": "s.delay"}).execute()
        """
        values, where = (
            assignments(set, "'set' in whenMatchedUpdate", self._start.origins),
            self._condition(condition),
        )
        return self._updating("matched", values, where)

    def whenMatchedUpdateAll(self, condition: Any = None) -> DeltaMergeBuilder:
        """Updates a row of the table that a source row matches: each column gets the value of the source's
        column of the same name.

        `condition`: SQL text or a Column; None for all such rows. Errors: see `DeltaMergeBuilder`.

        >>> metrics = merge.whenMatchedUpdateAll().execute()
        """
        where = self._condition(condition)
        return self._with(lambda merge: merge.when_matched_update_all(where))

    def whenMatchedDelete(self, condition: Any = None) -> DeltaMergeBuilder:
        """Deletes a row of the table that a source row matches.

        `condition`: SQL text or a Column; None for all such rows. Errors: see `DeltaMergeBuilder`.

        >>> metrics = merge.whenMatchedDelete("s.delay IS NULL").execute()
        """
        where = self._condition(condition)
        return self._with(lambda merge: merge.when_matched_delete(where))

    def whenNotMatchedInsert(self, condition: Any = None, values: Any = None) -> DeltaMergeBuilder:
        """Inserts a row for a source row that matches no row of the table. Values may use the source's
        columns. Columns that `values` does not name get their default, or null.

        `condition`: SQL text or a Column; None for all such rows. `values`: a dict from column name to SQL
        text or a Column. Errors: see `DeltaMergeBuilder`.

        >>> metrics = merge.whenNotMatchedInsert(values={"id": "s.id", "origin": "'JFK'"}).execute()
        """
        columns, where = (
            assignments(values, "'values' in whenNotMatchedInsert", self._start.of_source),
            condition_text(condition, origins=self._start.of_source),
        )
        return self._with(lambda merge: merge._with(Clause("not_matched", "insert", where, columns)))

    def whenNotMatchedInsertAll(self, condition: Any = None) -> DeltaMergeBuilder:
        """Inserts a source row that matches no row of the table: each column gets the value of the source's
        column of the same name.

        `condition`: SQL text or a Column; None for all such rows. Errors: see `DeltaMergeBuilder`.

        >>> metrics = merge.whenNotMatchedInsertAll().execute()
        """
        where = condition_text(condition, origins=self._start.of_source)
        return self._with(lambda merge: merge.when_not_matched_insert_all(where))

    def whenNotMatchedBySourceUpdate(self, condition: Any = None, set: Any = None) -> DeltaMergeBuilder:
        """Updates a row of the table that no source row matches. Condition and values may use the table's
        columns.

        `condition`: SQL text or a Column; None for all such rows. `set`: a dict from column name to SQL text
        or a Column. Errors: see `DeltaMergeBuilder`.

        >>> metrics = merge.whenNotMatchedBySourceUpdate(set={"delay": "0"}).execute()
        """
        values, where = (
            assignments(set, "'set' in whenNotMatchedBySourceUpdate", self._start.origins),
            self._condition(condition),
        )
        return self._updating("not_matched_by_source", values, where)

    def whenNotMatchedBySourceDelete(self, condition: Any = None) -> DeltaMergeBuilder:
        """Deletes a row of the table that no source row matches. The condition may use the table's columns.

        `condition`: SQL text or a Column; None for all such rows. Errors: see `DeltaMergeBuilder`.

        >>> metrics = merge.whenNotMatchedBySourceDelete("delay IS NULL").execute()
        """
        where = self._condition(condition)
        return self._with(lambda merge: merge.when_not_matched_by_source_delete(where))

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Turns schema evolution on: columns that only the source has are added to the table, if a clause
        of all columns (`...All`) writes them.

        >>> metrics = merge.withSchemaEvolution().whenMatchedUpdateAll().execute()
        """
        return DeltaMergeBuilder(replace(self._start, evolution=True))

    def execute(self) -> DataFrame:
        """Runs the MERGE as one commit. Returns a DataFrame with one row: num_affected_rows,
        num_updated_rows, num_deleted_rows, num_inserted_rows.

        Raises MergeCardinalityError if two source rows match one row of the table, InvalidArgumentError for
        an unknown column or a MERGE without a clause, SchemaMismatchError for a value that does not fit its
        column, and the errors of concurrent commits.

        >>> merge.whenMatchedDelete().execute().first().num_deleted_rows
        1
        """
        merge = self._start.begin(self._start.evolution)
        for clause in self._start.clauses:
            merge = clause(merge)
        return frame_of(self._start.spark, merge_rows(merge.execute()))

    def _condition(self, value: Any) -> str | None:
        return condition_text(value, origins=self._start.origins)

    def _updating(self, kind: Kind, values: dict[str, str], where: str | None) -> DeltaMergeBuilder:
        """Adds an update. As in delta-spark, one of no column leaves the rows as they are: without a
        condition it is no clause, and with a condition no later clause of its kind applies to its rows."""
        if not values and where is None:
            return self
        return self._with(lambda merge: merge._with(Clause(kind, "update", where, values)))

    def _with(self, clause: AddClause) -> DeltaMergeBuilder:
        return DeltaMergeBuilder(replace(self._start, clauses=(*self._start.clauses, clause)))
