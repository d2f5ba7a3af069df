"""Names of time zones by the letters z and zzzz of a pattern are those of Spark 4.3."""

from __future__ import annotations

import pytest

import deltaic
from deltaic.errors import DeltaError, UnsupportedFeatureError

QUERY = """SELECT date_format(TIMESTAMP'2024-07-01 12:00:00', 'z zzzz VV O OOOO ZZZZ XXX') AS a,
    date_format(TIMESTAMP'2024-01-01 12:00:00', 'z zzzz') AS b"""


@pytest.mark.parametrize(
    ("zone", "july", "january"),
    [
        (
            "Europe/Berlin",
            "CEST Central European Summer Time Europe/Berlin GMT+2 GMT+02:00 GMT+02:00 +02:00",
            "CET Central European Standard Time",
        ),
        (
            "America/New_York",
            "EDT Eastern Daylight Time America/New_York GMT-4 GMT-04:00 GMT-04:00 -04:00",
            "EST Eastern Standard Time",
        ),
        (
            "Asia/Tokyo",
            "JST Japan Standard Time Asia/Tokyo GMT+9 GMT+09:00 GMT+09:00 +09:00",
            "JST Japan Standard Time",
        ),
        (
            "Asia/Kolkata",
            "IST India Standard Time Asia/Kolkata GMT+5:30 GMT+05:30 GMT+05:30 +05:30",
            "IST India Standard Time",
        ),
        (
            "America/Sao_Paulo",
            "BRT Brasilia Standard Time America/Sao_Paulo GMT-3 GMT-03:00 GMT-03:00 -03:00",
            "BRT Brasilia Standard Time",
        ),
        (
            "Australia/Sydney",
            "AEST Australian Eastern Standard Time Australia/Sydney GMT+10 GMT+10:00 GMT+10:00 +10:00",
            "AEDT Australian Eastern Daylight Time",
        ),
    ],
)
def test_names_of_summer_and_winter(zone: str, july: str, january: str) -> None:
    with deltaic.configure(time_zone=zone):
        assert deltaic.sql(QUERY).to_pylist() == [{"a": july, "b": january}]


def test_names_follow_the_instant_of_the_change() -> None:
    """At 03:00 on 31 March 2024 the clocks of Berlin were put forward, at 03:00 on 27 October back."""
    query = """SELECT date_format(timestamp_seconds(s), 'HH:mm z') AS a
        FROM VALUES (1711846799), (1711846800), (1729990799), (1729990800) t(s)"""
    with deltaic.configure(time_zone="Europe/Berlin"):
        found = [row["a"] for row in deltaic.sql(query).to_pylist()]
    assert found == ["01:59 CET", "03:00 CEST", "02:59 CEST", "02:00 CET"]


def test_a_year_in_which_the_rule_does_not_hold_is_refused() -> None:
    with (
        deltaic.configure(time_zone="Europe/Berlin"),
        pytest.raises(DeltaError, match="Europe/Berlin in a year before 19"),
    ):
        deltaic.sql("SELECT date_format(TIMESTAMP'1945-07-01 12:00:00', 'z')").to_arrow()


def test_a_zone_without_names_is_refused() -> None:
    with (
        deltaic.configure(time_zone="Africa/Casablanca"),
        pytest.raises(UnsupportedFeatureError, match="pattern"),
    ):
        deltaic.sql("SELECT date_format(TIMESTAMP'2024-07-01 12:00:00', 'z')").to_arrow()
