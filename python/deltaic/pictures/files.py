"""The files of a version as a picture needs them: sizes, deleted rows, bounds of two columns, and which files
a condition reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltaic.errors import InvalidArgumentError
from deltaic.planning.planned import plan
from deltaic.protocol.clustering import DOMAIN, logical_columns
from deltaic.protocol.schema import is_shape, path_text, split_path, type_name, walk

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot


@dataclass(frozen=True)
class Bounds:
    """Minimum and maximum of one column, an entry for each file. `low`, `high`: null where the statistics do
    not say. `all_null`: every value is null."""

    low: pa.Array
    high: pa.Array
    all_null: Any


class Files:
    """The live files of one version. `read`: True for those that may hold a row of `where`; all of them
    without it."""

    def __init__(
        self, snapshot: Snapshot, engine: Engine, where: str | None, columns: Sequence[str] = ()
    ) -> None:
        self.version = snapshot.version
        self._partitioned = set(snapshot.metadata.partition_columns)
        wanted = [
            path_text([name])
            for name in sorted({split_path(name)[0] for name in columns} - self._partitioned)
        ]
        listing = snapshot.core.listing(snapshot.table_schema, None, statistics_columns=wanted).to_table()
        self._listing = listing.combine_chunks()
        self.paths = listing["path"].to_pylist()
        self.sizes = np.asarray(listing["size"].to_numpy(), dtype=np.float64)
        rows = pc.fill_null(listing["num_records"], 0).to_numpy()
        self.rows = np.asarray(rows, dtype=np.float64)
        marked = pc.fill_null(pc.struct_field(listing["deletion_vector"], "cardinality"), 0).to_numpy()
        self.deleted = np.asarray(marked, dtype=np.float64)
        self.read = np.ones(len(self.paths), dtype=np.bool_)
        if where is not None:
            planned = plan(snapshot, engine, where)
            chosen = snapshot.core.listing(
                snapshot.table_schema, planned.pushed, statistics_columns=[]
            ).to_table()["path"]
            self.read = np.asarray(pc.is_in(listing["path"], chosen).to_numpy(), dtype=np.bool_)

    def __len__(self) -> int:
        return len(self.paths)

    def bounds(self, name: str) -> Bounds:
        """The minimum and maximum of a column in each file, or its value where the table is partitioned by
        it. The column is one of those that the files were listed with."""
        path = list(split_path(name))
        if path[0] in self._partitioned:
            values = _chunk(pc.struct_field(self._listing["partition_values"], path))
            return Bounds(values, values, np.asarray(values.is_null().to_numpy(zero_copy_only=False)))
        if _missing(self._listing.schema.field("min_values").type, path):
            nothing = pa.nulls(len(self), pa.null())
            return Bounds(nothing, nothing, np.zeros(len(self), dtype=np.bool_))
        low, high, nulls = (
            _chunk(pc.struct_field(self._listing[part], path))
            for part in ("min_values", "max_values", "null_count")
        )
        all_null = pc.fill_null(pc.equal(nulls, _chunk(self._listing["num_records"])), False)
        return Bounds(low, high, np.asarray(pc.and_(all_null, low.is_null()).to_numpy(zero_copy_only=False)))


def axes_columns(snapshot: Snapshot, columns: str | Sequence[str] | None) -> list[str]:
    """Returns the columns of a layout, with dots, as the schema spells them: the requested ones, else the
    first two clustering columns, else the first two columns with statistics. InvalidArgumentError is raised
    for an unknown column, a column without order, a repeated column, or more than two."""
    schema = snapshot.schema
    if columns is None:
        clustering = logical_columns(schema, snapshot.domains.get(DOMAIN))
        return [path_text(path) for path in clustering[:2]] or _with_statistics(snapshot)
    names = [columns] if isinstance(columns, str) else list(columns)
    paths = []
    for name in names:
        path, item = schema.find(name)
        if not isinstance(item.type, str) or item.type in ("binary", "variant") or is_shape(item.type):
            raise InvalidArgumentError(
                "values of the column have no order to draw",
                where=f"column {path_text(path)}",
                found=type_name(item.type),
                expected="numbers, dates, timestamps, text or boolean",
            )
        if path in paths:
            raise InvalidArgumentError("a column of the picture comes twice", found=path_text(path))
        paths.append(path)
    if not 1 <= len(paths) <= 2:
        raise InvalidArgumentError(
            "a picture of the layout takes one or two columns",
            found=f"{len(paths)} columns",
            expected="one or two",
        )
    return [path_text(path) for path in paths]


def _with_statistics(snapshot: Snapshot) -> list[str]:
    listing = snapshot.core.listing(snapshot.table_schema).to_table()
    found = []
    for path, item in walk(snapshot.schema):
        if (
            isinstance(item.type, str)
            and item.type not in ("binary", "variant", "boolean", "void")
            and not is_shape(item.type)
        ):
            known = not _missing(listing.schema.field("min_values").type, path)
            known = known and pc.struct_field(listing["min_values"], list(path)).null_count < listing.num_rows
            found += [path_text(path)] if known or not listing.num_rows else []
        if len(found) == 2:
            return found
    if found:
        return found
    raise InvalidArgumentError(
        "no column of the table has statistics",
        where=snapshot.location,
        found=f"{listing.num_rows} files",
        expected="minima and maxima: table.optimize.statistics() writes them from the footers",
    )


def _missing(struct: pa.DataType, path: Sequence[str]) -> bool:
    for part in path:
        if not pa.types.is_struct(struct) or struct.get_field_index(part) < 0:
            return True
        struct = struct.field(part).type
    return False


def _chunk(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
