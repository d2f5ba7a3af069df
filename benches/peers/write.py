"""Writes 4 M rows of 5 columns: deltaic, deltalake and pyarrow's Parquet writer.

    python benches/peers/write.py [--rows 4000000] [--pairs 5] [--jobs zstd,defaults] [--record
    benches/records/write.json]

`zstd` and `snappy`: the same codec at the same level; `defaults`: the default of each system. deltaic and
deltalake write a table with its log, pyarrow a bare file. The clock measures the call alone; DuckDB reads the
written rows again and compares them.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from _pairs import Job, Run, data, main, sums

CODECS = {"zstd": ("zstd", 3), "snappy": ("snappy", None), "defaults": (None, None)}
JOBS = (
    Job(name="zstd", limits={"deltalake": 1.0, "pyarrow": 1.05}),
    Job(name="snappy", limits={"deltalake": 1.0, "pyarrow": 1.05}),
    Job(name="defaults", limits={"deltalake": None, "pyarrow": None}),
)


def prepare(root: Path, rows: int) -> None:
    import pyarrow.feather as feather

    feather.write_feather(data(rows), root / "data.arrow", compression="uncompressed")


def run(system: str, job: str, root: Path) -> Run:
    import pyarrow.feather as feather

    table = feather.read_table(root / "data.arrow", memory_map=False)
    place = root / "work"

    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    writer = WRITERS[system]
    targets = [str(place / str(number)) for number in range(3)]
    left = iter(targets)

    def work() -> str:
        target = next(left)
        writer(table, target, *CODECS[job])
        return target

    return work, len(targets), lambda target: sums(f"{target}/*.parquet")


def by_deltaic(table: Any, target: str, codec: str | None, level: int | None) -> None:
    import deltaic
    from deltaic.options import ParquetOptions

    spelled = codec if level is None else f"{codec}({level})"
    deltaic.write(target, table, parquet=None if codec is None else ParquetOptions(compression=spelled))


def by_deltalake(table: Any, target: str, codec: str | None, level: int | None) -> None:
    import deltalake

    properties = (
        None
        if codec is None
        else deltalake.WriterProperties(compression=codec.upper(), compression_level=level)
    )
    deltalake.write_deltalake(target, table, writer_properties=properties)


def by_pyarrow(table: Any, target: str, codec: str | None, level: int | None) -> None:
    import pyarrow.parquet as parquet

    Path(target).mkdir()
    if codec is None:
        parquet.write_table(table, f"{target}/data.parquet")
    else:
        parquet.write_table(table, f"{target}/data.parquet", compression=codec, compression_level=level)


WRITERS = {"deltaic": by_deltaic, "deltalake": by_deltalake, "pyarrow": by_pyarrow}

if __name__ == "__main__":
    main(__file__, __doc__, JOBS, prepare, run)
