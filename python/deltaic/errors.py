"""The exception tree: each error says what was found, where, and what was expected, in its text and its
attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
_CONDITION = re.compile(r"\[([A-Z0-9_.]+)\]")


class DeltaError(Exception):
    """Base of all. `where`, `found`, `expected`: parts of the message, None where they say nothing.
    `condition`: the condition of Spark that the message names, such as UNRESOLVED_COLUMN, or None."""

    def __init__(self, message: str, *, where: str | None = None, found: object = None, expected: object = None) -> None:
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
        """Returns the error with `where` put into a larger place: a field in the line of the log that holds
        it."""
        where = f"{place}, {self.where}" if self.where else place
        return type(self)(self.message, where=where, found=self.found, expected=self.expected)


class InvalidArgumentError(DeltaError, ValueError):
    """Unknown column, constraint or property; SQL that does not parse; options that contradict."""


class InvalidTypeError(InvalidArgumentError, TypeError):
    """An argument of the wrong Python type."""


def items_of(values: Iterable[T], name: str) -> tuple[T, ...]:
    """The values of an argument. An iterator without any is an error: it has most likely been read before,
    and a call that is repeated with it would do something else than the first one."""
    items = tuple(values)
    if not items and isinstance(values, Iterator):
        raise InvalidArgumentError(f"{name}: the iterator gives nothing, or has been read before", expected="a list, which may be empty")
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


def check_instance(value: object, kinds: type | tuple[type, ...], what: str, expected: str) -> None:
    """InvalidTypeError where `value` is of none of the `kinds`; a bool is no number here. `what`: the
    argument's name."""
    allowed = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        raise InvalidTypeError(f"{what} is of the wrong type", found=shown(value), expected=expected)


def shown(value: object) -> str:
    """A value as errors show it, in one line: `int 5`, `DataFrame id city 0 1 Oslo`."""
    return " ".join(f"{type(value).__name__} {value!r}"[:200].split())[:80]


class TableNotFoundError(DeltaError, FileNotFoundError):
    """No table there."""


class TableAlreadyExistsError(DeltaError, FileExistsError):
    """A table is there already."""


class VersionNotFoundError(DeltaError):
    """A version or time outside what the log still has."""


class ProtocolError(DeltaError):
    """Log, checkpoint, vector or data file is not what PROTOCOL.md allows."""


class UnsupportedFeatureError(ProtocolError):
    """A feature that this release cannot read or write."""


class PathOutsideTableError(DeltaError):
    """A log names a file outside the table and the allowed roots."""


class UnsafeStoreError(DeltaError):
    """A store that does not keep put-if-absent."""


class SchemaMismatchError(DeltaError, ValueError):
    """Data or expressions do not fit the schema."""


class ConstraintViolationError(DeltaError, ValueError):
    """A row breaks CHECK, NOT NULL, an invariant, a generated column, or the `where` of an overwrite."""


class MergeCardinalityError(DeltaError):
    """Two source rows would change one target row."""


class CommitError(DeltaError):
    """Not committed; the table is as it was."""


class AppendOnlyError(CommitError):
    """`delta.appendOnly` is true and the command would remove rows."""


class DeltaConcurrentModificationException(CommitError):
    """Base of the conflicts; `winner` is the version that came first, `winner_operation` what it did
    ("WRITE", "DELETE", ...), and `where` the file that both concern, where there is one."""

    winner: int | None = None
    winner_operation: str | None = None


class ConcurrentWriteException(DeltaConcurrentModificationException):
    """Another commit came first, and nothing more is known."""


class MetadataChangedException(DeltaConcurrentModificationException):
    """The winner changed the table's metadata."""


class ProtocolChangedException(DeltaConcurrentModificationException):
    """The winner changed the protocol."""


class ConcurrentAppendException(DeltaConcurrentModificationException):
    """The winner added files that this transaction should have read."""


class ConcurrentDeleteReadException(DeltaConcurrentModificationException):
    """The winner removed a file that this transaction read."""


class ConcurrentDeleteDeleteException(DeltaConcurrentModificationException):
    """The winner removed a file that this transaction removes."""


class ConcurrentTransactionException(DeltaConcurrentModificationException):
    """The winner wrote the same application transaction id."""


class CommitUnknownError(DeltaError):
    """The store did not say whether the commit happened. Not a CommitError, so that nobody retries by
    accident."""


class CancelledError(DeltaError):
    """Another thread called `Rows.cancel`."""


@contextmanager
def placed(place: Callable[[DeltaError], str | None]) -> Iterator[None]:
    """Errors of the body say where it came from: `place` tells, None where it does not know."""
    try:
        yield
    except DeltaError as error:
        known = place(error)
        if known is None or (error.where or "").startswith(known):
            raise
        raise error.within(known) from None


def add_note(error: BaseException, text: str) -> None:
    """Adds a line to an exception of somebody else's, where Python has such notes (3.11)."""
    if hasattr(error, "add_note"):
        error.add_note(text)
