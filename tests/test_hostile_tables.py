"""Tables whose bytes an attacker made: each gives the right rows or an error of deltaic, in bounded time, and
no file outside of the table is touched.

Source: PROTOCOL.md, "Add File and Remove File", "Deletion Vectors"; the cases are those in which other
readers failed.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic.errors import DeltaError, PathOutsideTableError, ProtocolError

FIELDS = [
    {"name": name, "type": data_type, "nullable": True, "metadata": {}}
    for name, data_type in (("a", "long"), ("p", "string"))
]
SCHEMA = json.dumps({"type": "struct", "fields": FIELDS})
VECTORS = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["deletionVectors"],
}
ROWS = [{"a": number, "p": letter} for number, letter in enumerate("xyz")]


def actions(folder, *, add=None, metadata=None, protocol=None):
    """The lines of a commit that is in order but for what is given."""
    file = {
        "path": "f.parquet",
        "partitionValues": {},
        "size": (folder / "f.parquet").stat().st_size,
        "modificationTime": 1,
        "dataChange": True,
    }
    definition = {
        "id": "i",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": SCHEMA,
        "partitionColumns": [],
        "configuration": {},
    }
    parts = (
        {"protocol": protocol or VECTORS},
        {"metaData": {**definition, **(metadata or {})}},
        {"add": {**file, **(add or {})}},
    )
    return [json.dumps(part) for part in parts]


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "table"
    (path / "_delta_log").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(ROWS), path / "f.parquet")
    pq.write_table(pa.table({"a": [66], "p": ["secret"]}), tmp_path / "secret.parquet")
    return path


def commit(folder, lines):
    data = lines if isinstance(lines, bytes) else "\n".join(lines).encode()
    (folder / "_delta_log" / f"{0:020}.json").write_bytes(data)
    return folder


def use(folder):
    """What a user may do with a table, all of it."""
    table = deltaic.DeltaTable(folder)
    rows = table.scan().to_arrow().to_pylist()
    table.files(deleted_rows=True).to_arrow()
    table.scan(where="a > 1").count()
    table.vacuum(dry_run=True).count()
    return rows


OUTSIDE = [
    "../secret.parquet",
    "%2e%2e/secret.parquet",
    "%2E%2E%2Fsecret.parquet",
    "..%2fsecret.parquet",
    "a/../../secret.parquet",
    "..\\secret.parquet",
    "{root}/secret.parquet",
    "file://{root}/secret.parquet",
    "FILE://{root}/secret.parquet",
    "file:{root}/secret.parquet",
    "file://localhost{root}/secret.parquet",
    "http://127.0.0.1:9/secret.parquet",
    "s3://bucket/secret.parquet",
    "//etc/passwd",
    "f.parquet%00",
    "a//b",
    "..",
    "/",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_data_files_outside_the_table(folder, path):
    commit(folder, actions(folder, add={"path": path.format(root=folder.parent)}))
    for run in (
        use,
        lambda folder: deltaic.DeltaTable(folder).delete("a = 1"),
        lambda folder: deltaic.DeltaTable(folder).update({"a": "5"}, "a = 1"),
    ):
        with pytest.raises(PathOutsideTableError):
            run(folder)
    assert (folder.parent / "secret.parquet").exists()


@pytest.mark.parametrize(
    "path", ["%", "%zz", "gone.parquet", "%252e%252e/secret.parquet", "f.parquet?x=1", "~/f.parquet"]
)
def test_data_files_that_are_not_there(folder, path):
    with pytest.raises(ProtocolError, match="not there"):
        use(commit(folder, actions(folder, add={"path": path})))


@pytest.mark.parametrize("name", ["link.parquet", "folder/secret.parquet"])
def test_links_that_lead_outside(folder, name):
    (folder / "link.parquet").symlink_to(folder.parent / "secret.parquet")
    (folder / "folder").symlink_to(folder.parent)
    commit(folder, actions(folder, add={"path": name}))
    with pytest.raises(PathOutsideTableError):
        use(folder)
    with deltaic.configure(allowed_roots=[folder.parent]):
        assert use(folder) == [{"a": 66, "p": "secret"}]
    deltaic.DeltaTable(folder).vacuum(dry_run=True)


def test_links_inside_the_table_and_above_it(folder):
    (folder / "link.parquet").symlink_to(folder / "f.parquet")
    commit(folder, actions(folder, add={"path": "link.parquet"}))
    (folder.parent / "other").symlink_to(folder)
    assert use(folder) == use(folder.parent / "other") == ROWS


def inline(rows, *, size=None, cardinality=None):
    vector = deltaic.DeletionVector.from_rows(rows)
    size = len(vector.to_bytes()) if size is None else size
    cardinality = len(rows) if cardinality is None else cardinality
    return {
        "storageType": "i",
        "pathOrInlineDv": vector.to_inline(),
        "sizeInBytes": size,
        "cardinality": cardinality,
    }


def stored(kind, name, size=40, offset=1):
    return {
        "storageType": kind,
        "pathOrInlineDv": name,
        "offset": offset,
        "sizeInBytes": size,
        "cardinality": 1,
    }


VECTORS_OUT_OF_ORDER = [
    (inline([0, 2], cardinality=3), "cardinality"),
    (inline([0, 2], cardinality=1), "cardinality"),
    (inline([0, 2], cardinality=2**62), "cardinality"),
    (inline([0, 2], cardinality=-1), "negative"),
    (inline([0, 2], size=5), "length of 5 bytes"),
    (inline([0, 2], size=1_000_000), "length of 1000000 bytes"),
    (inline([0, 2], size=-5), "negative"),
    (inline([3]), "a row that its data file lacks"),
    (inline([2**40]), "a row that its data file lacks"),
    (stored("i", "", offset=None), "length"),
    (stored("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 40, None), "older format"),
    (stored("x", "y"), "storage type"),
    (stored("u", "short"), "does not name its file"),
    (stored("u", "ab^-aqEH.-t@S}K{vb[*k^"), "not there"),
    (stored("u", "../../ab^-aqEH.-t@S}K{vb[*k^"), "not the name of a folder"),
    (stored("u", "/ab^-aqEH.-t@S}K{vb[*k^"), "not the name of a folder"),
    (stored("p", "../x.bin"), "climbs"),
    (stored("p", "/x.bin"), "outside the table"),
    (stored("p", "file:///x.bin"), "outside the table"),
    (stored("p", "http://127.0.0.1:9/x.bin"), "outside the table"),
]


@pytest.mark.parametrize(
    ("vector", "message"), VECTORS_OUT_OF_ORDER, ids=lambda value: json.dumps(value)[:60]
)
def test_vectors_out_of_order(folder, vector, message):
    commit(folder, actions(folder, add={"deletionVector": vector, "stats": '{"numRecords":3}'}))
    with pytest.raises((ProtocolError, PathOutsideTableError), match=message):
        use(folder)


def bad_lines(lines):
    protocol, metadata, add = lines
    yield "empty", []
    yield "no protocol", [metadata, add]
    yield "no metadata", [protocol, add]
    yield "two protocols", [protocol, *lines]
    yield "two definitions", [metadata, *lines]
    yield "added twice", [*lines, add]
    yield "cut off", [protocol, metadata, add[:-5]]
    yield "a list", [*lines, "[1]"]
    yield "a number", [*lines, "5"]
    yield "two actions", [*lines, '{"add":{"path":"x"},"remove":{"path":"y"}}']
    yield "no end of brackets", [*lines, '{"commitInfo":' + "[" * 200_000 + "}"]
    yield (
        "a number too large",
        [protocol, metadata, re.sub(r'"size": \d+', '"size": 99999999999999999999', add)],
    )
    yield "a negative size", [protocol, metadata, add.replace('"size": ', '"size": -')]
    yield "NaN", [protocol, metadata, add.replace('"modificationTime": 1', '"modificationTime": NaN')]
    yield (
        "a key twice",
        [
            protocol,
            metadata,
            add.replace('"modificationTime": 1', '"modificationTime": 1, "path": "f.parquet"'),
        ],
    )
    yield "a NUL", [*lines, "\0"]
    yield "half a surrogate", [protocol, metadata, add.replace("f.parquet", "\\ud800.parquet")]
    yield "a version that is text", [*lines, '{"txn":{"appId":"a","version":"x"}}']
    yield "an empty path", [protocol, metadata, add.replace("f.parquet", "")]


BAD_LINES = [name for name, _ in bad_lines(["", "", ""])]


@pytest.mark.parametrize("name", BAD_LINES)
def test_bad_lines(folder, name):
    with pytest.raises(DeltaError) as raised:
        use(commit(folder, dict(bad_lines(actions(folder)))[name]))
    assert str(raised.value)


def test_bytes_that_are_no_text(folder):
    with pytest.raises(ProtocolError, match="UTF-8"):
        use(commit(folder, b"\xff\xfe\x00"))


@pytest.mark.parametrize(
    "extra",
    ['{"future":{"x":1}}', "{}", "   ", '{"commitInfo":{"x":"' + "y" * 1_000_000 + '"}}'],
    ids=lambda text: text[:20],
)
def test_lines_that_mean_nothing_here(folder, extra):
    assert use(commit(folder, [*actions(folder), extra])) == ROWS


BAD_PARTS = {
    "version 0": {"protocol": {"minReaderVersion": 0, "minWriterVersion": 0}},
    "version as text": {"protocol": {"minReaderVersion": "1", "minWriterVersion": 2}},
    "no writer version": {"protocol": {"minReaderVersion": 1}},
    "no features": {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}},
    "features of an old version": {
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 2, "readerFeatures": ["x"]}
    },
    "schema": {"metadata": {"schemaString": "{"}},
    "schema too deep": {
        "metadata": {
            "schemaString": '{"type":"array","containsNull":true,"elementType":' * 5000
            + '"long"'
            + "}" * 5000
        }
    },
    "two columns of one name": {"metadata": {"schemaString": SCHEMA.replace('"p"', '"A"')}},
    "no such type": {"metadata": {"schemaString": SCHEMA.replace('"long"', '"frob"')}},
    "partitioned by what is not there": {"metadata": {"partitionColumns": ["nope"]}},
    "no partition value": {"metadata": {"partitionColumns": ["p"]}},
    "a partition value of another type": {
        "metadata": {"partitionColumns": ["a"]},
        "add": {"partitionValues": {"a": "x"}},
    },
    "another format": {"metadata": {"format": {"provider": "orc", "options": {}}}},
    "no id": {"metadata": {"id": None}},
    "mapped without names": {
        "metadata": {"configuration": {"delta.columnMapping.mode": "name"}},
        "protocol": {"minReaderVersion": 2, "minWriterVersion": 5},
    },
}


@pytest.mark.parametrize("parts", BAD_PARTS.values(), ids=BAD_PARTS)
def test_bad_parts(folder, parts):
    with pytest.raises(ProtocolError):
        use(commit(folder, actions(folder, **parts)))


@pytest.mark.parametrize(
    "stats", ["{", "5", '{"numRecords":"x","minValues":5}', '{"numRecords":-5}', '{"minValues":{"a":"x"}}']
)
def test_bad_statistics_skip_nothing(folder, stats):
    assert use(commit(folder, actions(folder, add={"stats": stats}))) == ROWS


# --- bytes changed at random


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A table with partitions, vectors, nested columns, mapped names and a checkpoint; its files and its
    rows."""
    rows = pa.table(
        {
            "id": range(200),
            "s": [f"x{number}" for number in range(200)],
            "st": [{"a": number, "l": [number]} for number in range(200)],
            "p": ["a", "b"] * 100,
        }
    )
    properties = {"delta.columnMapping.mode": "name", "delta.checkpointInterval": 3}
    table = deltaic.write(
        tmp_path_factory.mktemp("fuzz") / "t", rows, partition_by="p", properties=properties
    )
    table.delete("id % 7 = 0")
    table.update({"s": "'new'"}, "id = 5")
    deltaic.write(table, rows.slice(0, 50), mode="append")
    table.alter.rename_column("s", "s2")
    return table.location, sorted(path for path in Path(table.location).rglob("*") if path.is_file())


