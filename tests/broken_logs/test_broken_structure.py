"""Logs whose structure is broken: files of `_delta_log` are missing, misnamed or malformed (PROTOCOL.md,
"Delta Log Entries")."""

from __future__ import annotations

from pathlib import Path

import pytest
from bounded import Bounded
from healthy import AT_0, AT_2, METADATA, PROTOCOL, WITH_VECTORS, Case, Fails, Reads, Table, check, text

MAX_VERSION = 2**63 - 1
HEALTHY = Reads(AT_2)


def line(number: int, found: str, expected: str, version: int = 2, error: str = "ProtocolError") -> Fails:
    """Returns a fault of one line of a commit."""
    return Fails(error, f"{version:020}.json:{number}", found, expected)


def rewrite(version: int, edit):  # type: ignore[no-untyped-def]
    """A case that changes the bytes of a commit."""

    def apply(table: Table) -> None:
        path = table.commit(version)
        path.write_bytes(edit(path.read_bytes()))

    return apply


def name(table: Table, file: str, content: bytes | None = None) -> None:
    """One more file in the log; by default with the content of the newest commit."""
    (table.log / file).write_bytes(table.commit(2).read_bytes() if content is None else content)


def empty(table: Table) -> None:
    for path in table.log.iterdir():
        path.unlink()


def no_folder(table: Table) -> None:
    empty(table)
    table.log.rmdir()


def folder_for_commit(table: Table) -> None:
    table.commit(2).unlink()
    table.commit(2).mkdir()


def link_for_commit(table: Table) -> None:
    outside = table.root.parent / "outside.json"
    table.commit(2).rename(outside)
    table.commit(2).symlink_to(outside)


JSON_LINES = "a JSON object"

