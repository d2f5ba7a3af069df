"""Tables that names in a statement stand for: delta.`path`, or one of the tables handed to `deltaic.sql(tables=)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.options import CommitOptions
from deltaic.plan.literal import col
from deltaic.sql.tokens import Reader
from deltaic.table import DeltaTable, run_write
from deltaic.table import write as write_table

if TYPE_CHECKING:
    from deltaic.commands.write import Mode, Write
    from deltaic.protocol.schema import Field

_NOT_AN_ALIAS = frozenset({"WHERE", "SET", "USING", "ON", "WHEN", "VERSION", "TIMESTAMP", "FOR"})
"""Words that may follow a table where an alias may stand."""


@dataclass(frozen=True)
class Name:
    """A table as a statement writes it: `parts` of its name, the moment it is looked at, and the alias it goes by."""

    parts: tuple[str, ...]
    version: int | None = None
    timestamp: str | None = None
    alias: str | None = None

    @property
    def path(self) -> str | None:
        """The path in delta.`path`, None for a plain name."""
        return self.parts[1] if len(self.parts) == 2 and self.parts[0].lower() in ("delta", "deltaic") else None

    @property
    def qualifiers(self) -> tuple[tuple[str, ...], ...]:
        """Qualifier of this table's columns: the alias hides the name, as in Spark."""
        return ((self.alias,),) if self.alias else (self.parts, self.parts[-1:])

    def __str__(self) -> str:
        return ".".join(f"`{part}`" for part in self.parts)


def read_name(reader: Reader, *, alias: bool = False, travel: bool = False) -> Name:
    """name [VERSION | TIMESTAMP AS OF ...] [[AS] alias], of which the second and third where allowed."""
    name = Name(reader.dotted())
    if travel:
        name = _travelled(reader, name)
    if alias and (reader.accept("AS") or _alias_follows(reader)):
        name = replace(name, alias=reader.name())
    return name


def _travelled(reader: Reader, name: Name) -> Name:
    for prefix in ((), ("FOR",)):
        for word in ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"):
            if reader.accept(*prefix, word, "AS", "OF"):
                return read_moment(reader, name, word in ("VERSION", "SYSTEM_VERSION"))
    return name


def read_moment(reader: Reader, name: Name, is_version: bool) -> Name:
    """The value after VERSION AS OF or TIMESTAMP AS OF. A version may stand in quotes, as in Spark."""
    if not is_version:
        reader.accept("TIMESTAMP") or reader.accept("DATE")
        return replace(name, timestamp=reader.string())
    if not reader.done and reader.tokens[reader.position].kind == "string":
        text = reader.string()
        if not text.isdecimal():
            raise InvalidArgumentError("not a version of a table", found=text, expected="a whole number")
        return replace(name, version=int(text))
    return replace(name, version=reader.integer())


def _alias_follows(reader: Reader) -> bool:
    if reader.done:
        return False
    token = reader.tokens[reader.position]
    return token.kind == "quoted" or (token.kind == "word" and token.keyword not in _NOT_AN_ALIAS)


@dataclass(frozen=True)
class CatalogEntry:
    """What a catalog says of a table. `managed`: the catalog deletes its files with its name."""

    catalog: str
    schema: str
    name: str
    managed: bool

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.name}"


