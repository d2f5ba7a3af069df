"""Files written before a column's type was widened read as the wider type. Source: PROTOCOL.md, "Type
Widening", supported type changes."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic.errors import UnsupportedFeatureError

CHANGES = [
    ("byte", "short", pa.int8(), [1, -128, None], [1, -128, None]),
    ("short", "integer", pa.int16(), [1, -32768, None], [1, -32768, None]),
    ("integer", "long", pa.int32(), [2**31 - 1, -5, None], [2**31 - 1, -5, None]),
    ("byte", "long", pa.int8(), [1, -128, None], [1, -128, None]),
    ("float", "double", pa.float32(), [1.5, -0.25, None], [1.5, -0.25, None]),
    ("integer", "double", pa.int32(), [2**31 - 1, -5, None], [float(2**31 - 1), -5.0, None]),
    (
        "date",
        "timestamp_ntz",
        pa.date32(),
        [datetime.date(2020, 1, 2), datetime.date(1, 1, 1), None],
        [datetime.datetime(2020, 1, 2), datetime.datetime(1, 1, 1), None],
    ),
    (
        "decimal(5,2)",
        "decimal(10,3)",
        pa.decimal128(5, 2),
        [Decimal("1.23"), Decimal("-999.99"), None],
        [Decimal("1.230"), Decimal("-999.990"), None],
    ),
    ("integer", "decimal(12,1)", pa.int32(), [5, -7, None], [Decimal("5.0"), Decimal("-7.0"), None]),
    (
        "long",
        "decimal(22,2)",
        pa.int64(),
        [2**63 - 1, -7, None],
        [Decimal("9223372036854775807.00"), Decimal("-7.00"), None],
    ),
]


def make(path, before, after, values, *, nested=False):
    """A table of one file with `values`, whose column was `before` when the file was written and is `after`
    now."""
    (path / "_delta_log").mkdir()
    pq.write_table(pa.table({"a": values}), path / "f.parquet")
    change = {"fromType": before, "toType": after, **({"fieldPath": "element"} if nested else {})}
    data_type = {"type": "array", "elementType": after, "containsNull": True} if nested else after
    fields = [{"name": "a", "type": data_type, "nullable": True, "metadata": {"delta.typeChanges": [change]}}]
    features = ["typeWidening", "timestampNtz"]
    actions = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
        },
        {
            "metaData": {
                "id": "i",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": [],
                "configuration": {},
            }
        },
        {
            "add": {
                "path": "f.parquet",
                "partitionValues": {},
                "size": (path / "f.parquet").stat().st_size,
                "modificationTime": 1,
                "dataChange": True,
            }
        },
    ]
    (path / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return deltaic.DeltaTable(path)


@pytest.mark.parametrize(
    ("before", "after", "arrow", "values", "expected"),
    CHANGES,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_values_of_old_files(tmp_path, before, after, arrow, values, expected):
    table = make(tmp_path, before, after, pa.array(values, arrow))
    assert table.schema.field("a").type == after
    assert table.scan().to_arrow()["a"].to_pylist() == expected
    assert table.scan(where="a is null").to_arrow().num_rows == 1


@pytest.mark.parametrize(
    ("before", "after", "arrow", "values", "expected"),
    CHANGES,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_values_in_arrays_of_old_files(tmp_path, before, after, arrow, values, expected):
    table = make(tmp_path, before, after, pa.array([values], pa.list_(arrow)), nested=True)
    assert table.scan().to_arrow()["a"].to_pylist() == [expected]


def test_a_change_that_is_no_widening_is_refused(tmp_path):
    with pytest.raises(UnsupportedFeatureError, match="string to long"):
        make(tmp_path, "string", "long", pa.array([1]))
