"""`HadoopStore`, a LogStore over the driver's Hadoop file system, for locations that only Hadoop reaches:
HDFS, federations, file systems of other vendors.

The driver reads and writes the log, footers and deletion vectors through py4j. Spark reads and writes the
data files by the same file system. A listing, a read or a write of any size takes a few calls to the JVM.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from deltaic.engine.spark.native.session import hadoop_settings
from deltaic.errors import UnsupportedFeatureError

_FOLDER = 1
_NO_RENAMES = frozenset({"s3", "s3a", "s3n", "gs", "wasb", "wasbs", "oss", "cos", "cosn", "obs"})
"""Schemes of object stores whose rename copies an object and replaces an existing one. A commit by such a
rename could replace another writer's commit, so commits are refused."""


class HadoopStore:
    """Implements `deltaic.log.store.LogStore`. `location`: a URL whose scheme the session's Hadoop
    configuration knows."""

    of_driver = True
    """Marks a store that calls the driver's JVM, so that executors cannot use it."""

    def __init__(self, spark: Any, location: str) -> None:
        self._jvm, self._gateway = spark._jvm, spark.sparkContext._gateway
        self._configuration = hadoop_settings(spark)
        self._root = location.rstrip("/")
        try:
            self._files = self._path("").getFileSystem(self._configuration)
        except Exception as error:
            raise UnsupportedFeatureError(
                "neither deltaic nor Hadoop has a store for this location",
                where=location,
                found=_message(error),
                expected="fs.<scheme>.impl in Hadoop's configuration",
            ) from error
        self._context: Any = None

    def list_from(
        self, prefix: str, start_after: str | None, recursive: bool, /
    ) -> Iterator[tuple[str, int, int]]:
        folders = [prefix.strip("/")]
        while folders:
            folder = folders.pop()
            for name, kind, size, modified in self._listed(folder):
                path = f"{folder}/{name}" if folder else name
                if kind == _FOLDER:
                    if recursive:
                        folders.append(path)
                elif start_after is None or path[len(prefix) :].lstrip("/") > start_after:
                    yield path, size, modified

    def head(self, path: str, /) -> tuple[int, int] | None:
        try:
            status = self._files.getFileStatus(self._path(path))
        except Exception as error:
            if _kind(error) == "FileNotFoundException":
                return None
            raise _os_error(error, path) from error
        return None if status.isDirectory() else (int(status.getLen()), int(status.getModificationTime()))

    def read(self, path: str, start: int = 0, end: int | None = None, /) -> bytes:
        try:
            stream = self._files.open(self._path(path))
            try:
                if start:
                    stream.seek(start)
                return bytes(stream.readAllBytes() if end is None else stream.readNBytes(end - start))
            finally:
                stream.close()
        except Exception as error:
            raise _os_error(error, path) from error

    def write_if_absent(self, path: str, data: bytes, /) -> bool | None:
        """Writes a file only if none exists. The bytes go to a temporary file, which is then renamed without
        replacing; HDFS does that rename atomically. Returns True if the file was written, False if one
        existed, None if the outcome is unknown."""
        rename = self._renaming()
        temporary = self._temporary_file(path, data)
        try:
            rename(temporary, self._path(path), self._gateway.new_array(self._renames, 0))
            return True
        except Exception as error:
            self._discard(temporary)
            kind = _kind(error)
            if kind == "FileAlreadyExistsException":
                return False
            if kind in ("AccessControlException", "FileNotFoundException", "UnsupportedOperationException"):
                raise _os_error(error, path) from error
            return None  # the rename may have succeeded, and only its result was lost

    def write(self, path: str, data: bytes, /) -> None:
        rename = self._renaming()
        temporary = self._temporary_file(path, data)
        replacing = self._gateway.new_array(self._renames, 1)
        replacing[0] = self._renames.OVERWRITE
        try:
            rename(temporary, self._path(path), replacing)
        except Exception as error:
            self._discard(temporary)
            raise _os_error(error, path) from error

    def delete(self, path: str, /) -> bool:
        try:
            return bool(self._files.delete(self._path(path), False))
        except Exception as error:
            raise _os_error(error, path) from error

    # --- Hadoop

    @property
    def _renames(self) -> Any:
        return getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._root}/{path}" if path else f"{self._root}/")

    def _renaming(self) -> Any:
        """Returns the function `FileContext.rename`, which replaces an existing file only with the option
        OVERWRITE. Hadoop's older interface `FileSystem` has no such function."""
        if self._root.partition("://")[0].lower() in _NO_RENAMES:
            raise UnsupportedFeatureError(
                "commits to this kind of store through Hadoop, which cannot rename without replacing there",
                where=self._root,
                expected=(
                    "deltaic.configure(log_stores=...) with a store that puts an object only where there is"
                    " none"
                ),
            )
        if self._context is None:
            try:
                self._context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
                    self._path("").toUri(), self._configuration
                )
            except Exception as error:
                raise UnsupportedFeatureError(
                    "commits through a file system of Hadoop that cannot rename without replacing",
                    where=self._root,
                    found=_message(error),
                    expected="fs.AbstractFileSystem.<scheme>.impl, or deltaic.configure(log_stores=...)",
                ) from error
        return self._context.rename

    def _temporary_file(self, path: str, data: bytes) -> Any:
        """Writes the bytes to a hidden file in the folder of `path`, such as
        `.00000000000000000007.json.<uuid>.tmp`, and returns its path."""
        folder, _, name = path.rpartition("/")
        temporary = self._path(
            f"{folder}/.{name}.{uuid.uuid4().hex}.tmp" if folder else f".{name}.{uuid.uuid4().hex}.tmp"
        )
        try:
            stream = self._files.create(temporary, False)
            try:
                stream.write(bytearray(data))
            finally:
                stream.close()
        except Exception as error:
            self._discard(temporary)
            raise _os_error(error, path) from error
        return temporary

    def _discard(self, temporary: Any) -> None:
        """Deletes a temporary file. An error of that is ignored: readers ignore the file, and only the error
        of the write says whether a commit may have succeeded."""
        with suppress(Exception):
            self._files.delete(temporary, False)

    def _listed(self, folder: str) -> Iterator[tuple[str, int, int, int]]:
        """Yields (name, kind, size in bytes, modification time in ms) of each entry of a folder. The statuses
        are sent in Hadoop's own serialization, in one call."""
        try:
            statuses = self._files.listStatus(self._path(folder))
        except Exception as error:
            if _kind(error) == "FileNotFoundException":
                return
            raise _os_error(error, folder) from error
        hadoop = self._jvm.org.apache.hadoop
        writables = self._gateway.new_array(hadoop.io.Writable, len(statuses))
        self._jvm.java.lang.System.arraycopy(statuses, 0, writables, 0, len(statuses))
        bytes_out = self._jvm.java.io.ByteArrayOutputStream()
        kind = self._jvm.java.lang.Class.forName("org.apache.hadoop.fs.FileStatus")
        hadoop.io.ArrayWritable(kind, writables).write(self._jvm.java.io.DataOutputStream(bytes_out))
        data = bytes(bytes_out.toByteArray())
        position = 4
        for _ in range(int.from_bytes(data[:4], "big")):
            end = position + 4 + int.from_bytes(data[position : position + 4], "big")
            fields = _fields(data[position + 4 : end])
            position = end
            name = fields[2].decode().rstrip("/").rpartition("/")[2]
            if not (name.startswith(".") and name.endswith((".tmp", ".crc"))):
                yield name, fields[1], fields.get(3, 0), fields.get(7, 0)


