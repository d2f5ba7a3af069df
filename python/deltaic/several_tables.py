"""`transaction`, the public API of commits over several tables: the changes of a `with` block are staged, and
committed together when the block ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Literal

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError, check_instance
from deltaic.options import CommitOptions
from deltaic.table import Casting, DeltaTable, run_write
from deltaic.transaction import giving_way
from deltaic.transaction.several import SeveralTables
from deltaic.transaction.transaction import collecting

if TYPE_CHECKING:
    from types import TracebackType

    from deltaic.commands.merge import Merge
    from deltaic.commands.write_job import Mode, SchemaMode
    from deltaic.log.snapshot import Snapshot
    from deltaic.options import ParquetOptions
    from deltaic.transaction.transaction import Counted, Transaction


def transaction(*tables: DeltaTable, commit: CommitOptions | None = None) -> TableTransaction:
    """Begins a transaction over several tables: when the `with` block ends, readers of deltaic see all of its
    changes or none.

    `tables`: the DeltaTables that the block changes, by the methods of `TableTransaction`. These methods take
    the table first, and then the parameters of `deltaic.write` and of the methods of `DeltaTable`.
    `commit`: CommitOptions for the commit of each table; its `isolation` applies to each table.

    The first change of a table reads the version of the object in `tables`; a later change also reads what
    the block has staged. All changes of a table become one commit, and the conflicts of several changes are
    compared by files. An exception in the block leaves all tables unchanged. After the block the objects are
    at their new versions.

    Raises InvalidArgumentError (no table, a table named twice, a table that is not in `tables`),
    UnsupportedFeatureError (a second change of a table on Spark, with row tracking or with a change data
    feed; a table that a catalog manages together with others), the exceptions of conflicts and CommitError
    (no table has changed), and CommitUnknownError (the outcome is unknown;
    `DeltaTable.transaction_state(id)` returns it later).

    >>> with deltaic.transaction(orders, stock) as t:
    ...     t.write(orders, [{"id": 7, "item": "cup"}], mode="append")
    ...     t.update(stock, {"count": "count - 1"}, "item = 'cup'")

    Source: Armbrust et al., Delta Lake (VLDB 2020), section 7.
    """
    return TableTransaction(tables, commit)


class TableTransaction:
    """A transaction over several tables, from `deltaic.transaction`. Changes are staged until its `with`
    block ends. One thread uses it at a time."""

    def __init__(self, tables: tuple[DeltaTable, ...], commit: CommitOptions | None) -> None:
        for table in tables:
            check_instance(table, DeltaTable, "deltaic.transaction", "DeltaTable")
        locations = [table.location for table in tables]
        if not tables or len(set(locations)) < len(locations):
            raise InvalidArgumentError(
                "deltaic.transaction needs at least one table, and each table only once",
                found=", ".join(locations) or "none",
            )
        check_instance(commit, (CommitOptions, type(None)), "commit", "CommitOptions")
        self._tables, self._commit = tables, commit
        self._staged: SeveralTables | None = None
        self._running = ExitStack()
        self._changed: list[DeltaTable] = []

    @property
    def id(self) -> str | None:
        """The `commitInfo.txnId` of the commits, for `DeltaTable.transaction_state`; None until the block has
        ended."""
        return (self._staged.id if self._staged is not None else "") or None

    def write(
        self,
        table: DeltaTable,
        data: Any,
        *,
        mode: Mode = "append",
        where: str | None = None,
        schema_mode: SchemaMode | None = None,
        casting: Casting | None = None,
        target_file_size: int | None = None,
        parquet: ParquetOptions | None = None,
    ) -> None:
        """Stages the changes that `deltaic.write(table, data, mode=...)` would commit. `mode`: "append" (the
        default), "overwrite" (with `where` only the matching rows) or "overwrite_partitions". Other arguments
        and errors: see `deltaic.write`.

        >>> t.write(orders, [{"id": 7, "item": "cup"}])
        """
        from deltaic.commands.write_job import Write

        if mode not in ("append", "overwrite", "overwrite_partitions"):
            raise InvalidArgumentError(
                "unknown mode of write in a transaction",
                found=repr(mode),
                expected="'append', 'overwrite', ...",
            )
        job = Write(
            mode=mode,
            where=where,
            schema_mode=schema_mode,
            casting=casting,
            target_file_size=target_file_size,
            parquet=parquet,
            commit=self._commit,
        )
        with self._staging(table) as shown:
            run_write(shown, data, job)

    def delete(
        self, table: DeltaTable, where: str | None = None, *, parquet: ParquetOptions | None = None
    ) -> dict[str, int]:
        """Stages the changes that `table.delete(where)` would commit. Returns its metrics, as far as they are
        known before the commit. Errors: see `DeltaTable.delete`.

        >>> t.delete(stock, "count = 0")
        """
        with self._staging(table) as shown:
            return shown.delete(where, parquet=parquet, commit=self._commit)

    def update(
        self,
        table: DeltaTable,
        set: Mapping[str, Any],
        where: str | None = None,
        *,
        casting: Casting = "strict",
        parquet: ParquetOptions | None = None,
    ) -> dict[str, int]:
        """Stages the changes that `table.update(set, where)` would commit. Returns its metrics, as far as
        they are known before the commit. Arguments and errors: see `DeltaTable.update`.

        >>> t.update(stock, {"count": "count - 1"}, "item = 'cup'")
        """
        with self._staging(table) as shown:
            return shown.update(set, where, casting=casting, parquet=parquet, commit=self._commit)

    def merge(
        self,
        table: DeltaTable,
        source: Any,
        on: str,
        *,
        source_alias: str = "s",
        target_alias: str = "t",
        schema_mode: Literal["merge"] | None = None,
        casting: Casting = "strict",
        parquet: ParquetOptions | None = None,
    ) -> Merge:
        """Like `table.merge(source, on)`, for a table of the transaction: add clauses, then `execute()`,
        which stages the changes instead of committing them.

        >>> merge = t.merge(stock, delivered, "s.item = t.item")
        >>> merge.when_matched_update({"count": "t.count + s.count"}).execute()
        """
        from deltaic.commands.merge import Merge

        merge = table.merge(
            source,
            on,
            source_alias=source_alias,
            target_alias=target_alias,
            schema_mode=schema_mode,
            casting=casting,
            parquet=parquet,
            commit=self._commit,
        )

        def staged(spec: Any) -> dict[str, int]:
            with self._staging(table) as shown:
                return shown._merging(spec, shown._engine)._execute(spec)

        return Merge(merge._spec, staged)

    @contextmanager
    def _staging(self, table: DeltaTable) -> Iterator[DeltaTable]:
        """Yields the version of the table with the changes that were staged before, for a further change."""
        if self._staged is None:
            raise InvalidArgumentError("a transaction can only be used inside its with block")
        if not any(table is each for each in self._tables):
            location = getattr(table, "location", type(table).__name__)
            expected = ", ".join(each.location for each in self._tables)
            raise InvalidArgumentError(
                "the table is not one of the tables of deltaic.transaction", found=location, expected=expected
            )
        snapshot = table._snapshot
        if self._is_changed(table):
            if table._spark is not None:
                raise UnsupportedFeatureError(
                    "on Spark, a transaction can change each table only once", where=table.location
                )
            snapshot = self._staged.shown(snapshot)
        with collecting(self._collect(table)):
            yield table if snapshot is table._snapshot else DeltaTable._of(snapshot, table._options)

    def _is_changed(self, table: DeltaTable) -> bool:
        return any(table is each for each in self._changed)

    def _collect(self, table: DeltaTable) -> Callable[[Transaction, Counted], Snapshot]:
        staged = self._staged
        assert staged is not None

        def collect(transaction: Transaction, counted: Counted) -> Snapshot:
            snapshot = staged.add(transaction, counted)
            if not self._is_changed(table):
                self._changed.append(table)
            return snapshot

        return collect

    def __enter__(self) -> TableTransaction:
        if self._staged is not None:
            raise InvalidArgumentError(
                "a transaction can be entered only once", expected="a new deltaic.transaction(...)"
            )
        with ExitStack() as running:
            for table in self._tables:
                running.enter_context(giving_way.command(table._snapshot))
            self._running = running.pop_all()
        self._staged = SeveralTables()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        staged = self._staged
        assert staged is not None
        with self._running:
            if kind is not None:
                staged.discard()
                return
            for table, snapshot in zip(self._changed, staged.commit(), strict=True):
                table._move(snapshot)
