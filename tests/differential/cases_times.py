"""Expressions that prove the functions of dates, timestamps and intervals.

`NATIVE` and `REFUSED` are over the edge table and are merged into those of `function_cases`.
`MOMENTS` are over a table of instants around the changes of clocks, and run in several zones.
"""

from __future__ import annotations

NATIVE: dict[str, list[str]] = {
    "time_bucket": [
        "time_bucket(INTERVAL '15' MINUTE, ts)", "time_bucket(INTERVAL '1' DAY, ts)", "time_bucket(INTERVAL '7' DAY, tu)", "time_bucket(INTERVAL '00.000007' SECOND, ts)", "time_bucket(INTERVAL '23:59:59.999999' HOUR TO SECOND, ts)", "time_bucket(INTERVAL '14' DAY, ts, TIMESTAMP'2024-01-01 09:30:00')", "time_bucket(INTERVAL '05' HOUR, ts, TIMESTAMP'2024-03-10 07:30:00')",
        "time_bucket(INTERVAL '15' MINUTE, tn)", "time_bucket(INTERVAL '1 06' DAY TO HOUR, tn)", "time_bucket(INTERVAL '00.000001' SECOND, tn)", "time_bucket(INTERVAL '30' DAY, tn, TIMESTAMP_NTZ'2024-02-29 23:59:59.999999')", "time_bucket(INTERVAL '1' MONTH, ts)", "time_bucket(INTERVAL '3' MONTH, tn)", "time_bucket(INTERVAL '1-6' YEAR TO MONTH, tu)", "time_bucket(INTERVAL '100' YEAR, tn)",
    ],
    "year": ["year(dt)", "year(ts)", "year(tn)", "extract(YEAR FROM dt)", "year(DATE'2024-02-29')", "year('2024-02-29')", "date_part('YEARS', ts)"],
    "month": ["month(dt)", "month(ts)", "extract(MON FROM tn)"],
    "day": ["day(dt)", "dayofmonth(ts)", "extract(DAYS FROM dt)"],
    "quarter": ["quarter(dt)", "quarter(ts)", "extract(QTR FROM dt)"],
    "dayofyear": ["dayofyear(dt)", "dayofyear(ts)", "extract(DOY FROM dt)"],
    "weekofyear": ["weekofyear(dt)", "weekofyear(ts)", "extract(WEEK FROM dt)"],
    "dayofweek": ["dayofweek(dt)", "dayofweek(ts)", "extract(DAYOFWEEK FROM dt)"],
    "weekday": ["weekday(dt)", "weekday(ts)", "extract(DOW_ISO FROM dt)"],
    "yearofweek": ["extract(YEAROFWEEK FROM dt)", "date_part('YEAROFWEEK', ts)"],
    "hour": ["hour(ts)", "hour(tn)", "extract(HOUR FROM ts)", "hour(dt)"],
    "minute": ["minute(ts)", "minute(tn)", "extract(MINS FROM ts)"],
    "second": ["second(ts)", "second(tn)"],
    "second_with_fraction": ["extract(SECOND FROM ts)", "date_part('SECS', tn)"],
    "dayname": ["dayname(dt)", "dayname(ts)"],
    "monthname": ["monthname(dt)", "monthname(tn)"],
    "unix_date": ["unix_date(dt)"],
    "date_from_unix_date": ["date_from_unix_date(n)", "date_from_unix_date(si)"],
    "last_day": ["last_day(dt)", "last_day(ts)", "last_day('2024-02-29')"],
    "next_day": ["next_day(dt, 'MON')", "next_day(dt, 'friday')", "next_day(ts, 'su')", "next_day('2024-02-29', 'TH')"],
    "trunc": ["trunc(dt, 'MM')", "trunc(dt, 'MONTH')", "trunc(dt, 'YEAR')", "trunc(dt, 'yy')", "trunc(dt, 'WEEK')", "trunc(dt, 'QUARTER')", "trunc(dt, 'bad')", "trunc(ts, 'MON')"],
    "date_trunc": [f"date_trunc('{unit}', ts)" for unit in ("MICROSECOND", "millisecond", "SECOND", "MINUTE", "HOUR", "DAY", "dd", "WEEK", "MONTH", "QUARTER", "YYYY", "bad")] + ["date_trunc('HOUR', tn)", "date_trunc('MONTH', dt)"],
    "months_between": ["months_between(ts, tu)", "months_between(dt, du)", "months_between(tn, dt, false)"],
    "timestampadd": [f"timestampadd({unit}, k, ts)" for unit in ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "DAYOFYEAR", "WEEK", "MONTH", "QUARTER", "YEAR")] + ["dateadd(MONTH, n, tn)", "date_add(DAY, 1, dt)"],
    "timestampdiff": [f"timestampdiff({unit}, ts, tu)" for unit in ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")] + ["datediff(MONTH, dt, du)", "date_diff(YEAR, tn, ts)", "timediff(HOUR, dt, ts)"],
    "unix_seconds": ["unix_seconds(ts)", "unix_seconds(tn)"],
    "unix_millis": ["unix_millis(ts)"],
    "unix_micros": ["unix_micros(ts)"],
    "seconds_since_1970": ["unix_timestamp(ts)", "to_unix_timestamp(dt)"],
    "timestamp_seconds": ["timestamp_seconds(i)", "timestamp_seconds(d152)", "timestamp_seconds(l)"],
    "timestamp_millis": ["timestamp_millis(i)", "timestamp_millis(l)"],
    "timestamp_micros": ["timestamp_micros(i)", "timestamp_micros(l)"],
    "make_date": ["make_date(2024, k, 29)", "make_date(year(dt), month(du), day(dt))"],
    "make_timestamp_ntz": ["make_timestamp_ntz(2024, 2, k, 3, 4, d52)"],
    "make_timestamp_ltz": ["make_timestamp(2024, 2, k, 3, 4, 60)", "make_timestamp_ltz(2024, 2, 29, k, 4, 5.678, 'Europe/Berlin')"],
    "try_make_timestamp_ntz": ["try_make_timestamp_ntz(2024, 2, k, 3, 4, d52)", "try_make_timestamp_ntz(2024, 2, k % 40, 3, 4, d52 % 70)"],
    "try_make_timestamp_ltz": ["try_make_timestamp(2024, 2, k, 3, 4, d52)"],
    "from_utc_timestamp": ["from_utc_timestamp(ts, 'America/New_York')", "from_utc_timestamp(tn, 'Asia/Kolkata')"],
    "to_utc_timestamp": ["to_utc_timestamp(ts, 'America/New_York')", "to_utc_timestamp(ts, 'UTC')"],
    "convert_timezone": ["convert_timezone('America/New_York', 'Europe/Berlin', tn)", "convert_timezone('Asia/Tokyo', ts)"],
    "current_timezone": ["current_timezone()"],
    "date_format": ["date_format(ts, 'yyyy-MM-dd HH:mm:ss')", "date_format(tn, 'dd.MM.yy h:mm a')", "date_format(ts, 'E EEEE MMM MMMM d M H k K s S SSS SSSSSSSSS')", "date_format(dt, 'D DDD Q QQ QQQ yyyyMM LL')", "date_format(ts, \"yyyy-MM-dd'T'HH:mm\")"],
    "from_unixtime": ["from_unixtime(i)", "from_unixtime(n, 'yyyy-MM-dd')"],
    "to_date": ["to_date(s, 'yyyy-MM-dd')", "to_date('29.02.2024', 'dd.MM.yyyy')"],
    "try_to_date": ["try_to_date(s, 'yyyy-MM-dd')"],
    "to_timestamp_ltz": ["to_timestamp(s, 'yyyy-MM-dd')", "to_timestamp_ltz(concat(string(dt), ' 01:02:03'), 'yyyy-MM-dd HH:mm:ss')"],
    "to_timestamp_ntz": ["to_timestamp_ntz(s, 'yyyy-MM-dd')"],
    "try_to_timestamp": ["try_to_timestamp(s, 'yyyy-MM-dd')", "try_to_timestamp(s, 'yyyyMMdd')"],
    "to_unix_timestamp": ["to_unix_timestamp(s, 'yyyy-MM-dd')", "unix_timestamp('2024-02-29 01:02:03')"],
    "date_difference": ["dt - du", "dt - DATE'2024-02-29'"],
    "time_difference": ["ts - tu", "tn - ts", "ts - dt", "dt - tn"],
    "date_plus_days": ["dt + (dt - du)", "dt - (du - dt)"],
    "date_plus_months": ["dt + make_ym_interval(k, n)", "dt - make_ym_interval(0, k)"],
    "time_plus_duration": ["ts + INTERVAL 25 HOURS", "tn - INTERVAL '3 4:05:06.789' DAY TO SECOND", "ts + (tu - ts)", "dt + INTERVAL 1 DAY 2 HOURS", "ts - INTERVAL 2 WEEKS"],
    "time_plus_months": ["ts + INTERVAL '1-2' YEAR TO MONTH", "tn - INTERVAL 5 MONTHS", "ts + make_ym_interval(0, n)"],
    "interval_multiply": ["(dt - du) * 2", "(ts - tu) * d", "1.5 * (ts - tu)", "CAST(CAST(make_ym_interval(k, n) * 0.5 AS INTERVAL MONTH) AS INT)"],
    "interval_divide": ["(dt - du) / 7", "(ts - tu) / n", "(ts - tu) / 2.5D", "CAST(CAST(make_ym_interval(k, n) / 7 AS INTERVAL MONTH) AS INT)"],
    "interval_days": ["extract(DAY FROM ts - tu)", "date_part('days', dt - du)"],
    "interval_hours": ["extract(HOUR FROM ts - tu)"],
    "interval_minutes": ["extract(MINUTE FROM ts - tu)"],
    "interval_seconds": ["extract(SECOND FROM ts - tu)"],
    "interval_years": ["extract(YEAR FROM make_ym_interval(k, n))"],
    "interval_months": ["extract(MONTH FROM make_ym_interval(k, n))"],
    "make_dt_interval": ["make_dt_interval(n, k, n, d52)", "make_dt_interval()", "make_dt_interval(i)"],
    "make_ym_interval": ["CAST(CAST(make_ym_interval(k, n) AS INTERVAL YEAR) AS INT)", "make_ym_interval(k) > INTERVAL '1-2' YEAR TO MONTH"],
}  # fmt: skip

