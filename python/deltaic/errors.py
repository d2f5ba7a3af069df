"""The exception tree: each error says what was found, where, and what was expected, in its text and its
attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TypeVar

T = TypeVar("T")
_E = TypeVar("_E", bound="DeltaError")
_CONDITION = re.compile(r"\[([A-Z0-9_.]+)\]")


class DeltaError(Exception):
    """The base class of all errors. `where`, `found`, `expected`: parts of the message, or None. `values`:
    further values by name, for programs: `columns` of an unknown column has the names of all columns, and
    `is_lost` of a ProtocolError is True if the store does not have a file that the log names, or a commit.
    `condition`: the condition of Spark that the message names, such as UNRESOLVED_COLUMN, or None."""

    values: Mapping[str, object] = MappingProxyType({})

    def __init__(
        self, message: str, *, where: str | None = None, found: object = None, expected: object = None
    ) -> None:
        self.message = message
        self.where = where
        self.found = found
        self.expected = expected
        text = f"{where}: {message}" if where else message
        if found is not None:
            text += f"; found {found}"
        if expected is not None:
            text += f"; expected {expected}"
        super().__init__(text)

    @property
    def condition(self) -> str | None:
        named = _CONDITION.match(self.message)
        return None if named is None else named[1]

    def within(self, place: str) -> DeltaError:
        """Returns the error with a larger place before `where`: of a field, the line of the log that contains
        it."""
        where = f"{place}, {self.where}" if self.where else place
        return type(self)(self.message, where=where, found=self.found, expected=self.expected).with_values(
            **self.values
        )

    def with_values(self: _E, **values: object) -> _E:
        """Adds `values` to the error, and returns it."""
        self.values = {**self.values, **values}
        return self


class InvalidArgumentError(DeltaError, ValueError):
    """An argument is invalid: an unknown column or property, SQL that does not parse, options that exclude
    each other."""


class InvalidTypeError(InvalidArgumentError, TypeError):
    """An argument has the wrong Python type."""


def items_of(values: Iterable[T], name: str) -> tuple[T, ...]:
    """Returns the values of an argument. An iterator without values is an error: it has probably been read
    before, so that a repeated call would do something else than the first one."""
    items = tuple(values)
    if not items and isinstance(values, Iterator):
        raise InvalidArgumentError(
            f"{name}: the iterator gives nothing, or has been read before",
            expected="a list, which may be empty",
        )
    return items


def nearest_names(name: str, known: Iterable[str], most: int = 20) -> str | None:
    """Returns the `expected` text of an error about an unknown name: `id` for `idd`, names alike; `one of id,
    city` where none is alike; None of no names.

    The last parts of dotted names are compared, without regard to case: `target.id` has `t.id` and `s.id`
    near it. At most `most` names.
    """
    from difflib import get_close_matches

    by_last: dict[str, list[str]] = {}
    for each in known:
        by_last.setdefault(each.rpartition(".")[2].lower(), []).append(each)
    last = name.rpartition(".")[2].lower()
    near = [each for match in get_close_matches(last, by_last, n=3) for each in by_last[match]]
    names = near if near else [each for group in by_last.values() for each in group]
    if len(names) < 2:
        return names[0] if names else None
    return f"one of {', '.join(names[:most])}{', ...' if len(names) > most else ''}"


def most_similar(name: str, known: Iterable[str], most: int = 5) -> tuple[str, ...]:
    """Returns at most `most` of the names, those with the smallest edit distance to `name` first: `id`,
    `text` and `part` for `nothing`. This is the order in which Spark suggests columns."""
    return tuple(sorted(known, key=lambda each: _edit_distance(each, name))[:most])


def _edit_distance(left: str, right: str) -> int:
    """The Levenshtein distance: the number of characters to insert, delete or replace."""
    row = list(range(len(right) + 1))
    for number, of_left in enumerate(left, 1):
        before, row[0] = row[0], number
        for at, of_right in enumerate(right, 1):
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, before + (of_left != of_right))
    return row[-1]


def check_instance(value: object, kinds: type | tuple[type, ...], what: str, expected: str) -> None:
    """Raises InvalidTypeError if `value` is no instance of `kinds`. A bool does not count as a number.
    `what`: the argument's name."""
    allowed = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        raise InvalidTypeError(f"{what} is of the wrong type", found=shown(value), expected=expected)