def _fields(message: bytes) -> dict[int, Any]:
    """Returns field number -> value of a Protocol Buffers message (FileStatusProto of Hadoop's
    FSProtos.proto)."""
    fields: dict[int, Any] = {}
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        if tag & 7 == 2:
            size, position = _varint(message, position)
            fields[tag >> 3] = message[position : position + size]
            position += size
        else:
            fields[tag >> 3], position = _varint(message, position)
    return fields


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _kind(error: Exception) -> str:
    """Returns the simple name of the Java exception's class, such as `FileNotFoundException`; "" for an error
    without a Java exception."""
    exception = getattr(error, "java_exception", None)
    return "" if exception is None else str(exception.getClass().getSimpleName())


def _message(error: Exception) -> str:
    """Returns the first line of the text of the Java exception, or of the error without one."""
    exception = getattr(error, "java_exception", None)
    return str(error if exception is None else exception.toString()).split("\n")[0][:300]


def _os_error(error: Exception, path: str) -> Exception:
    """Returns the OSError for a Java exception: FileNotFoundError, PermissionError, ConnectionError if the
    JVM has ended, else OSError."""
    kinds = {"FileNotFoundException": FileNotFoundError, "AccessControlException": PermissionError}
    if _kind(error):
        return kinds.get(_kind(error), OSError)(f"{path}: {_message(error)}")
    return ConnectionError(f"{path}: {_message(error)}") if type(error).__name__.startswith("Py4J") else error
