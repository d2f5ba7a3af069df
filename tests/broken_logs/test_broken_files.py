"""Actions on files that are broken: add, remove, cdc, txn, domainMetadata (PROTOCOL.md, "Add File and Remove
File" and after)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bounded import Bounded
from healthy import AT_2, WITH_VECTORS, Case, Fails, Reads, Table, check

HEALTHY = Reads(AT_2)
LINE = f"{2:020}.json:3"  # the place of the add of version 2


def add(**fields: Any) -> Callable[[Table], None]:
    """Fields of the add of version 2; ... takes one out."""
    return lambda table: table.change(2, "add", **fields)


def remove(**fields: Any) -> Callable[[Table], None]:
    return lambda table: table.change(2, "remove", **fields)


def path(text: str) -> Callable[[Table], None]:
    return lambda table: table.change(2, "add", path=text.format(root=table.root.parent))


def vectors(table: Table) -> None:
    table.change(0, "protocol", **WITH_VECTORS)


def vector(**fields: Any) -> Callable[[Table], None]:
    """Returns a case with a descriptor in which only these fields are wrong."""
    from deltaic import DeletionVector

    marked = DeletionVector.from_rows([0])
    whole = {
        "storageType": "i",
        "pathOrInlineDv": marked.to_inline(),
        "sizeInBytes": len(marked.to_bytes()),
        "cardinality": 1,
    }
    parts = {key: value for key, value in {**whole, **fields}.items() if value is not ...}

    def apply(table: Table) -> None:
        vectors(table)
        table.change(2, "add", deletionVector=parts)

    return apply


def again_with_a_vector(table: Table) -> None:
    """f2 once more, with a vector, and the one without is not removed."""
    vector()(table)
    table.write(3, {"add": table.add(2)})


def bad(found: str, expected: str, where: str = LINE, error: str = "ProtocolError") -> Fails:
    return Fails(error, where, found, expected)


def outside(found: str, where: str = "") -> Fails:
    return Fails("PathOutsideTableError", where, found, "below the table's root")


JSON = "a JSON object"
CLIMBS, ELSEWHERE = "'..'", "secret.parquet"
OUTSIDE = {
    "../secret.parquet": CLIMBS,
    "%2e%2e/secret.parquet": CLIMBS,
    "%2E%2E%2Fsecret.parquet": CLIMBS,
    "p=x/../../secret.parquet": CLIMBS,
    "..\\secret.parquet": CLIMBS,
    "{root}/secret.parquet": ELSEWHERE,
    "file://{root}/secret.parquet": ELSEWHERE,
    "FILE://{root}/secret.parquet": ELSEWHERE,
    "http://127.0.0.1:9/secret.parquet": ELSEWHERE,
    "s3://bucket/secret.parquet": ELSEWHERE,
    "file://host/secret.parquet": "a host",
    "%2Fetc%2Fpasswd": "%2F",
    "file%3A%2F%2F{root}/secret.parquet": "file://",
    "p=x//f2.parquet": "two slashes",
    "p=x/f2.parquet%00": "\\0",
    ".": "no segment",
    "%ff": "invalid utf-8",
}

CASES = [
    # --- fields of an add
    Case("no path", add(path=...), bad("missing field `path`", JSON)),
    Case("a path of null", add(path=None), bad("invalid type: null", JSON)),
    Case("a path of a number", add(path=5), bad("invalid type: integer", JSON)),
    Case("an empty path", add(path=""), bad("an empty path", "a path")),
    Case(
        "a path twice",
        lambda t: t.replace(2, '"add":{', '"add":{"path":"x",'),
        bad("duplicate field `path`", JSON),
    ),
    Case("no size", add(size=...), bad("no such field", "size")),
    Case("a negative size", add(size=-1), bad("size -1", "0 or more")),
    Case("a size of text", add(size="5"), bad("invalid type: string", JSON)),
    Case("a size of parts", add(size=1.5), bad("invalid type: floating point", JSON)),
    Case("a size beyond 63 bits", add(size=2**63), bad("invalid value: integer `9223372036854775808`", JSON)),
    Case(
        "a size of a thousand digits",
        lambda t: t.replace(2, '"size":', '"size":' + "9" * 1000),
        bad("number out of range", JSON),
    ),
    Case(
        "a size in powers of ten",
        lambda t: t.replace(2, '"size":', '"size":1e999,"s":'),
        bad("number out of range", JSON),
    ),
    Case("no values of partitions", add(partitionValues=...), bad("no such field", "partitionValues")),
    Case("values of partitions as a list", add(partitionValues=["x"]), bad("invalid type: sequence", JSON)),
    Case(
        "a value of a partition that is a number",
        add(partitionValues={"p": 5}),
        bad("invalid type: integer", JSON),
    ),
    Case(
        "a value of a partition twice",
        lambda t: t.replace(2, '{"p":"x"}', '{"p":"x","p":"y"}'),
        bad("the key 'p' twice", JSON),
    ),
    Case("a value of a partition is missing", add(partitionValues={}), bad("no value", "p", "f2.parquet")),
    Case("a value of a partition of null", add(partitionValues={"p": None}), HEALTHY),
    Case("a value of no partition", add(partitionValues={"p": "x", "q": "z"}), HEALTHY),
    Case(
        "a value of another type",
        lambda t: t.replace(
            0,
            '{\\"name\\": \\"p\\", \\"type\\": \\"string\\"',
            '{\\"name\\": \\"p\\", \\"type\\": \\"date\\"',
        ),
        bad('"x"', "date", "parquet"),
    ),
    Case("no time", add(modificationTime=...), bad("no such field", "modificationTime")),
    Case("a time of text", add(modificationTime="now"), bad("invalid type: string", JSON)),
    Case("a time beyond the calendar", add(modificationTime=2**63 - 1), HEALTHY),
    Case("a time before 1970", add(modificationTime=-(2**63)), HEALTHY),
    Case("no word on data", add(dataChange=...), bad("no such field", "dataChange")),
    Case("a word on data that is text", add(dataChange="true"), bad("invalid type: string", JSON)),
    Case(
        "a remove without a word on data",
        lambda t: t.append(
            2, {"remove": {key: value for key, value in t.remove(1).items() if key != "dataChange"}}
        ),
        bad("no such field", "dataChange", f"{2:020}.json:4"),
    ),
    Case("tags as a list", add(tags=["x"]), bad("invalid type: sequence", JSON)),
    Case("a base of row ids that is text", add(baseRowId="0"), bad("invalid type: string", JSON)),
    Case(
        "an add that is a list",
        lambda t: t.append(2, '{"add":["f2.parquet"]}'),
        bad("invalid", JSON, f"{2:020}.json:4"),
    ),
    # --- statistics are hints
    *(
        Case(f"statistics {stats[:30]}", add(stats=stats), HEALTHY)
        for stats in (
            "",
            "{",
            "5",
            "null",
            "[1]",
            '{"numRecords":-1}',
            '{"numRecords":1e99}',
            '{"minValues":{"a":"x"},"maxValues":7}',
        )
    ),
    Case("statistics that are no text", add(stats={"numRecords": 3}), bad("invalid type: map", JSON)),
    # --- where files are
    *(Case(f"outside: {text}", path(text), outside(why)) for text, why in OUTSIDE.items()),
    Case("outside: to be written again", path("../secret.parquet"), outside(CLIMBS), "delete"),
    Case(
        "a file that is not there",
        add(path="p=x/gone.parquet"),
        bad("no such file", "a data file", "gone.parquet"),
    ),
    Case("a file that is a folder", add(path="p=x"), bad("no such file", "a data file", "p=x")),
    Case(
        "a file of no bytes",
        lambda t: (t.root / "p=x/f2.parquet").write_bytes(b""),
        bad("0 bytes", "Parquet", "f2.parquet"),
    ),
    Case(
        "a file that is no Parquet",
        lambda t: (t.root / "p=x/f2.parquet").write_bytes(b"a,b\n1,2\n" * 9),
        bad("1,2", "PAR1", "f2.parquet"),
    ),
    Case(
        "a file with another column",
        lambda t: t.replace(
            0, '\\"name\\": \\"a\\", \\"type\\": \\"long\\"', '\\"name\\": \\"a\\", \\"type\\": \\"date\\"'
        ),
        bad("Int64", "Date32", "parquet"),
    ),
    # --- vectors
    Case("a vector", vector(), Reads([3, 4, 5, 7, 8])),
    Case("a vector without its kind", vector(storageType=...), bad("missing field `storageType`", JSON)),
    Case(
        "a vector without its place", vector(pathOrInlineDv=...), bad("missing field `pathOrInlineDv`", JSON)
    ),
    Case("a vector without its size", vector(sizeInBytes=...), bad("missing field `sizeInBytes`", JSON)),
    Case("a vector without its count", vector(cardinality=...), bad("missing field `cardinality`", JSON)),
    Case("a vector of negative size", vector(sizeInBytes=-1), bad("negative", "0 or more")),
    Case(
        "a vector beyond 31 bits", vector(sizeInBytes=2**31), bad("invalid value: integer `2147483648`", JSON)
    ),
    Case(
        "a vector that is text",
        lambda t: (vectors(t), t.change(2, "add", deletionVector="x")),
        bad("invalid type: string", JSON),
    ),
    Case("a vector of another count", vector(cardinality=2), bad("1", "2", "f2.parquet")),
    Case(
        "a vector in a folder above",
        vector(storageType="u", pathOrInlineDv="../ab^-aqEH.-t@S}K{vb[*k^", offset=1),
        bad("..", "folder", "f2.parquet", "PathOutsideTableError"),
    ),
    Case(
        "a vector out of the table",
        vector(storageType="p", pathOrInlineDv="/etc/passwd", offset=1),
        outside("passwd"),
    ),
    # --- several actions
    Case(
        "a file twice",
        lambda t: t.append(2, {"add": t.add(2)}),
        bad("f2.parquet", "one add", f"{2:020}.json"),
    ),
    Case(
        "a file twice, spelled in two ways",
        lambda t: t.append(2, {"add": t.add(2, path="./p=x/%662.parquet")}),
        bad("f2.parquet", "one add", f"{2:020}.json"),
    ),
    Case(
        "a file twice, with two vectors",
        lambda t: (vector()(t), t.append(2, {"add": t.add(2)})),
        bad("f2.parquet", "one add", f"{2:020}.json"),
    ),
    Case(
        "a file removed twice",
        lambda t: t.append(2, {"remove": t.remove(0)}),
        bad("f0.parquet", "one remove", f"{2:020}.json"),
    ),
    Case(
        "a file added and removed",
        lambda t: t.append(2, {"remove": t.remove(2)}),
        bad("f2.parquet", "one of the two", f"{2:020}.json"),
    ),
    Case(
        "a file that keeps its former vector too",
        again_with_a_vector,
        bad("two add actions", "one", "f2.parquet"),
    ),
    Case("a file added again as it is", lambda t: t.write(3, {"add": t.add(2)}), HEALTHY),
    Case(
        "removed before it is added",
        lambda t: t.write(2, {"add": t.add(2)}, {"remove": t.remove(0)}),
        HEALTHY,
    ),
    Case(
        "a file removed that never was",
        lambda t: t.append(2, {"remove": t.remove(1, path="p=y/never.parquet")}),
        HEALTHY,
    ),
    # --- remove
    Case("a remove without a path", remove(path=...), bad("missing field `path`", JSON, f"{2:020}.json:2")),
    Case("a remove of an empty path", remove(path=""), bad("an empty path", "a path", f"{2:020}.json:2")),
    Case("a remove of negative size", remove(size=-1), bad("size -1", "0 or more", f"{2:020}.json:2")),
    Case(
        "a time of removal that is text",
        remove(deletionTimestamp="now"),
        bad("invalid type: string", JSON, f"{2:020}.json:2"),
    ),
    Case("no time of removal", remove(deletionTimestamp=...), HEALTHY),
    Case("a remove that lies outside", remove(path="../secret.parquet"), Reads([0, 1, 2, *AT_2])),
    Case("a remove that lies outside is not deleted", remove(path="../secret.parquet"), Reads([]), "vacuum"),
    Case(
        "an absolute remove is not deleted",
        lambda t: t.change(2, "remove", path=f"{t.root.parent}/secret.parquet"),
        Reads([]),
        "vacuum",
    ),
    # --- others
    Case(
        "a transaction without its application",
        lambda t: t.append(2, {"txn": {"version": 1}}),
        bad("missing field `appId`", JSON, f"{2:020}.json:4"),
    ),
    Case(
        "a transaction without its version",
        lambda t: t.append(2, {"txn": {"appId": "a"}}),
        bad("missing field `version`", JSON, f"{2:020}.json:4"),
    ),
    Case(
        "a transaction of a version that is text",
        lambda t: t.append(2, {"txn": {"appId": "a", "version": "1"}}),
        bad("invalid type: string", JSON, f"{2:020}.json:4"),
    ),
    Case(
        "a domain without a name",
        lambda t: t.append(2, {"domainMetadata": {"configuration": "{}", "removed": False}}),
        bad("missing field `domain`", JSON, f"{2:020}.json:4"),
    ),
    Case(
        "a domain twice",
        lambda t: t.append(
            2, *[{"domainMetadata": {"domain": "d", "configuration": "", "removed": False}}] * 2
        ),
        bad("two of domainMetadata", "at most one", f"{2:020}.json:5"),
    ),
    Case(
        "a domain that is removed or not",
        lambda t: t.append(2, {"domainMetadata": {"domain": "d", "configuration": "", "removed": "no"}}),
        bad("invalid type: string", JSON, f"{2:020}.json:4"),
    ),
    Case(
        "a change file that is text",
        lambda t: t.append(2, '{"cdc":"x"}'),
        bad("'cdc' is no object", JSON, f"{2:020}.json:4"),
    ),
    Case(
        "information that is text",
        lambda t: t.append(2, '{"commitInfo":"x"}'),
        bad("'commitInfo' is no object", JSON, f"{2:020}.json:4"),
    ),
    Case(
        "a sidecar in a commit",
        lambda t: t.append(2, {"sidecar": {"path": "x.parquet", "sizeInBytes": 1, "modificationTime": 1}}),
        bad("sidecar", "checkpoint", f"{2:020}.json"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_broken_files(case: Case, tmp_path: Path, bounded: Bounded) -> None:
    check(case, tmp_path, bounded)
