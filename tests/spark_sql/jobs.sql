-- Whole jobs of a warehouse in Spark's SQL over the tables of query_tables.py and job_tables.py, recorded and compared like queries.sql. A
-- name follows two dashes.
--
-- sessions of thirty minutes
WITH marked AS (SELECT *, CASE WHEN at - lag(at) OVER w > INTERVAL 30 MINUTES OR lag(at) OVER w IS NULL THEN 1 ELSE 0 END AS is_new
    FROM clicks WHERE user_id IS NOT NULL AND at IS NOT NULL WINDOW w AS (PARTITION BY user_id ORDER BY at, id)),
  numbered AS (SELECT *, sum(is_new) OVER (PARTITION BY user_id ORDER BY at, id ROWS UNBOUNDED PRECEDING) AS session FROM marked)
SELECT user_id, session, min(at) AS started, max(at) - min(at) AS lasted, count(*) AS events, collect_list(ev) AS path, sum(amount) AS total
FROM numbered GROUP BY user_id, session ORDER BY user_id, session;
-- sessions by a window of time
SELECT user_id, session_window.start AS s, session_window.end AS e, count(*) AS n FROM clicks WHERE at IS NOT NULL
GROUP BY user_id, session_window(at, '45 minutes') ORDER BY user_id, s;
-- events of each three hours
SELECT window(at, '3 hours') AS w, count(*) AS n, count(DISTINCT user_id) AS users, sum(amount) AS total FROM clicks GROUP BY window(at, '3 hours') ORDER BY w.start;
-- a funnel by user
WITH steps AS (SELECT user_id, min(CASE WHEN ev = 'view' THEN at END) AS v, min(at) FILTER (WHERE ev = 'cart') AS c, min(IF(ev = 'purchase', at, NULL)) AS p
  FROM clicks GROUP BY user_id)
SELECT count(v) AS viewed, count_if(c > v) AS carted, count_if(p > c AND c > v) AS bought, round(100 * count_if(c > v) / count(v), 1) AS pct,
  avg(timestampdiff(MINUTE, v, c)) FILTER (WHERE c > v) AS minutes FROM steps;
-- the time to the next event
SELECT id, user_id, ev, lead(ev) OVER w AS next_ev, (lead(at) OVER w) - at AS wait, nth_value(ev, 2) OVER w AS second_ev FROM clicks
WHERE at IS NOT NULL AND user_id IN ('u1', 'u2') WINDOW w AS (PARTITION BY user_id ORDER BY at, id) ORDER BY user_id, at, id;
-- the latest event of each user
SELECT user_id, id, ev FROM clicks QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY at DESC NULLS LAST, id DESC) = 1 ORDER BY user_id;
-- duplicates that row_number leaves out
WITH ranked AS (SELECT *, row_number() OVER (PARTITION BY user_id, day ORDER BY amount DESC NULLS LAST, id) AS rn FROM clicks)
SELECT * EXCEPT (rn, props, at, at_ntz) FROM ranked WHERE rn = 1 ORDER BY user_id, day;
-- users above the average of all
SELECT user_id, sum(amount) AS total, avg(sum(amount)) OVER () AS mean, sum(amount) / sum(sum(amount)) OVER () AS share FROM clicks GROUP BY user_id
HAVING sum(amount) > 100 ORDER BY total DESC;
-- JSON events unfolded
SELECT id, j.page, j.price, j.geo.cc AS country, tag FROM (SELECT id, from_json(props, 'page STRING, price DOUBLE, tags ARRAY<STRING>, geo STRUCT<cc: STRING, lat: DOUBLE>') AS j FROM clicks WHERE id < 40)
LATERAL VIEW OUTER explode(j.tags) t AS tag ORDER BY id, tag;
-- JSON fields by path
SELECT id, get_json_object(props, '$.page') AS page, CAST(get_json_object(props, '$.price') AS decimal(10, 2)) AS price, get_json_object(props, '$.tags[0]') AS first_tag,
  get_json_object(props, '$.geo.cc') AS cc, json_array_length(get_json_object(props, '$.tags')) AS tags FROM clicks WHERE id < 30 ORDER BY id;
