"""Rows and metrics on a terminal, or as JSON for another program."""

from __future__ import annotations

import base64
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich import markup
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from deltaic.deferred import pyarrow as pa

# C0 and C1 control characters but tab and line end, and marks that turn the direction of text: a terminal
# would obey them.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def escape(text: str) -> str:
    """Text of a table or a statement for rich: neither markup nor control characters are obeyed. `ESC [ 2 J`
    is shown as `\\x1b[2J`."""
    return markup.escape(_CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text))


def to_json(value: Any, indent: int | None = None) -> str:
    """Returns JSON without control characters in its strings."""
    text = json.dumps(jsonable(value), ensure_ascii=False, indent=indent)
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def fail(message: str) -> None:
    """Prints a message on stderr as plain text, because text of a table in it is no markup."""
    Console(stderr=True, soft_wrap=True).print(f"[bold red]error:[/] {escape(message)}", highlight=False)


def note(message: str) -> None:
    """Prints a remark on stderr, so that it does not mix with rows that are piped."""
    Console(stderr=True, soft_wrap=True).print(escape(message), style="dim", highlight=False)


@contextmanager
def working(message: str) -> Iterator[None]:
    """Shows a spinner on stderr while the work runs, if stderr is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(escape(message)):
        yield


def print_rows(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, as_json: bool, title: str | None = None
) -> None:
    """Prints rows as a table as wide as the terminal, or as a JSON array of objects, row by row."""
    if as_json:
        _print_json_rows(batches)
        return
    console = Console()
    table = Table(
        title=escape(title) if title else None, title_justify="left", show_edge=False, pad_edge=False
    )
    is_number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    for field in schema:
        numeric = any(test(field.type) for test in is_number)
        table.add_column(escape(field.name), justify="right" if numeric else "left", overflow="fold")
    for batch in batches:
        for row in batch.to_pylist():
            table.add_row(*(_cell(value) for value in row.values()))
    if schema.names:
        console.print(table)


def print_records(records: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Prints dicts with the same keys as a table, or as a JSON array."""
    if as_json:
        print(to_json(list(records), indent=1))
        return
    table = Table(show_edge=False, pad_edge=False)
    for key in records[0] if records else ():
        table.add_column(escape(key), overflow="fold")
    for record in records:
        table.add_row(*(_cell(value) for value in record.values()))
    Console().print(table)


def print_mapping(values: Mapping[str, Any], *, as_json: bool, title: str | None = None) -> None:
    """Prints named values, one on each line, or as one JSON object."""
    if as_json:
        print(to_json(values))
        return
    table = Table(
        title=escape(title) if title else None,
        title_justify="left",
        show_header=False,
        show_edge=False,
        pad_edge=False,
    )
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in values.items():
        table.add_row(escape(key.replace("_", " ")), _listed(value))
    Console().print(table)


def _listed(value: Any) -> str:
    """The items of a list or a mapping, for example `day, hour` and `delta.appendOnly = true`; "none" if
    there are none."""
    if isinstance(value, Mapping):
        return "\n".join(f"{escape(str(key))} = {_cell(item)}" for key, item in value.items()) or "none"
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return ", ".join(map(escape, value)) or "none"
    return _cell(value)


def _print_json_rows(batches: Iterable[pa.RecordBatch]) -> None:
    separator = "["
    for batch in batches:
        for row in batch.to_pylist():
            sys.stdout.write(separator + to_json(row))
            separator = ",\n "
    sys.stdout.write("[]\n" if separator == "[" else "]\n")


def _cell(value: Any) -> str:
    if value is None:
        return "[dim]null[/]"
    if isinstance(value, (list, dict, tuple)):
        return escape(to_json(value))
    if isinstance(value, bool):
        return str(value).lower()
    return escape(str(jsonable(value)) if not isinstance(value, datetime) else value.isoformat(" "))


def jsonable(value: Any) -> Any:
    """Returns a value that JSON holds exactly: a decimal, and a float that is no number, as text; bytes in
    base 64; times in ISO 8601."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (Decimal, timedelta)):
        return str(value)
    return value if value is None or isinstance(value, (str, int, float)) else str(value)
