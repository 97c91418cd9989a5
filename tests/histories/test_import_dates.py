"""Dates of chat programs: one reading whatever the locale and the time zone."""

import time

import pytest

from palate.histories.dates import iso

READ = [
    ("July 4, 2023 9:05pm", "2023-07-04T21:05:00"),
    ("2025-12-01T18:30:09.250Z", "2025-12-01T18:30:09.250Z"),
    ("2023-8-2 @07h 41m 05s 123ms", "2023-08-02T07:41:05.123"),
    ("2025-12-01@18h30m09s250ms", "2025-12-01T18:30:09.250"),
    ("2024-3-9 @10h 02m", "2024-03-09T10:02:00"),
    (1700000000000, "2023-11-14T22:13:20Z"),
    (1700000000, "2023-11-14T22:13:20Z"),
    (1700000000.5, "2023-11-14T22:13:20.500Z"),
    ("1700000000123", "2023-11-14T22:13:20.123Z"),
    ("2019-01-01T00:00:00+09:00", "2018-12-31T15:00:00Z"),
    ("2019-01-01T00:00:00-0330", "2019-01-01T03:30:00Z"),
    ("2024-02-29 23:59", "2024-02-29T23:59:00"),
    ("2024-02-29", "2024-02-29T00:00:00"),
    ("December 31, 2023 12:00am", "2023-12-31T00:00:00"),
    ("Dec 31, 2023 12:30 PM", "2023-12-31T12:30:00"),
    ("sept. 3rd, 2023", "2023-09-03T00:00:00"),
    ("4 July 2023 21:05", "2023-07-04T21:05:00"),
    (" 2023年8月2日 07:41:05 ", "2023-08-02T07:41:05"),
]


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/St_Johns", "UTC"])
@pytest.mark.parametrize(("given", "read"), READ)
def test_a_date_is_read_as_it_was_written(monkeypatch, zone, given, read):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert iso(given) == read
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "given",
    [
        "yesterday-ish",
        "",
        None,
        True,
        0,
        5,
        -1,
        "0",
        float("nan"),
        float("inf"),
        10**400,
        1e300,
        "2023-02-30",
        "2023-13-01",
        "July 4, 2023 13:05pm",
        "Juli 4, 2023",
        "3/4/2023, 9:05:00 PM",
        "2023-08-02T25:00",
        "0001-01-01T00:00:00+09:00",
        "1" * 5000,
        "٢٠٢٣-08-02",
        ["2023-08-02"],
        {},
    ],
)
def test_what_is_no_date_or_could_be_two_becomes_none_and_never_1970(given):
    assert iso(given) is None


def test_the_digits_of_a_date_are_no_count_of_milliseconds():
    assert iso("20231201183009") is None
    assert iso(1e13) is None
    assert iso("1701455409000") == "2023-12-01T18:30:09Z"


def test_a_count_from_1e11_on_is_milliseconds():
    assert iso(1e11) == "1973-03-03T09:46:40Z"
    assert iso(1e11 - 1) == "5138-11-16T09:46:39Z"
