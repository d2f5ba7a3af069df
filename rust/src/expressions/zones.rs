//! Computes the offset of a time zone at any time, also after the year 2099.
//!
//! The time zone tables end with the year 2099, and give the winter's offset from then on. Java and DuckDB go
//! on with the last rule, so that summers after 2099 have daylight saving time. A rule such as "from the last
//! Sunday of March" depends on nothing but the calendar: a later year takes the offsets of a year before 2100
//! that has the same days of the week.

use arrow::array::timezone::Tz;
use chrono::{DateTime, Datelike, Days, LocalResult, NaiveDate, NaiveDateTime, Offset, TimeZone};

/// The last year of the time zone tables.
const LAST: i32 = 2099;

/// Returns the offset from UTC, in seconds, at an instant.
pub fn offset(zone: &Tz, instant: &NaiveDateTime) -> i32 {
    zone.offset_from_utc_datetime(&known(zone, instant)).fix().local_minus_utc()
}

/// Returns the instant of a local time in a zone, both in microseconds since 1970: the earlier one if the
/// local time occurs twice. If the local time is skipped, it is moved forward by as much as the clock.
pub fn instant(zone: &Tz, moment: i64) -> Option<i64> {
    let clock = known(zone, &DateTime::from_timestamp_micros(moment)?.naive_utc());
    let seconds = match zone.offset_from_local_datetime(&clock) {
        LocalResult::Single(offset) => offset.fix().local_minus_utc(),
        LocalResult::Ambiguous(one, other) => one.fix().local_minus_utc().max(other.fix().local_minus_utc()),
        LocalResult::None => {
            zone.offset_from_utc_datetime(&(clock - chrono::Duration::days(1))).fix().local_minus_utc()
        }
    };
    moment.checked_sub(i64::from(seconds) * 1_000_000)
}

/// Returns a time within the years of the tables at which the zone has the offset of `time`.
fn known(zone: &Tz, time: &NaiveDateTime) -> NaiveDateTime {
    if time.year() <= LAST {
        return *time;
    }
    // The 28 years before 2100 have each kind of year: leap or not, beginning with each day of the week.
    let year = (LAST - 27..=LAST).rev().find(|year| is_alike(*year, time.year())).unwrap_or(LAST);
    let moved = if has_summer(zone) { time.with_year(year) } else { None };
    moved.unwrap_or_else(|| {
        NaiveDate::from_yo_opt(LAST, 1)
            .and_then(|day| day.checked_add_days(Days::new(360)))
            .unwrap_or_default()
            .into()
    })
}

/// True if two years have the same calendar.
fn is_alike(one: i32, other: i32) -> bool {
    let first = |year| NaiveDate::from_yo_opt(year, 1).map(|day| (day.weekday(), day.leap_year()));
    first(one) == first(other)
}

/// True if the zone has daylight saving time in the last year of the tables.
fn has_summer(zone: &Tz) -> bool {
    let at = |month| {
        NaiveDate::from_ymd_opt(LAST, month, 15)
            .map(|day| zone.offset_from_utc_datetime(&day.into()).fix().local_minus_utc())
    };
    at(1) != at(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(text: &str) -> i64 {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S").unwrap().and_utc().timestamp_micros()
    }

    fn of_utc(zone: &str, text: &str) -> i32 {
        offset(&zone.parse().unwrap(), &NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S").unwrap())
    }

    #[test]
    fn summers_after_2099_have_daylight_saving_time() {
        for year in [2050, 2099, 2100, 2104, 2399, 2400, 9999] {
            assert_eq!(of_utc("America/New_York", &format!("{year}-07-01 12:00:00")), -4 * 3600, "{year}");
            assert_eq!(of_utc("America/New_York", &format!("{year}-01-01 12:00:00")), -5 * 3600, "{year}");
            assert_eq!(of_utc("Australia/Sydney", &format!("{year}-12-31 23:59:59")), 11 * 3600, "{year}");
            assert_eq!(of_utc("Asia/Kolkata", &format!("{year}-07-01 12:00:00")), 19_800, "{year}");
        }
    }

    #[test]
    fn clocks_change_on_the_same_day_of_the_week() {
        // 14 March 2100 is the second Sunday.
        assert_eq!(of_utc("America/New_York", "2100-03-14 06:59:59"), -5 * 3600);
        assert_eq!(of_utc("America/New_York", "2100-03-14 07:00:00"), -4 * 3600);
        assert_eq!(of_utc("Europe/Berlin", "2104-02-29 12:00:00"), 3600);
    }

    #[test]
    fn a_local_time_that_occurs_twice_is_the_earlier_one() {
        let zone: Tz = "America/New_York".parse().unwrap();
        // This time is skipped: the clock shows 03:30 of summer time.
        assert_eq!(instant(&zone, micros("2024-03-10 02:30:00")), Some(micros("2024-03-10 07:30:00")));
        assert_eq!(instant(&zone, micros("2024-11-03 01:30:00")), Some(micros("2024-11-03 05:30:00")));
        assert_eq!(instant(&zone, micros("2100-11-07 01:30:00")), Some(micros("2100-11-07 05:30:00")));
        assert_eq!(instant(&zone, micros("2150-07-01 12:00:00")), Some(micros("2150-07-01 16:00:00")));
    }
}
