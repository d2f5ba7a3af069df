"""Protocol actions that are broken, and features that cannot be honoured (PROTOCOL.md, "Protocol Evolution",
"Table Features")."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bounded import Bounded
from healthy import AT_2, METADATA, PROTOCOL, WITH_VECTORS, Case, Fails, Reads, Table, check, text

HEALTHY = Reads(AT_2)
LINE = f"{0:020}.json:2"  # the place of the protocol
APPENDED = Reads([*AT_2, 100])


def protocol(**fields: Any) -> Callable[[Table], None]:
    return lambda table: table.change(0, "protocol", **fields)


def features(*readers: str, writers: tuple[str, ...] | None = None) -> Callable[[Table], None]:
    listed = list(readers if writers is None else writers)
    return protocol(
        minReaderVersion=3, minWriterVersion=7, readerFeatures=list(readers), writerFeatures=listed
    )


def configured(action: Callable[[Table], None], **properties: str) -> Callable[[Table], None]:
    def apply(table: Table) -> None:
        action(table)
        table.change(
            0, "metaData", configuration={"delta." + name: value for name, value in properties.items()}
        )

    return apply


def bad(found: str, expected: str = "a version from 1 on", where: str = LINE) -> Fails:
    return Fails("ProtocolError", where, found, expected)


def refused(found: str, expected: str, where: str = LINE) -> Fails:
    return Fails("UnsupportedFeatureError", where, found, expected)


CASES = [
    # --- versions
    *(
        Case(f"{field} is {value!r}", protocol(**{field: value}), bad(shown))
        for field in ("minReaderVersion", "minWriterVersion")
        for value, shown in (
            (..., "None"),
            (None, "None"),
            ("1", "'1'"),
            (1.5, "1.5"),
            (True, "True"),
            (0, "0"),
            (-1, "-1"),
            ([1], "[1]"),
        )
    ),
    Case(
        "a number that no machine has",
        lambda t: t.replace(0, '"minReaderVersion":1', '"minReaderVersion":1e400'),
        bad("inf"),
    ),
    Case("a reader of the future", protocol(minReaderVersion=4, minWriterVersion=8), refused("4", "1 to 3")),
    Case(
        "a reader beyond 63 bits",
        protocol(minReaderVersion=2**64, minWriterVersion=8),
        refused(str(2**64), "1 to 3"),
    ),
    Case("a writer of the future is read", protocol(minReaderVersion=1, minWriterVersion=8), HEALTHY),
    Case(
        "a writer of the future is not written",
        protocol(minReaderVersion=1, minWriterVersion=8),
        refused("8", "1 to 7", "protocol"),
        "append",
    ),
    Case(
        "reader 3 without writer 7",
        protocol(minReaderVersion=3, minWriterVersion=6, readerFeatures=[]),
        bad("6", "7"),
    ),
    # --- lists of features
    Case(
        "reader 3 without a list",
        protocol(minReaderVersion=3, minWriterVersion=7, writerFeatures=[]),
        bad("None", "a list of names"),
    ),
    Case("writer 7 without a list", protocol(minWriterVersion=7), bad("None", "a list of names")),
    Case(
        "features below version 3",
        protocol(readerFeatures=["deletionVectors"]),
        bad("deletionVectors", "nothing below version 3"),
    ),
    Case(
        "features below version 7",
        protocol(writerFeatures=["appendOnly"]),
        bad("appendOnly", "nothing below version 7"),
    ),
    Case(
        "features as text",
        protocol(**{**WITH_VECTORS, "readerFeatures": "deletionVectors"}),
        bad("'deletionVectors'", "a list of text"),
    ),
    Case(
        "features as an object",
        protocol(**{**WITH_VECTORS, "writerFeatures": {}}),
        bad("{}", "a list of text"),
    ),
    Case(
        "features as numbers",
        protocol(**{**WITH_VECTORS, "readerFeatures": [1]}),
        bad("[1]", "a list of text"),
    ),
    Case(
        "features of null",
        protocol(**{**WITH_VECTORS, "readerFeatures": [None]}),
        bad("[None]", "a list of text"),
    ),
    Case("empty lists below the version", protocol(readerFeatures=[], writerFeatures=[]), HEALTHY),
    Case("a feature twice", features("deletionVectors", "deletionVectors"), HEALTHY),
    Case(
        "a feature for readers that writers do not have",
        features("deletionVectors", writers=("appendOnly",)),
        bad("deletionVectors", "each in writerFeatures too", "protocol"),
        "append",
    ),
    # --- features by name
    Case(
        "a reader's feature that nobody knows",
        features("fromTheFuture"),
        refused("fromTheFuture", "features that this release reads"),
    ),
    Case("a feature without a name", features(""), refused("''", "features that this release reads")),
    Case(
        "a feature in another case",
        features("DeletionVectors"),
        refused("DeletionVectors", "features that this release reads"),
    ),
    Case(
        "a writer's feature that nobody knows is read",
        protocol(minWriterVersion=7, writerFeatures=["fromTheFuture"]),
        HEALTHY,
    ),
    Case(
        "a writer's feature that nobody knows is not written",
        protocol(minWriterVersion=7, writerFeatures=["fromTheFuture"]),
        refused("fromTheFuture", "features that this release writes", "protocol"),
        "append",
    ),
    Case(
        "a catalog's table",
        features("catalogManaged"),
        refused(
            "catalogManaged", "the catalog's commit coordinator, by deltaic.configure(commit_coordinator=)"
        ),
    ),
    Case(
        "an Iceberg table",
        configured(
            protocol(minWriterVersion=7, writerFeatures=["icebergWriterCompatV1"]),
            enableIcebergWriterCompatV1="true",
        ),
        refused("icebergWriterCompatV1", "features that this release writes", "protocol"),
        "append",
    ),
    Case(
        "a feature that the table does not use",
        protocol(minWriterVersion=7, writerFeatures=["icebergCompatV2"]),
        APPENDED,
        "append",
    ),
    # --- the action
    Case(
        "a list",
        lambda t: t.replace(0, text({"protocol": PROTOCOL}), '{"protocol":[1,2]}'),
        bad("'protocol' is no object", "a JSON object"),
    ),
    Case(
        "a field twice",
        lambda t: t.replace(0, '"minReaderVersion":1', '"minReaderVersion":1,"minReaderVersion":3'),
        bad("minReaderVersion", "each once"),
    ),
    Case(
        "a later one that is broken",
        lambda t: t.append(1, {"protocol": {}}),
        bad("None", where=f"{1:020}.json:3"),
    ),
    Case(
        "an earlier one that is broken",
        lambda t: (t.change(0, "protocol", minReaderVersion="1"), t.append(1, {"protocol": PROTOCOL})),
        HEALTHY,
    ),
    Case(
        "a refresh to a broken one",
        lambda t: t.append(2, {"protocol": {}}),
        bad("None", where=f"{2:020}.json:4"),
        "refresh",
    ),
    Case(
        "a refresh to a feature that nobody knows",
        lambda t: t.append(
            2, {"protocol": {**WITH_VECTORS, "readerFeatures": ["x"], "writerFeatures": ["x"]}}
        ),
        refused("x", "features that this release reads", f"{2:020}.json:4"),
        "refresh",
    ),
    Case(
        "no definition, and a protocol of the future",
        lambda t: (t.drop(0, "metaData"), t.change(0, "protocol", minReaderVersion=4)),
        refused("4", "1 to 3"),
    ),
    Case(
        "a definition without a protocol",
        lambda t: (t.drop(0, "protocol"), t.append(1, {"metaData": METADATA})),
        bad("no protocol", "one", "version 2"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_broken_protocol(case: Case, tmp_path: Path, bounded: Bounded) -> None:
    check(case, tmp_path, bounded)
