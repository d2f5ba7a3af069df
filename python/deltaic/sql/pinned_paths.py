"""Paths that name a version or a time of a table, such as `/data/t@v3`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from deltaic.table import DeltaTable

_TRAVEL = re.compile(r"(?P<path>.+)@([vV](?P<version>\d{1,18})|(?P<time>\d{17}))/*")
"""Matches `path@v3` and `path@yyyyMMddHHmmssSSS`, also with slashes at the end, as paths may have them."""


def travelled(path: str, storage_options: Mapping[str, str] | None) -> tuple[str, int | None, str | None]:
    """Splits `path@v3` or `path@yyyyMMddHHmmssSSS` into path, version and timestamp. If there is a table at
    the whole path, it is not split."""
    match = _TRAVEL.fullmatch(path)
    if match is None or DeltaTable.exists(path, storage_options=storage_options):
        return path, None, None
    if match["version"] is not None:
        return match["path"], int(match["version"]), None
    digits = match["time"]
    day, time = (
        f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}",
        f"{digits[8:10]}:{digits[10:12]}:{digits[12:14]}.{digits[14:]}",
    )
    return match["path"], None, f"{day}T{time}"
