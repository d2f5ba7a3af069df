"""Row-level oracle: random sequences of all commands that change a table, compared with lists of rows after
each step, at every version.

Each sequence runs on two tables of one random definition, one with deletion vectors and one without, which
must agree. The default is a short run; DELTAIC_ORACLE_EXAMPLES=2000 makes a long one.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import deltaic
from deltaic import _core
from deltaic.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    InvalidArgumentError,
    MergeCardinalityError,
    MetadataChangedException,
)
from deltaic.protocol import row_tracking
from deltaic.protocol.schema import Field, Schema
from row_model import (
    Change,
    Clause,
    Condition,
    Model,
    Row,
    arrow_rows,
    both,
    canonical,
    compare,
    either,
    is_null,
    multiset,
    negated,
)

GENERATED = "concat(coalesce(s, 'none'), ':', coalesce(CAST(k AS STRING), ''))"
EXAMPLES = int(os.environ.get("DELTAIC_ORACLE_EXAMPLES", "20"))

_moments = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))
_text = st.text(alphabet="ab é%/:=\\'\"\n", max_size=6)

# Columns beside the fixed ones: Arrow type and values.
EXTRA: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "double": (
        pa.float64(),
        st.sampled_from([0.0, -0.0, 1.5, -2.25, float("nan"), float("inf"), float("-inf"), 1e300]),
    ),
    "float": (pa.float32(), st.sampled_from([0.0, -0.0, 0.5, float("nan"), float("-inf")])),
    "byte": (pa.int8(), st.integers(-128, 127)),
    "short": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "boolean": (pa.bool_(), st.booleans()),
    "decimal": (pa.decimal128(9, 2), st.decimals(-(10**7) + 1, 10**7 - 1, places=2, allow_nan=False)),
    "wide decimal": (
        pa.decimal128(38, 10),
        st.sampled_from([Decimal("1e-10"), Decimal("-9999999999999999999999999999.9999999999"), Decimal(0)]),
    ),
    "date": (pa.date32(), st.dates(date(1900, 1, 1), date(2200, 1, 1))),
    "timestamp": (
        pa.timestamp("us", tz="UTC"),
        _moments.map(lambda moment: moment.replace(tzinfo=timezone.utc)),
    ),
    "timestamp_ntz": (pa.timestamp("us"), _moments),
    "binary": (pa.binary(), st.binary(max_size=5)),
    "text": (pa.string(), _text),
    "array": (pa.list_(pa.int32()), st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=3)),
    "struct": (
        pa.struct({"a": pa.int32(), "b": pa.struct({"c": pa.string()})}),
        st.fixed_dictionaries(
            {
                "a": st.one_of(st.none(), st.integers(0, 9)),
                "b": st.one_of(st.none(), st.fixed_dictionaries({"c": _text})),
            }
        ),
    ),
    "map": (
        pa.map_(pa.string(), pa.float64()),
        st.dictionaries(_text, st.sampled_from([None, 0.5, float("nan")]), max_size=2).map(
            lambda d: list(d.items())
        ),
    ),
}

SINGLE = [float(value) for value in pa.array([0.7, -0.1, 0.5], pa.float32()).to_pylist()]
"""Floats whose shortest texts are those of other doubles, and one that is a double of the same text."""

# Wider types by Arrow type: as DDL and as Arrow, values that only the wider type has, and what becomes of a
# value.
WIDER: dict[pa.DataType, tuple[str, pa.DataType, list[Any], Callable[[Any], Any]]] = {
    pa.int8(): ("smallint", pa.int16(), [300], int),
    pa.int16(): ("int", pa.int32(), [-(2**31)], int),
    pa.int32(): ("bigint", pa.int64(), [2], int),
    pa.float32(): ("double", pa.float64(), [0.7, -0.1, 1e300], float),
    pa.decimal128(9, 2): ("decimal(20,4)", pa.decimal128(20, 4), [Decimal("0.0001")], Decimal),
    pa.date32(): (
        "timestamp_ntz",
        pa.timestamp("us"),
        [datetime(2000, 1, 1, 1)],
        lambda day: datetime(day.year, day.month, day.day),
    ),
}

# An empty string is null in a partition column, so it is none of the values.
PARTITIONS: dict[str, tuple[pa.DataType, list[tuple[str, Any]]]] = {
    "string": (pa.string(), [("'a'", "a"), ("'a b/c%:=é'", "a b/c%:=é"), ("'__HIVE'", "__HIVE")]),
    "int": (pa.int32(), [("1", 1), ("-7", -7), ("2147483647", 2147483647)]),
    "date": (
        pa.date32(),
        [("DATE '2024-02-29'", date(2024, 2, 29)), ("DATE '1969-12-31'", date(1969, 12, 31))],
    ),
    "boolean": (pa.bool_(), [("true", True), ("false", False)]),
}

FORMS = st.sampled_from(["table", "reader", "generator", "iterator"])
"""Kinds of sources; all but the first can be read once."""

Columns = dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]]


def chain(error: BaseException | None) -> list[type[BaseException]]:
    """Returns the classes of the exception and of its causes."""
    return [] if error is None else [type(error), *chain(error.__cause__ or error.__context__)]


@contextmanager
def time_limit(seconds: float, error: type[Exception]) -> Iterator[None]:
    """Raises an error in the middle of the block if it takes longer."""
    inside = True

    def stop(number: int, frame: object) -> None:
        if inside:
            raise error("time is up")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        inside = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def rows_by_id(table: deltaic.DeltaTable) -> dict[int, Any]:
    """Returns the rows of a table by their row ids."""
    snapshot, names = table._snapshot, row_tracking.hidden_columns(table.metadata)
    read = _core.read(
        snapshot.store, snapshot.table_schema, snapshot.files().adds, table.schema.names, row_tracking=names
    ).to_table()
    return dict(
        zip(
            read[names[0]].to_pylist(),
            map(canonical, arrow_rows(read.select(table.schema.names))),
            strict=True,
        )
    )


def check_changes_by_row_id(
    before: deltaic.DeltaTable, after: deltaic.DeltaTable, gone: Counter[Any], came: Counter[Any]
) -> None:
    """The changes have every row id that went, came or got another row; all others are rows that were
    replaced by equal ones."""
    old, new = rows_by_id(before), rows_by_id(after)
    lost = Counter(row for number, row in old.items() if new.get(number) != row)
    found = Counter(row for number, row in new.items() if old.get(number) != row)
    assert not lost - gone
    assert gone - lost == came - found


class Oracle(RuleBasedStateMachine):
    """id, k and w are numbers that conditions read, s is text, p may be a partition; the others are carried
    along."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="oracle-"))
        self.added = 0

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    # --- the table and its rows

    @initialize(
        extra=st.lists(st.sampled_from(sorted(EXTRA)), max_size=3, unique=True),
        partition=st.sampled_from([None, *sorted(PARTITIONS)]),
        mapping=st.sampled_from(["none", "name", "id"]),
        checkpoints=st.sampled_from([2, 10]),
        file_size=st.sampled_from([1, 10**6]),
        tracked=st.booleans(),
        widening=st.booleans(),
        feed=st.booleans(),
        computed=st.booleans(),
        data=st.data(),
    )
    def create(
        self,
        extra: list[str],
        partition: str | None,
        mapping: str,
        checkpoints: int,
        file_size: int,
        tracked: bool,
        widening: bool,
        feed: bool,
        computed: bool,
        data: Any,
    ) -> None:
        self.widening = widening
        self.computed = computed
        self.feed, self.followed = feed, [0, 0]
        self.mapping = mapping
        self.tracked = tracked
        self.partitioned = partition is not None
        self.partition = PARTITIONS[partition or "string"]
        literals = [value for _, value in self.partition[1]]
        self.columns: Columns = {
            "id": (pa.int64(), st.integers(0, 12)),
            "k": (pa.int32(), st.integers(-3, 3)),
            "s": (pa.string(), st.sampled_from(["", "a", "b", "ä", "zz" * 30])),
            "p": (self.partition[0], st.sampled_from(literals)),
            "w": (pa.float32(), st.sampled_from([*SINGLE, float("nan")])),
        }
        self.columns.update(
            {(name if mapping != "none" else name.replace(" ", "_")): EXTRA[name] for name in extra}
        )
        self.model = Model(list(self.columns))
        rows = self.draw_rows(data, 8)
        properties = {"delta.columnMapping.mode": mapping, "delta.checkpointInterval": checkpoints}
        if feed:
            properties["delta.enableChangeDataFeed"] = True
        if widening:
            properties["delta.enableTypeWidening"] = True
        if tracked:  # what must not show in any row
            properties |= {
                "delta.enableRowTracking": True,
                "delta.enableInCommitTimestamps": True,
                "delta.writePartitionColumnsToParquet": True,
            }
        if computed:  # what must be right in each row, and disturb nothing
            properties["delta.constraints.small"] = "k IS NULL OR abs(k) < 100000"
        self.tables = []
        for name in ("vectors", "rewritten"):
            definition = {
                "properties": {**properties, "delta.enableDeletionVectors": name == "vectors"},
                "partition_by": "p" if self.partitioned else None,
            }
            if computed:
                generated = Field("g", "string", metadata={"delta.generationExpression": GENERATED})
                schema = Schema([*Schema.of(self.arrow(rows).schema), generated])
                deltaic.DeltaTable.create(self.folder / name, schema, **definition)
            mode: Any = "append" if computed else "error"
            self.tables.append(
                deltaic.write(
                    self.folder / name, self.arrow(rows), mode=mode, target_file_size=file_size, **definition
                )
            )
        self.model.rows = rows
        self.settle()

    def arrow(self, rows: list[Row]) -> pa.Table:
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(self.model.columns)
        types = [self.columns[name][0] for name in self.model.columns]
        arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
        return pa.table(dict(zip(self.model.columns, arrays, strict=True)))

    def handed_over(self, rows: list[Row], form: str) -> Any:
        """Returns the rows as a table, or as a source that can be read once."""
        table = self.arrow(rows)
        batches = table.to_batches(max_chunksize=2)
        if form == "reader" or not batches:  # without batches the columns are unknown
            return pa.RecordBatchReader.from_batches(table.schema, iter(batches))
        return {"table": table, "generator": (batch for batch in batches), "iterator": iter(batches)}[form]

    def draw_rows(self, data: Any, most: int) -> list[Row]:
        values = [st.one_of(st.none(), self.columns[name][1]) for name in self.model.columns]
        return list(data.draw(st.lists(st.tuples(*values), max_size=most), label="rows"))

    def draw_condition(self, data: Any, depth: int = 2) -> Condition:
        kind = data.draw(
            st.sampled_from(["k", "id", "p", "s", "w", "null", "and", "or", "not"][: 9 if depth else 6]),
            label="condition",
        )
        if kind in ("and", "or"):
            return (both if kind == "and" else either)(
                self.draw_condition(data, depth - 1), self.draw_condition(data, depth - 1)
            )
        if kind == "not":
            return negated(self.draw_condition(data, depth - 1))
        if kind == "null":
            return is_null(data.draw(st.sampled_from(["k", "s", "p", "id"])))
        operator = data.draw(st.sampled_from(["=", "<", ">=", "<>"]))
        if kind == "p":
            literal, value = data.draw(st.sampled_from(self.partition[1]))
            return compare("p", operator if operator in ("=", "<>") else "=", literal, value)
        if kind == "s":
            value = data.draw(st.sampled_from(["", "a", "b", "ä"]))
            return compare("s", operator if operator in ("=", "<>") else "=", f"'{value}'", value)
        if kind == "w":
            value = data.draw(st.sampled_from([0.7, -0.1, 0.5, *SINGLE]))
            return compare("w", operator, f"{value!r}D", value)
        value = data.draw(st.integers(-3, 12))
        return compare(kind, operator, str(value), value)

    def draw_changes(self, data: Any) -> list[Change]:
        literal, value = data.draw(st.sampled_from(self.partition[1]))
        choices = [
            Change(
                "k",
                "k % 3 + 1",
                lambda row, _: None if row["k"] is None else int(row["k"] - 3 * int(row["k"] / 3)) + 1,
            ),
            Change("s", "concat(s, 'x')", lambda row, _: None if row["s"] is None else row["s"] + "x"),
            Change("p", literal, lambda row, _: value),
            Change("id", "null", lambda row, _: None),
        ]
        return list(
            data.draw(
                st.lists(
                    st.sampled_from(choices), min_size=1, max_size=2, unique_by=lambda change: change.column
                )
            )
        )

    # --- changing rows

    @rule(data=st.data(), form=FORMS)
    def append(self, data: Any, form: str) -> None:
        rows = self.draw_rows(data, 5)
        for table in self.tables:
            deltaic.write(table, self.handed_over(rows, form), mode="append")
        self.model.rows = self.model.rows + rows
        self.settle()

    @rule(data=st.data(), form=FORMS)
    def overwrite_where(self, data: Any, form: str) -> None:
        condition = self.draw_condition(data)
        rows = [row for row in self.draw_rows(data, 4) if condition.holds(self.model.named(row)) is True]
        for table in self.tables:
            source = self.handed_over(rows, form)
            deltaic.write(table, source, mode="overwrite", where=condition.text())
            if form in ("reader", "generator"):  # read before: an error, and never fewer rows
                with pytest.raises(InvalidArgumentError, match="read before"):
                    deltaic.write(table, source, mode="overwrite", where=condition.text())
        self.model.delete(condition)
        self.model.rows = self.model.rows + rows
        self.settle()

    @rule(data=st.data(), everything=st.sampled_from([False] * 9 + [True]))
    def delete(self, data: Any, everything: bool) -> None:
        condition = None if everything else self.draw_condition(data)
        count = self.model.delete(condition)
        for table in self.tables:
            metrics = table.delete(condition and condition.text())
            assert metrics.get("num_deleted_rows", count) == count
        self.settle()

    @rule(
        data=st.data(),
        after=st.floats(0.0001, 0.03),
        error=st.sampled_from([TimeoutError, RuntimeError, MemoryError]),
    )
    def delete_within_a_time_limit(self, data: Any, after: float, error: type[Exception]) -> None:
        """The limit may end it at any moment; what is not there then is done again."""
        condition = self.draw_condition(data)
        count = self.model.delete(condition)
        for table in self.tables:
            version, kinds = table.version, [error]
            try:
                with time_limit(after, error):
                    table.delete(condition.text())
            except Exception as raised:
                kinds = chain(raised)
            assert error in kinds
            table.refresh()
            if table.version == version:
                assert table.delete(condition.text()).get("num_deleted_rows", count) == count
        self.settle()

    @rule(data=st.data())
    def delete_again_after_a_conflict(self, data: Any) -> None:
        """Another writer has deleted the same rows meanwhile."""
        condition = self.draw_condition(data)
        self.model.delete(condition)
        for table in self.tables:
            late = table.at(table.version)
            table.delete(condition.text())
            try:
                late.delete(condition.text())
            except (
                ConcurrentAppendException,
                ConcurrentDeleteDeleteException,
                ConcurrentDeleteReadException,
            ):
                late.refresh()
                late.delete(condition.text())
            table.refresh()
        self.settle()

    @rule(data=st.data())
    def update(self, data: Any) -> None:
        condition, changes = self.draw_condition(data), self.draw_changes(data)
        count = self.model.update(changes, condition)
        for table in self.tables:
            assert (
                table.update({change.column: change.sql for change in changes}, condition.text())[
                    "num_updated_rows"
                ]
                == count
            )
        self.settle()

    @rule(
        data=st.data(),
        end=st.sampled_from(
            ["AND", "OR (", "garbage", "AS x", "NOT", ") OR (1 = 1", ",", "IN", "BETWEEN 1", "/*"]
        ),
        way=st.integers(0, 5),
    )
    def change_by_what_does_not_parse(self, data: Any, end: str, way: int) -> None:
        text, value = f"{self.draw_condition(data).text()} {end}", f"k {end}"
        for table in self.tables:
            version, merge = table.version, table.merge(self.arrow([]), "t.id = s.id")
            command = [
                partial(table.delete, text),
                partial(table.update, {"k": "1"}, text),
                partial(table.update, {"k": value}),
                partial(deltaic.write, table, self.arrow([]), mode="overwrite", where=text),
                merge.when_matched_update({"k": f"t.{value}"}).execute,
                merge.when_not_matched_by_source_delete(text).execute,
            ][way]
            with pytest.raises(InvalidArgumentError, match="SQL"):
                command()
            assert deltaic.DeltaTable(table.location).version == version

    @rule(data=st.data(), form=FORMS, in_conflict=st.sampled_from([False] * 3 + [True]))
    def merge(self, data: Any, form: str, in_conflict: bool) -> None:
        key = self.model.columns.index("id")
        source = self.draw_rows(data, 6)
        if not data.draw(st.sampled_from([False] * 3 + [True]), label="keys may come twice"):
            unique: dict[Any, Row] = {}
            for row in source:
                unique.setdefault(row[key], row)
            source = list(unique.values())
        clauses = self.draw_clauses(data)
        refused = self.model.is_ambiguous(source, "id", clauses)
        done = Counter[str]() if refused else self.model.merge(source, "id", clauses)
        for table in self.tables:
            building = table.merge(self.handed_over(source, form), "t.id = s.id")
            for clause in clauses:
                building = _add_clause(building, clause)
            if refused:
                with pytest.raises(MergeCardinalityError):
                    building.execute()
                continue
            if in_conflict:
                self.change_definition(table)
                with suppress(MetadataChangedException):  # raised where a row changes
                    building.execute()
                table.refresh()
            metrics = building.execute()
            assert (
                Counter(
                    {
                        kind: metrics.get(f"num_target_rows_{kind}", 0)
                        for kind in ("inserted", "updated", "deleted")
                    }
                )
                == done
            )
        self.settle()

    def change_definition(self, table: deltaic.DeltaTable) -> None:
        """Makes another writer's commit, which conflicts with any change of rows, and changes none."""
        self.added += 1
        deltaic.DeltaTable(table.location).alter.set_properties({"note": str(self.added)})

    @rule(data=st.data(), form=FORMS)
    def name_one_source_twice(self, data: Any, form: str) -> None:
        rows = self.draw_rows(data, 5)
        query = deltaic.sql(
            "select * from d union all select * from d where id is null or id in (select id from d)",
            tables={"d": self.handed_over(rows, form)},
        )
        for _ in range(2):
            assert multiset(arrow_rows(query.to_arrow())) == multiset([*rows, *rows])

    def draw_clauses(self, data: Any) -> list[Clause]:
        clauses: list[Clause] = []
        if data.draw(st.booleans(), label="matched with a condition"):
            clauses.append(
                Clause(
                    "matched",
                    data.draw(st.sampled_from(["delete", "update_all"])),
                    self.draw_condition(data, 1),
                )
            )
        clauses += data.draw(
            st.sampled_from(
                [
                    [Clause("matched", "update_all")],
                    [Clause("matched", "delete")],
                    [
                        Clause(
                            "matched", "update", changes=(Change("k", "s.k", lambda _, source: source["k"]),)
                        )
                    ],
                    [],
                ]
            )
        )
        if data.draw(st.booleans(), label="insert"):
            clauses.append(
                Clause(
                    "not_matched",
                    "insert_all",
                    data.draw(st.sampled_from([None, compare("k", ">=", "0", 0)])),
                )
            )
        if data.draw(st.booleans(), label="by source"):
            changes = (Change("k", "-1", lambda _row, _source: -1),)
            clauses.append(
                Clause(
                    "by_source",
                    data.draw(st.sampled_from(["delete", "update"])),
                    self.draw_condition(data, 1),
                    changes,
                )
            )
        return clauses or [Clause("matched", "update_all")]

    # --- layout, history, definition: the rows stay, or become those of a version

    @rule(kind=st.sampled_from(["compact", "zorder", "purge", "statistics", "checkpoint"]))
    def rearrange(self, kind: str) -> None:
        for table in self.tables:
            if kind == "compact":
                table.optimize.compact()
            elif kind == "zorder":
                table.optimize.z_order(["k", "id"])
            elif kind == "purge":
                table.optimize.purge()
            elif kind == "statistics":
                table.optimize.statistics()
            else:
                table.checkpoint()
        self.settle()

    @rule(data=st.data())
    def restore(self, data: Any) -> None:
        index = data.draw(st.integers(0, len(self.marks) - 1), label="which state")
        for table, version in zip(self.tables, self.marks[index], strict=True):
            table.restore(version)
        columns, rows = self.model.versions[index]
        self.model.columns, self.model.rows = list(columns), list(rows)
        self.columns = dict(self.definitions[index])
        self.settle()

    @rule(shallow=st.booleans())
    def clone(self, shallow: bool) -> None:
        """A clone has the same rows; what is changed in it is no matter to the table. A deep one that is
        repeated follows the table."""
        self.added += 1
        for table in self.tables:
            target = f"{table.location}-clone-{self.added if shallow else 'deep'}"
            expected = multiset(arrow_rows(table.scan().to_arrow()))
            with deltaic.configure(allowed_roots=[table.location]):
                for properties in (None, {"delta.enableDeletionVectors": False}):
                    clone = table.clone(target, shallow=shallow, replace=True, properties=properties)
                    assert multiset(arrow_rows(clone.scan().to_arrow())) == expected
                    assert clone.schema == table.schema
                clone.delete("k > 0")
                clone.vacuum(retention=timedelta(0), enforce_retention=False)
            assert multiset(arrow_rows(table.scan().to_arrow())) == expected

    @rule(mode=st.sampled_from(["full", "lite"]))
    def vacuum(self, mode: str) -> None:
        for table, versions in zip(self.tables, zip(*self.marks, strict=True), strict=True):
            table.vacuum(retention=timedelta(0), enforce_retention=False, mode=mode, keep_versions=versions)
        self.settle()

    @rule(kind=st.sampled_from(sorted(EXTRA)))
    def add_column(self, kind: str) -> None:
        self.added += 1
        name = f"added {self.added}" if self.mapping != "none" else f"added_{self.added}"
        for table in self.tables:
            table.alter.add_columns(pa.schema({name: EXTRA[kind][0]}))
        self.columns[name] = EXTRA[kind]
        self.model.columns.append(name)
        self.model.rows = [(*row, None) for row in self.model.rows]
        self.settle()

    @precondition(lambda self: self.mapping != "none" and len(self.model.columns) > 5)
    @rule(data=st.data(), drop=st.booleans())
    def rename_or_drop_column(self, data: Any, drop: bool) -> None:
        name = data.draw(st.sampled_from(self.model.columns[5:]), label="column")
        position = self.model.columns.index(name)
        if drop:
            for table in self.tables:
                table.alter.drop_columns(deltaic.col(name))
            del self.model.columns[position]
            self.model.rows = [row[:position] + row[position + 1 :] for row in self.model.rows]
        else:
            self.added += 1
            new = f"renamed, {self.added}"
            for table in self.tables:
                table.alter.rename_column(deltaic.col(name), new)
            self.model.columns[position] = new
            self.columns[new] = self.columns[name]
        self.settle()

    @precondition(lambda self: self.widening)
    @rule(data=st.data())
    def widen_column(self, data: Any) -> None:
        kept = (*(("p",) if self.partition[0] == pa.date32() else ()), *(("k",) if self.computed else ()))
        choices = [name for name in self.model.columns if self.columns[name][0] in WIDER and name not in kept]
        if not choices:
            return
        name = data.draw(st.sampled_from(choices), label="column")
        old_type, values = self.columns[name]
        ddl, new_type, more, widened = WIDER[old_type]
        for table in self.tables:
            table.alter.change_column(deltaic.col(name), type=ddl)
        self.columns[name] = (
            new_type,
            st.one_of(values.map(widened), st.sampled_from(more)) if name != "p" else values,
        )
        position = self.model.columns.index(name)
        self.model.rows = [
            row if row[position] is None else (*row[:position], widened(row[position]), *row[position + 1 :])
            for row in self.model.rows
        ]
        self.settle()

    # --- agreement

    def scan(self, table: deltaic.DeltaTable, columns: list[str], where: str | None = None) -> pa.Table:
        """Returns the rows without the generated column."""
        return table.scan(
            [deltaic.col(name) for name in columns] if self.computed else None, where=where
        ).to_arrow()

    def settle(self) -> None:
        """Remembers the state: `marks` are the versions of both tables that hold it."""
        if not hasattr(self, "marks"):
            self.marks: list[tuple[int, int]] = []
            self.definitions: list[Columns] = []
        self.definitions.append(dict(self.columns))
        self.model.committed(len(self.marks))
        first, second = self.tables
        self.marks.append((first.version, second.version))

    @invariant()
    def row_ids_are_given_once(self) -> None:
        for table in self.tables if getattr(self, "tracked", False) else ():
            snapshot = table._snapshot
            names = row_tracking.hidden_columns(table.metadata)
            found = _core.read(
                snapshot.store, snapshot.table_schema, snapshot.files().adds, [], row_tracking=names
            ).to_table()
            given = found[0].to_pylist()
            assert len(set(given)) == len(given)
            assert max(given, default=-1) <= row_tracking.high_water_mark(
                snapshot.domains.get(row_tracking.DOMAIN)
            )
            assert max(found[1].to_pylist(), default=0) <= table.version

    @invariant()
    def rows_agree_at_every_version(self) -> None:
        for index, versions in enumerate(getattr(self, "marks", [])):
            columns, rows = self.model.versions[index]
            expected = multiset(rows)
            for table, version in zip(self.tables, versions, strict=True):
                old = table if version == table.version else table.at(version)
                assert [name for name in old.schema.names if name != "g"] == columns
                assert multiset(arrow_rows(self.scan(old, columns))) == expected
                assert old.scan().count() == len(rows)
                assert not self.computed or old.scan(where=f"NOT (g <=> {GENERATED})").count() == 0

    @invariant()
    def changes_lead_from_each_version_to_the_next(self) -> None:
        for at, table in enumerate(self.tables if getattr(self, "feed", False) else ()):
            for version in range(self.followed[at] + 1, table.version + 1):
                before, after = table.at(version - 1), table.at(version)
                changes = after.changes(version, version).to_arrow()
                kinds = changes["_change_type"].to_pylist()
                assert kinds.count("update_preimage") == kinds.count("update_postimage")
                if before.schema != after.schema:
                    continue
                rows = list(zip(arrow_rows(changes.select(after.schema.names)), kinds, strict=True))
                gone = multiset(row for row, kind in rows if kind in ("delete", "update_preimage"))
                came = multiset(row for row, kind in rows if kind in ("insert", "update_postimage"))
                there = multiset(arrow_rows(before.scan().to_arrow()))
                assert not gone - there
                assert there - gone + came == multiset(arrow_rows(after.scan().to_arrow()))
                if self.tracked:
                    check_changes_by_row_id(before, after, gone, came)
            self.followed[at] = table.version

    @rule(data=st.data())
    def read_every_way(self, data: Any) -> None:
        condition = self.draw_condition(data)
        expected = multiset(self.model.matching(condition))
        for table in self.tables:
            assert multiset(arrow_rows(self.scan(table, self.model.columns, condition.text()))) == expected
            with deltaic.configure(threads=1):
                assert (
                    multiset(arrow_rows(self.scan(table, self.model.columns, condition.text()))) == expected
                )
            everything = multiset(self.model.rows)
            snapshot = deltaic.DeltaTable(table.location)._snapshot
            adds = snapshot.core.files(snapshot.table_schema, None, skipping=False).adds
            for threads, batch_size, pruning in ((1, 1, False), (4, 1, True), (4, 8192, True)):
                stream = _core.read(
                    snapshot.store,
                    snapshot.table_schema,
                    adds,
                    self.model.columns,
                    threads=threads,
                    batch_size=batch_size,
                    pruning=pruning,
                )
                assert multiset(arrow_rows(stream.to_table())) == everything


def _add_clause(building: Any, clause: Clause) -> Any:
    where = (
        None
        if clause.condition is None
        else clause.condition.text("s." if clause.kind == "not_matched" else "t.")
    )
    changes = {change.column: change.sql for change in clause.changes}
    if clause.kind == "not_matched":
        return building.when_not_matched_insert_all(where)
    if clause.kind == "by_source":
        if clause.action == "delete":
            return building.when_not_matched_by_source_delete(where)
        return building.when_not_matched_by_source_update(changes, where)
    if clause.action == "delete":
        return building.when_matched_delete(where)
    return (
        building.when_matched_update_all(where)
        if clause.action == "update_all"
        else building.when_matched_update(changes, where)
    )


TestOracle = Oracle.TestCase
TestOracle.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
