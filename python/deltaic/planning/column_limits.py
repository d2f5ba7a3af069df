"""Minimum and maximum of a table's numeric columns from the statistics of its files. They show that
`price * (1 - discount)` cannot overflow, so that the engine may compute it without a check."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from deltaic.spark_sql import values as v
from deltaic.spark_sql.values import Limits, Value, limits_of

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot
    from deltaic.protocol.schema import Field

MAX_FILES = 10_000
"""Maximum number of files whose statistics are read; a table with more files has no limits."""


def column_limits(snapshot: Snapshot, names: Iterable[str]) -> dict[str, Limits]:
    """Returns the limits of those columns that are integers or decimals, by name. A column is left out if the
    statistics of a file lack it."""
    lowered = {name.lower() for name in names}
    partitioned = set(snapshot.metadata.partition_columns)
    fields = [
        field
        for field in snapshot.schema
        if field.name.lower() in lowered and _is_exact(field) and field.name not in partitioned
    ]
    if not fields or not 0 < snapshot.core.file_count <= MAX_FILES:
        return {}
    import pyarrow.compute as pc

    listing = snapshot.core.listing(
        snapshot.table_schema, None, statistics_columns=[field.name for field in fields]
    ).to_table()
    limits = {}
    for field in fields:
        least, greatest, nulls = (
            _statistic(listing, kind, field.name) for kind in ("min_values", "max_values", "null_count")
        )
        if least is None or greatest is None:
            continue
        unknown = pc.or_(pc.is_null(least), pc.is_null(greatest))
        if nulls is not None:  # a file with only nulls in the column needs no limits
            # null: not known. `pc.fill_null` would import pandas.
            has_values = pc.not_equal(nulls, listing["num_records"])
            unknown = pc.and_(unknown, pc.or_kleene(has_values, pc.is_null(has_values)))
        if pc.any(unknown).as_py():
            continue
        ends = pc.min(least).as_py(), pc.max(greatest).as_py()
        if None not in ends:
            limits[field.name] = Limits(*(_digits(end, field) for end in ends))
    return limits


def _is_exact(field: Field) -> bool:
    return field.type in v.INTEGRAL or (
        isinstance(field.type, str) and v.decimal_parts(field.type) is not None
    )


def _statistic(listing: Any, kind: str, name: str) -> Any:
    import pyarrow.compute as pc

    if kind not in listing.column_names or listing[kind].type.get_field_index(name) < 0:
        return None
    return pc.struct_field(listing[kind], name)


def _digits(number: int | Decimal, field: Field) -> int:
    return limits_of(Value("", field.type, constant=number)).least
