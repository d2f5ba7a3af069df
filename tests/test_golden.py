"""The script that fetches the golden tables: from a checkout or an archive, compressed or not; a missing
table is always an error."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest

import deltaic
from golden import NAMES, folder
from loaded import loaded

PLAIN, PACKED = "with-short-dv", "basic-decimal-table"


def repository(root: Path) -> Path:
    """Returns a checkout as delta-kernel-rs has it: one table as it is, one in an archive."""
    made = root / "delta-kernel-rs-main"
    deltaic.write(made / "kernel" / "tests" / "data" / PLAIN, {"a": [1, 2]})
    deltaic.write(root / PACKED / "delta", {"a": [3]})
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        archive.add(root / PACKED, PACKED)
    place = made / "kernel" / "tests" / "golden_data" / f"{PACKED}.tar.zst"
    place.parent.mkdir(parents=True)
    with pa.CompressedOutputStream(str(place), "zstd") as out:
        out.write(raw.getvalue())
    return made


@pytest.mark.parametrize("source", ["checkout", "archive", "URL"])
def test_tables_are_fetched(source: str, tmp_path: Path) -> None:
    place = str(repository(tmp_path))
    if source != "checkout":
        with tarfile.open(tmp_path / "main.tar.gz", "w:gz") as archive:
            archive.add(place, "delta-kernel-rs-main")
        place = str(tmp_path / "main.tar.gz") if source == "archive" else (tmp_path / "main.tar.gz").as_uri()
    target = tmp_path / "golden"
    target.mkdir()
    assert loaded("scripts/fetch_golden_tables.py").fetch(place, target, [PLAIN, PACKED, "nowhere"]) == [
        "nowhere"
    ]
    assert deltaic.DeltaTable(target / PLAIN).scan().to_pylist() == [{"a": 1}, {"a": 2}]
    assert deltaic.DeltaTable(target / PACKED / "delta").scan().to_pylist() == [{"a": 3}]
    assert sorted(path.name for path in target.iterdir()) == sorted([PLAIN, PACKED])


def test_a_folder_that_is_named_must_have_every_table(tmp_path: Path) -> None:
    assert folder(None, tmp_path / "checkout") == tmp_path / "checkout" / ".golden"
    (tmp_path / NAMES[0]).mkdir()
    with pytest.raises(FileNotFoundError, match=f"lacks {len(NAMES) - 1} tables, the first {NAMES[1]}"):
        folder(str(tmp_path), tmp_path)
    for name in NAMES[1:]:
        (tmp_path / name).mkdir()
    assert folder(str(tmp_path), tmp_path) == tmp_path
