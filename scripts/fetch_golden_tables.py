"""Fetches the tables of other writers that tests read, `tests/golden_tables.txt`, from the test data of
delta-kernel-rs (Apache-2.0):

python scripts/fetch_golden_tables.py [FOLDER]

FOLDER is `.golden` of the checkout by default. `DELTAIC_GOLDEN_SOURCE` is the source: the URL of a `.tar.gz`
of that repository, the path of such a file, or of a checkout. The tables have about 20 MB. A table that is
missing in the source is an error that names the table.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tarfile
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

ROOT = Path(__file__).resolve().parents[1]
NAMES = ROOT / "tests" / "golden_tables.txt"
SOURCE = "https://github.com/delta-io/delta-kernel-rs/archive/refs/heads/main.tar.gz"
# Folders of the repository that have tables: archives `<name>.tar.zst`, or the tables as they are.
PLACES = ("kernel/tests/golden_data", "kernel/tests/data")


def fetch(source: str, target: Path, names: Sequence[str]) -> list[str]:
    """Puts the tables into `target`; -> those that the source does not have. A table that is there already
    stays."""
    with _repository(source) as repository:
        return [name for name in names if not (target / name).is_dir() and not _put(repository, name, target)]


@contextmanager
def _repository(source: str) -> Iterator[Path]:
    """Yields the folder of the repository: a checkout, or an archive in a temporary folder."""
    if os.path.isdir(source):
        yield Path(source)
        return
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(source)
        if "://" in source:
            file = Path(scratch) / "source.tar.gz"
            with urllib.request.urlopen(source, timeout=60) as answer, file.open("wb") as out:
                shutil.copyfileobj(answer, out)
        inside = Path(scratch) / "source"
        with tarfile.open(file) as archive:
            wanted = [
                member for member in archive if any(f"/{place}/" in f"/{member.name}" for place in PLACES)
            ]
            archive.extractall(inside, members=wanted, filter="data")
        yield next(inside.iterdir(), inside)


def _put(repository: Path, name: str, target: Path) -> bool:
    for place in PLACES:
        plain, packed = repository / place / name, repository / place / f"{name}.tar.zst"
        if plain.is_dir():
            shutil.copytree(plain, target / name)
            return True
        if packed.is_file():
            data = pa.CompressedInputStream(pa.OSFile(str(packed)), "zstd").read()
            with (
                tempfile.TemporaryDirectory(dir=target) as scratch,
                tarfile.open(fileobj=io.BytesIO(data)) as archive,
            ):
                archive.extractall(scratch, filter="data")
                os.rename(Path(scratch) / name, target / name)  # whole, or not there at all
            return True
    return False


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".golden"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [line for line in NAMES.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    missing = fetch(os.environ.get("DELTAIC_GOLDEN_SOURCE") or SOURCE, folder, lines)
    print(f"{folder}: {len(lines) - len(missing)} of {len(lines)} tables")
    if missing:
        sys.exit(f"the source lacks {', '.join(missing)}")
