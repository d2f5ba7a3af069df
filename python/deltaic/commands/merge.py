"""MERGE: the builder that users call, and the command.

Clauses are tried in order, and the first one that applies to a row is used. The target is read in up to three
steps: the join columns of files that may contain the source's keys, the columns of conditions for rows
without a source row, and the rows that change. Source: delta-spark's MergeIntoCommand, for the semantics and
the names of the metrics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from deltaic.commands.assignment import check_assignments, check_casting
from deltaic.commands.data_files import compacted
from deltaic.commands.merge_clauses import Clause, Kind
from deltaic.commands.store_assignment import Casting
from deltaic.errors import InvalidArgumentError, InvalidTypeError, items_of, shown
from deltaic.options import CommitOptions, ParquetOptions
from deltaic.transaction.transaction import already_committed

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class MergeSpec:
    """The arguments and clauses of a merge."""

    source: Any
    on: str
    source_alias: str = "s"
    target_alias: str = "t"
    schema_mode: Literal["merge"] | None = None
    casting: Casting = "strict"
    parquet: ParquetOptions | None = None
    commit: CommitOptions | None = None
    clauses: tuple[Clause, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.on, str) or not self.on.strip():
            example = f"text, like '{self.target_alias}.id = {self.source_alias}.id'"
            raise InvalidTypeError(
                "on= must be a condition in Spark's SQL dialect", found=shown(self.on), expected=example
            )
        for alias in (self.source_alias, self.target_alias):
            if not isinstance(alias, str) or not alias:
                raise InvalidTypeError("alias must be a string", found=repr(alias))
        if self.source_alias.lower() == self.target_alias.lower():
            raise InvalidArgumentError(
                "source and target need different aliases", found=repr(self.source_alias)
            )
        if self.schema_mode not in (None, "merge"):
            raise InvalidArgumentError(
                "unknown schema_mode", found=repr(self.schema_mode), expected="'merge' or None"
            )
        check_casting(self.casting)

    def of_kind(self, kind: Kind) -> list[Clause]:
        return [clause for clause in self.clauses if clause.kind == kind]


class Merge:
    """A merge to which clauses are added: `table.merge(source, on)` creates it, `execute()` runs it. It is
    immutable: each method returns a new one. If several clauses apply to a row, the first one is used.

    `set` and `values` map columns of the target (with or without its alias; fields of structs with dots) to
    SQL over both sides (`"s.delay"`), or to a literal that is no string. A literal string is quoted as in SQL
    (`"'Oslo'"`), or is `deltaic.lit("Oslo")`. Clauses for rows that the source does not match can use only
    the target's columns.
    `where`: a further condition; only the last clause of a kind may have none.

    A clause raises InvalidTypeError for an argument of another type, and InvalidArgumentError for an empty
    `set` or `values`, or if an earlier clause of its kind has no `where`. Columns and conditions are checked
    by `execute()`.
    """

    def __init__(self, spec: MergeSpec, execute: Callable[[MergeSpec], dict[str, int]]) -> None:
        self._spec, self._execute = spec, execute

    def when_matched_update(self, set: Mapping[str, Any], where: str | None = None) -> Merge:
        """Updates target rows that a source row matches. A column that `set` does not name keeps its value.

        `set`: column of the target -> SQL over both sides, or a literal that is no string.
        `where` (str): a further condition over both sides; None for all such rows. Errors: see `Merge`.

        >>> merge = table.merge(news, "t.id = s.id").when_matched_update(
        ...     {"delay": "t.delay + s.delay"}, where="s.delay > 0"
        ... )
        """
        return self._with(Clause("matched", "update", where, values=_mapping(set)))

    def when_matched_update_all(self, where: str | None = None, *, exclude: Iterable[str] = ()) -> Merge:
        """Updates target rows that a source row matches: every column of the target, except those in
        `exclude`, gets the value of the source's column of its name. With schema_mode="merge", these are the
        columns that the source has, including new ones, and in structs the fields that it has.

        Without schema_mode="merge", a source that lacks a column or a struct field is a SchemaMismatchError
        at `execute()`.

        `where` (str): a further condition over both sides; None for all such rows. Errors: see `Merge`.

        >>> merge = table.merge(news, "t.id = s.id").when_matched_update_all(exclude=["origin"])
        """
        return self._with(Clause("matched", "update", where, exclude=_names(exclude)))

    def when_matched_delete(self, where: str | None = None) -> Merge:
        """Deletes target rows that a source row matches.

        `where` (str): a further condition over both sides; None for all such rows. Errors: see `Merge`.

        >>> merge = table.merge(news, "t.id = s.id").when_matched_delete(where="s.delay IS NULL")
        """
        return self._with(Clause("matched", "delete", where))

    def when_not_matched_insert(self, values: Mapping[str, Any], where: str | None = None) -> Merge:
        """Inserts source rows that match no target row. A column that `values` does not name gets its
        default, or null.

        `values`: column of the target -> SQL over the source, or a literal that is no string.
        `where` (str): a further condition over the source; None for all such rows. Errors: see `Merge`.

        >>> merge = table.merge(news, "t.id = s.id").when_not_matched_insert({"id": "s.id", "delay": 0})
        """
        return self._with(Clause("not_matched", "insert", where, values=_mapping(values)))

    def when_not_matched_insert_all(self, where: str | None = None, *, exclude: Iterable[str] = ()) -> Merge:
        """Inserts source rows that match no target row, with the same columns as `when_matched_update_all`. A
        column in `exclude`, and with schema_mode="merge" one that the source lacks, gets its default, or
        null.

        `where` (str): a further condition over the source; None for all such rows. Errors: see `Merge`.

        >>> merge = table.merge(news, "t.id = s.id").when_not_matched_insert_all()
        """
        return self._with(Clause("not_matched", "insert", where, exclude=_names(exclude)))

    def when_not_matched_by_source_update(self, set: Mapping[str, Any], where: str | None = None) -> Merge:
        """Updates target rows that no source row matches.

        `set`: column of the target -> SQL over the target, or a literal that is no string.
        `where` (str): a further condition over the target; None for all such rows. Errors: see `Merge`.

        >>> merge = table.merge(news, "t.id = s.id").when_not_matched_by_source_update({"delay": "NULL"})
        """
        return self._with(Clause("not_matched_by_source", "update", where, values=_mapping(set)))

    def when_not_matched_by_source_delete(self, where: str | None = None) -> Merge:
        """Deletes target rows that no source row matches.

        `where` (str): a further condition over the target; None for all such rows. Errors: see `Merge`.

        >>> merge = table.merge(news, "t.id = s.id").when_not_matched_by_source_delete(
        ...     where="t.origin = 'JFK'"
        ... )
        """
        return self._with(Clause("not_matched_by_source", "delete", where))

    def execute(self) -> dict[str, int]:
        """Runs the merge as one commit. If no row changes and the table gets no new column, nothing is
        committed.

        Returns a dict from name to number, with delta-spark's metrics: `num_source_rows`,
        `num_target_rows_inserted`, `num_target_rows_updated`, `num_target_rows_deleted`,
        `num_target_rows_copied`, `num_output_rows`; of the updated and deleted rows
        `num_target_rows_matched_updated`, `num_target_rows_matched_deleted`,
        `num_target_rows_not_matched_by_source_updated`, `num_target_rows_not_matched_by_source_deleted`;
        `num_target_files_added`, `num_target_files_removed`, `num_target_files_scanned`,
        `num_target_files_skipped`; `num_target_bytes_added`, `num_target_bytes_removed`;
        `num_target_deletion_vectors_added`, `num_target_deletion_vectors_updated`,
        `num_target_deletion_vectors_removed`; `num_target_change_files_added`, files of the change data feed.

        Raises MergeCardinalityError (several source rows would change one target row; the message shows
        them), InvalidArgumentError (no clause, an unknown column, a condition that does not parse),
        SchemaMismatchError, ConstraintViolationError, AppendOnlyError, the exceptions of conflicts,
        CommitUnknownError. After a conflict, `execute()` can be called again.

        >>> table.merge(news, "t.id = s.id").when_matched_delete().execute()["num_target_rows_deleted"]
        1
        """
        if not self._spec.clauses:
            raise InvalidArgumentError(
                "a merge needs at least one clause", expected="when_matched_... or when_not_matched_..."
            )
        return self._execute(self._spec)

    def __repr__(self) -> str:
        spec = self._spec
        clauses = "".join(f" {clause}" for clause in spec.clauses) or " (no clause yet)"
        return f"<Merge of {type(spec.source).__name__} ON {spec.on}{clauses}; not run yet: call execute()>"

    def _with(self, clause: Clause) -> Merge:
        if clause.where is not None and not isinstance(clause.where, str):
            raise InvalidTypeError(
                "where= must be a condition in Spark's SQL dialect", found=repr(clause.where)[:80]
            )
        if any(before.where is None for before in self._spec.of_kind(clause.kind)):
            raise InvalidArgumentError(
                f"a clause follows one that takes every row: only the last {clause.kind} clause may have no"
                " where",
                found=repr(clause.where),
            )
        return Merge(replace(self._spec, clauses=(*self._spec.clauses, clause)), self._execute)


def _mapping(values: Mapping[str, Any]) -> Mapping[str, Any]:
    check_assignments(values)
    if not values:
        raise InvalidArgumentError("nothing is assigned", expected="at least one column")
    return dict(values)


def _names(exclude: Iterable[str]) -> tuple[str, ...]:
    if isinstance(exclude, str):
        raise InvalidTypeError("exclude must be a sequence of names", found=repr(exclude))
    return items_of(exclude, "exclude")


NOTHING = {
    "num_source_rows": 0,
    "num_output_rows": 0,
    "num_target_rows_inserted": 0,
    "num_target_rows_updated": 0,
    "num_target_rows_matched_updated": 0,
    "num_target_rows_not_matched_by_source_updated": 0,
    "num_target_rows_deleted": 0,
    "num_target_rows_matched_deleted": 0,
    "num_target_rows_not_matched_by_source_deleted": 0,
    "num_target_rows_copied": 0,
    "num_target_files_added": 0,
    "num_target_files_removed": 0,
    "num_target_bytes_added": 0,
    "num_target_bytes_removed": 0,
    "num_target_deletion_vectors_added": 0,
    "num_target_deletion_vectors_removed": 0,
    "num_target_deletion_vectors_updated": 0,
    "num_target_change_files_added": 0,
    "num_target_files_scanned": 0,
    "num_target_files_skipped": 0,
}


def merge(snapshot: Snapshot, engine: Engine, spec: MergeSpec) -> tuple[Snapshot, dict[str, int]]:
    """Runs a merge. Returns the new version and the metrics. If no row changes, only new columns and
    application transactions are committed; without them the version is `snapshot`."""
    if already_committed(snapshot, spec.commit):
        return snapshot, dict(NOTHING)
    from deltaic.commands.merge_on_driver import staged
    from deltaic.commands.merge_run import Run

    started = time.monotonic()
    with ExitStack() as held:
        run, metrics = staged(Run(snapshot, engine, spec, held), held)
        if not run.changes and not run.transaction.changes_table:
            return snapshot, metrics()
        # A run on the driver has a clock of its own, which does not count what was tried before.
        times = {**run.times.metrics(), "execution_time_ms": int((time.monotonic() - started) * 1000)}

        def written() -> dict[str, int]:
            return {
                **{
                    name: value
                    for name, value in metrics().items()
                    if not name.endswith(("_scanned", "_skipped"))
                },
                **times,
            }

        committed = run.transaction.commit(written)
        return compacted(committed, snapshot, engine, run.transaction.adds), metrics()
