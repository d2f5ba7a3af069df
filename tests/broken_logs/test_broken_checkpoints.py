"""Checkpoints, sidecars and `_last_checkpoint` that are broken (PROTOCOL.md, "Checkpoints", "Last Checkpoint
File").

If the commits still exist, a broken checkpoint does no harm; if they were deleted, the error names the fault
of the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from bounded import Bounded
from checkpoints import ACTIONS, Rows, alone, classic, columns, part, state, to_arrow
from healthy import AT_2, METADATA, WITH_VECTORS, Case, Fails, Reads, Table, check

HEALTHY = Reads(AT_2)
FILE = f"{2:020}.checkpoint.parquet"


def rows(edit: Callable[[Rows], object]) -> Callable[[Table], None]:
    """Returns a case with a checkpoint alone, whose rows are changed. They are protocol, metaData, remove,
    add, add."""

    def write(table: Table) -> None:
        whole = state(table)
        edit(whole)
        classic(table, whole)

    return alone(write)


def fields(kind: str, **changed: Any) -> Callable[[Table], None]:
    """Fields of the first action of a kind; ... takes one out."""

    def edit(whole: Rows) -> None:
        row = next(row for row in whole if kind in row)
        row[kind] = {key: value for key, value in {**row[kind], **changed}.items() if value is not ...}

    return rows(edit)


def shaped(kind: str, shape: Any, value: Any = None) -> Callable[[Table], None]:
    """Returns a case with a checkpoint alone, in which one action has another type and equal values in all
    rows."""

    def write(table: Table) -> None:
        whole = [{**row, kind: value} if kind in row else row for row in state(table)]
        classic(table, to_arrow(whole, columns(**{kind: shape})))

    return alone(write)


def typed(kind: str, value: Any, **types: pa.DataType) -> Callable[[Table], None]:
    """Returns a case with a checkpoint alone, in which one field of an action has another type and equal
    values."""

    def write(table: Table) -> None:
        ((field, _),) = types.items()
        whole = [{**row, kind: {**row[kind], field: value}} if kind in row else row for row in state(table)]
        classic(table, to_arrow(whole, columns(**{kind: {**ACTIONS[kind], **types}})))

    return alone(write)


def without(*kinds: str) -> Callable[[Table], None]:
    return alone(lambda table: classic(table, to_arrow(state(table), columns(**dict.fromkeys(kinds)))))


def bytes_of(edit: Callable[[bytes], bytes], *, keep: bool = False) -> Callable[[Table], None]:
    """Returns a case with a checkpoint whose bytes are changed, alone or with the commits."""

    def write(table: Table) -> None:
        classic(table)
        path = table.log / FILE
        path.write_bytes(edit(path.read_bytes()))

    return write if keep else alone(write)


def footer_of(length: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:-8] + length.to_bytes(4, "little") + b"PAR1"


def hinted(content: Any, *, checkpoint: bool = True) -> Callable[[Table], None]:
    def write(table: Table) -> None:
        if checkpoint:
            classic(table)
        table.hint(content)

    return write


def parts(*present: int, count: int = 3, keep: bool = False) -> Callable[[Table], None]:
    def write(table: Table) -> None:
        whole = state(table)
        pieces = [whole[:2], whole[2:4], whole[4:]]
        for number in present:
            part(table, number, count, pieces[(number - 1) % 3])

    return write if keep else alone(write)


def bad(found: str, expected: str, where: str = FILE, error: str = "ProtocolError") -> Fails:
    return Fails(error, where, found, expected)


def row(number: int, found: str, expected: str) -> Fails:
    return bad(found, expected, f"{FILE} row {number}")


MALFORMED = "a JSON object"
TRUNCATED = bad("not all of its parts", "version 0, or a complete checkpoint", "_delta_log")

CASES = [
    Case("a checkpoint alone", alone(classic), HEALTHY),
    Case("a checkpoint in parts", parts(1, 2, 3), HEALTHY),
    # --- the hint
    Case("a hint of no bytes", hinted(b""), HEALTHY),
    Case("a hint of nonsense", hinted(b"\xff{"), HEALTHY),
    Case("a hint that is a list", hinted(b"[2]"), HEALTHY),
    Case("a hint without a version", hinted({"size": 5}), HEALTHY),
    Case("a hint of text", hinted({"version": "2"}), HEALTHY),
    Case("a hint of a negative version", hinted({"version": -1}), HEALTHY),
    Case("a hint of parts of a version", hinted({"version": 1.5}), HEALTHY),
    Case("a hint beyond 64 bits", hinted({"version": 2**70}), HEALTHY),
    Case("a hint of a version that is not there", hinted({"version": 99, "size": 5}), HEALTHY),
    Case("a hint of a checkpoint that is gone", hinted({"version": 2, "size": 5}, checkpoint=False), HEALTHY),
    Case(
        "a hint of an older checkpoint",
        lambda t: (classic(t), classic(t, state(t), version=1), t.hint({"version": 1, "size": 5})),
        HEALTHY,
    ),
    Case("a hint of parts that are not there", hinted({"version": 2, "size": 5, "parts": 7}), HEALTHY),
    Case("a hint of another checksum", hinted({"version": 2, "size": 5, "checksum": "0" * 32}), HEALTHY),
    Case("a hint that is a folder", lambda t: (classic(t), (t.log / "_last_checkpoint").mkdir()), HEALTHY),
    Case(
        "a hint whose sizes are lies",
        hinted({"version": 2, "size": -7, "sizeInBytes": 2**62, "numOfAddFiles": "x"}),
        HEALTHY,
    ),
    # --- the file
    Case("no bytes, with the commits", bytes_of(lambda _: b"", keep=True), HEALTHY),
    Case(
        "no bytes",
        bytes_of(lambda _: b""),
        bad("no commit and no checkpoint", "a commit or a checkpoint", "_delta_log", "TableNotFoundError"),
    ),
    Case("nonsense, with the commits", bytes_of(lambda _: b"nonsense", keep=True), HEALTHY),
    Case("nonsense", bytes_of(lambda _: b"nonsense"), bad("8 bytes", "Parquet")),
    Case("four bytes", bytes_of(lambda _: b"PAR1"), bad("4 bytes", "Parquet")),
    Case("cut in half, with the commits", bytes_of(lambda data: data[: len(data) // 2], keep=True), HEALTHY),
    Case("cut in half", bytes_of(lambda data: data[: len(data) // 2]), bad('"', "Parquet")),
    Case("a byte short", bytes_of(lambda data: data[:-1]), bad("\\x00PAR", "Parquet")),
    Case("a footer of 2 GiB", bytes_of(footer_of(2**31 - 1)), bad("2147483", "Parquet")),
    Case("a footer of 4 GiB", bytes_of(footer_of(2**32 - 1)), bad("4294967", "Parquet")),
    Case("a footer of no bytes", bytes_of(footer_of(0)), bad("", "Parquet")),
    Case("a footer of zeros", bytes_of(lambda data: data[:-100] + bytes(92) + data[-8:]), bad("", "Parquet")),
    Case("pages of zeros", bytes_of(lambda data: data[:4] + bytes(900) + data[904:]), bad("", "")),
    Case("an encrypted footer", bytes_of(lambda data: data[:-4] + b"PARE"), bad("", "Parquet")),
    Case(
        "JSON in place of Parquet",
        bytes_of(lambda _: b'{"protocol":{"minReaderVersion":1}}'),
        bad(":1}}", "Parquet"),
    ),
    Case(
        "an older one is used",
        lambda t: (
            classic(t, [*state(t)[:2], {"add": t.add(0)}, {"add": t.add(1)}], version=1),
            bytes_of(lambda _: b"x" * 99, keep=True)(t),
            t.delete(0),
        ),
        HEALTHY,
    ),
    # --- parts
    Case("a part is missing, with the commits", parts(1, 3, keep=True), HEALTHY),
    Case("a part is missing", parts(1, 3), TRUNCATED),
    Case("only parts that nobody counts", parts(0, 4), TRUNCATED),
    Case(
        "parts of another count",
        alone(lambda t: (part(t, 1, 2, state(t)), part(t, 2, 3, state(t)))),
        TRUNCATED,
    ),
    Case("of four thousand million parts", parts(1, count=4_000_000_000), TRUNCATED),
    Case("of no parts", parts(1, count=0), TRUNCATED),
    Case(
        "parts that both define the table",
        alone(lambda t: (part(t, 1, 2, state(t)), part(t, 2, 2, state(t)[:1]))),
        bad("two of protocol", "at most one", f"{2:020}.checkpoint.{2:010}"),
    ),
    # --- columns
    Case(
        "columns of something else",
        alone(lambda t: classic(t, pa.table({"a": [1]}))),
        bad("columns a", "add, remove, metaData, protocol"),
    ),
    Case("no rows", rows(lambda whole: whole.clear()), bad("no protocol action", "one in", "version 2")),
    Case("no column of adds", without("add"), Reads([])),
    Case(
        "no column of removes",
        without("remove", "txn", "domainMetadata", "sidecar", "checkpointMetadata"),
        HEALTHY,
    ),
    Case("no column of the protocol", without("protocol"), bad("no protocol action", "one in", "version 2")),
    Case(
        "no column of the definition", without("metaData"), bad("no metaData action", "one in", "version 2")
    ),
    Case("adds that are text", shaped("add", pa.string(), "x"), bad("Utf8", "a struct")),
    Case("adds that are a list", shaped("add", pa.list_(pa.string()), ["x"]), bad("List", "a struct")),
    Case("a protocol that is a number", shaped("protocol", pa.int64(), 1), bad("Int64", "a struct")),
    Case("a path that is a number", typed("add", 5, path=pa.int64()), bad("Int64", "Utf8")),
    Case("a size that is text", typed("add", "5", size=pa.string()), bad("Utf8", "Int64")),
    Case("a size that is a float", typed("add", 5.5, size=pa.float64()), bad("Float64", "Int64")),
    Case("a size of 32 bits", typed("add", 5, size=pa.int32()), HEALTHY),
    Case(
        "values of partitions as a struct",
        typed("add", {"p": "x"}, partitionValues=pa.struct({"p": pa.string()})),
        bad("Struct", "Map"),
    ),
    Case(
        "values of partitions that are numbers",
        typed("add", {"p": 5}, partitionValues=pa.map_(pa.string(), pa.int64())),
        bad("Int64", "Utf8"),
    ),
    Case("statistics that are bytes", typed("add", b'{"numRecords":3}', stats=pa.binary()), HEALTHY),
    Case("statistics that are no text", typed("add", b"\xff\xfe", stats=pa.binary()), bad("", "Utf8")),
    Case(
        "a version of the protocol that is text",
        typed("protocol", "3", minReaderVersion=pa.string()),
        row(0, "'3'", "a version from 1 on"),
    ),
    Case(
        "a schema that is a struct",
        typed("metaData", {"a": 1}, schemaString=pa.struct({"a": pa.int64()})),
        row(1, "{", "text"),
    ),
    Case(
        "no column of paths",
        shaped("add", {key: kind for key, kind in ACTIONS["add"].items() if key != "path"}, {"size": 5}),
        bad("partitionValues, size", "path"),
    ),
    Case(
        "a version of an application that is text",
        alone(
            lambda t: classic(
                t,
                to_arrow(
                    [*state(t), {"txn": {"appId": "a", "version": "x"}}],
                    columns(txn={"appId": pa.string(), "version": pa.string()}),
                ),
            )
        ),
        row(5, "invalid type: string", MALFORMED),
    ),
    # --- rows
    Case("an add without a path", fields("add", path=None), row(3, "no such field", "path")),
    Case("an add of an empty path", fields("add", path=""), row(3, "an empty path", "a path")),
    Case("an add without a size", fields("add", size=None), row(3, "no such field", "size")),
    Case("an add of negative size", fields("add", size=-5), row(3, "size -5", "0 or more")),
    Case(
        "an add without values of partitions",
        fields("add", partitionValues=None),
        row(3, "no such field", "partitionValues"),
    ),
    Case(
        "an add out of the table",
        fields("add", path="../secret.parquet"),
        Fails("PathOutsideTableError", "../secret.parquet", "'..'", "below the table's root"),
    ),
    Case("a remove without a path", fields("remove", path=None), row(2, "no such field", "path")),
    Case("a remove of negative size", fields("remove", size=-5), row(2, "size -5", "0 or more")),
    Case(
        "a vector without its kind",
        fields("add", deletionVector={"sizeInBytes": 5, "cardinality": 1}),
        row(3, "no such field", "deletionVector.storageType"),
    ),
    Case("a vector of nulls", fields("add", deletionVector={}), HEALTHY),
    Case(
        "a vector of negative count",
        fields(
            "add",
            deletionVector={"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 5, "cardinality": -1},
        ),
        row(3, "a negative number", "0 or more"),
    ),
    Case(
        "an add twice",
        rows(lambda whole: whole.append(whole[3])),
        bad("two add actions", "one", "f1.parquet"),
    ),
    Case(
        "two protocols",
        rows(lambda whole: whole.append({"protocol": WITH_VECTORS})),
        row(5, "two of protocol", "at most one"),
    ),
    Case(
        "two definitions",
        rows(lambda whole: whole.append({"metaData": METADATA})),
        row(5, "two of metaData", "at most one"),
    ),
    Case("no protocol", rows(lambda whole: whole.pop(0)), bad("no protocol action", "one in", "version 2")),
    Case("no definition", rows(lambda whole: whole.pop(1)), bad("no metaData action", "one in", "version 2")),
    Case(
        "a protocol without versions",
        fields("protocol", minReaderVersion=None),
        row(0, "None", "a version from 1 on"),
    ),
    Case(
        "a protocol of the future",
        fields("protocol", minReaderVersion=9),
        Fails("UnsupportedFeatureError", f"{FILE} row 0", "9", "1 to 3"),
    ),
    Case("a definition without a schema", fields("metaData", schemaString=None), row(1, "None", "text")),
    Case("a schema that is no JSON", fields("metaData", schemaString="{"), row(1, "{", "JSON")),
    Case(
        "a transaction without its application",
        rows(lambda whole: whole.append({"txn": {"version": 1}})),
        row(5, "missing field `appId`", MALFORMED),
    ),
    Case(
        "a domain without a name",
        rows(lambda whole: whole.append({"domainMetadata": {"configuration": ""}})),
        row(5, "missing field `domain`", MALFORMED),
    ),
    Case(
        "a domain twice",
        rows(
            lambda whole: whole.extend(
                [{"domainMetadata": {"domain": "d", "configuration": "", "removed": False}}] * 2
            )
        ),
        row(6, "two of domainMetadata", "at most one"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_broken_checkpoints(case: Case, tmp_path: Path, bounded: Bounded) -> None:
    check(case, tmp_path, bounded)
