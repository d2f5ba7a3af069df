"""`deltaic.spark.functions`, in both forms and in SQL, compared with `_core` and plain Python."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltaic import DeletionVector, _core
from deltaic.errors import InvalidArgumentError

pytest.importorskip("pyspark")

FORMS = ["arrow", "pandas"]


def values(frame: Any, column: Any) -> list[Any]:
    found = frame.select(column.alias("found")).collect()
    return [bytes(row[0]) if isinstance(row[0], bytearray) else row[0] for row in found]


@pytest.fixture
def points(spark: Any) -> Any:
    rows = pa.table(
        {"x": pa.array([0, 1, 5, None, 1023], pa.int32()), "y": pa.array([7, 0, 5, 2, 1], pa.int32())}
    )
    return spark.createDataFrame(rows)


@pytest.mark.parametrize("form", FORMS)
def test_range_partition_id(spark: Any, points: Any, form: Any) -> None:
    from deltaic.spark.functions import range_partition_id

    assert values(points, range_partition_id("x", [0, 4, 100], form=form)) == [0, 1, 2, 0, 3]
    names = spark.createDataFrame([("a",), ("m",), (None,), ("z",)], "s string")
    assert values(names, range_partition_id("s", ["b", "n"], form=form)) == [0, 1, 0, 2]


@pytest.mark.parametrize("form", FORMS)
def test_curves(points: Any, form: Any) -> None:
    from deltaic.spark.functions import hilbert_index, interleave_bits

    x, y = pa.array([0, 1, 5, 0, 1023], pa.int32()), pa.array([7, 0, 5, 2, 1], pa.int32())
    assert values(points, interleave_bits("x", "y", form=form)) == _core.interleave_bits([x, y]).to_pylist()
    assert (
        values(points, hilbert_index(10, "x", "y", form=form)) == _core.hilbert_index([x, y], 10).to_pylist()
    )


def test_a_curve_needs_columns() -> None:
    from deltaic.spark.functions import interleave_bits

    with pytest.raises(InvalidArgumentError):
        interleave_bits()


@pytest.mark.parametrize("form", FORMS)
def test_z85(spark: Any, form: Any) -> None:
    from deltaic.spark.functions import z85_decode, z85_encode

    frame = spark.createDataFrame(
        [(b"\x86\x4f\xd2\x6f\xb5\x59\xf7\x5b",), (None,), (b"",), (b"\x01",)], "b binary"
    )
    texts = ["HelloWorld", None, "", _core.z85_encode(b"\x01")]
    assert values(frame, z85_encode("b", form=form)) == texts
    assert values(frame, z85_decode(z85_encode("b", form=form), form=form)) == [
        b"\x86\x4f\xd2\x6f\xb5\x59\xf7\x5b",
        None,
        b"",
        b"\x01\0\0\0",
    ]
    with pytest.raises(Exception, match=r"ProtocolError|InvalidArgumentError"):
        values(spark.createDataFrame([('"',)], "t string"), z85_decode("t", form=form))


@pytest.mark.parametrize("form", FORMS)
def test_row_is_deleted(spark: Any, form: Any) -> None:
    from deltaic.spark.functions import row_is_deleted

    few, many = (
        DeletionVector.from_rows([0, 2, 2**33]).to_bytes(),
        DeletionVector.from_rows(range(0, 100_000, 3)).to_bytes(),
    )
    rows = [(few, 0), (few, 1), (many, 99_999), (many, 99_998), (None, 2), (few, 2**33), (few, None)]
    frame = spark.createDataFrame(rows, "v binary, i bigint").coalesce(1)
    assert values(frame, row_is_deleted("v", "i", form=form)) == [True, False, True, False, False, True, None]
    with pytest.raises(Exception, match="ProtocolError"):
        values(
            spark.createDataFrame([(b"no vector", 1)], "v binary, i bigint"),
            row_is_deleted("v", "i", form=form),
        )


@pytest.mark.parametrize("form", FORMS)
def test_in_sql(spark: Any, points: Any, form: Any) -> None:
    from deltaic.spark.functions import register

    register(spark, form=form)
    points.createOrReplaceTempView("points")
    text = (
        "select range_partition_id(x, array(0, 4, 100)) r, interleave_bits(x, y) z,"
        " z85_encode(interleave_bits(x, y)) t from points"
    )
    found = spark.sql(text).collect()
    assert [row["r"] for row in found] == [0, 1, 2, 0, 3]
    assert [_core.z85_encode(bytes(row["z"])) for row in found] == [row["t"] for row in found]
    hilbert = [bytes(row[0]) for row in spark.sql("select hilbert_index(10, x, y) from points").collect()]
    x, y = pa.array([0, 1, 5, 0, 1023], pa.int32()), pa.array([7, 0, 5, 2, 1], pa.int32())
    assert hilbert == _core.hilbert_index([x, y], 10).to_pylist()
    with pytest.raises(Exception, match="one constant"):
        spark.sql("select range_partition_id(x, array(y)) from points").collect()
