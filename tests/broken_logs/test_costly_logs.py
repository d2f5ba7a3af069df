"""Logs that would be expensive to read: a few bytes declare a great depth, length or number. Each is refused,
or read within the bounds of `bounded.py`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bounded import Bounded
from checkpoints import ACTIONS, alone, classic, columns, part, second, sidecar, state, to_arrow
from healthy import AT_2, FIELDS, METADATA, WITH_VECTORS, Case, Fails, Reads, Table, check, text

HEALTHY = Reads(AT_2)
DEPTH = 200_000
MIB = 1 << 20
FILE = f"{2:020}.checkpoint.parquet"
NEW = f"{3:020}.json"
LEFT = "[" * DEPTH + "]" * DEPTH


def bad(found: str, expected: str, where: str) -> Fails:
    return Fails("ProtocolError", where, found, expected)


def line(*lines: str) -> Callable[[Table], None]:
    """One more commit of these lines."""
    return lambda table: table.write(3, *lines)


def metadata(**fields: Any) -> str:
    return text({"metaData": {**METADATA, **fields}})


def sparse(path: Callable[[Table], Path], size: int) -> Callable[[Table], None]:
    """Returns a case with a file of zeros that takes no space on the disk."""

    def write(table: Table) -> None:
        with open(path(table), "wb") as stream:
            os.truncate(stream.fileno(), size)

    return write


def newlines(size: int) -> Callable[[Table], None]:
    def write(table: Table) -> None:
        with table.commit(3).open("wb") as stream:
            for _ in range(size // MIB):
                stream.write(b"\n" * MIB)

    return write


def nested(depth: int) -> Any:
    value: Any = "long"
    for _ in range(depth):
        value = {"type": "array", "elementType": value, "containsNull": True}
    return value


def wide(count: int) -> str:
    fields = [
        {"name": f"c{number}", "type": "long", "nullable": True, "metadata": {}} for number in range(count)
    ]
    return json.dumps({"type": "struct", "fields": [*FIELDS, *fields]}, separators=(",", ":"))


def long_text(size: int) -> Callable[[Table], None]:
    """Returns a case with a checkpoint that has one text, all of one letter."""

    def write(table: Table) -> None:
        whole = state(table)
        whole[3]["add"]["stats"] = "x" * size
        classic(table, whole, compression="zstd")

    return alone(write)


def lying_page(table: Table) -> None:
    """A checkpoint of which the header of a page claims to be 128 MiB."""
    whole = state(table)
    whole[3]["add"]["stats"] = "x" * (2 * MIB)
    classic(table, whole, compression="snappy", use_dictionary=False)
    path = table.log / FILE
    data = bytearray(path.read_bytes())
    column = next(
        column
        for column in (pq.read_metadata(path).row_group(0).column(number) for number in range(99))
        if column.path_in_schema == "add.stats"
    )
    at = column.data_page_offset + 3  # after the page's type and the mark of its decompressed size
    assert data[at] > 0x7F
    assert data[at + 3] < 0x80  # a number of four bytes
    data[at : at + 4] = b"\xfe\xff\xff\x7f"
    path.write_bytes(data)


def shared_text(size: int, count: int) -> Callable[[Table], None]:
    """Returns a case with a checkpoint whose adds refer to one long text of a dictionary."""

    def write(table: Table) -> None:
        value = "x" * size
        adds = [{"add": table.add(1, path=f"f{number}", stats=value)} for number in range(count)]
        classic(
            table,
            [*state(table)[:2], *adds],
            compression="zstd",
            dictionary_pagesize_limit=1 << 30,
            data_page_size=1 << 30,
        )

    return alone(write)


def prefixes(size: int, count: int) -> Callable[[Table], None]:
    """Returns a case with a checkpoint whose paths each repeat the one before."""

    def write(table: Table) -> None:
        value = "x" * size
        adds = [{"add": table.add(1, path=f"f{number}", stats=value)} for number in range(count)]
        encodings = {"add.stats": "DELTA_BYTE_ARRAY"}
        classic(
            table,
            [*state(table)[:2], *adds],
            compression="zstd",
            use_dictionary=False,
            column_encoding=encodings,
        )

    return alone(write)


def empty_rows(count: int) -> Callable[[Table], None]:
    """Returns a case with a checkpoint of rows without any action."""

    def write(table: Table) -> None:
        shape = columns(**{name: None for name in ACTIONS if name not in ("protocol", "txn")})
        classic(
            table,
            pa.concat_tables(
                [
                    to_arrow(state(table)[:1], shape),
                    shape.empty_table().from_arrays([pa.nulls(count, f.type) for f in shape], schema=shape),
                ]
            ),
        )

    return alone(write)


def deep_column(depth: int) -> Callable[[Table], None]:
    def write(table: Table) -> None:
        kind: pa.DataType = pa.int64()
        for _ in range(depth):
            kind = pa.struct({"x": kind})
        classic(table, to_arrow(state(table), columns(add={**ACTIONS["add"], "stats_parsed": kind})))

    return alone(write)


def wide_column(count: int) -> Callable[[Table], None]:
    parsed = pa.struct(
        {
            "numRecords": pa.int64(),
            "minValues": pa.struct({f"c{number}": pa.int64() for number in range(count)}),
        }
    )
    return alone(
        lambda table: classic(
            table, to_arrow(state(table), columns(add={**ACTIONS["add"], "stats_parsed": parsed}))
        )
    )


def many_sidecars(count: int) -> Callable[[Table], None]:
    def write(table: Table) -> None:
        named = sidecar(table, "s.parquet", state(table)[2:])
        gone = [
            {"sidecar": {"path": f"{number}.parquet", "sizeInBytes": 1, "modificationTime": 1}}
            for number in range(count)
        ]
        second(table, [named, *gone])

    return alone(write)


CASES = [
    # --- depth
    Case(
        "deep, of an action that nobody knows",
        line('{"future":' + LEFT + "}"),
        bad("deeper than 128", "a JSON object", f"{NEW}:1"),
    ),
    Case(
        "deep, of commitInfo",
        line('{"commitInfo":{"x":' + LEFT + "}}"),
        bad("deeper than 128", "a JSON object", f"{NEW}:1"),
    ),
    Case(
        "deep, of the protocol",
        line('{"protocol":{"x":' + LEFT + "}}"),
        bad("deeper than 128", "a JSON object", f"{NEW}:1"),
    ),
    Case(
        "deep, never closed",
        line('{"commitInfo":{"x":' + "[" * DEPTH),
        bad("EOF", "a JSON object", f"{NEW}:1"),
    ),
    Case(
        "deep, of objects",
        line('{"a":' * DEPTH + "1" + "}" * DEPTH),
        bad("deeper than 128", "a JSON object", f"{NEW}:1"),
    ),
    Case(
        "deep, in a field that nobody knows",
        lambda t: t.replace(2, '"add":{', '"add":{"x":' + LEFT + ","),
        HEALTHY,
    ),
    Case(
        "deep, in tags",
        lambda t: t.replace(2, '"add":{', '"add":{"tags":{"x":' + LEFT + "},"),
        bad("invalid type", "a JSON object", f"{2:020}.json:3"),
    ),
    Case("deep, in statistics", lambda t: t.change(2, "add", stats='{"minValues":' + LEFT + "}"), HEALTHY),
    Case("deep, in the schema", line(metadata(schemaString=LEFT)), bad("[[[", "", f"{NEW}:1")),
    Case(
        "a type of a thousand types",
        line(
            metadata(
                schemaString=json.dumps({"type": "struct", "fields": [{**FIELDS[0], "type": nested(200)}]})
            )
        ),
        bad("types", "at most 100", f"{NEW}:1"),
    ),
    Case("a deep hint", lambda t: (classic(t), t.hint(LEFT.encode())), HEALTHY),
    Case(
        "a deep line of a checkpoint",
        alone(lambda t: second(t, [], rows=[{"protocol": WITH_VECTORS}, {"txn": {"x": nested(150)}}])),
        bad("deeper than 128", "a JSON object", ".json:2"),
    ),
    # --- length
    Case(
        "a line of 65 MiB",
        line('{"future":"' + "x" * (65 * MIB) + '"}'),
        bad("68157453 bytes", "at most 67108864", f"{NEW}:1"),
    ),
    Case("a line of 60 MiB", line('{"future":"' + "x" * (60 * MIB) + '"}'), HEALTHY),
    Case("statistics of 40 MiB", lambda t: t.change(2, "add", stats="x" * (40 * MIB)), HEALTHY),
    Case(
        "a path of 10 MiB",
        lambda t: t.change(2, "add", path="p=x/" + "x" * (10 * MIB)),
        bad("no such file", "a data file", "xxx"),
    ),
    Case(
        "a commit of 8 GiB of zeros",
        sparse(lambda t: t.commit(3), 8 << 30),
        bad("bytes", "at most 67108864", f"{NEW}:1"),
    ),
    Case(
        "a commit of 160 MiB of newlines",
        newlines(160 * MIB),
        bad(f"{160 * MIB} bytes", "a JSON object", NEW),
    ),
    Case(
        "its history",
        sparse(lambda t: t.commit(2), 8 << 30),
        bad("bytes", "at most 67108864", f"{2:020}.json:1"),
        "history",
    ),
    Case(
        "a hint of 8 GiB",
        lambda t: (classic(t), sparse(lambda t: t.log / "_last_checkpoint", 8 << 30)(t)),
        HEALTHY,
    ),
    Case("a checksum of 8 GiB", sparse(lambda t: t.log / f"{2:020}.crc", 8 << 30), HEALTHY),
    Case(
        "a compacted file of 8 GiB",
        sparse(lambda t: t.log / f"{1:020}.{2:020}.compacted.json", 8 << 30),
        HEALTHY,
    ),
    Case("a checkpoint of 8 GiB of zeros", sparse(lambda t: t.log / FILE, 8 << 30), HEALTHY),
    Case(
        "a checkpoint of 8 GiB of zeros alone",
        alone(sparse(lambda t: t.log / FILE, 8 << 30)),
        bad("\\x00\\x00", "Parquet", FILE),
    ),
    Case(
        "a checkpoint of lines, of 8 GiB of zeros",
        alone(sparse(lambda t: t.log / f"{2:020}.checkpoint.{'a' * 36}.json", 8 << 30)),
        bad("bytes", "at most 67108864", ".json:1"),
    ),
    Case(
        "a data file of 8 GiB of zeros",
        sparse(lambda t: t.root / "p=x/f2.parquet", 8 << 30),
        bad("\\x00", "PAR1", "f2.parquet"),
    ),
    # --- number
    Case(
        "a number of a million digits",
        line('{"protocol":{"minReaderVersion":' + "1" * MIB + "}}"),
        bad("111", "", f"{NEW}:1"),
    ),
    Case(
        "a precision of a million digits",
        line(
            metadata(
                schemaString=json.dumps(
                    {"type": "struct", "fields": [{**FIELDS[0], "type": f"decimal({'1' * MIB},0)"}]}
                )
            )
        ),
        bad("decimal(111", "a type of PROTOCOL.md", f"{NEW}:1"),
    ),
    Case(
        "a feature of a million letters",
        line(text({"protocol": {**WITH_VECTORS, "readerFeatures": ["x" * MIB]}})),
        Fails("UnsupportedFeatureError", f"{NEW}:1", "xxx", "features that this release reads"),
    ),
    Case(
        "two hundred thousand features",
        line(
            text(
                {"protocol": {**WITH_VECTORS, "readerFeatures": [f"x{number}" for number in range(200_000)]}}
            )
        ),
        Fails("UnsupportedFeatureError", f"{NEW}:1", "x0", "features that this release reads"),
    ),
    Case(
        "two hundred thousand columns",
        line(metadata(schemaString=wide(200_000))),
        bad("200002", "at most 100000", f"{NEW}:1"),
    ),
    Case(
        "ten million empty lists in the schema",
        line(metadata(schemaString="[" + "[]," * 10_000_000 + "[]]")),
        bad("values", "at most", f"{NEW}:1"),
    ),
    Case(
        "ten million empty lists in the definition",
        line('{"metaData":{"x":[' + "[]," * 10_000_000 + "[]]}}"),
        bad("values", "at most", f"{NEW}:1"),
    ),
    Case(
        "ten million empty lists in the hint",
        lambda t: (classic(t), t.hint(b'{"version":2,"x":[' + b"[]," * 10_000_000 + b"[]]}")),
        HEALTHY,
    ),
    Case("a hundred thousand blank lines and lines of nothing", line(*["", "{}"] * 100_000), HEALTHY),
    Case(
        "a hundred thousand tags",
        lambda t: t.change(2, "add", tags={f"k{number}": "v" for number in range(5_000)}),
        HEALTHY,
    ),
    Case(
        "a part of four thousand million",
        alone(lambda t: part(t, 1, 4_000_000_000, state(t))),
        bad("not all of its parts", "version 0", "_delta_log"),
    ),
    Case(
        "a hundred thousand sidecars that are not there",
        many_sidecars(100_000),
        bad("no such file", "a file of the log", "_sidecars/0.parquet"),
    ),
    # --- pages that unfold
    Case(
        "a text of 100 MiB in some kilobytes",
        long_text(100 * MIB),
        bad("bytes of pages", "at most 67108864", FILE),
    ),
    Case("a text of 40 MiB in some kilobytes", long_text(40 * MIB), HEALTHY),
    Case("a page that claims 128 MiB", alone(lying_page), bad("bytes of pages", "at most 67108864", FILE)),
    Case(
        "a dictionary's text in each row",
        shared_text(2 * MIB, 300),
        bad("bytes of actions", "at most 201326592", FILE),
    ),
    Case("a prefix in each row", prefixes(2 * MIB, 300), bad("bytes of actions", "at most 201326592", FILE)),
    Case("five million rows of nothing", empty_rows(5_000_000), bad("5000001 rows", "at most 1048576", FILE)),
    Case("a column of three hundred structs", deep_column(300), HEALTHY),
    Case("twenty thousand typed statistics", wide_column(20_000), HEALTHY),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_costly_logs(case: Case, tmp_path: Path, bounded: Bounded) -> None:
    check(case, tmp_path, bounded)
