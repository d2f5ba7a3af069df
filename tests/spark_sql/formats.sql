-- Formats of numbers and dates, intervals within nested values, and forms beside them, over the tables of query_tables.py and
-- job_tables.py, recorded and compared like queries.sql. A name follows two dashes.
--
-- numbers with an exponent
SELECT format_string('%e|%g|%E|%.3e|%.3g|%10.2e', 12345.678D, 12345.678D, 0.00012345D, 1.5D, 1.5D, 3.14159D) AS a;
-- the flags of numbers with an exponent
SELECT k, format_string('%e %g %.0e %12.4g %-12.3e| %+e %010.2e %G %(e % g', d, d, d, d, d, d, d, d, d, d) AS a FROM kinds ORDER BY k;
-- floats with an exponent
SELECT k, format_string('%.2f %s %e %g', f, f, f, f) AS a FROM kinds ORDER BY k;
-- numbers at the limits of %g
SELECT format_string('%g %.0g %.1g %.2g %.17g %.20e %.3g', x, x, x, x, x, x, x) AS a FROM VALUES (0.0D), (-0.0D), (9.9999999D), (999999.5D),
  (1e-4D), (9.99995e-5D), (1e300D), (4.9e-324D), (123456789D), (0.1D), (2.5D), (100D), (99999.95D) t(x);
-- nulls in formats
SELECT format_string('%s %d %e %x', NULL, NULL, NULL, NULL) AS a, format_string(NULL, 1) AS b, format_string('%.3e %.2g %8.3e', x, x, x) AS c
FROM VALUES (CAST(NULL AS double)) t(x);
-- a format of several literals
SELECT format_string(concat('%s', '-%d'), 'a', 1) AS a, date_format(DATE'2024-07-01', 'yyyy' || '-MM') AS b;
-- quarters in patterns
SELECT date_format(DATE'2024-05-29', 'Q QQ QQQ QQQQ q qq qqq qqqq') AS a;
-- months and eras in patterns
SELECT date_format(DATE'2024-05-29', 'L LL LLL LLLL') AS a, date_format(DATE'2024-02-29', 'G GG GGG GGGG') AS b;
-- days in patterns
SELECT date_format(DATE'2024-01-29', 'D DD DDD E EE EEE EEEE') AS a, date_format(d, 'F') AS b
FROM VALUES (DATE'2024-01-01'), (DATE'2024-01-07'), (DATE'2024-01-08'), (DATE'2024-01-31') t(d);
-- clock hours in patterns
SELECT date_format(t, 'k kk K KK h hh H HH') AS a
FROM VALUES (TIMESTAMP'2024-01-01 00:00:00'), (TIMESTAMP'2024-01-01 12:00:00'), (TIMESTAMP'2024-01-01 13:05:00') x(t);
-- fractions in patterns
SELECT date_format(t, 'S SS SSS SSSS SSSSS SSSSSS SSSSSSS SSSSSSSSS') AS a
FROM VALUES (TIMESTAMP'2024-01-01 00:00:00.987654'), (TIMESTAMP'2024-01-01 12:00:00') x(t);
-- zones in patterns
SELECT date_format(TIMESTAMP'2024-07-01 12:00:00', 'z zz zzz zzzz VV O OOOO Z ZZ ZZZ ZZZZ') AS a;
-- optional parts that are written
SELECT date_format(TIMESTAMP'2024-07-01 12:00:00', 'yyyy[-MM][ HH:mm]') AS a;
-- patterns that are null
SELECT date_format(DATE'2024-07-01', NULL) AS a, to_timestamp('2024', NULL) AS b, to_date('2024', NULL) AS c;
-- a letter that no pattern has
SELECT date_format(DATE'2024-07-01', 'n') AS a;
-- days of the year read
SELECT to_date('2024-075', 'yyyy-DDD') AS a, to_date('2024 75', 'yyyy D') AS b, to_date('366 2024', 'DDD yyyy') AS c, to_date('075', 'DDD') AS d;
-- a day behind the end of a year
SELECT to_date('2023-366', 'yyyy-DDD') AS a;
-- years of any width read
SELECT to_date('2024', 'y') AS a, to_date('2024 3', 'y M') AS b, to_date('99999 3', 'y M') AS c, to_date('-5 3', 'y M') AS d, to_date('Mar 2024', 'MMM yyyy') AS e;
-- months read on their own
SELECT to_date('2024 02', 'yyyy LL') AS a, to_date('2024 Feb', 'yyyy LLL') AS b;
-- optional parts read
SELECT to_timestamp(t, 'yyyy-MM-dd[ HH:mm[:ss[.SSS]]]') AS a FROM VALUES ('2024-03-15'), ('2024-03-15 10:00'), ('2024-03-15 10:00:33'), ('2024-03-15 10:00:33.5') x(t);
-- texts that no optional part takes
SELECT try_to_timestamp(t, 'yyyy-MM-dd[ HH:mm]') AS a FROM VALUES ('2024-03-15 '), ('2024-03-15 1:00'), ('2024-03-15 10:00:33'), ('x') x(t);
-- an optional offset
SELECT to_timestamp(t, "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]") AS a FROM VALUES ('2024-03-15T10:00:00+02:00'), ('2024-03-15T10:00:00.123Z'), ('2024-03-15T10:00:00') x(t);
-- fractions read
SELECT try_to_timestamp(t, 'yyyy-MM-dd HH:mm:ss.SS') AS a, try_to_timestamp(t, 'yyyy-MM-dd HH:mm:ss.SSSSSSSSS') AS b
FROM VALUES ('2024-03-15 10:00:33.5'), ('2024-03-15 10:00:33.55'), ('2024-03-15 10:00:33.555'), ('2024-03-15 10:00:33.123456789') x(t);
-- clock hours read
SELECT to_timestamp('2024-03-15 24:10', 'yyyy-MM-dd kk:mm') AS a, to_timestamp('2024-03-15 00:10 PM', 'yyyy-MM-dd KK:mm a') AS b;
-- arrays of intervals
SELECT array(INTERVAL 1 DAY, INTERVAL 2 DAYS) AS a, array(INTERVAL 1 DAY, NULL) AS n, array(INTERVAL 1 DAY, INTERVAL 1 HOUR) AS m;
-- intervals collected
SELECT user_id, collect_list(valid_to - valid_from) AS a FROM subs GROUP BY user_id ORDER BY user_id;
-- maps and structs of intervals
SELECT map('a', INTERVAL 1 DAY) AS m, struct(INTERVAL '1 02:03:04' DAY TO SECOND AS d) AS s, map_values(map('x', INTERVAL 5 MINUTES)) AS v;
-- intervals of a lambda
SELECT transform(array(1, 2, 3), x -> x * INTERVAL 1 DAY) AS a, filter(transform(sequence(1, 5), i -> make_dt_interval(i)), d -> d > INTERVAL 2 DAYS) AS b,
  transform(array(DATE'2024-01-05', DATE'2024-01-09'), d -> d - DATE'2024-01-01') AS c;
