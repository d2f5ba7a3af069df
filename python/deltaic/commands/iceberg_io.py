"""Reads the metadata of an Iceberg table through the table's own store, and converts its absolute paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO

from deltaic import _core
from deltaic.errors import DeltaError, PathOutsideTableError, ProtocolError
from deltaic.protocol.paths import local_path


class Paths:
    """Iceberg's absolute paths, as paths relative to the table's store. `location`: where the metadata says
    that the table is."""

    def __init__(self, store: _core.Store, location: str) -> None:
        roots = (_plain_location(root).rstrip("/") + "/" for root in (store.location, location))
        self._roots = tuple(dict.fromkeys(roots))
        self._location = store.location

    def relative(self, path: str) -> str:
        """Returns a path relative to the store. Raises PathOutsideTableError for a file outside the table's
        folder, because a table is converted in place."""
        plain = _plain_location(path)
        for root in self._roots:
            if plain.startswith(root) and len(plain) > len(root):
                return plain[len(root) :]
        raise PathOutsideTableError(
            "the Iceberg table has a file outside its folder",
            where=path,
            found=path,
            expected=f"a file below {self._location}",
        )


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Converts errors of PyIceberg about a file of metadata to a ProtocolError that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise ProtocolError(
            "a file of the Iceberg metadata is missing", where=path, expected="the file"
        ) from None
    except (DeltaError, OSError, MemoryError):
        raise
    except Exception as error:
        # PyIceberg's own errors have no base class, and damaged files raise those of Python
        reason = (str(error).splitlines() or [""])[0]
        raise ProtocolError(
            "the Iceberg metadata cannot be read", where=path, found=reason or type(error).__name__
        ) from error


def _plain_location(path: str) -> str:
    """Returns a location in the spelling in which locations are compared: `file:/t` becomes `/t`, and
    `s3a://b/t` becomes `s3://b/t`."""
    if path.startswith("file:"):
        return local_path(path)
    return re.sub(r"^s3[an]://", "s3://", path)


class StoreIO:
    """The part of PyIceberg's FileIO that reading metadata needs, over a table's store."""

    def __init__(self, store: _core.Store, paths: Paths) -> None:
        self._store, self._paths = store, paths

    def new_input(self, location: str) -> StoreFile:
        return StoreFile(self._store, location, self._paths.relative(location))


@dataclass(frozen=True)
class StoreFile:
    """The part of PyIceberg's InputFile that reading metadata needs."""

    store: _core.Store
    location: str
    path: str

    def open(self, seekable: bool = True) -> BytesIO:
        return BytesIO(self.store.get(self.path))
