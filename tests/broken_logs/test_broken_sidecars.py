"""Checkpoints of the second form and their sidecars that are broken (PROTOCOL.md, "V2 Spec", "Sidecar
Files")."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from bounded import Bounded
from checkpoints import UUID, Rows, alone, classic, second, sidecar, state
from healthy import AT_2, WITH_VECTORS, Case, Fails, Reads, Table, check

HEALTHY = Reads(AT_2)
FILE = f"{2:020}.checkpoint.parquet"
V2 = f"{2:020}.checkpoint.{UUID}.json"
MALFORMED = "a JSON object"


def sided(
    *names: str, action: Callable[[dict[str, Any]], object] | None = None, make: bool = True
) -> Callable[[Table], None]:
    """Returns a case with a V2 checkpoint in JSON alone, whose files are in sidecars of these names."""

    def write(table: Table) -> None:
        named = []
        for name in names:
            if make:
                named.append(sidecar(table, name, state(table)[2:]))
            else:
                named.append({"sidecar": {"path": name, "sizeInBytes": 1, "modificationTime": 1}})
        for row in named:
            if action:
                action(row["sidecar"])
        second(table, named)

    return alone(write)


def holding(make: Callable[[Table], Any]) -> Callable[[Table], None]:
    """Returns a case with a V2 checkpoint alone, with one sidecar of these rows."""
    return alone(lambda table: second(table, [sidecar(table, "s.parquet", make(table))]))


def raw_sidecar(content: bytes) -> Callable[[Table], None]:
    def write(table: Table) -> None:
        named = sidecar(table, "s.parquet", state(table)[2:])
        (table.log / "_sidecars/s.parquet").write_bytes(content)
        second(table, [named])

    return alone(write)


def second_of(edit: Callable[[Table], Rows]) -> Callable[[Table], None]:
    return alone(lambda table: second(table, [], rows=edit(table)))


def bad(found: str, expected: str, where: str) -> Fails:
    return Fails("ProtocolError", where, found, expected)


CASES = [
    Case("a checkpoint with sidecars", sided("a.parquet"), HEALTHY),
    Case("a checkpoint without sidecars", alone(lambda t: second(t, state(t)[2:])), HEALTHY),
    # --- of the second form
    Case(
        "a line that is cut off",
        alone(lambda t: (second(t, state(t)[2:]), (t.log / V2).write_bytes((t.log / V2).read_bytes()[:-20]))),
        bad("EOF", MALFORMED, f"{V2}:6"),
    ),
    Case(
        "a line that is cut off, with the commits",
        lambda t: (second(t, state(t)[2:]), (t.log / V2).write_bytes((t.log / V2).read_bytes()[:-20])),
        HEALTHY,
    ),
    Case(
        "no lines",
        alone(lambda t: (second(t, []), (t.log / V2).write_text("\n\n"))),
        bad("2 bytes", MALFORMED, V2),
    ),
    Case(
        "Parquet in place of JSON",
        alone(lambda t: (classic(t), (t.log / FILE).rename(t.log / V2))),
        bad("", "", f"{V2}:1"),
    ),
    Case(
        "JSON in place of Parquet, of the second form",
        alone(lambda t: (second(t, []), (t.log / V2).rename(t.log / V2.replace(".json", ".parquet")))),
        bad("0}}", "Parquet", UUID),
    ),
    Case(
        "two protocols, of the second form",
        second_of(lambda t: [{"protocol": WITH_VECTORS}, *state(t)]),
        bad("two of protocol", "at most one", f"{V2}:2"),
    ),
    Case(
        "no definition, of the second form",
        second_of(lambda t: [{"protocol": WITH_VECTORS}]),
        bad("no metaData action", "one in", "version 2"),
    ),
    # --- sidecars
    Case(
        "a sidecar that is missing",
        sided("gone.parquet", make=False),
        bad("no such file", "a file of the log", "_sidecars/gone.parquet"),
    ),
    Case(
        "a sidecar that is missing, with the commits",
        lambda t: second(t, [{"sidecar": {"path": "gone.parquet", "sizeInBytes": 1, "modificationTime": 1}}]),
        HEALTHY,
    ),
    *(
        Case(
            f"a sidecar at {name!r}",
            sided(name, make=False),
            Fails("PathOutsideTableError", V2, "", "the name of a file"),
        )
        for name in (
            "",
            ".",
            "..",
            "../x.parquet",
            "/etc/passwd",
            "a/b.parquet",
            "file:///etc/passwd",
            "..\\x.parquet",
            "x\0.parquet",
            "%2e%2e%2fsecret.parquet",
        )
    ),
    Case(
        "a sidecar without a path",
        sided("a.parquet", action=lambda it: it.pop("path")),
        bad("missing field `path`", "an object with a path", V2),
    ),
    Case(
        "a sidecar whose path is a number",
        sided("a.parquet", action=lambda it: it.update(path=5)),
        bad("invalid type: integer", "an object with a path", V2),
    ),
    Case(
        "a sidecar twice",
        alone(lambda t: second(t, [sidecar(t, "a.parquet", state(t)[2:])] * 2)),
        bad("two sidecars", "at most one", V2),
    ),
    Case(
        "the same files in two sidecars",
        sided("a.parquet", "b.parquet"),
        bad("two add actions", "one", "parquet"),
    ),
    Case(
        "a sidecar that is no Parquet",
        raw_sidecar(b"nonsense"),
        bad("8 bytes", "Parquet", "_sidecars/s.parquet"),
    ),
    Case("a sidecar of no bytes", raw_sidecar(b""), bad("", "Parquet", "_sidecars/s.parquet")),
    Case(
        "a sidecar that is JSON",
        raw_sidecar(b'{"add":{}}'),
        bad("10 bytes", "Parquet", "_sidecars/s.parquet"),
    ),
    Case(
        "a sidecar that names itself",
        holding(
            lambda t: [
                *state(t)[2:],
                {"sidecar": {"path": "s.parquet", "sizeInBytes": 1, "modificationTime": 1}},
            ]
        ),
        bad("sidecar", "add and remove alone", "_sidecars/s.parquet"),
    ),
    Case(
        "a sidecar with a protocol",
        holding(lambda t: state(t)[:1] + state(t)[2:]),
        bad("protocol", "add and remove alone", "_sidecars/s.parquet row 0"),
    ),
    Case(
        "a sidecar with a definition",
        holding(lambda t: state(t)[1:]),
        bad("metaData", "add and remove alone", "_sidecars/s.parquet row 0"),
    ),
    Case(
        "a sidecar with a transaction",
        holding(lambda t: [{"txn": {"appId": "a", "version": 1}}]),
        bad("txn", "add and remove alone", "_sidecars/s.parquet"),
    ),
    Case(
        "a sidecar of other columns",
        holding(lambda t: pa.table({"a": [1]})),
        bad("columns a", "a column of add", "_sidecars/s.parquet"),
    ),
    Case(
        "a sidecar with a row that is broken",
        holding(lambda t: [{"add": t.add(1)}, {"add": t.add(2, size=-1)}]),
        bad("size -1", "0 or more", "_sidecars/s.parquet row 1"),
    ),
    Case(
        "a sidecar that is a link out of the table",
        alone(
            lambda t: (
                second(t, [sidecar(t, "s.parquet", state(t)[2:])]),
                (t.log / "_sidecars/s.parquet").rename(t.root.parent / "o.parquet"),
                (t.log / "_sidecars/s.parquet").symlink_to(t.root.parent / "o.parquet"),
            )
        ),
        Fails("PathOutsideTableError", "_sidecars/s.parquet", "o.parquet", "below the table's root"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_broken_sidecars(case: Case, tmp_path: Path, bounded: Bounded) -> None:
    check(case, tmp_path, bounded)