class Tables:
    """The tables a statement can see, and what is done with their rows, here by the embedded engine. A path is opened when it is first
    named, at the newest version unless the statement travels, and every other mention of it in the statement is that same table."""

    def __init__(self, tables: Mapping[str, Any] | None, storage_options: Mapping[str, str] | None) -> None:
        self.storage_options = storage_options
        self._named: dict[str, tuple[str, Any]] = {}
        self._opened: dict[tuple[str, int | None, str | None], DeltaTable] = {}
        known: dict[int, Any] = {}
        for key, value in (tables or {}).items():
            if key.lower() in self._named:
                found = [self._named[key.lower()][0], key]
                raise InvalidArgumentError("two tables whose names differ by case only", where="tables=", found=found)
            from deltaic.engine.source import buffered

            self._named[key.lower()] = (key, known.setdefault(id(value), buffered(value)))

    def data(self, name: Name) -> Any:
        """A DeltaTable, or the data that goes by this name."""
        if (path := name.path) is not None:
            wanted = path, name.version, name.timestamp
            if wanted not in self._opened:
                self._opened[wanted] = self.opened(*wanted)
            return self._opened[wanted]
        value = self._lookup(name)
        if name.version is None and name.timestamp is None:
            return value
        if not isinstance(value, DeltaTable):
            raise InvalidArgumentError("only a Delta table has versions", where=str(name), found=type(value).__name__)
        return value.at(name.version, timestamp=name.timestamp)

    def table(self, name: Name) -> DeltaTable:
        """A Delta table that a command may change or describe."""
        value = self.data(name)
        if not isinstance(value, DeltaTable):
            raise InvalidArgumentError("this statement needs a Delta table", where=str(name), found=type(value).__name__)
        return value

    def place(self, name: Name, location: str | None) -> tuple[str, bool]:
        """Returns the location of a table to create, and whether its name is new in the catalog. `location`: LOCATION of the statement."""
        if location is not None:
            raise UnsupportedFeatureError(
                "LOCATION without a catalog of names", found=location, expected="delta.`path` as the table's name"
            )
        if (path := name.path) is not None:
            return path, False
        value = self._lookup(name)
        if not isinstance(value, DeltaTable):
            raise InvalidArgumentError("this statement needs a Delta table", where=str(name), found=type(value).__name__)
        return value.location, False

    def entry(self, name: Name) -> CatalogEntry | None:
        """The entry of a table in a catalog; None for one that has none."""
        return None

    def created_as(self, name: Name, table: DeltaTable) -> tuple[str, str | None]:
        """The name in a CREATE TABLE of a table that is there, and the place that the statement has to say, None where the name says it."""
        return f"delta.{col(table.location)}", None

    def opened(self, path: str, version: int | None = None, timestamp: str | None = None) -> DeltaTable:
        """The table at a path."""
        return DeltaTable(path, version=version, timestamp=timestamp, storage_options=self.storage_options)

    def rows(self, name: Name) -> Any:
        """Rows that a statement reads under this name, as data that commands take."""
        value = self.data(name)
        return value.scan() if isinstance(value, DeltaTable) else value

    def query(self, text: str) -> Any:
        """The rows of a query, as data that commands take."""
        from deltaic.sql.select import query

        return query(text, self)

    def column_names(self, rows: Any) -> Sequence[str]:
        """Names of the columns of `query`'s result."""
        names: Sequence[str] = rows.schema.names
        return names

    def renamed(self, rows: Any, names: Sequence[str]) -> Any:
        """Rows of `query` under other names, by position."""
        from deltaic.sql.select import renamed

        return renamed(rows, names)

    def placed(self, rows: Any, columns: Sequence[Field]) -> Any:
        """Rows of `query` under the names of these columns and of the fields within them, by position."""
        from deltaic.sql.positions import placed

        return placed(rows, columns)

    @property
    def evolves(self) -> bool:
        """True if MERGE adds columns of its source where the statement does not say so."""
        return False

    @property
    def enforces_retention(self) -> bool:
        """True if VACUUM refuses a time shorter than the table's retention."""
        return True

    def overwrites_partitions(self) -> bool:
        """True if INSERT OVERWRITE replaces just the partitions that the new rows are in, and not the table's rows."""
        return False

    def insert(self, table: DeltaTable, rows: Any, mode: Mode, where: str | None) -> None:
        """Writes what `query` gave, cast by store assignment, into a table that is there, and moves the table to it."""
        write_table(table, rows, mode=mode, where=where, casting="strict")

    def create(self, path: str, rows: Any, job: Write) -> None:
        """Makes a table of what `query` gave, or replaces it."""
        run_write(path, rows, job, self.storage_options)

    def restore(self, table: DeltaTable, moment: Name) -> Mapping[str, int]:
        """Makes a table what it was at the version or time of `moment`."""
        return table.restore(moment.version, timestamp=moment.timestamp)

    def table_properties(self, given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Properties of a table that a statement makes."""
        return given

    def commit_options(self) -> CommitOptions | None:
        """Options for the commit of a statement that creates a table."""
        return None

    def _lookup(self, name: Name) -> Any:
        if len(name.parts) == 1 and (found := self._named.get(name.parts[0].lower())):
            return found[1]
        if len(name.parts) == 2 and name.parts[0].lower() in ("parquet", "csv", "json", "orc", "text", "iceberg"):
            raise UnsupportedFeatureError("a query reads Delta tables and the data of tables=", found=str(name), expected="delta.`path`")
        known = ", ".join(key for key, _ in self._named.values()) or "none"
        raise InvalidArgumentError(
            "[TABLE_OR_VIEW_NOT_FOUND] no such table", found=str(name), expected=f"delta.`path`, or a name of tables= ({known})"
        )
