-- Reports and transformations as analysts write them, in Spark's SQL over the tables of query_tables.py and job_tables.py, recorded and
-- compared like queries.sql. A name follows two dashes.
--
-- rolling 7 day sums by calendar
WITH days AS (SELECT explode(sequence(DATE'2024-03-30', DATE'2024-04-12', INTERVAL 1 DAY)) AS day),
 daily AS (SELECT d.day, coalesce(sum(c.amount), 0) AS amt, count(c.id) AS n FROM days d LEFT JOIN clicks c ON c.day = d.day GROUP BY d.day)
SELECT day, amt, sum(amt) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS s7, avg(n) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS a7 FROM daily ORDER BY day;
-- cohort retention
WITH first_seen AS (SELECT user_id, min(day) AS cohort FROM clicks WHERE user_id IS NOT NULL GROUP BY user_id)
SELECT cohort, datediff(c.day, cohort) AS age, count(DISTINCT c.user_id) AS users, round(count(DISTINCT c.user_id) / first(size), 3) AS share
FROM clicks c JOIN first_seen f USING (user_id) JOIN (SELECT cohort AS co, count(*) AS size FROM first_seen GROUP BY cohort) s ON s.co = f.cohort
GROUP BY cohort, datediff(c.day, cohort) ORDER BY cohort, age;
-- top n per group with ties
SELECT dept, name, sal FROM (SELECT *, dense_rank() OVER (PARTITION BY dept ORDER BY sal DESC NULLS LAST) AS r FROM emp) WHERE r <= 2 ORDER BY dept, sal DESC, name;
-- median by hand
SELECT user_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS med, percentile_disc(0.9) WITHIN GROUP (ORDER BY amount DESC) AS p90, mode() WITHIN GROUP (ORDER BY ev) AS m FROM clicks GROUP BY user_id ORDER BY user_id;
-- listagg
SELECT dept, listagg(name, ', ') WITHIN GROUP (ORDER BY name DESC) AS names, string_agg(DISTINCT dept, '|') AS d FROM emp GROUP BY dept ORDER BY dept;
-- filter aggregates
SELECT count(*) FILTER (WHERE ev = 'view') AS views, sum(amount) FILTER (WHERE qty > 1) AS s, avg(amount) FILTER (WHERE ev = 'nope') AS none, count(DISTINCT user_id) FILTER (WHERE ev = 'cart') AS u, max_by(id, amount) FILTER (WHERE amount IS NOT NULL) AS m FROM clicks;
-- pivot of months
SELECT * FROM (SELECT user_id, date_format(valid_from, 'MMM') AS mon, fee FROM subs) PIVOT (sum(fee) AS fee, count(1) AS n FOR mon IN ('Jan', 'Feb', 'Mar')) ORDER BY user_id;
-- unpivot back
SELECT user_id, m, v FROM (SELECT user_id, sum(CASE WHEN plan = 'pro' THEN fee END) AS pro, sum(CASE WHEN plan = 'free' THEN fee END) AS free FROM subs GROUP BY user_id) UNPIVOT (v FOR m IN (pro AS `is pro`, free)) ORDER BY user_id, m;
-- json aggregate
SELECT user_id, to_json(collect_list(named_struct('id', id, 'ev', ev))) AS j FROM clicks WHERE id < 12 GROUP BY user_id ORDER BY user_id;
-- map aggregates
SELECT dept, map_from_entries(collect_list(struct(name, sal))) AS m, map_from_arrays(collect_list(id), collect_list(name)) AS m2 FROM emp GROUP BY dept ORDER BY dept;
-- str_to_map
SELECT str_to_map('a:1,b:2', ',', ':') AS m, map_keys(str_to_map('a=1&b=2', '&', '=')) AS k, map_contains_key(map('a', 1), 'a') AS c, map_entries(map('a', 1)) AS e, cardinality(map('a', 1)) AS n;
-- url params
SELECT id, parse_url(concat('http://x.y', get_json_object(props, '$.page')), 'QUERY', 'x') AS x, parse_url(concat('http://x.y', get_json_object(props, '$.page')), 'PATH') AS p FROM clicks WHERE id < 10 ORDER BY id;
-- case folding names
SELECT ID, Name AS NAME, UPPER(name) FROM EMP WHERE Id = 1;
-- backticks
SELECT `id` AS `my id`, `name` AS `a.b` FROM emp ORDER BY `my id` LIMIT 1;
-- group by expression reuse
SELECT year(hired) + 1 AS y, count(*) FROM emp GROUP BY year(hired) + 1 ORDER BY y;
-- having without group
SELECT sum(sal) FROM emp HAVING count(*) > 100;
-- nested aggregates in window
SELECT dept, count(*) AS n, sum(count(*)) OVER (ORDER BY dept) AS run, lag(count(*)) OVER (ORDER BY dept) AS prev FROM emp GROUP BY dept ORDER BY dept;
-- qualify
SELECT dept, name, sal FROM emp QUALIFY rank() OVER (PARTITION BY dept ORDER BY sal DESC) = 1 ORDER BY dept, name;
-- qualify alias
SELECT dept, name, row_number() OVER (PARTITION BY dept ORDER BY id) AS rn FROM emp QUALIFY rn = 2 ORDER BY dept;
-- exists nested
SELECT c.c_customer_id FROM customer c WHERE EXISTS (SELECT 1 FROM store_sales s WHERE s.ss_customer_sk = c.c_customer_sk AND EXISTS (SELECT 1 FROM item i WHERE i.i_item_sk = s.ss_item_sk AND i.i_category = 'Books')) ORDER BY 1;
-- corr with inequality
SELECT e.id, (SELECT count(*) FROM emp x WHERE x.sal > e.sal) + 1 AS rank FROM emp e ORDER BY e.id;
-- all any
SELECT id FROM emp WHERE sal > (SELECT min(sal) FROM emp) AND sal < (SELECT max(sal) FROM emp) ORDER BY id;
-- in with expression
SELECT id, (id, dept) IN (SELECT id, dept FROM emp WHERE id > 3) AS t FROM emp ORDER BY id;
-- set ops nested
(SELECT id FROM emp WHERE id < 4 EXCEPT SELECT 2) UNION ALL (SELECT id FROM emp WHERE id > 5 INTERSECT SELECT 7) ORDER BY 1;
-- set op precedence
SELECT 1 AS x UNION SELECT 2 INTERSECT SELECT 2 ORDER BY x;
-- values join
SELECT v.code, e.name FROM VALUES ('eng', 1), ('ops', 3) AS v(code, boss) JOIN emp e ON e.dept = v.code AND e.mgr = v.boss ORDER BY 1, 2;
-- cte used twice
WITH t AS (SELECT dept, sum(sal) AS s FROM emp GROUP BY dept) SELECT a.dept, b.dept AS other, a.s - b.s AS diff FROM t a JOIN t b ON a.s > b.s ORDER BY 1, 2;
-- recursive string
WITH RECURSIVE s(n, txt) AS (SELECT 0, CAST('' AS string) UNION ALL SELECT n + 1, txt || chr(97 + n) FROM s WHERE n < 5) SELECT * FROM s ORDER BY n;
-- decimals
SELECT sal * 1.1 AS a, sal / 3 AS b, avg(sal) OVER () AS c, CAST(sal AS decimal(5,1)) AS d, sal % 7 AS e, round(sal, -2) AS f, sal * sal * sal AS g FROM emp WHERE id = 2;
-- decimal agg
SELECT sum(sal) AS s, avg(sal) AS a, sum(sal) / count(*) AS m, stddev(sal) AS sd, variance(sal) AS v, sum(sal * 0.1) AS t, max(sal) - min(sal) AS r FROM emp;
-- implicit casts
SELECT '1' + 1 AS a, '1.5' * 2 AS b, 1 = '1' AS c, '2024-01-01' < DATE'2024-02-01' AS d, concat(1, 2.50, true, NULL) AS e, coalesce(NULL, 1, 2.5) AS f, if(true, 1, 'a') AS g;
-- implicit 2
SELECT CASE WHEN true THEN 1 ELSE 2.5 END AS a, array(1, 2.5, 3L) AS b, nvl(NULL, 'x') AS c, greatest(DATE'2024-01-01', TIMESTAMP'2023-01-01') AS d, 1 IN (1.0, 2) AS e, 5 BETWEEN '1' AND 9 AS f;
-- null logic
SELECT NULL AND false AS a, NULL OR true AS b, NOT NULL AS c, NULL = NULL AS d, NULL <=> NULL AS e, NULL IS NULL AS f, 1 <=> NULL AS g, NULL IN (1, 2) AS h, 1 IN (2, NULL) AS i, 1 NOT IN (2, NULL) AS j;
-- float oddities
SELECT k, d = d AS eq, d > 1 AS gt, isnan(d) AS n, nanvl(d, 0) AS nv, d IN (double('NaN')) AS i, CAST(d AS string) AS s, greatest(d, 1) AS g FROM kinds ORDER BY k;
-- group by nan
SELECT d, count(*) FROM kinds GROUP BY d ORDER BY d;
-- distinct structs again
SELECT DISTINCT st.u, st FROM nest ORDER BY 1;
-- order nulls
SELECT id, mgr FROM emp ORDER BY mgr DESC NULLS FIRST, id ASC;
-- order struct
SELECT k FROM nest ORDER BY st DESC, k;
-- bools
SELECT bool_and(b), bool_or(b), every(b), some(b), count_if(b) FROM kinds;
-- approx
SELECT approx_count_distinct(user_id), percentile_approx(amount, array(0.25, 0.5, 0.75)), approx_percentile(qty, 0.5) FROM clicks;
-- corr stats
SELECT corr(qty, amount), covar_samp(qty, amount), regr_slope(amount, qty), kurtosis(amount), skewness(amount) FROM clicks;
-- hist
SELECT width_bucket(amount, 0, 1000, 10) AS b, count(*) FROM clicks GROUP BY 1 ORDER BY 1;
-- time buckets
SELECT date_trunc('hour', at) AS h, count(*) AS n, min(minute(at)) AS m FROM clicks WHERE at IS NOT NULL GROUP BY 1 ORDER BY 1 LIMIT 8;
-- tumbling
SELECT window.start, window.end, sum(amount) FROM clicks GROUP BY window(at, '6 hours', '3 hours') ORDER BY 1 LIMIT 6;
-- time diff
SELECT id, timestampdiff(MINUTE, lag(at) OVER (ORDER BY id), at) AS m, unix_timestamp(at) - unix_timestamp(lag(at) OVER (ORDER BY id)) AS s FROM clicks WHERE id < 12 ORDER BY id;
-- ntz
SELECT id, at_ntz, CAST(at_ntz AS date) AS d, at_ntz + INTERVAL 90 MINUTES AS x, hour(at_ntz) AS h, date_trunc('day', at_ntz) AS t FROM clicks WHERE id < 4 ORDER BY id;
-- iso week
SELECT day, extract(WEEK FROM day) AS w, extract(YEAROFWEEK FROM day) AS y, dayofweek(day) AS d, extract(DAYOFWEEK_ISO FROM day) AS di, quarter(day) AS q, dayofyear(day) AS dy FROM clicks WHERE id % 30 = 0 ORDER BY id;
-- age years
SELECT name, floor(months_between(DATE'2024-06-30', hired) / 12) AS years, DATE'2024-06-30' - hired AS days FROM emp ORDER BY id;
-- generate buckets
SELECT r.id AS n, count(c.id) FROM range(0, 4) r LEFT JOIN clicks c ON c.qty = r.id GROUP BY r.id ORDER BY 1;
-- regexp groups
SELECT id, regexp_extract(props, '"price": ([0-9.]+)', 1) AS p, regexp_like(props, '"cc": "DE"') AS de, regexp_replace(coalesce(props, ''), '[^a-z]', '') AS letters FROM clicks WHERE id < 6 ORDER BY id;
-- text functions
SELECT name, initcap(lower(name)), lpad(id, 3, '0') AS p, reverse(name) r, length(name) l, substr(name, -2) s, replace(name, 'a', 'b') rp, concat_ws('/', dept, name) cw, left(name, 1) || '.' AS ini FROM emp ORDER BY id;
-- split explode
SELECT id, w FROM (VALUES (1, 'a b  c'), (2, '')) t(id, txt) LATERAL VIEW explode(split(txt, ' +')) AS w ORDER BY id, w;
-- posexplode outer in select
SELECT k, posexplode_outer(a) FROM nest ORDER BY k, pos;
-- inline outer
SELECT k, p, q FROM nest LATERAL VIEW OUTER inline(ss) AS p, q, r ORDER BY k, p;
-- struct functions
SELECT named_struct('a', 1, 'b', 'x') AS s, struct(1, 'a') AS t, struct(id, name) AS u FROM emp WHERE id = 1;
-- typeof
SELECT typeof(1), typeof(1.5), typeof(1e0), typeof('a'), typeof(array(1)), typeof(map('a', 1)), typeof(struct(1)), typeof(NULL), typeof(DATE'2024-01-01'), typeof(INTERVAL 1 DAY), typeof(X'00'), typeof(parse_json('1'));
-- hash and misc
SELECT hash(id, name), xxhash64(name), crc32(name), sha1(name), md5(name) FROM emp ORDER BY id;
-- cast zoo
SELECT CAST('  12 ' AS int) a, CAST('1e3' AS double) b, CAST(1.9 AS int) c, CAST(-1.9 AS int) d, CAST('true' AS boolean) e, CAST(1 AS boolean) f, CAST('2024-1-5' AS date) g, CAST('2024-01-05 1:2:3' AS timestamp) h, CAST(DATE'2024-01-05' AS timestamp) i, CAST(TIMESTAMP'2024-01-05 23:00:00' AS date) j, CAST(12345.678 AS decimal(6,1)) k, CAST(X'6162' AS string) l, CAST(1.0D AS string) m, CAST(1e20 AS string) n, CAST(1e-5D AS string) o, CAST(true AS int) p;
-- try casts
SELECT try_cast('x' AS int) a, try_cast('99999999999' AS int) b, try_cast('2024-02-30' AS date) c, try_to_number('1,234', '9,999') d, try_divide(1, 0) e, try_subtract(-2147483648, 1) f, try_multiply(2147483647, 2) g, try_mod(1, 0) h, try_sum(id) i FROM emp;
-- double colon
SELECT '5'::int + 1 AS a, '2024-01-01'::date AS b, 1::string || 'x' AS c, id::bigint::string AS d FROM emp WHERE id = 1;
-- div mod signs
SELECT -7 div 2, -7 % 2, 7 % -2, pmod(-7, 2), pmod(7, -2), -7 / 2, 7 div -2;
-- bit ops on cols
SELECT k, i & 3, i | 1, i ^ 2, ~ti, shiftleft(ti, 1), l >> 1, bit_count(i) FROM kinds ORDER BY k;
-- overflow in aggregates
SELECT sum(l) FROM kinds;
-- lateral subquery aggregate
SELECT d.dept, x.n, x.top FROM (SELECT DISTINCT dept FROM emp) d, LATERAL (SELECT count(*) AS n, max(sal) AS top FROM emp e WHERE e.dept <=> d.dept) x ORDER BY 1;
-- lateral chain
SELECT e.id, a.x, b.y FROM emp e, LATERAL (SELECT e.id * 2 AS x) a, LATERAL (SELECT a.x + 1 AS y) b ORDER BY e.id;
-- lateral union
SELECT e.id, u.v FROM emp e, LATERAL (SELECT e.id AS v UNION ALL SELECT e.mgr) u WHERE e.id < 3 ORDER BY 1, 2;
-- cross join unnest like
SELECT n.k, x.key, x.value FROM nest n CROSS JOIN LATERAL explode(n.m) x ORDER BY 1, 2;
-- full outer
SELECT coalesce(a.id, b.id) AS id, a.name, b.n FROM emp a FULL OUTER JOIN (SELECT mgr AS id, count(*) AS n FROM emp GROUP BY mgr) b ON a.id = b.id ORDER BY 1 NULLS FIRST;
-- join on or
SELECT count(*) FROM emp a JOIN emp b ON a.id = b.mgr OR a.dept = b.dept;
-- multi using
SELECT * FROM (SELECT id, dept, sal FROM emp) a JOIN (SELECT id, dept, name FROM emp) b USING (id, dept) ORDER BY id;
-- using null keys
SELECT count(*) FROM emp a JOIN emp b USING (dept);
-- right semi
SELECT * FROM emp a RIGHT JOIN (SELECT 99 AS id, 'x' AS tag) b ON a.id = b.id;
-- case expr
SELECT name, CASE dept WHEN 'eng' THEN 'E' WHEN 'ops' THEN 'O' END AS d, decode(dept, 'eng', 1, 'ops', 2, 0) AS x, nullif(dept, 'eng') AS y, ifnull(dept, '-') AS z FROM emp ORDER BY id;
-- identifiers clause
SELECT IDENTIFIER('id') FROM IDENTIFIER('emp') ORDER BY 1 LIMIT 1;
-- comments
SELECT /* c1 */ id -- c2
FROM emp /* c3 /* nested */ */ WHERE id = 1;
-- count distinct multi
SELECT count(DISTINCT dept, mgr), count(DISTINCT dept), count(dept, mgr), count(*) FROM emp;
-- group sets with having and window
SELECT dept, mgr, sum(sal) AS s, rank() OVER (PARTITION BY grouping_id(dept, mgr) ORDER BY sum(sal) DESC NULLS LAST) AS r FROM emp GROUP BY ROLLUP(dept, mgr) HAVING sum(sal) > 4000 ORDER BY grouping_id(dept, mgr), r, dept, mgr;
-- cube with expression
SELECT year(hired) AS y, dept, count(*) FROM emp GROUP BY CUBE (year(hired), dept) ORDER BY 1 NULLS FIRST, 2 NULLS FIRST, 3;
-- rollup pairs
SELECT dept, mgr, count(*) FROM emp GROUP BY ROLLUP ((dept, mgr), hired) ORDER BY 1, 2, 3;
-- agg of empty
SELECT count(*), sum(id), max(name), collect_list(id), avg(sal) FROM nothing;
-- agg of empty with group
SELECT dept, count(*) FROM nothing GROUP BY dept;
-- window over empty
SELECT row_number() OVER (ORDER BY id) FROM nothing;
-- from_json variants
SELECT from_json('{"a": "x", "b": [1, null]}', 'struct<a:string,b:array<int>>').b[0] AS x, from_json('{"a":1', 'a int') AS bad, from_json('{"A":1}', 'a int') AS cs, to_json(map('k', array(1, 2))) AS t, get_json_object('{"a":{"b":[10,20]}}', '$.a.b[1]') AS g, json_tuple('{"a":1,"b":"x"}', 'a', 'b');
-- csv options
SELECT from_csv('1;2.5;x', 'a int, b double, c string', map('sep', ';')) AS c, to_csv(struct(1, NULL, 'a"b'), map('sep', '|')) AS t;
-- sum over interval
SELECT user_id, sum(valid_to - valid_from) AS d, avg(valid_to - valid_from) AS a, max(valid_to - valid_from) AS m FROM subs GROUP BY user_id ORDER BY user_id;
-- group by ordinal with alias clash
SELECT dept AS name, count(*) AS id FROM emp GROUP BY 1 ORDER BY id DESC, name;
-- order by hidden column
SELECT name FROM emp ORDER BY sal DESC NULLS LAST, hired;
-- order by agg
SELECT dept FROM emp GROUP BY dept ORDER BY sum(sal) DESC NULLS LAST, count(*);
-- having alias
SELECT dept, sum(sal) AS total FROM emp GROUP BY dept HAVING total > 8000 ORDER BY dept;
-- nested case agg
SELECT sum(CASE WHEN dept = 'eng' THEN sal ELSE 0 END) / nullif(sum(sal), 0) AS share, count(CASE WHEN sal > 6000 THEN 1 END) AS n FROM emp;
-- percent of parent
SELECT dept, name, round(sal / sum(sal) OVER (PARTITION BY dept) * 100, 1) AS pct FROM emp ORDER BY dept, name;
-- dense sessions
SELECT user_id, count(*) AS n, count(DISTINCT date_trunc('DAY', at)) AS days, max(at) - min(at) AS span FROM clicks WHERE user_id IS NOT NULL GROUP BY user_id HAVING count(*) > 5 ORDER BY n DESC, user_id;
-- correlated update like select
SELECT id, coalesce((SELECT max(c.amount) FROM clicks c WHERE c.qty = e.id), 0) AS m FROM emp e ORDER BY id;
-- anti join null safe
SELECT c.id FROM clicks c LEFT ANTI JOIN emp e ON c.qty <=> e.id WHERE c.id < 20 ORDER BY c.id;
-- scd join between
SELECT c.id, s.plan FROM clicks c JOIN subs s ON c.user_id = s.user_id AND add_months(c.day, -12) BETWEEN s.valid_from AND coalesce(s.valid_to, DATE'9999-12-31') WHERE c.id < 40 ORDER BY c.id, s.plan, s.valid_from;
-- array agg of distinct ordered
SELECT dept, array_sort(collect_set(year(hired))) AS y, array_join(array_sort(collect_list(name)), ',') AS n FROM emp GROUP BY dept ORDER BY dept;
-- json path explode
SELECT id, t.pos, t.col FROM clicks, LATERAL posexplode(from_json(get_json_object(props, '$.tags'), 'array<string>')) t WHERE id < 12 ORDER BY id, pos;
-- dynamic sql like names
SELECT `emp`.`name`, emp.dept FROM emp WHERE emp.id BETWEEN 2 AND 4 ORDER BY emp.id;
-- select star from join
SELECT * FROM (SELECT id, name FROM emp WHERE id < 3) a JOIN (SELECT mgr, id AS eid FROM emp) b ON a.id = b.mgr ORDER BY a.id, eid;
-- t star
SELECT e.*, m.name AS boss FROM emp e LEFT JOIN emp m ON m.id = e.mgr ORDER BY e.id;
-- except two
SELECT * EXCEPT (id, sal) FROM emp ORDER BY name;
-- replace chars
SELECT translate(name, 'abc', 'xyz') t, regexp_replace(name, '(?i)A', '*') r, name LIKE '%\_%' l, name RLIKE '(?i)^a' rl, char_length(name) c FROM emp ORDER BY id;
-- like escape
SELECT 'a_b' LIKE 'a\_b' AS a, 'a%b' LIKE 'a/%b' ESCAPE '/' AS b, 'A' ILIKE 'a' AS c, 'abc' LIKE '_b%' AS d;
-- soundex metaphone
SELECT soundex(name), levenshtein(name, 'Bob'), levenshtein(name, 'Bob', 2) FROM emp ORDER BY id;
-- date spine months
SELECT m, last_day(m) AS e, date_format(m, 'MMMM yyyy') AS label, trunc(m, 'QUARTER') AS q, add_months(m, 1) - INTERVAL 1 DAY AS l FROM (SELECT explode(sequence(DATE'2023-11-01', DATE'2024-02-01', INTERVAL 1 MONTH)) AS m) ORDER BY m;
-- fiscal year
SELECT day, CASE WHEN month(day) >= 4 THEN year(day) ELSE year(day) - 1 END AS fy, ((month(day) + 8) % 12) div 3 + 1 AS fq FROM clicks WHERE id % 25 = 0 ORDER BY id;
-- business days
SELECT day, sum(CASE WHEN dayofweek(day) IN (1, 7) THEN 0 ELSE 1 END) OVER (ORDER BY day, id) AS wd FROM clicks WHERE id < 10 ORDER BY id;
-- unix roundtrip
SELECT from_unixtime(unix_timestamp(at)) AS a, to_timestamp(from_unixtime(unix_timestamp(at))) = date_trunc('SECOND', at) AS b, timestamp_micros(unix_micros(at)) = at AS c FROM clicks WHERE id < 5 ORDER BY id;
-- make ts
SELECT make_timestamp(2024, 2, 30, 1, 2, 3);
-- convert tz col
SELECT id, from_utc_timestamp(at, 'Asia/Kolkata') AS k, to_utc_timestamp(at_ntz, 'America/New_York') AS n, convert_timezone('UTC', 'Europe/Berlin', at_ntz) AS c FROM clicks WHERE id < 4 ORDER BY id;
-- window on dates
SELECT plan, valid_from, lead(valid_from) OVER (PARTITION BY user_id ORDER BY valid_from) - valid_from AS gap, datediff(lead(valid_from, 1, DATE'2024-01-01') OVER (PARTITION BY user_id ORDER BY valid_from), valid_from) AS g FROM subs WHERE user_id IN ('u0', 'u1') ORDER BY user_id, valid_from, plan;
-- ntile
SELECT id, ntile(4) OVER (ORDER BY amount DESC NULLS LAST, id) AS q, cume_dist() OVER (ORDER BY qty) AS cd FROM clicks WHERE id < 15 ORDER BY id;
-- first last frames
SELECT id, first(dept) IGNORE NULLS OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS f, last(mgr, true) OVER (ORDER BY id) AS l, max(sal) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS m FROM emp ORDER BY id;
-- stddev windows
SELECT id, stddev(sal) OVER (ORDER BY id ROWS 2 PRECEDING) AS s, percentile_approx(sal, 0.5) OVER (PARTITION BY dept) AS p, collect_list(id) OVER (PARTITION BY dept ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS c FROM emp ORDER BY id;
-- range decimals
SELECT id, sum(sal) OVER (ORDER BY sal RANGE BETWEEN 1000.5 PRECEDING AND CURRENT ROW) AS s FROM emp ORDER BY id;
-- range desc
SELECT id, count(*) OVER (ORDER BY hired DESC RANGE BETWEEN INTERVAL 1 YEAR PRECEDING AND INTERVAL 1 MONTH FOLLOWING) AS c FROM emp ORDER BY id;
-- named windows extended
SELECT id, sum(sal) OVER w1 AS a, rank() OVER w2 AS b FROM emp WINDOW w1 AS (PARTITION BY dept), w2 AS (PARTITION BY dept ORDER BY sal DESC) ORDER BY id;
-- pivot any agg
SELECT * FROM (SELECT dept, extract(YEAR FROM hired) AS y, name FROM emp) PIVOT (collect_list(name) FOR y IN (2019, 2020, 2021)) ORDER BY dept;
-- pivot no rest
SELECT * FROM (SELECT dept FROM emp) PIVOT (count(*) FOR dept IN ('eng' e, 'ops' o));
-- pivot with alias
SELECT p.eng_s FROM (SELECT dept, sal FROM emp) PIVOT (sum(sal) AS s, max(sal) AS m FOR dept IN ('eng', 'ops')) AS p;
-- unpivot alias
SELECT u.id, u.k, u.v FROM (SELECT id, mgr AS m, CAST(sal AS int) AS s FROM emp) UNPIVOT EXCLUDE NULLS (v FOR k IN (m, s)) AS u ORDER BY 1, 2;
-- values with exprs
SELECT a + b AS c FROM VALUES (1 + 1, length('abc')), (2, CAST('3' AS int)) AS t(a, b) ORDER BY c;
-- deep subqueries
SELECT x FROM (SELECT x FROM (SELECT x FROM (SELECT id AS x FROM emp) WHERE x > 1) WHERE x < 6) ORDER BY x DESC LIMIT 2 OFFSET 1;
-- exists or
SELECT id FROM emp e WHERE e.dept = 'hr' OR EXISTS (SELECT 1 FROM emp x WHERE x.mgr = e.id) ORDER BY id;
-- not in with filter
SELECT id FROM emp WHERE id NOT IN (SELECT mgr FROM emp WHERE mgr IS NOT NULL) ORDER BY id;
-- in subquery of agg
SELECT name FROM emp WHERE (dept, sal) IN (SELECT dept, max(sal) FROM emp GROUP BY dept) ORDER BY name;
-- scalar in limit-like
SELECT id FROM emp WHERE sal = (SELECT sal FROM emp WHERE id = 2) ORDER BY id;
-- scalar in between
SELECT id FROM emp WHERE sal BETWEEN (SELECT avg(sal) FROM emp) - 1000 AND (SELECT avg(sal) FROM emp) + 2000 ORDER BY id;
-- subquery in function
SELECT concat('max=', (SELECT CAST(max(sal) AS string) FROM emp)) AS t, greatest((SELECT min(id) FROM emp), 5) AS g;
-- subquery in case when
SELECT id, CASE WHEN sal > (SELECT avg(sal) FROM emp) THEN 'hi' WHEN sal IS NULL THEN 'none' ELSE 'lo' END AS b FROM emp ORDER BY id;
-- correlated count star empty
SELECT e.id, (SELECT count(*) FROM nothing n WHERE n.id = e.id) AS c, (SELECT max(n.id) FROM nothing n WHERE n.id = e.id) AS m FROM emp e ORDER BY 1;
-- with in subquery
SELECT id FROM emp WHERE id IN (WITH t AS (SELECT mgr FROM emp) SELECT mgr FROM t) ORDER BY id;
-- with in scalar
SELECT (WITH t AS (SELECT 1 AS x) SELECT x + 1 FROM t) AS v;
-- map access
SELECT k, m['a'], m.b, element_at(m, 'zz'), try_element_at(m, 'c'), map_contains_key(m, 'a') FROM nest ORDER BY k;
-- lambda capture
SELECT k, transform(a, x -> x * k) AS t, filter(ss, s -> s.q > k) AS f, exists(aa, r -> size(r) > 1) AS e FROM nest ORDER BY k;
-- reduce strings
SELECT reduce(array('a', 'b', 'c'), '', (acc, x) -> acc || x, acc -> upper(acc)) AS r, aggregate(sequence(1, 5), 1L, (acc, x) -> acc * x) AS fact;
-- map from arrays of structs
SELECT k, map_from_entries(transform(ss, s -> struct(coalesce(s.p, '?') AS key, s.q AS value))) AS m FROM nest WHERE k IN (1, 5) ORDER BY k;
-- sort by struct field
SELECT k, array_sort(ss, (l, r) -> CASE WHEN l.q IS NULL THEN 1 WHEN r.q IS NULL THEN -1 WHEN l.q < r.q THEN -1 WHEN l.q > r.q THEN 1 ELSE 0 END) AS s FROM nest WHERE k = 1;
-- nested json out
SELECT k, to_json(struct(*)) AS j FROM nest ORDER BY k;
-- pipes join agg
FROM clicks |> JOIN subs USING (user_id) |> WHERE plan = 'pro' |> AGGREGATE count(*) AS n, avg(amount) AS a GROUP BY user_id |> ORDER BY user_id;
-- pipes set and rename
FROM emp |> SELECT id, sal |> SET sal = sal * 2 |> AS t |> WHERE t.sal > 10000 |> ORDER BY t.id;
-- pipe distinct
FROM emp |> SELECT DISTINCT dept |> ORDER BY dept;
-- pipe group order
FROM emp |> AGGREGATE sum(sal) s GROUP BY dept AS d |> ORDER BY d;
-- bad pipe
FROM emp |> SELECT sum(sal);
-- cast of a typed literal
SELECT DATE'2024-01-05'::string, TIMESTAMP'2024-01-05 10:00:00'::date, DATE'2024-01-05'::timestamp, TIMESTAMP_NTZ'2024-01-05 10:00:00'::timestamp,
  TIMESTAMP'2024-01-05 10:00:00'::bigint + 1, if(true, DATE'2024-01-05'::string, 'x'), DATE'2024-01-05'::string::date::string || 'x';
-- cast of a negative number
SELECT -1.5::int, -1::boolean, -1::string, - 1::string, -(1)::string, - -1::string, 5 - 1::int, -1Y::string, -1L::boolean, -0.0D::string, -1e3::int;
-- cast of a negative column
SELECT -sal::string AS s, -id::bigint AS i FROM emp WHERE sal IS NOT NULL ORDER BY id;
-- item of a cast
SELECT array(1, 2)::array<bigint>[0], map('a', 1)::map<string, bigint>['a'], struct(1 AS a)::struct<a: bigint>.a;
-- pipe after a lateral join
FROM (SELECT 1 AS k, array(1, 2) AS a) |> CROSS JOIN LATERAL (SELECT explode(a) AS x) |> SELECT k, x |> ORDER BY x;
-- pipe aggregate after a lateral join
FROM (SELECT 1 AS k, array(1, 2) AS a) |> JOIN LATERAL (SELECT explode(a) AS x) |> AGGREGATE sum(x) AS s GROUP BY k;
-- pipe drop after a lateral join
FROM (SELECT 1 AS k, array(1, 2) AS a) |> JOIN LATERAL (SELECT explode(a) AS x) |> DROP a |> UNION ALL (SELECT 9, 9) |> ORDER BY k, x;
-- table as a query
WITH d AS (TABLE emp) TABLE d UNION TABLE emp ORDER BY id;
-- table as a subquery
WITH d AS (SELECT max(id) AS id FROM emp) SELECT id FROM (TABLE emp) WHERE id IN (TABLE d);
-- pipe union with a table
WITH d AS (SELECT 1 AS a) FROM d |> UNION ALL TABLE d |> ORDER BY a;
-- a table named table
SELECT table.a FROM (SELECT 1 AS a) table;
-- recursion of more levels
WITH RECURSIVE t(n) MAX RECURSION LEVEL 300 AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 250) SELECT count(*), max(n) FROM t;
-- recursion of few levels
WITH RECURSIVE t(n) MAX RECURSION LEVEL 5 AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT max(n) FROM t;
-- recursion of too few levels
WITH RECURSIVE t(n) MAX RECURSION LEVEL 5 AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 6) SELECT max(n) FROM t;
-- recursion of a hundred levels
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 100) SELECT max(n) FROM t;
-- recursion of more than a hundred levels
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 101) SELECT max(n) FROM t;
-- words of statements as names
SELECT insert, drop, create, alter, values, t.values + 1 AS v FROM (SELECT 1 AS insert, 2 AS drop, 3 AS create, 4 AS alter, 5 AS values) t
  WHERE values > 0 AND insert = 1 ORDER BY values;