REFUSED: dict[str, list[str]] = {
    "time_bucket": ["time_bucket(INTERVAL '1 06' DAY TO HOUR, ts)", "time_bucket(INTERVAL '1' MONTH, tn, TIMESTAMP_NTZ'2024-01-31 00:00:00')", "time_bucket(INTERVAL '01' HOUR * 2, ts)"],
    "next_day": ["next_day(dt, left(dayname(dt), 3))"],
    "trunc": ["trunc(dt, concat('Y', 'EAR'))"],
    "date_format": ["date_format(dt, 'z')", "date_format(ts, 'QQQQ')"],
    "timestamp_seconds": ["timestamp_seconds(d)"],
    "from_utc_timestamp": ["from_utc_timestamp(ts, 'Asia/Tehran')", "from_utc_timestamp(ts, 'PST')"],
    "plus_interval": ["ts + make_interval(0, 0, 0, k)", "dt + make_interval(0, k)"],
    "minus_interval": ["ts - make_interval(0, 0, 0, k)"],
    "make_interval": ["dt + make_interval(k)"],
    "try_make_interval": ["dt + try_make_interval(k)"],
}  # fmt: skip

OTHERS: list[str] = [
    "INTERVAL 1 DAY 2 HOURS", "- INTERVAL 5 MINUTES", "INTERVAL '1 day 2 hours'", "INTERVAL 1.5 SECONDS", "INTERVAL -'3' DAY", "INTERVAL '36' HOUR",
    "(ts - tu) - (dt - du)", "-(ts - tu)", "abs(dt - du)", "(dt - du) > INTERVAL 10 DAYS", "(ts - tu) < (dt - du)", "(dt - du) div INTERVAL 1 WEEK",
    "make_ym_interval(k, n) = INTERVAL 1 YEAR", "CAST(ts - tu AS INTERVAL DAY)", "CAST(ts - tu AS INTERVAL DAY TO HOUR)", "CAST(dt - du AS INT)", "CAST(n AS INTERVAL DAY)",
    "coalesce(ts - tu, INTERVAL 0 DAY)", "greatest(ts - tu, dt - du)", "CASE WHEN b THEN dt - du ELSE ts - tu END", "(dt - du) IN (INTERVAL 1 DAY, INTERVAL 0 DAYS)",
    "CAST(ts AS BIGINT)", "CAST(ts AS INT)", "CAST(ts AS DOUBLE)", "CAST(i AS TIMESTAMP)", "CAST(s AS TIMESTAMP)", "TRY_CAST(s AS TIMESTAMP)", "CAST(s AS TIMESTAMP_NTZ)",
    "TIMESTAMP'2024-10-27 02:30:00'", "TIMESTAMP'2024-02-29 10:11:12+02:00'", "TIMESTAMP_NTZ'2024-02-29 10:11:12.5'", "ts > '2024-02-29 10:11'", "tn < '2024-02-29'", "year(s)",
    "to_timestamp(tn)", "to_date(ts)", "try_to_date(s)", "try_to_timestamp(s)", "timestamp(dt)", "date(ts)",
]  # fmt: skip
"""Native, and equal to Spark; no entry of their own."""

MOMENTS: list[str] = sorted(
    {expr for group in NATIVE.values() for expr in group if not set(expr) & set("[]")}
)
"""Over the moments too, whose columns are among those of the edge table."""

MOMENTS += [
    "CAST(dt AS STRING)", "CAST(dt AS TIMESTAMP)", "CAST(ts AS DATE)", "CAST(ts AS TIMESTAMP_NTZ)", "CAST(ts AS STRING)", "CAST(tn AS STRING)", "CAST(tn AS TIMESTAMP)",
    "coalesce(ts, dt)", "greatest(ts, tn)", "ts = tn", "dt < ts", "ts - INTERVAL 1 DAY", "ts + INTERVAL 36 HOURS", "ts + INTERVAL 1 MONTH", *OTHERS,
]  # fmt: skip