-- intervals sorted and searched
SELECT sort_array(array(INTERVAL 3 DAYS, INTERVAL 1 DAY)) AS a, array_max(array(INTERVAL 3 DAYS, INTERVAL 1 DAY)) AS b,
  array_contains(array(INTERVAL 1 DAY), INTERVAL 1 DAY) AS c, size(array_distinct(array(INTERVAL 24 HOURS, INTERVAL 24 HOURS))) AS n, CAST(array(INTERVAL 1 DAY) AS string) AS t;
-- intervals added up
SELECT aggregate(collect_list(valid_to - valid_from), INTERVAL 0 DAYS, (a, b) -> a + b) AS a FROM subs;
-- intervals unfolded
SELECT explode(array(INTERVAL 1 DAY, INTERVAL 2 DAYS)) AS d;
-- intervals within extremes
SELECT user_id, max_by(struct(valid_to - valid_from AS d, plan), valid_from) AS s, min(array(valid_to - valid_from)) AS m FROM subs GROUP BY user_id ORDER BY user_id;
-- months within an array
SELECT array(INTERVAL 1 YEAR) AS a;
-- NULL IN a query
SELECT NULL IN (SELECT id FROM emp) AS a, NULL IN (SELECT id FROM nothing) AS b, NOT (NULL IN (SELECT id FROM emp)) AS c,
  CAST(NULL AS int) IN (SELECT id FROM emp) AS d, 1 IN (SELECT mgr FROM emp) AS e, 99 IN (SELECT mgr FROM emp) AS f;
-- a condition on NULL IN a query
SELECT id FROM emp WHERE (NULL IN (SELECT id FROM emp)) IS NULL ORDER BY id;
-- two queries of WITH by one name
WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a;
-- a frame that ends before it starts
SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) FROM emp;
-- a frame that starts at the end
SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) FROM emp;
-- a range that ends before it starts
SELECT sum(id) OVER (ORDER BY id RANGE BETWEEN CURRENT ROW AND 2 PRECEDING) FROM emp;
-- VALUES before a pipe
VALUES (1, 'a'), (2, 'b') t(x, y) |> UNION ALL VALUES (3, 'c') |> WHERE x > 1 |> SELECT *;
-- zero for a NULL without a type
SELECT zeroifnull(NULL) AS a, nullifzero(NULL) AS b;
-- a star without a field of a struct
SELECT * EXCEPT (st.u, a, ss, m, aa, ms) FROM nest ORDER BY k;
-- rows that end before they start
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) AS a, count(*) OVER (ORDER BY id ROWS BETWEEN 2 FOLLOWING AND CURRENT ROW) AS b FROM emp ORDER BY id;
-- the empty grouping set of no rows
SELECT count(*) AS n, sum(id) AS s FROM nothing GROUP BY GROUPING SETS (());
-- two empty grouping sets of no rows
SELECT count(*) AS n FROM nothing GROUP BY GROUPING SETS ((), ());
-- a rollup of no rows
SELECT dept, count(*) AS n FROM nothing GROUP BY ROLLUP (dept);
-- a range of no rows
SELECT id, sum(id) OVER (ORDER BY id RANGE BETWEEN CURRENT ROW AND 2 PRECEDING) AS a, first_value(id) OVER (ORDER BY id ROWS BETWEEN 2 FOLLOWING AND CURRENT ROW) AS f FROM emp ORDER BY id;
-- a subquery in a key of groups
SELECT sal > (SELECT avg(sal) FROM emp) AS hi, count(*) AS n FROM emp GROUP BY sal > (SELECT avg(sal) FROM emp) ORDER BY hi;
