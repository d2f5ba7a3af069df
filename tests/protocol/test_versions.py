"""Protocol versions of new and upgraded tables. Source: PROTOCOL.md, "Table Features for New and Existing
Tables"."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.actions import Protocol
from deltaic.protocol.features import FEATURES, reader_features, supported
from deltaic.protocol.versions import check_honoured, new_protocol, upgrade

LEGACY4 = ("appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns", "invariants")


@pytest.mark.parametrize(
    ("needed", "versions", "expected"),
    [
        ((), {}, Protocol(1, 2)),
        (("appendOnly",), {}, Protocol(1, 2)),
        (("invariants", "appendOnly"), {}, Protocol(1, 2)),
        (("deletionVectors",), {}, Protocol(3, 7, ("deletionVectors",), ("deletionVectors",))),
        (("columnMapping",), {}, Protocol(2, 7, None, ("columnMapping",))),
        (
            ("columnMapping", "timestampNtz"),
            {},
            Protocol(3, 7, ("columnMapping", "timestampNtz"), ("columnMapping", "timestampNtz")),
        ),
        (("appendOnly", "domainMetadata"), {}, Protocol(1, 7, None, ("appendOnly", "domainMetadata"))),
        (("rowTracking",), {}, Protocol(1, 7, None, ("domainMetadata", "rowTracking"))),
        ((*LEGACY4, "columnMapping"), {}, Protocol(2, 5)),
        (("appendOnly", "invariants", "checkConstraints"), {}, Protocol(1, 3)),
        (("columnMapping",), {"min_reader_version": 2, "min_writer_version": 5}, Protocol(2, 5)),
        ((), {"min_writer_version": 4}, Protocol(1, 4)),
        ((), {"min_writer_version": 7}, Protocol(1, 7, None, ())),
        ((), {"min_reader_version": 3}, Protocol(3, 7, (), ())),
        (
            ("deletionVectors",),
            {"min_writer_version": 3},
            Protocol(
                3,
                7,
                ("deletionVectors",),
                ("appendOnly", "checkConstraints", "deletionVectors", "invariants"),
            ),
        ),
        ((), {"min_reader_version": 1, "min_writer_version": 1}, Protocol(1, 1)),
    ],
)
def test_new_tables_get_just_what_they_need(needed, versions, expected):
    assert new_protocol(needed, **versions) == expected


@pytest.mark.parametrize(
    ("before", "needed", "versions", "expected"),
    [
        (Protocol(1, 2), (), {}, Protocol(1, 2)),
        (Protocol(1, 2), ("appendOnly",), {}, Protocol(1, 2)),
        (Protocol(1, 1), ("appendOnly", "invariants"), {}, Protocol(1, 2)),
        (Protocol(1, 1), ("appendOnly",), {}, Protocol(1, 7, None, ("appendOnly",))),
        (
            Protocol(1, 2),
            ("deletionVectors",),
            {},
            Protocol(3, 7, ("deletionVectors",), ("appendOnly", "deletionVectors", "invariants")),
        ),
        (
            Protocol(1, 2),
            ("columnMapping",),
            {},
            Protocol(2, 7, None, ("appendOnly", "columnMapping", "invariants")),
        ),
        (Protocol(1, 4), ("columnMapping",), {}, Protocol(2, 5)),
        (
            Protocol(2, 5),
            ("deletionVectors",),
            {},
            Protocol(
                3, 7, ("columnMapping", "deletionVectors"), (*LEGACY4, "columnMapping", "deletionVectors")
            ),
        ),
        (
            Protocol(2, 6),
            ("domainMetadata",),
            {},
            Protocol(2, 7, None, (*LEGACY4, "columnMapping", "identityColumns", "domainMetadata")),
        ),
        (
            Protocol(3, 7, (), ()),
            ("columnMapping",),
            {},
            Protocol(3, 7, ("columnMapping",), ("columnMapping",)),
        ),
        (
            Protocol(1, 7, None, ("x",)),
            ("deletionVectors",),
            {},
            Protocol(3, 7, ("deletionVectors",), ("deletionVectors", "x")),
        ),
        (Protocol(3, 7, ("y",), ("y",)), ("appendOnly",), {}, Protocol(3, 7, ("y",), ("appendOnly", "y"))),
        (Protocol(1, 2), (), {"min_writer_version": 4}, Protocol(1, 4)),
        (Protocol(1, 4), (), {"min_writer_version": 2}, Protocol(1, 4)),
        (Protocol(1, 2), (), {"min_reader_version": 2, "min_writer_version": 5}, Protocol(2, 5)),
        (Protocol(1, 2), (), {"min_reader_version": 2}, Protocol(2, 2)),
        (
            Protocol(1, 2),
            (),
            {"min_reader_version": 3, "min_writer_version": 7},
            Protocol(3, 7, (), ("appendOnly", "invariants")),
        ),
        (Protocol(1, 2), (), {"min_writer_version": 7}, Protocol(1, 7, None, ("appendOnly", "invariants"))),
        (
            Protocol(1, 7, None, ("appendOnly",)),
            (),
            {"min_writer_version": 3},
            Protocol(1, 7, None, ("appendOnly", "checkConstraints", "invariants")),
        ),
    ],
)
def test_upgrades_keep_what_old_versions_implied(before, needed, versions, expected):
    assert upgrade(before, needed, **versions) == expected


PROTOCOLS = st.sampled_from(
    [Protocol(1, 1), Protocol(1, 2), Protocol(1, 3), Protocol(1, 4), Protocol(2, 5), Protocol(2, 6)]
) | st.lists(st.sampled_from(sorted(FEATURES)), unique=True).map(
    lambda names: Protocol(3, 7, tuple(name for name in names if FEATURES[name].reader), tuple(names))
)
NEEDED = st.lists(st.sampled_from(sorted(FEATURES)), unique=True, max_size=4)


@given(PROTOCOLS, NEEDED)
def test_upgrade_laws(before, needed):
    after = upgrade(before, needed)
    assert supported(after) >= supported(before) | set(needed)
    assert after.min_reader_version >= before.min_reader_version
    assert after.min_writer_version >= before.min_writer_version
    assert reader_features(after) >= {name for name in supported(after) if FEATURES[name].reader}
    assert upgrade(after, needed) is after
    if not set(needed) - supported(before):
        assert after == before or any(FEATURES[name].requires for name in needed)


@given(PROTOCOLS, PROTOCOLS)
def test_an_upgrade_by_another_protocol_has_both(left, right):
    """What RESTORE of a version with another protocol needs."""
    versions = {
        "min_reader_version": right.min_reader_version,
        "min_writer_version": right.min_writer_version,
    }
    both = upgrade(left, supported(right), **versions)
    assert supported(both) >= supported(left) | supported(right)
    assert reader_features(both) >= reader_features(left) | reader_features(right)
    assert upgrade(both, supported(right), **versions) is both


@given(NEEDED)
def test_new_protocol_has_no_more_than_needed(needed):
    protocol = new_protocol(needed)
    if protocol != Protocol(1, 2):
        extra = supported(protocol) - set(needed)
        assert extra <= {other for name in needed for other in FEATURES[name].requires}


def test_refusals():
    for versions in ({"min_reader_version": 4}, {"min_writer_version": 8}, {"min_reader_version": -1}):
        with pytest.raises(InvalidArgumentError, match="no such protocol version"):
            upgrade(Protocol(1, 2), **versions)
    for name in ("shiny", "icebergWriterCompatV1", "catalogManaged"):
        with pytest.raises(UnsupportedFeatureError, match=name):
            check_honoured([name])
    check_honoured(
        [
            "deletionVectors",
            "columnMapping",
            "timestampNtz",
            "appendOnly",
            "invariants",
            "domainMetadata",
            "vacuumProtocolCheck",
        ]
    )
