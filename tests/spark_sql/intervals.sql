-- Intervals in Spark's SQL over the tables of job_tables.py, recorded and compared like queries.sql. Spark gives no year-month interval to
-- Arrow, so these are shown as text. A name follows two dashes.
--
-- literals of intervals
SELECT INTERVAL '1 02:03:04.5' DAY TO SECOND a, INTERVAL '-1 02' DAY TO HOUR b, INTERVAL 2 WEEK c, INTERVAL '10' MINUTE, INTERVAL '1:30' HOUR TO MINUTE;
-- several units in a literal
SELECT INTERVAL 5 MILLISECONDS, INTERVAL 7 MICROSECONDS, INTERVAL 1.5 SECONDS, INTERVAL 1 DAY 2 HOURS, INTERVAL '1 day 2 hours 3.5 seconds', INTERVAL +1 DAY, INTERVAL -'1' DAY, INTERVAL '1' DAY '2' HOUR;
-- a column called interval
SELECT interval, interval -1 FROM (SELECT 1 AS interval);
-- a unit that an interval has not
SELECT INTERVAL 1 QUARTER;
-- a fraction of a day in a literal
SELECT INTERVAL 1.5 DAY;
-- an interval of a column
SELECT INTERVAL k DAYS FROM kinds WHERE k < 3;
-- an interval of an expression
SELECT INTERVAL (k + 1) DAY FROM kinds WHERE k < 3;
-- types of intervals
SELECT typeof(INTERVAL 1 DAY) a, typeof(INTERVAL 1 HOUR) b, typeof(dt - dt) c, typeof(ts - ts) d, typeof(INTERVAL 1 YEAR 2 MONTHS) e, typeof(INTERVAL 1 HOUR * 2) f, typeof(INTERVAL 1 HOUR + INTERVAL 1 MINUTE) g, typeof(INTERVAL '3' MONTH / 2) h, typeof(make_interval(1)) i FROM kinds LIMIT 1;
-- days between dates
SELECT k, dt - DATE '2024-01-01', (dt - DATE'2024-01-01')::int FROM kinds ORDER BY k;
-- time between timestamps
SELECT k, ts - TIMESTAMP '2024-01-01 00:00:00' AS a, n - TIMESTAMP_NTZ '2024-01-01 00:00:00' AS b FROM kinds WHERE k IN (1, 3, 7, 8) ORDER BY k;
-- intervals as text
SELECT CAST(ts - TIMESTAMP '2024-01-01 00:00:00' AS string) a, CAST(dt - DATE '2024-01-01' AS string) b, concat('x', INTERVAL 1 DAY) c, INTERVAL '1:02' MINUTE TO SECOND || '' d, CAST(make_dt_interval(-k, 1, 2, -3.25) AS string) e FROM kinds WHERE k IN (1, 3, 5, 7, 8) ORDER BY k;
-- months as text
SELECT CAST(INTERVAL '-1-2' YEAR TO MONTH AS string) a, CAST(INTERVAL 14 MONTH AS string) b, CAST(make_ym_interval(1) AS string), CAST(make_ym_interval() AS string), CAST(make_ym_interval(k, i) AS string) d FROM kinds WHERE k IN (1, 3, 7) ORDER BY k;
-- fields of intervals
SELECT extract(DAY FROM ts - n), extract(SECOND FROM ts - n), date_part('hour', ts - n), extract(minute FROM ts - n), extract(MONTH FROM INTERVAL '-1-2' YEAR TO MONTH) m, extract(YEAR FROM INTERVAL 14 MONTH * 2) y FROM kinds WHERE k <> 2 ORDER BY k;
-- a field that an interval has not
SELECT extract(HOUR FROM INTERVAL 1 DAY);
-- intervals of numbers
SELECT make_dt_interval(), make_dt_interval(k), make_dt_interval(k, 1), make_dt_interval(k, 1, 2), make_dt_interval(k, 1, 2, -3.25) FROM kinds ORDER BY k;
-- calendar intervals on dates and timestamps
SELECT TIMESTAMP '2024-01-31 00:00:00' + make_interval(0, 1, 0, 2) b, TIMESTAMP '2024-01-31 00:00:00' - make_interval(0, 1, 0, 2, 3, 4, 5.5) c, n + make_interval(0, k, 1, 1, 1), dt - try_make_interval(1, k) FROM kinds WHERE k IN (1, 3, 7) ORDER BY k;
-- hours of a calendar interval on a date
SELECT dt + make_interval(0, 0, 0, 0, 5) FROM kinds;
-- sums and products of intervals
SELECT INTERVAL 1 DAY + INTERVAL 2 HOUR a, INTERVAL 1 DAY * 2, INTERVAL 1 DAY / 2 d, 2 * INTERVAL 3 HOUR, - INTERVAL 1 DAY h, INTERVAL '1' HOUR - INTERVAL '1' SECOND;
-- products of intervals with columns
SELECT INTERVAL 1 DAY * k, INTERVAL 1 DAY * d1, INTERVAL 1 DAY / k, CAST(INTERVAL 1 MONTH * k AS string), CAST(INTERVAL 7 MONTH / k AS string) FROM kinds WHERE k < 8 AND k <> 4 ORDER BY k;
-- halves of microseconds and months
SELECT INTERVAL '0.000001' SECOND * d1, INTERVAL '0.000003' SECOND / d1, CAST(INTERVAL -7 MONTH / 2 AS string), CAST(INTERVAL 7 MONTH * 0.5D AS string), CAST(INTERVAL 7 MONTH / 2.5 AS string) FROM kinds WHERE k IN (1, 2, 3, 6, 8) ORDER BY k;
-- products of intervals with doubles
SELECT INTERVAL 1 HOUR * d, INTERVAL 1 HOUR / nullif(d, 0) FROM kinds WHERE k IN (1, 3, 8) ORDER BY k;
-- an interval divided by zero
SELECT INTERVAL 1 DAY / 0;
-- intervals without errors
SELECT try_add(INTERVAL 1 DAY, INTERVAL 1 HOUR) a, try_subtract(DATE'2024-01-31', INTERVAL 1 MONTH) b, try_multiply(INTERVAL 1 DAY, 2) c, try_divide(INTERVAL 1 DAY, 0) d, try_add(DATE'2024-01-31', 1) e, try_add(TIMESTAMP'2024-01-31 00:00:00', INTERVAL 1 DAY) f;
-- signs of intervals
SELECT abs(INTERVAL -1 DAY), sign(INTERVAL -1 DAY), signum(INTERVAL 1 YEAR), negative(INTERVAL 1 DAY), positive(INTERVAL 1 DAY), -INTERVAL 1 DAY;
-- casts of intervals
SELECT CAST(INTERVAL 1 DAY AS bigint) a, CAST('1 02:03:04' AS INTERVAL DAY TO SECOND) b, CAST(INTERVAL 36 HOUR AS INTERVAL DAY) c, CAST(INTERVAL 90 SECOND AS decimal(10, 2)) d, CAST(INTERVAL 90 MINUTE AS int) e, CAST(5 AS INTERVAL DAY) f, CAST(3L AS INTERVAL HOUR);
-- intervals by choice
SELECT coalesce(dt - DATE'2024-01-01', INTERVAL 0 DAY) x, greatest(INTERVAL 1 DAY, INTERVAL 25 HOUR) y, CASE WHEN k = 1 THEN INTERVAL 1 DAY ELSE INTERVAL 1 HOUR END z, CAST(if(k = 1, INTERVAL 1 YEAR, INTERVAL 1 MONTH) AS string) w, nullif(dt - dt, INTERVAL 0 DAY), nvl(dt - dt, INTERVAL 1 HOUR) FROM kinds WHERE k IN (1, 3, 7) ORDER BY k;
-- aggregates of intervals
SELECT user_id, sum(gap), avg(gap) AS a, max(gap), min(gap), count(DISTINCT gap), median(gap), percentile(gap, 0.3) p FROM (SELECT user_id, at - lag(at) OVER (PARTITION BY user_id ORDER BY at, id) AS gap FROM clicks) GROUP BY user_id ORDER BY 1;
-- aggregates of months
SELECT CAST(sum(make_ym_interval(k)) AS string) s, CAST(avg(make_ym_interval(0, k)) AS string) b, CAST(try_sum(make_ym_interval(k)) AS string), CAST(try_avg(make_ym_interval(k)) AS string), CAST(median(make_ym_interval(0, k)) AS string) FROM kinds;
-- groups of intervals
SELECT valid_to - valid_from AS held, count(*) FROM subs GROUP BY valid_to - valid_from ORDER BY 1;
-- intervals in set operations
SELECT INTERVAL 1 DAY UNION ALL SELECT INTERVAL 2 HOUR ORDER BY 1;
-- intervals as keys of a join
SELECT a.x + b.x FROM (SELECT INTERVAL 1 DAY x) a JOIN (SELECT INTERVAL 24 HOUR x) b ON a.x = b.x;
-- hashes of intervals
SELECT hash(INTERVAL 1 DAY), xxhash64(INTERVAL 1 MONTH), hash(dt - DATE'2024-01-01') FROM kinds WHERE k = 1;