-- values named values
SELECT values, count(*) FROM (VALUES (1), (1)) t(values) GROUP BY values HAVING values = 1 ORDER BY values;
-- pipe drop of drop
FROM (SELECT 1 AS drop, 2 AS x) |> DROP drop |> SELECT x;
-- fetch
SELECT id FROM emp FETCH FIRST 3 ROWS ONLY;
-- for update
SELECT id FROM emp FOR UPDATE;
-- using sample
SELECT id FROM emp USING SAMPLE 3;
-- empty pivot
FROM emp |> PIVOT (sum(id) FOR dept IN ());
-- group by nothing
SELECT count(*) FROM emp GROUP BY ();
-- natural join using
SELECT * FROM emp NATURAL JOIN emp e USING (id);
-- window function without over
SELECT row_number() FROM emp;
-- no such function
SELECT no_such(id) FROM emp;
-- values with signs
VALUES -1, +2;
-- values with not
VALUES NOT true;
-- union with values
SELECT 1 UNION ALL VALUES -1;
-- with values
WITH q AS (VALUES -1, -2) SELECT * FROM q;
-- values as a number
SELECT -values AS a, values - 1 AS b, sum(values - 1) AS c, (values - 1) AS d, NOT (values > 1) AS e FROM (SELECT 5 AS values) GROUP BY values;
-- from with and query
WITH q AS (SELECT 1 AS a) FROM q SELECT a;
