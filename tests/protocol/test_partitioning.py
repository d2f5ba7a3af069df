"""Partition columns."""

from __future__ import annotations

import pytest

from deltaic.errors import InvalidArgumentError
from deltaic.protocol import partitioning
from deltaic.protocol.schema import Schema

TABLE = Schema.from_ddl("Id bigint, Day date, s struct<x: int>, v variant")


def test_columns_come_back_in_the_tables_case():
    assert partitioning.partition_columns(TABLE, "day") == ("Day",)
    assert partitioning.partition_columns(TABLE, ["DAY", "id"]) == ("Day", "Id")
    assert partitioning.partition_columns(TABLE, None) == ()
    assert partitioning.partition_columns(TABLE, []) == ()


@pytest.mark.parametrize("names", [["x"], ["s"], ["s.x"], ["v"], ["day", "Day"]])
def test_refused(names):
    with pytest.raises(InvalidArgumentError):
        partitioning.partition_columns(TABLE, names)


def test_not_every_column():
    with pytest.raises(InvalidArgumentError, match="not every column"):
        partitioning.partition_columns(TABLE[:2], ["id", "day"])


def test_folders():
    assert partitioning.from_directory("month=1/city=New%20York/x=y.parquet") == {
        "month": "1",
        "city": "New York",
    }
    assert partitioning.from_directory("a=__HIVE_DEFAULT_PARTITION__/f") == {"a": None}
