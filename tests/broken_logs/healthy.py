"""A small table written by hand, line by line, so that a case can change one part of it, and the outcome that
a case expects.

Version 0 adds p=x/f0 (rows 0, 1, 2), version 1 adds p=y/f1 (3, 4, 5), version 2 removes f0 and adds p=x/f2
(6, 7, 8).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FIELDS = [
    {"name": name, "type": kind, "nullable": True, "metadata": {}}
    for name, kind in (("a", "long"), ("p", "string"))
]
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
WITH_VECTORS = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors", "v2Checkpoint"],
    "writerFeatures": ["deletionVectors", "v2Checkpoint"],
}
METADATA = {
    "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": json.dumps({"type": "struct", "fields": FIELDS}),
    "partitionColumns": ["p"],
    "configuration": {},
    "createdTime": 1_700_000_000_000,
}
AT_0, AT_1, AT_2 = [0, 1, 2], [0, 1, 2, 3, 4, 5], [3, 4, 5, 6, 7, 8]


def text(action: Mapping[str, Any]) -> str:
    return json.dumps(action, separators=(",", ":"))


class Table:
    """The folder of a table, with handles on its parts."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "_delta_log"
        self.log.mkdir(parents=True)
        for number in range(3):
            self.data_file(f"p={'xyx'[number]}/f{number}.parquet", range(3 * number, 3 * number + 3))
        pq.write_table(pa.table({"a": [66]}), root.parent / "secret.parquet")
        info = {
            "commitInfo": {"timestamp": 1_700_000_000_000, "operation": "WRITE", "operationParameters": {}}
        }
        self.write(0, info, {"protocol": PROTOCOL}, {"metaData": METADATA}, {"add": self.add(0)})
        self.write(1, info, {"add": self.add(1)})
        self.write(2, info, {"remove": self.remove(0)}, {"add": self.add(2)})

    def data_file(self, path: str, values: Sequence[int]) -> None:
        (self.root / path).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"a": list(values)}), self.root / path)

    # --- actions

    def add(self, number: int, **changed: Any) -> dict[str, Any]:
        """Returns the add of file `number`; a field that is None is left out."""
        letter = "xyx"[number]
        path = f"p={letter}/f{number}.parquet"
        fields = {
            "path": path,
            "partitionValues": {"p": letter},
            "size": (self.root / path).stat().st_size,
            "modificationTime": 1_700_000_000_000,
            "dataChange": True,
            "stats": '{"numRecords":3}',
        }
        return {key: value for key, value in {**fields, **changed}.items() if value is not None}

    def remove(self, number: int, **changed: Any) -> dict[str, Any]:
        path = self.add(number)["path"]
        fields = {"path": path, "deletionTimestamp": 1_700_000_000_001, "dataChange": True}
        return {key: value for key, value in {**fields, **changed}.items() if value is not None}

    # --- commits

    def commit(self, version: int) -> Path:
        return self.log / f"{version:020}.json"

    def write(self, version: int, *actions: Mapping[str, Any] | str) -> None:
        lines = [action if isinstance(action, str) else text(action) for action in actions]
        self.commit(version).write_text("\n".join(lines) + "\n")

    def lines(self, version: int) -> list[str]:
        return self.commit(version).read_text().splitlines()

    def append(self, version: int, *actions: Mapping[str, Any] | str) -> None:
        self.write(version, *self.lines(version), *actions)

    def replace(self, version: int, old: str, new: str) -> None:
        """In the commit's text; `old` must be there."""
        before = self.commit(version).read_text()
        assert old in before
        self.commit(version).write_text(before.replace(old, new, 1))

    def change(self, version: int, kind: str, **fields: Any) -> None:
        """Sets fields of the first action of a kind; ... takes one out."""
        actions = [json.loads(line) for line in self.lines(version)]
        action = next(action[kind] for action in actions if kind in action)
        for name, value in fields.items():
            if value is ...:
                action.pop(name)
            else:
                action[name] = value
        self.write(version, *actions)

    def drop(self, version: int, kind: str) -> None:
        """Takes actions of a kind out of a commit."""
        self.write(version, *(line for line in self.lines(version) if kind not in json.loads(line)))

    def delete(self, *versions: int) -> None:
        for version in versions:
            self.commit(version).unlink()

    def hint(self, content: bytes | Mapping[str, Any]) -> None:
        data = content if isinstance(content, bytes) else text(content).encode()
        (self.log / "_last_checkpoint").write_bytes(data)


# --- what a case expects


@dataclass(frozen=True)
class Reads:
    """The value of the operation: for those that read, the rows by column a."""

    value: Any


@dataclass(frozen=True)
class Fails:
    """An error of this class (a base will not do), whose parts hold these texts. None of the parts may be
    missing."""

    error: str
    where: str
    found: str
    expected: str


@dataclass(frozen=True)
class Case:
    name: str
    break_it: Callable[[Table], object]
    outcome: Reads | Fails
    operation: str = "read"


def check(case: Case, root: Path, bounded: Any) -> None:
    """Breaks a table, runs the operation in a process of its own, and holds what came of it against what the
    case expects."""
    from bounded import PEAK_MIB

    table = Table(root / "table")
    case.break_it(table)
    result = bounded.run(case.operation, str(table.root))
    assert result.ended is None, result
    warnings = [
        line for line in result.printed.splitlines() if "cannot be read and is passed over" not in line
    ]
    assert warnings == []
    assert result.peak_mib < PEAK_MIB
    assert (root / "secret.parquet").exists()
    if isinstance(case.outcome, Reads):
        assert result.error is None, result.text
        assert result.value == case.outcome.value
        return
    wanted = case.outcome
    assert result.error == wanted.error, result.text or result.value
    assert "DeltaError" in result.bases
    for part in ("where", "found", "expected"):
        told = getattr(result, part)
        assert told, f"no {part}: {result.text}"
        assert getattr(wanted, part) in told, f"{part}: {result.text}"
        assert len(result.text) < 4000