-- JSON fields as columns
SELECT id, c.* FROM clicks LATERAL VIEW json_tuple(props, 'page', 'price', 'tags') c AS page, price, tags WHERE id < 15 ORDER BY id;
-- tags counted by country
SELECT cc, tag, count(*) AS n FROM (SELECT from_json(props, 'tags ARRAY<STRING>, geo STRUCT<cc: STRING>') AS j FROM clicks) LATERAL VIEW explode(j.tags) AS tag
LATERAL VIEW explode(array(j.geo.cc)) AS cc GROUP BY cc, tag ORDER BY cc, tag;
-- tags of JSON as columns
SELECT * FROM (SELECT j.geo.cc AS cc, tag, j.price AS price FROM (SELECT from_json(props, 'price DOUBLE, tags ARRAY<STRING>, geo STRUCT<cc: STRING>') AS j FROM clicks)
  LATERAL VIEW explode(j.tags) AS tag) PIVOT (count(*) AS n, sum(price) AS s FOR tag IN ('x', 'y', 'z')) ORDER BY cc;
-- variants of JSON
SELECT id, v:page::string AS page, v:price::double AS price, v:geo.cc::string AS cc, try_variant_get(v, '$.tags[1]', 'string') AS tag, schema_of_variant(v:price) AS kind
FROM (SELECT id, try_parse_json(props) AS v FROM clicks WHERE id < 20) ORDER BY id;
-- slowly changing plans at a day
SELECT c.id, c.user_id, c.day, s.plan, s.fee FROM clicks c LEFT JOIN subs s ON c.user_id = s.user_id AND date_add(c.day, -365) >= s.valid_from
  AND (date_add(c.day, -365) < s.valid_to OR s.valid_to IS NULL) WHERE c.id % 10 = 0 ORDER BY c.id, s.valid_from, s.plan;