def changed(data, chance):
    at = chance.randrange(len(data))
    numbers = list(re.finditer(rb"\d+", data))
    kind = chance.choice(["bit", "bytes", "cut", "insert", "tail", "number"])
    new = bytearray(data)
    if kind == "bit":
        new[at] ^= 1 << chance.randrange(8)
    elif kind == "bytes":
        for _ in range(chance.randrange(2, 20)):
            new[chance.randrange(len(new))] = chance.randrange(256)
    elif kind == "cut":
        del new[at:]
    elif kind == "insert":
        new[at:at] = chance.randbytes(chance.randrange(1, 9))
    elif kind == "tail":  # where Parquet's footer is
        for _ in range(chance.randrange(1, 6)):
            new[-1 - chance.randrange(min(len(new), 300))] = chance.randrange(256)
    elif numbers:
        found = chance.choice(numbers)
        new[found.start() : found.end()] = chance.choice(
            [b"-1", b"99999999999999999999", b"9223372036854775807", b"0", b"1e308"]
        )
    return bytes(new)


def test_changed_bytes_never_break_out(written, capfd):
    location, files = written
    for seed in range(int(os.environ.get("DELTAIC_FUZZ_EXAMPLES", "150"))):
        chance = random.Random(seed)
        path = chance.choice(files)
        data = path.read_bytes()
        path.write_bytes(changed(data, chance))
        began = time.monotonic()
        try:
            use(location)
        except (DeltaError, OSError):
            pass  # anything else, a panic above all, fails the test
        finally:
            path.write_bytes(data)
        assert time.monotonic() - began < 10, (seed, path)
    assert capfd.readouterr().err == ""  # nor does a panic that was caught