def shown(value: object) -> str:
    """Returns a value as errors show it, on one line: `int 5`, `DataFrame id city 0 1 Oslo`."""
    return " ".join(f"{type(value).__name__} {value!r}"[:200].split())[:80]


class TableNotFoundError(DeltaError, FileNotFoundError):
    """There is no table at the location. The message says what is there instead."""


class TableAlreadyExistsError(DeltaError, FileExistsError):
    """A table already exists at the location. `mode="append"` adds rows to it, and
    `mode="overwrite"` replaces its rows."""


class VersionNotFoundError(DeltaError):
    """The log does not have the version, or no version of the time. The message has the versions
    that exist."""


class ProtocolError(DeltaError):
    """A log, checkpoint, deletion vector or data file violates PROTOCOL.md."""


class UnsupportedFeatureError(ProtocolError):
    """The table or statement needs a feature that this release does not support. The message names it."""


class PathOutsideTableError(DeltaError):
    """The log names a file outside the table and outside the allowed roots. `configure(allowed_roots=[...])`
    allows more folders."""


class UnsafeStoreError(DeltaError):
    """The store replaces an object where put-if-absent must fail, so that commits could be lost.
    `configure(log_stores=...)` with a lock makes it safe."""


class SchemaMismatchError(DeltaError, ValueError):
    """Data or an expression does not fit the schema."""


class ConstraintViolationError(DeltaError, ValueError):
    """A row violates a CHECK constraint, NOT NULL, an invariant, a generated column, or the `where` of an
    overwrite."""


class MergeCardinalityError(DeltaError):
    """Several source rows of a MERGE would change one target row. The message shows some of them: remove
    duplicates from the source."""


class CommitError(DeltaError):
    """The command was not committed. The table is unchanged."""


class AppendOnlyError(CommitError):
    """The command would remove rows of a table with `delta.appendOnly` = true."""


class DeltaConcurrentModificationException(CommitError):
    """The base class of conflicts: another writer committed first, and the command depends on what that
    commit changed. The table is as that commit left it. Call `table.refresh()`, and run the command again.

    `winner`: the version of the commit that came first. `winner_operation`: its operation ("WRITE", "DELETE",
    ...). `where`: a file that both commits concern, or None."""

    winner: int | None = None
    winner_operation: str | None = None


class ConcurrentWriteException(DeltaConcurrentModificationException):
    """Another commit came first, and it is not known what it changed, or the command has no attempt left
    (`CommitOptions(max_retries=)`), or another writer has aborted the transaction over several tables."""


class MetadataChangedException(DeltaConcurrentModificationException):
    """The commit that came first changed the table's metadata: schema, partition columns or properties."""


class ProtocolChangedException(DeltaConcurrentModificationException):
    """The commit that came first changed the protocol: it dropped a table feature, or added one that this
    release does not support."""


class ConcurrentAppendException(DeltaConcurrentModificationException):
    """The commit that came first added files that may have rows for which the command's condition is true."""


class ConcurrentDeleteReadException(DeltaConcurrentModificationException):
    """The commit that came first removed a file that the command read."""


class ConcurrentDeleteDeleteException(DeltaConcurrentModificationException):
    """The commit that came first removed a file that the command removes."""


class ConcurrentTransactionException(DeltaConcurrentModificationException):
    """The commit that came first wrote an application transaction with the id that the command has."""


class CommitUnknownError(DeltaError):
    """The outcome of the commit is unknown, because the store gave no answer. The message has the id of the
    commit, with which `DeltaTable.transaction_state(id)` finds out later if it is in the table. This class is
    no CommitError, so that programs do not retry the command by mistake."""


class CancelledError(DeltaError):
    """Another thread called `Rows.cancel`."""


@contextmanager
def placed(place: Callable[[DeltaError], str | None]) -> Iterator[None]:
    """Sets `where` of errors that are raised in the block to the result of `place`, unless that is None."""
    try:
        yield
    except DeltaError as error:
        known = place(error)
        if known is None or (error.where or "").startswith(known):
            raise
        raise error.within(known) from None