CASES = [
    Case("whole", lambda t: None, HEALTHY),
    # --- versions
    Case(
        "a gap", lambda t: t.delete(1), Fails("ProtocolError", f"{1:020}.json", "no such file", "version 1")
    ),
    Case(
        "two gaps",
        lambda t: (t.write(5, *t.lines(2)), t.delete(1)),
        Fails("ProtocolError", f"{4:020}.json", "no such file", "version 4"),
    ),
    Case(
        "the first commit is gone",
        lambda t: t.delete(0),
        Fails("ProtocolError", "_delta_log", "no checkpoint", "version 0"),
    ),
    Case(
        "all but the last are gone",
        lambda t: t.delete(0, 1),
        Fails("ProtocolError", "_delta_log", "no checkpoint", "version 0"),
    ),
    Case("an empty log", empty, Fails("TableNotFoundError", "_delta_log", "no commit", "a commit")),
    Case("no log", no_folder, Fails("TableNotFoundError", "_delta_log", "no commit", "a commit")),
    Case(
        "only a hint",
        lambda t: (empty(t), t.hint({"version": 2})),
        Fails("TableNotFoundError", "_delta_log", "no commit", "a commit"),
    ),
    Case(
        "a version that never was",
        lambda t: None,
        Fails("VersionNotFoundError", "_delta_log", "9", "0 to 2"),
        "read version 9",
    ),
    Case("time travel below a gap", lambda t: t.delete(1), Reads(AT_0), "read version 0"),
    Case(
        "time travel to what is gone",
        lambda t: t.delete(0),
        Fails("ProtocolError", "_delta_log", "no checkpoint", "version 0"),
        "read version 0",
    ),
    Case(
        "a refresh over a gap",
        lambda t: t.write(4, *t.lines(2)),
        Fails("ProtocolError", f"{3:020}.json", "no such file", "version 3"),
        "open",
    ),
    # --- names
    Case("a name of 19 digits", lambda t: name(t, f"{3:019}.json"), HEALTHY),
    Case("a name of 21 digits", lambda t: name(t, f"{3:021}.json"), HEALTHY),
    Case("a name of digits of another script", lambda t: name(t, "\u0660" * 19 + "\u0663.json"), HEALTHY),
    Case("a version beyond 63 bits", lambda t: name(t, f"{MAX_VERSION + 1:020}.json"), HEALTHY),
    Case("a version beyond 64 bits", lambda t: name(t, "9" * 20 + ".json"), HEALTHY),
    Case(
        "the greatest version",
        lambda t: name(t, f"{MAX_VERSION:020}.json"),
        Fails("ProtocolError", f"{MAX_VERSION - 1:020}.json", "no such file", f"version {MAX_VERSION - 1}"),
    ),
    Case("a negative version", lambda t: name(t, "-0000000000000000003.json"), HEALTHY),
    Case("a writer's temporary file", lambda t: name(t, f".{3:020}.json.5f0a.tmp"), HEALTHY),
    Case("a checksum of Hadoop", lambda t: name(t, f".{3:020}.json.crc", b"crc\0\0\0\2\0"), HEALTHY),
    Case(
        "a compacted file of nonsense",
        lambda t: name(t, f"{0:020}.{2:020}.compacted.json", b"{nonsense"),
        HEALTHY,
    ),
    Case("a compacted file of no bytes", lambda t: name(t, f"{1:020}.{2:020}.compacted.json", b""), HEALTHY),
    Case(
        "a compacted file whose end is before its start",
        lambda t: name(t, f"{2:020}.{1:020}.compacted.json"),
        HEALTHY,
    ),
    Case("a checksum file of nonsense", lambda t: name(t, f"{2:020}.crc", b"{nonsense"), HEALTHY),
    Case("a checksum file of no bytes", lambda t: name(t, f"{2:020}.crc", b""), HEALTHY),
    Case("a checksum file that is a list", lambda t: name(t, f"{2:020}.crc", b"[1, 2]"), HEALTHY),
    Case("a commit that is a folder", folder_for_commit, Reads([0, 1, 2, 3, 4, 5])),
    Case(
        "a commit that is a link out of the table",
        link_for_commit,
        Fails("PathOutsideTableError", f"{2:020}.json", "outside.json", "below"),
    ),
    # --- bytes
    Case(
        "no bytes", rewrite(2, lambda _: b""), Fails("ProtocolError", f"{2:020}.json", "0 bytes", JSON_LINES)
    ),
    Case(
        "blank lines alone",
        rewrite(2, lambda _: b"\n \r\n\t\n"),
        Fails("ProtocolError", f"{2:020}.json", "6 bytes", JSON_LINES),
    ),
    Case(
        "no bytes below the newest",
        rewrite(1, lambda _: b""),
        Fails("ProtocolError", f"{1:020}.json", "0 bytes", JSON_LINES),
    ),
    Case(
        "a byte order mark",
        rewrite(2, lambda data: b"\xef\xbb\xbf" + data),
        line(1, "byte order mark", JSON_LINES),
    ),
    Case("UTF-16", rewrite(2, lambda data: data.decode().encode("utf-16")), line(1, "byte 0xff", "UTF-8")),
    Case(
        "UTF-16 without a mark",
        rewrite(2, lambda data: data.decode().encode("utf-16-le")),
        line(1, "column", JSON_LINES),
    ),
    Case(
        "Latin-1",
        rewrite(2, lambda data: data.replace(b"f2.parquet", b"\xfc.parquet")),
        line(3, "byte 0xfc", "UTF-8"),
    ),
    Case(
        "cut within a character", rewrite(2, lambda data: data + b'{"x":"\xc3'), line(4, "byte 0xc3", "UTF-8")
    ),
    Case("lines end as on Windows", rewrite(2, lambda data: data.replace(b"\n", b"\r\n")), HEALTHY),
    Case("no end of the last line", rewrite(2, lambda data: data.rstrip(b"\n")), HEALTHY),
    Case("blank lines between", rewrite(2, lambda data: data.replace(b"\n", b"\n\n  \n")), HEALTHY),
    Case("cut within a line", rewrite(2, lambda data: data[:-30]), line(3, "EOF", JSON_LINES)),
    Case(
        "cut after the first line",
        rewrite(2, lambda data: data.split(b"\n")[0][:-2]),
        line(1, "EOF", JSON_LINES),
    ),
    Case("zeros at its end", rewrite(2, lambda data: data + bytes(512)), line(4, "column 1", JSON_LINES)),
    Case("zeros alone", rewrite(2, lambda data: bytes(len(data))), line(1, "column 1", JSON_LINES)),
    Case(
        "a line over several lines",
        rewrite(2, lambda data: data.replace(b"{", b"{\n", 1)),
        line(1, "EOF", JSON_LINES),
    ),
    Case(
        "all on one line", rewrite(2, lambda data: data.replace(b"\n", b" ")), line(1, "trailing", JSON_LINES)
    ),
    Case("Parquet", rewrite(2, lambda _: b"PAR1\x15\x04\x15\x10\x15"), line(1, "column 1", JSON_LINES)),
    # --- lines
    Case("a list", lambda t: t.append(2, "[1]"), line(4, "invalid type: sequence", JSON_LINES)),
    Case("a number", lambda t: t.append(2, "5"), line(4, "invalid type: integer", JSON_LINES)),
    Case("a text", lambda t: t.append(2, '"add"'), line(4, "invalid type: string", JSON_LINES)),
    Case("null", lambda t: t.append(2, "null"), line(4, "invalid type: null", JSON_LINES)),
    Case(
        "two actions",
        lambda t: t.append(2, text({"add": t.add(0), "remove": t.remove(1)})),
        line(4, "two actions", JSON_LINES),
    ),
    Case(
        "the same action twice",
        lambda t: t.append(2, '{"txn":{"appId":"a","version":1},"txn":{}}'),
        line(4, "two actions", JSON_LINES),
    ),
    Case("a word", lambda t: t.append(2, "commit"), line(4, "column 1", JSON_LINES)),
    Case("single quotes", lambda t: t.append(2, "{'commitInfo':{}}"), line(4, "column 2", JSON_LINES)),
    Case(
        "a comma at the end",
        lambda t: t.append(2, '{"commitInfo":{"a":1,}}'),
        line(4, "key must be a string", JSON_LINES),
    ),
    Case("a comment", lambda t: t.append(2, "// done"), line(4, "column 1", JSON_LINES)),
    Case(
        "a control character in text",
        lambda t: t.append(2, '{"commitInfo":{"a":"\x01"}}'),
        line(4, "control character", JSON_LINES),
    ),
    Case(
        "half of a surrogate pair",
        lambda t: t.append(2, '{"txn":{"appId":"\\ud800","version":1}}'),
        line(4, "hex escape", JSON_LINES),
    ),
    Case("an action that nobody knows", lambda t: t.append(2, '{"future":{"deep":[{}]}}'), HEALTHY),
    Case(
        "an unknown key before a known action",
        lambda t: t.append(2, '{"some_new_action":[1],"txn":{"appId":"a","version":1},"another":"x"}'),
        HEALTHY,
    ),
    Case("two unknown keys", lambda t: t.append(2, '{"one":{},"two":[]}'), HEALTHY),
    Case(
        "two known actions beside an unknown key",
        lambda t: t.append(2, text({"new": [], "add": t.add(0), "commitInfo": {}})),
        line(4, "two actions", JSON_LINES),
    ),
    Case("a field that nobody knows", lambda t: t.change(2, "add", future={"deep": [{}]}), HEALTHY),
    Case("an action of nothing", lambda t: t.append(2, '{"add":null}', "{}"), HEALTHY),
    Case(
        "an action that is text",
        lambda t: t.append(2, '{"metaData":"x"}'),
        line(4, "'metaData' is no object", JSON_LINES),
    ),
    # --- actions of the whole table
    Case(
        "two protocols",
        lambda t: t.append(2, {"protocol": PROTOCOL}, {"protocol": WITH_VECTORS}),
        line(5, "two of protocol", "at most one"),
    ),
    Case(
        "two definitions",
        lambda t: t.append(2, {"metaData": METADATA}, {"metaData": METADATA}),
        line(5, "two of metaData", "at most one"),
    ),
    Case(
        "no protocol",
        lambda t: t.drop(0, "protocol"),
        Fails("ProtocolError", "version 2", "no protocol action", "one in the first commit"),
    ),
    Case(
        "no definition",
        lambda t: t.drop(0, "metaData"),
        Fails("ProtocolError", "version 2", "no metaData action", "one in the first commit"),
    ),
    Case(
        "neither protocol nor definition",
        lambda t: (t.drop(0, "metaData"), t.drop(0, "protocol")),
        Fails("ProtocolError", "version 2", "no protocol action", "one in the first commit"),
    ),
    Case(
        "a definition that comes late",
        lambda t: (t.drop(0, "metaData"), t.append(1, {"metaData": METADATA})),
        Fails("ProtocolError", "version 0", "no metaData action", "one in the first commit"),
        "read version 0",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_broken_structure(case: Case, tmp_path: Path, bounded: Bounded) -> None:
    check(case, tmp_path, bounded)