-- intervals of plans without gaps
WITH marked AS (SELECT *, CASE WHEN valid_from <= date_add(max(coalesce(valid_to, DATE'9999-12-31')) OVER (PARTITION BY user_id ORDER BY valid_from, plan ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 1) THEN 0 ELSE 1 END AS gap FROM subs),
  islands AS (SELECT *, sum(gap) OVER (PARTITION BY user_id ORDER BY valid_from, plan ROWS UNBOUNDED PRECEDING) AS island FROM marked)
SELECT user_id, island, min(valid_from) AS since, CASE WHEN bool_or(valid_to IS NULL) THEN NULL ELSE max(valid_to) END AS until, count(*) AS parts,
  sum(datediff(valid_to, valid_from) * fee) AS paid FROM islands GROUP BY user_id, island ORDER BY user_id, island;
-- days in a row
WITH days AS (SELECT DISTINCT user_id, day FROM clicks WHERE user_id IS NOT NULL),
  grouped AS (SELECT user_id, day, date_sub(day, CAST(row_number() OVER (PARTITION BY user_id ORDER BY day) AS int)) AS grp FROM days)
SELECT user_id, min(day) AS first_day, max(day) AS last_day, count(*) AS streak FROM grouped GROUP BY user_id, grp ORDER BY user_id, first_day;
-- changes of a column
SELECT id, ev, before FROM (SELECT id, ev, lag(ev) OVER (ORDER BY id) AS before FROM clicks) WHERE NOT ev <=> before AND id < 40 ORDER BY id;
-- the last known value
SELECT id, amount, last(amount, true) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS filled, first_value(amount) IGNORE NULLS OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS following FROM clicks WHERE id < 25 ORDER BY id;
-- percentiles by group
SELECT ev, percentile(amount, 0.5) AS p50, percentile(amount, array(0, 1)) AS p, percentile(amount, 0.9) AS p90, median(amount) AS m, percentile_cont(0.25) WITHIN GROUP (ORDER BY amount) AS c, percentile_disc(0.75) WITHIN GROUP (ORDER BY amount DESC) AS d FROM clicks GROUP BY ev ORDER BY ev;
-- moving sums by the hour
SELECT id, at, sum(amount) OVER (ORDER BY at RANGE BETWEEN INTERVAL 2 HOURS PRECEDING AND CURRENT ROW) AS s, count(*) OVER (PARTITION BY ev ORDER BY at RANGE BETWEEN INTERVAL 24 HOURS PRECEDING AND INTERVAL 1 HOUR FOLLOWING) AS n FROM clicks WHERE at IS NOT NULL ORDER BY id;
-- moving averages by the day
SELECT day, sum(amount) AS total, avg(sum(amount)) OVER (ORDER BY day RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS mean, sum(sum(amount)) OVER (ORDER BY day) AS running FROM clicks GROUP BY day ORDER BY day;
-- moving sums by months
SELECT user_id, valid_from, sum(fee) OVER (PARTITION BY user_id ORDER BY valid_from RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) AS s, count(*) OVER (PARTITION BY user_id ORDER BY valid_from RANGE BETWEEN 10 PRECEDING AND 10 FOLLOWING) AS n FROM subs ORDER BY user_id, valid_from, s, n;
-- a spine of days
WITH spine AS (SELECT explode(sequence(DATE'2024-03-29', DATE'2024-04-06', INTERVAL 1 DAY)) AS day)
SELECT s.day, dayofweek(s.day) AS dow, date_format(s.day, 'EEEE') AS name, coalesce(sum(c.amount), 0) AS total, count(c.id) AS n FROM spine s LEFT JOIN clicks c ON c.day = s.day GROUP BY s.day ORDER BY s.day;
-- a spine of months with users
SELECT m, user_id, count(plan) AS plans FROM (SELECT explode(sequence(DATE'2023-01-01', DATE'2023-06-01', INTERVAL 1 MONTH)) AS m) CROSS JOIN (SELECT DISTINCT user_id AS u FROM subs)
LEFT JOIN subs ON user_id = u AND date_trunc('MONTH', valid_from) = m GROUP BY m, user_id ORDER BY m, user_id;
-- a spine of hours across a change of clocks
SELECT h, from_utc_timestamp(h, 'Europe/Berlin') AS berlin, date_format(from_utc_timestamp(h, 'Europe/Berlin'), 'HH') AS hh FROM (SELECT explode(sequence(TIMESTAMP'2024-03-30 23:00:00', TIMESTAMP'2024-03-31 03:00:00', INTERVAL 1 HOUR)) AS h) ORDER BY h;
-- text that is cleaned
SELECT k, upper(trim(s)) AS a, regexp_replace(s, '[^\\p{L}0-9]', '') AS b, initcap(lower(s)) AS c, nullif(trim(s), '') AS d, lpad(coalesce(s, '?'), 8, '*') AS e, length(s) AS f, reverse(s) AS g, translate(s, 'abc', 'xyz') AS h, substring_index(s, '-', 2) AS i, split(s, '-')[0] AS j FROM kinds ORDER BY k;
-- addresses from text
SELECT page, parse_url(concat('https://example.com', page), 'PATH') AS path, parse_url(concat('https://example.com', page), 'QUERY', 'x') AS x, count(*) AS n FROM (SELECT get_json_object(props, '$.page') AS page FROM clicks) GROUP BY page ORDER BY page;
-- the tree of employees
WITH RECURSIVE tree (id, name, path, depth) AS (SELECT id, name, CAST(name AS string), 0 FROM emp WHERE mgr IS NULL UNION ALL
  SELECT e.id, e.name, concat(t.path, '/', e.name), t.depth + 1 FROM emp e JOIN tree t ON e.mgr = t.id) SELECT * FROM tree ORDER BY path;
-- numbers by recursion
WITH RECURSIVE n (i, f) AS (SELECT 1, CAST(1 AS bigint) UNION ALL SELECT i + 1, f * (i + 1) FROM n WHERE i < 15) SELECT * FROM n ORDER BY i;
-- salaries of managers below
WITH RECURSIVE under (boss, id) AS (SELECT id, id FROM emp UNION ALL SELECT u.boss, e.id FROM emp e JOIN under u ON e.mgr = u.id)
SELECT b.name, count(*) - 1 AS people, sum(e.sal) AS total FROM under u JOIN emp b ON b.id = u.boss JOIN emp e ON e.id = u.id GROUP BY b.name ORDER BY b.name;
-- salaries as columns of departments
SELECT * FROM (SELECT dept, year(hired) AS y, sal FROM emp) PIVOT (sum(sal) AS total, max(sal) AS most, count(*) AS n FOR dept IN ('eng' AS eng, 'ops' AS ops)) ORDER BY y;
-- pairs of values as columns
SELECT * FROM (SELECT ev, qty, amount FROM clicks) PIVOT (sum(amount) FOR (ev, qty) IN (('view', 1) AS v1, ('view', 2) AS v2, ('cart', 1) AS c1));
-- columns as rows
SELECT * FROM (SELECT k, i, l FROM kinds WHERE k IN (1, 3, 7)) UNPIVOT INCLUDE NULLS (val FOR col IN (l AS big, i AS small)) ORDER BY k, col;
-- aliases to the left
SELECT sal, sal * 0.2 AS tax, sal - tax AS net, round(net / 12, 2) AS monthly, CASE WHEN monthly > 400 THEN 'high' ELSE 'low' END AS band FROM emp ORDER BY id;
-- aliases of aggregates
SELECT dept, sum(sal) AS total, count(sal) AS n, total / n AS mean, CAST(mean AS decimal(10, 2)) AS shown FROM emp GROUP BY dept ORDER BY dept;
-- ranks of salaries
SELECT name, dept, sal, rank() OVER w AS r, dense_rank() OVER w AS d, percent_rank() OVER w AS p, cume_dist() OVER w AS c, ntile(2) OVER w AS t FROM emp WINDOW w AS (PARTITION BY dept ORDER BY sal DESC NULLS LAST) ORDER BY dept, r, name;
-- rows of higher-order functions
SELECT k, transform(a, x -> x * 2) AS t, filter(a, x -> x > 1) AS f, aggregate(a, 0, (s, x) -> s + coalesce(x, 0), s -> s * 10) AS g, exists(a, x -> x IS NULL) AS e, forall(a, x -> x > 0) AS l, array_sort(a, (x, y) -> CASE WHEN x > y THEN -1 WHEN x < y THEN 1 ELSE 0 END) AS o FROM nest WHERE k <> 1 ORDER BY k;
-- fields of structs in arrays
SELECT k, ss.p, transform(ss, x -> x.q), filter(ss, x -> get(x.r, 0) > 1).p AS big, aggregate(ss, 0, (s, x) -> s + coalesce(x.q, 0)) AS total, array_max(transform(ss, x -> x.q)) AS most, size(ss) AS n FROM nest ORDER BY k;
-- structs in arrays as rows
SELECT k, pos, p, q, element FROM nest LATERAL VIEW OUTER posexplode(ss) t AS pos, s LATERAL VIEW OUTER explode(s.r) u AS element LATERAL VIEW OUTER inline(array(struct(s.p AS p, s.q AS q))) v ORDER BY k, pos, element;
-- entries of maps as rows
SELECT k, key, value.n, value.t FROM nest LATERAL VIEW explode(ms) t ORDER BY k, key;
-- maps that change
SELECT k, map_filter(m, (x, y) -> y > 0) AS f, transform_values(m, (x, y) -> y + 1) AS v, map_keys(m) AS ks, map_from_entries(transform(map_entries(m), e -> struct(upper(e.key) AS key, e.value AS value))) AS u, m['a'] AS a, element_at(m, 'zz') AS z, map_concat(m, map('new', 0)) AS c FROM nest WHERE k <> 4 ORDER BY k;
-- lists of lists
SELECT k, flatten(aa) AS f, size(aa) AS n, transform(aa, x -> size(x)) AS s, get(aa, 0) AS first_list, try_element_at(aa, 9) AS none FROM nest ORDER BY k;
-- times in other zones
SELECT k, ts, from_utc_timestamp(ts, 'America/New_York') AS ny, to_utc_timestamp(n, 'Asia/Tokyo') AS tk, convert_timezone('UTC', 'Europe/Paris', n) AS p, date_trunc('WEEK', ts) AS w, date_trunc('QUARTER', n) AS q FROM kinds WHERE k NOT IN (2) ORDER BY k;
-- parts of times
SELECT k, extract(YEAROFWEEK FROM ts) AS yw, weekofyear(ts) AS w, date_part('DOW', dt) AS dow, quarter(dt) AS q, last_day(dt) AS l, next_day(dt, 'Mon') AS nd, add_months(dt, 1) AS am, months_between(ts, TIMESTAMP'2024-01-31 12:00:00') AS mb, datediff(dt, DATE'2024-01-01') AS dd FROM kinds WHERE k NOT IN (2, 4) ORDER BY k;
-- money in decimals
SELECT id, amount * 1.19 AS gross, CAST(amount * 0.07 AS decimal(10, 2)) AS tax, round(amount / 3, 4) AS third, amount % 7 AS rest, -amount AS back, abs(amount) AS size, amount / nullif(qty, 0) AS each, sum(amount) OVER (ORDER BY id) AS running FROM clicks WHERE id < 25 ORDER BY id;
-- averages of decimals
SELECT ev, avg(amount) AS a, sum(amount) AS s, sum(amount * qty) AS w, sum(amount * qty) / sum(qty) AS weighted, stddev(amount) AS sd, max(amount) - min(amount) AS span FROM clicks GROUP BY ev ORDER BY ev;
-- totals of cubes
SELECT ev, qty, grouping(ev) AS ge, grouping_id(ev, qty) AS g, count(*) AS n, sum(amount) AS s FROM clicks GROUP BY CUBE (ev, qty) ORDER BY g, ev, qty;
-- totals of grouping sets
SELECT coalesce(dept, 'all') AS d, year(hired) AS y, sum(sal) AS s FROM emp GROUP BY GROUPING SETS ((dept), (year(hired)), ()) ORDER BY d, y, s;
-- cohorts by week
WITH firsts AS (SELECT user_id, min(date_trunc('DAY', at)) AS cohort FROM clicks WHERE user_id IS NOT NULL GROUP BY user_id)
SELECT cohort, datediff(c.day, cohort) AS age, count(DISTINCT c.user_id) AS users FROM clicks c JOIN firsts f USING (user_id) GROUP BY cohort, age ORDER BY cohort, age;
-- pairs of events
SELECT a.ev AS one, b.ev AS two, count(*) AS n FROM clicks a JOIN clicks b ON a.user_id = b.user_id AND a.id < b.id AND b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR GROUP BY a.ev, b.ev ORDER BY one, two;
-- users without purchases
SELECT DISTINCT user_id FROM clicks c WHERE NOT EXISTS (SELECT 1 FROM clicks p WHERE p.user_id = c.user_id AND p.ev = 'refund') ORDER BY user_id;
-- users who are not in a list with nulls
SELECT id FROM emp WHERE id NOT IN (SELECT mgr FROM emp) ORDER BY id;
-- differences of two lists
(SELECT user_id FROM clicks EXCEPT SELECT user_id FROM subs) UNION ALL (SELECT user_id FROM subs WHERE plan = 'pro' INTERSECT SELECT user_id FROM clicks) ORDER BY 1;
-- the highest of each group by a lateral join
SELECT d.dept, t.name, t.sal FROM (SELECT DISTINCT dept FROM emp) d JOIN LATERAL (SELECT name, sal FROM emp e WHERE e.dept = d.dept ORDER BY sal DESC, name LIMIT 2) t ORDER BY d.dept, t.sal DESC, t.name;
-- values of text as numbers
SELECT k, try_cast(s AS int) AS i, try_cast(s AS date) AS d, try_cast(s AS double) AS x, try_to_number(s, '999') AS n, s RLIKE '^[0-9 ]+$' AS m FROM kinds ORDER BY k;
-- histograms of amounts
SELECT width_bucket(CAST(amount AS double), 0, 1000, 5) AS b, count(*) AS n, min(amount) AS low, max(amount) AS high FROM clicks GROUP BY b ORDER BY b;
-- text of lists
SELECT user_id, listagg(ev, ',') WITHIN GROUP (ORDER BY id) AS path, array_join(array_sort(collect_set(ev)), '|') AS kinds, concat_ws('-', array_distinct(collect_list(ev))) IS NOT NULL AS k FROM clicks GROUP BY user_id ORDER BY user_id;
-- the event of the highest amount
SELECT ev, max_by(id, amount) AS best, min_by(struct(id, user_id), struct(amount, id)) AS worst, max(struct(amount, id)).id AS best_id FROM clicks WHERE amount IS NOT NULL GROUP BY ev ORDER BY ev;
-- a report by pipes
FROM clicks |> WHERE amount > 0 |> AGGREGATE sum(amount) AS total, count(*) AS n GROUP BY ev |> EXTEND total / n AS mean |> WHERE n > 3 |> SELECT ev, n, round(mean, 2) AS mean |> ORDER BY ev;
-- a row for each name of a struct
SELECT k, st.u, st.v.w, get(st.v.z, 0) AS z, st.* FROM nest ORDER BY k;
-- JSON of rows
SELECT k, to_json(st) AS a, to_json(ss) AS b, to_json(m) AS c, to_json(struct(k AS id, a AS list)) AS d FROM nest ORDER BY k;
-- a check of every type
SELECT k, coalesce(ti, 0) + si AS a, i + l AS b, f * 2 AS c, d / 2 AS e, d1 + d2 AS g, d1 * d1 AS h, b AND true AS j, bi IS NULL AS m, hash(k, s, dt) AS n, CAST(d AS string) AS o, CAST(f AS string) AS p FROM kinds WHERE k NOT IN (4, 5) ORDER BY k;
-- intervals of two types in a frame
SELECT sum(1) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 HOUR FOLLOWING) FROM kinds;
-- hours in a frame over dates
SELECT sum(1) OVER (ORDER BY dt RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) FROM kinds;
-- lists joined as text
SELECT concat_ws('-', array('a', NULL, 'b'), 'c', array(), NULL, array('')) a, concat_ws(',', array()) b, concat_ws(NULL, array('a')) c, concat_ws('-', CAST(NULL AS array<string>), 'x') d, concat_ws('-', array(1, 2), 3) e, concat_ws('|', a, k) f FROM nest ORDER BY k;
