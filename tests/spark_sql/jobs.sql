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
-- customers who bought in each quarter
SELECT c_customer_id, count(DISTINCT d_qoy) AS q FROM customer JOIN store_sales ON ss_customer_sk = c_customer_sk JOIN date_dim ON d_date_sk = ss_sold_date_sk GROUP BY c_customer_id HAVING count(DISTINCT d_qoy) >= 2 ORDER BY 1;
-- the share of each class in its category
SELECT i_category, i_class, sum(ss_ext_sales_price) AS s, round(100 * sum(ss_ext_sales_price) / sum(sum(ss_ext_sales_price)) OVER (PARTITION BY i_category), 2) AS pct FROM store_sales JOIN item ON ss_item_sk = i_item_sk GROUP BY i_category, i_class ORDER BY 1, 2;
-- year over year
SELECT d_year, d_moy, sum(ss_net_profit) AS p, lag(sum(ss_net_profit), 1, 0) OVER (PARTITION BY d_moy ORDER BY d_year) AS before FROM store_sales JOIN date_dim ON d_date_sk = ss_sold_date_sk GROUP BY d_year, d_moy ORDER BY 1, 2;
-- returns by state of the store
SELECT s_state, count(sr_ticket_number) AS n, sum(sr_return_amt) AS amt, any_value(s_state) IS NULL AS x FROM store LEFT JOIN store_returns ON sr_store_sk = s_store_sk GROUP BY s_state ORDER BY s_state;
-- items that are never sold
SELECT i_item_sk FROM item LEFT ANTI JOIN store_sales ON ss_item_sk = i_item_sk ORDER BY 1;
-- items that are sold in two channels
SELECT i_item_sk FROM item LEFT SEMI JOIN web_sales ON ws_item_sk = i_item_sk WHERE i_item_sk IN (SELECT cs_item_sk FROM catalog_sales) ORDER BY 1;
-- all sales in one list
SELECT channel, sum(price) AS s, count(*) AS n, count(price) AS m FROM (SELECT 'store' AS channel, ss_sales_price AS price FROM store_sales UNION ALL SELECT 'web', ws_sales_price FROM web_sales UNION ALL SELECT 'catalog', cs_sales_price FROM catalog_sales) GROUP BY channel ORDER BY channel;
-- a full join of two channels
SELECT coalesce(s.k, w.k) AS k, s.n AS sn, w.n AS wn FROM (SELECT ss_item_sk AS k, count(*) AS n FROM store_sales GROUP BY ss_item_sk) s FULL JOIN (SELECT ws_item_sk AS k, count(*) AS n FROM web_sales GROUP BY ws_item_sk) w ON s.k = w.k ORDER BY k;
-- customers by the first letter
SELECT upper(left(c_last_name, 1)) AS letter, count(*) AS n, collect_set(c_birth_country) IS NOT NULL AS x, min(c_birth_year) AS y FROM customer GROUP BY ALL ORDER BY letter NULLS LAST;
-- zip codes of five digits
SELECT ca_zip, regexp_extract(ca_zip, '(\\d{3})(\\d+)', 1) AS a, ca_zip LIKE '3%' AS b, substr(ca_zip, -2) AS c, conv(substr(ca_zip, 1, 2), 10, 16) AS d FROM customer_address ORDER BY ca_zip, 2;
-- text in bytes
SELECT k, hex(bi) AS h, base64(bi) AS b, unbase64(base64(bi)) = bi AS same, length(bi) AS l, md5(bi) AS m, sha2(bi, 256) AS s, crc32(bi) AS c FROM kinds ORDER BY k;
-- text of odd letters
SELECT k, upper(s), lower(s), length(s), octet_length(s), ascii(s), char_length(s), substring(s, 2, 1), instr(s, 'b'), locate('c', s), repeat(s, 2), soundex(s), levenshtein(s, 'abc') FROM kinds ORDER BY k;
-- unicode as url
SELECT k, url_encode(s) AS u, url_decode(url_encode(s)) = s AS same, encode(s, 'UTF-8') AS e, decode(encode(s, 'UTF-16'), 'UTF-16') = s AS d FROM kinds ORDER BY k;
-- dates of text in many forms
SELECT to_date('2024-02-29') a, to_date('29.02.2024', 'dd.MM.yyyy') b, try_to_timestamp('x') c, to_timestamp('2024-02-29 12:34:56.789') d, date('2024-2-9') e, CAST('2024-02-29T10:00:00Z' AS timestamp) f, make_date(2024, 2, 29) g, to_timestamp_ntz('2024-02-29 01:02:03') h, unix_timestamp('2024-02-29 00:00:00') i, from_unixtime(1709164800) j, timestamp_seconds(1709164800) k, date_from_unix_date(19782) l;
-- the age of employees
SELECT name, hired, floor(months_between(DATE'2024-06-15', hired) / 12) AS years, datediff(MONTH, hired, DATE'2024-06-15') AS months, timestampdiff(YEAR, hired, TIMESTAMP'2024-06-15 00:00:00') AS y, DATE'2024-06-15' - hired AS days FROM emp ORDER BY id;
-- the fiscal quarter
SELECT day, concat('FY', year(add_months(day, 3)), '-Q', quarter(add_months(day, 3))) AS fq, trunc(day, 'Q') AS q, date_trunc('week', day) AS w, weekday(day) AS wd, dayname(day) AS dn, monthname(day) AS mn FROM (SELECT DISTINCT day FROM clicks) ORDER BY day;
-- the working days between dates
SELECT valid_from, valid_to, size(filter(sequence(valid_from, valid_to), d -> weekday(d) < 5)) AS working FROM subs WHERE valid_to IS NOT NULL ORDER BY 1, 2;
-- each day of a subscription
SELECT user_id, plan, explode(sequence(valid_from, coalesce(valid_to, date_add(valid_from, 2)), INTERVAL 1 WEEK)) AS day FROM subs ORDER BY 1, 3, 2;
-- overlapping subscriptions
SELECT a.user_id, a.plan AS p1, b.plan AS p2, greatest(a.valid_from, b.valid_from) AS since, least(a.valid_to, b.valid_to) AS until FROM subs a JOIN subs b ON a.user_id = b.user_id AND (a.valid_from, a.plan) < (b.valid_from, b.plan) AND b.valid_from < coalesce(a.valid_to, DATE'9999-12-31') ORDER BY 1, 4, 2, 3;
-- fees to the cent
SELECT user_id, fee, CAST(fee AS decimal(10, 2)) AS c, round(fee, 1) AS r, bround(fee, 2) AS b, ceil(fee) AS u, floor(fee) AS d, fee * 1.1 AS m, fee / 30 AS e, CAST(fee AS int) AS i, format_number(fee, 2) AS t, to_char(fee, '999.99') AS tc FROM subs WHERE fee < 100 ORDER BY fee, user_id;
-- sums that overflow
SELECT sum(l) FROM kinds;
-- sums that do not overflow
SELECT try_sum(l) AS a, sum(CAST(l AS decimal(20, 0))) AS b, try_add(9223372036854775807L, 1L) AS c, try_divide(1, 0) AS d, try_multiply(9223372036854775807L, 2L) AS e FROM kinds;
-- divisions by zero
SELECT k, i / 0 FROM kinds;
-- safe divisions
SELECT k, i / nullif(ti, 0) AS a, try_divide(i, ti) AS b, i % nullif(ti, 0) AS c, pmod(i, 7) AS d, i DIV nullif(si, 0) AS e FROM kinds WHERE k <> 5 ORDER BY k;
-- comparisons with nulls and NaN
SELECT k, d = d AS a, d <=> d AS b, d > 1e300 AS c, d < 0 AS e, isnan(d) AS f, d IN (2.5, NULL) AS g, d NOT IN (2.5) AS h, nvl(d, 0) AS i, nanvl(d, 0) AS j, coalesce(nullif(d, 0.1), -1) AS l FROM kinds ORDER BY k;
-- orders with nulls and NaN
SELECT k, d FROM kinds ORDER BY d DESC NULLS FIRST, k;
-- the highest and the least with NaN
SELECT max(d), min(d), max(f), min(f), greatest(1.0, CAST('NaN' AS double), NULL), least(1.0, CAST('NaN' AS double)), max_by(k, d), min_by(k, d), count(DISTINCT d), sum(f) FROM kinds;
-- groups of doubles
SELECT d, count(*) FROM (SELECT d FROM kinds UNION ALL SELECT -0.0D UNION ALL SELECT 0.0D UNION ALL SELECT CAST('NaN' AS double)) GROUP BY d ORDER BY d;
-- booleans in many forms
SELECT k, b, NOT b AS n, b AND NULL AS a, b OR NULL AS o, b = true AS t, CAST(b AS int) AS i, CAST('yes' AS boolean) AS y, if(b, 'j', 'n') AS j, b IS NOT TRUE AS z, bool_and(b) OVER () AS ba, every(b) OVER () AS e FROM kinds ORDER BY k;
-- cases
SELECT k, CASE s WHEN 'abc' THEN 1 WHEN '' THEN 2L ELSE NULL END AS a, CASE WHEN i > 0 THEN 'pos' WHEN i < 0 THEN 'neg' END AS b, decode(k, 1, 'one', 2, 'two', 'many') AS c, nvl2(i, 'x', 'y') AS d, elt(2, 'a', s) AS e, iff FROM (SELECT *, if(i IS NULL, 0, i) AS iff FROM kinds) ORDER BY k;
-- a value for each row of a query
SELECT name, sal, (SELECT avg(sal) FROM emp e WHERE e.dept = o.dept) AS mean, sal > (SELECT avg(sal) FROM emp) AS above, (SELECT count(*) FROM emp s WHERE s.mgr = o.id) AS reports FROM emp o ORDER BY id;
-- the second salary
SELECT dept, max(sal) FILTER (WHERE r = 2) AS second FROM (SELECT dept, sal, dense_rank() OVER (PARTITION BY dept ORDER BY sal DESC NULLS LAST) AS r FROM emp) GROUP BY dept ORDER BY dept;
-- exists in a column
SELECT id, EXISTS (SELECT 1 FROM emp e WHERE e.mgr = o.id) AS is_mgr, id IN (SELECT mgr FROM emp WHERE mgr IS NOT NULL) AS b FROM emp o ORDER BY id;
-- rows of values
SELECT * FROM VALUES (1, 'a', DATE'2024-01-01'), (2, NULL, NULL), (NULL, 'c', TIMESTAMP'2024-02-02 00:00:00') AS t(x, y, z) ORDER BY x;
-- samples of the first rows
SELECT * FROM emp ORDER BY id LIMIT 3 OFFSET 2;
-- columns of two tables with one name
SELECT e.*, m.name AS manager FROM emp e LEFT JOIN emp m ON e.mgr = m.id ORDER BY e.id;
-- using twice
SELECT id, a.name, b.sal FROM emp a JOIN emp b USING (id) WHERE a.dept <=> b.dept ORDER BY id;
-- natural joins
SELECT * FROM (SELECT id, name FROM emp) NATURAL JOIN (SELECT id, dept FROM emp WHERE dept IS NOT NULL) ORDER BY id;
-- a cross join with a condition
SELECT a.id, b.id AS other FROM emp a, emp b WHERE a.id < b.id AND a.dept = b.dept ORDER BY 1, 2;
-- groups by expressions
SELECT year(hired) AS y, count(*) AS n, count(*) FILTER (WHERE sal > 6000) AS rich FROM emp GROUP BY year(hired) ORDER BY y;
-- groups by position
SELECT dept, year(hired), sum(sal) FROM emp GROUP BY 1, 2 ORDER BY 1, 2;
-- having with an alias
SELECT dept, sum(sal) AS total FROM emp GROUP BY dept HAVING total > 6000 ORDER BY total;
-- a rollup of three
SELECT dept, year(hired) AS y, mgr, sum(sal) AS s, grouping_id() AS g FROM emp GROUP BY ROLLUP (dept, y, mgr) ORDER BY g, dept, y, mgr;
-- windows over groups
SELECT dept, sum(sal) AS s, rank() OVER (ORDER BY sum(sal) DESC NULLS LAST) AS r, sum(sum(sal)) OVER (ORDER BY dept) AS run FROM emp GROUP BY dept ORDER BY dept;
-- differences between rows
SELECT id, amount - lag(amount) OVER (ORDER BY id) AS d, amount - first(amount, true) OVER (ORDER BY id) AS f, sum(qty) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS w, avg(amount) OVER (ORDER BY id ROWS 3 PRECEDING) AS a FROM clicks WHERE id < 20 ORDER BY id;
-- cumulative distinct users
SELECT day, size(collect_set(user_id) OVER (ORDER BY day)) AS users FROM (SELECT DISTINCT day, user_id FROM clicks) ORDER BY day, users;
-- the mode and the counts
SELECT mode(ev) AS m, approx_count_distinct(user_id) AS a, count(DISTINCT user_id, ev) AS c, count_if(ev IS NULL) AS n, bit_or(qty) AS b, any_value(ev, true) IS NOT NULL AS y, skewness(qty) AS s, kurtosis(qty) AS k, corr(qty, id) AS r, covar_samp(qty, id) AS cs FROM clicks;
-- regressions
SELECT regr_slope(CAST(amount AS double), id) AS s, regr_intercept(CAST(amount AS double), id) AS i, regr_r2(CAST(amount AS double), id) AS r, regr_count(amount, id) AS n FROM clicks;
-- lists in order
SELECT dept, collect_list(name) AS l, array_sort(collect_list(sal)) AS s, sort_array(collect_set(year(hired)), false) AS y, map_from_arrays(collect_list(name), collect_list(id)) AS m, map_from_entries(collect_list(struct(name, sal))) AS e FROM (SELECT * FROM emp ORDER BY id) GROUP BY dept ORDER BY dept;
-- sets of lists
SELECT k, array_union(a, array(1, 9)) AS u, array_intersect(a, array(1, 5)) AS i, array_except(a, array(5)) AS e, array_distinct(a) AS d, arrays_overlap(a, array(2)) AS o, array_contains(a, 3) AS c, array_position(a, 5) AS p, array_remove(a, 1) AS r, slice(a, 1, 2) AS s, array_repeat(k, 2) AS rp, reverse(a) AS rv, array_min(a) AS mn, array_insert(a, 1, 0) AS ins, array_compact(a) AS ac, array_append(a, 7) AS ap FROM nest ORDER BY k;
-- lists side by side
SELECT k, arrays_zip(a, aa) AS z, zip_with(a, a, (x, y) -> x + y) AS s, sequence(1, k) AS q, transform(sequence(1, k), (x, i) -> x * i) AS t FROM nest ORDER BY k;
-- structs that change
SELECT k, named_struct('a', k, 'b', st.u) AS n, struct(k, st) AS s, st.v AS v, st = st AS same, to_json(named_struct('x', st.v.w)) AS j FROM nest ORDER BY k;
-- JSON that is built and read
SELECT from_json(to_json(st), 'u INT, v STRUCT<w: STRING, z: ARRAY<INT>>') AS r, schema_of_json('{"a": [1, 2.5], "b": {"c": "x"}}') AS s, get_json_object('{"a": [{"b": 1}, {"b": 2}]}', '$.a[*].b') AS p, from_json('{"a": 1', 'a INT') AS bad, from_json('[1, 2]', 'ARRAY<INT>') AS l, from_json('{"a": {"x": 1}}', 'MAP<STRING, STRING>') AS m, json_object_keys('{"a": 1, "b": 2}') AS ks FROM nest WHERE k = 1;
-- CSV that is read
SELECT from_csv('1,abc,2024-01-01', 'a INT, b STRING, c DATE') AS r, to_csv(struct(1 AS a, 'x,y' AS b, NULL AS c)) AS t, schema_of_csv('1,a,2.5') AS s;
-- maps of text
SELECT str_to_map('a:1,b:2') AS m, map_entries(str_to_map('a=1;b=2', ';', '=')) AS e, map('x', 1, 'y', NULL) AS n, map_contains_key(map('x', 1), 'x') AS c, map_zip_with(map('a', 1), map('a', 2, 'b', 3), (k, x, y) -> coalesce(x, 0) + y) AS z;
-- regular expressions
SELECT regexp_extract_all('a1b22c333', '([a-z])(\\d+)', 2) AS a, regexp_count('banana', 'an') AS c, regexp_instr('banana', 'n') AS i, regexp_substr('x12y', '\\d+') AS s, regexp_replace('John Smith', '(\\w+) (\\w+)', '$2, $1') AS r, 'abc' RLIKE '^a.c$' AS m, split('a1b2c', '\\d') AS sp, 'a_b' LIKE 'a\\_b' AS l, 'Ab' ILIKE 'aB' AS il, 'abc' LIKE ANY ('x%', 'a%') AS la;
-- bits
SELECT k, i & 5 AS a, i | 2 AS o, i ^ 3 AS x, ~i AS n, shiftleft(i, 2) AS l, i >> 1 AS r, bit_count(i) AS c, hex(i) AS h, bin(ti) AS b, conv('ff', 16, 10) AS cv FROM kinds ORDER BY k;
-- numbers in many forms
SELECT k, round(d1, 1) AS a, ceil(d1) AS b, floor(d1) AS c, sign(d1) AS e, abs(d1) AS f, sqrt(abs(d)) AS g, power(k, 2) AS h, exp(0) AS i, ln(k) AS j, log10(k) AS l, cbrt(k) AS m, mod(k, 3) AS n, greatest(k, i) AS o, least(k, i, 0) AS p, format_number(d1, 1) AS q FROM kinds ORDER BY k;
-- hashes of rows
SELECT k, hash(k, s, d1, dt, ts, b, f, d) AS h, xxhash64(k, s, d1) AS x, hash(bi) AS hb FROM kinds ORDER BY k;
-- hints and comments
SELECT /*+ BROADCAST(e) */ e.id /* the id */ FROM emp e -- all of them
WHERE e.id > 5 ORDER BY 1;
-- a query over nothing
SELECT count(*) AS n, sum(sal) AS s, max(name) AS m, collect_list(id) AS l, avg(sal) AS a FROM nothing;
-- groups of nothing
SELECT dept, count(*) FROM nothing GROUP BY dept;
-- joins with nothing
SELECT e.id, n.id AS other FROM emp e LEFT JOIN nothing n ON e.id = n.id ORDER BY e.id;
-- tables of one row
SELECT 1 + 1 AS two, typeof(1.5) AS t, typeof(array(1L)) AS a, NULL AS v;
-- with names of columns
WITH t(a, b) AS (SELECT id, name FROM emp), u AS (SELECT a * 2 AS a2, * FROM t) SELECT * FROM u WHERE a2 > 8 ORDER BY a;
-- a query in a query in a query
SELECT max(n) FROM (SELECT user_id, count(*) AS n FROM (SELECT * FROM clicks WHERE ev = 'view') GROUP BY user_id);
-- the median of counts
SELECT percentile_approx(n, 0.5) AS m, percentile_approx(n, array(0.1, 0.9), 100) AS p FROM (SELECT count(*) AS n FROM clicks GROUP BY user_id);
-- unpivot of sums
SELECT metric, val FROM (SELECT CAST(sum(amount) AS double) AS total, CAST(count(*) AS double) AS n, CAST(avg(qty) AS double) AS q FROM clicks) UNPIVOT (val FOR metric IN (total, n, q AS qty)) ORDER BY metric;
-- stack of columns
SELECT k, stack(2, 'i', CAST(i AS bigint), 'l', l) AS (name, val) FROM kinds WHERE k IN (1, 3) ORDER BY k, name;
-- unions of numbers and text
SELECT 1 AS a UNION ALL SELECT '2';
-- unions of numbers and words
SELECT 1 AS a UNION ALL SELECT 'x';
-- unions of decimals
SELECT CAST(1.5 AS decimal(5, 2)) AS a UNION ALL SELECT CAST(2 AS decimal(20, 10)) UNION ALL SELECT 3 ORDER BY 1;
-- unions of dates and timestamps
SELECT DATE'2024-01-01' AS a UNION ALL SELECT TIMESTAMP'2024-01-02 03:04:05' ORDER BY 1;
-- unions of lists
SELECT array(1) AS a UNION ALL SELECT array(2.5) UNION ALL SELECT NULL ORDER BY a;
-- all of a difference
SELECT ev FROM clicks WHERE id < 30 EXCEPT ALL SELECT ev FROM clicks WHERE id BETWEEN 30 AND 50 ORDER BY ev;
-- all of an intersection
SELECT qty FROM clicks WHERE id < 20 INTERSECT ALL SELECT qty FROM clicks WHERE id > 100 ORDER BY qty;
-- set operations in brackets
(SELECT 1 AS a UNION SELECT 2) INTERSECT (SELECT 2 UNION SELECT 3) ORDER BY a;
-- the order of set operations
SELECT 1 AS a UNION SELECT 2 INTERSECT SELECT 2 EXCEPT SELECT 1 ORDER BY a;
-- comparisons of text and numbers
SELECT '10' > 9 AS a, '1.5' = 1.5 AS b, 1 = '1' AS c, DATE'2024-01-01' = '2024-01-01' AS d, TIMESTAMP'2024-01-01 00:00:00' > DATE'2023-12-31' AS e, true = 'true' AS f, '2024-01-01' BETWEEN DATE'2023-01-01' AND '2024-12-31' AS g, 1 IN ('1', 2) AS h, 1.0 = 1 AS i, 1L <=> NULL AS j;
-- text that is no number in a comparison
SELECT k FROM kinds WHERE s > 5;
-- cases of mixed types
SELECT CASE WHEN k = 1 THEN 1 WHEN k = 2 THEN 2.5 ELSE 3L END AS a, coalesce(NULL, 1, 2.5D) AS b, if(true, 1, 1.25) AS c, nvl(CAST(NULL AS int), 'x') AS d, array(1, 2.5, NULL) AS e, map('a', 1, 'b', 2.5) AS f, greatest(1, 2.5, 3D) AS g FROM kinds WHERE k < 3 ORDER BY k;
-- text of everything
SELECT k, concat(k, '|', d1, '|', b, '|', dt, '|', ts, '|', f, '|', d) AS a, k || s AS c, CAST(a AS string) AS l, CAST(m AS string) AS m, CAST(st AS string) AS st FROM kinds JOIN nest USING (k) ORDER BY k;
-- windows by numbers in a range
SELECT id, qty, sum(id) OVER (ORDER BY qty RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS a, count(*) OVER (ORDER BY amount RANGE BETWEEN 100 PRECEDING AND 50 FOLLOWING) AS b, count(*) OVER (ORDER BY amount DESC RANGE BETWEEN 100.5 PRECEDING AND CURRENT ROW) AS c, sum(qty) OVER (ORDER BY id DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING) AS d FROM clicks WHERE id < 40 ORDER BY id;
-- windows of values before
SELECT id, lag(ev, 2, 'none') OVER (ORDER BY id) AS a, lead(amount, 1) IGNORE NULLS OVER (ORDER BY id) AS b, lag(amount) IGNORE NULLS OVER (ORDER BY id) AS c, first_value(ev) OVER (PARTITION BY user_id ORDER BY id) AS d, last_value(ev) OVER (PARTITION BY user_id ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS e, nth_value(amount, 3) IGNORE NULLS OVER (ORDER BY id) AS f FROM clicks WHERE id < 30 ORDER BY id;
-- named windows
SELECT id, sum(qty) OVER w AS a, avg(qty) OVER (w ROWS 2 PRECEDING) AS b FROM clicks WHERE id < 10 WINDOW w AS (PARTITION BY ev ORDER BY id) ORDER BY id;
-- windows over a list
SELECT id, collect_list(ev) OVER (ORDER BY id ROWS 2 PRECEDING) AS l, max(struct(amount, id)) OVER (PARTITION BY ev) AS m, count(DISTINCT ev) OVER () AS d FROM clicks WHERE id < 10 ORDER BY id;
-- windows with filters
SELECT id, count(*) FILTER (WHERE ev = 'view') OVER (PARTITION BY user_id) AS views, sum(amount) FILTER (WHERE qty > 1) OVER (ORDER BY id) AS s FROM clicks WHERE id < 20 ORDER BY id;
-- qualify over groups
SELECT user_id, ev, count(*) AS n FROM clicks GROUP BY user_id, ev QUALIFY rank() OVER (PARTITION BY user_id ORDER BY count(*) DESC) = 1 ORDER BY user_id, ev;
-- qualify by an alias
SELECT id, row_number() OVER (PARTITION BY ev ORDER BY id) AS rn FROM clicks QUALIFY rn = 2 ORDER BY id;
-- pairs in a list
SELECT id FROM emp WHERE (dept, mgr) IN (SELECT dept, mgr FROM emp WHERE id > 3) ORDER BY id;
-- pairs of values
SELECT id FROM emp WHERE (dept, id) IN (('eng', 1), ('ops', 3), (dept, 5)) ORDER BY id;
-- pairs of values and nulls
SELECT id FROM emp WHERE (dept, id) IN (('eng', 1), (NULL, 5));
-- pairs of values of a wider type
SELECT id FROM emp WHERE (id, mgr) IN ((4L, 2));
-- pairs of literals
SELECT (4, 2) IN ((4L, 2), (5, NULL)) AS a;
-- inline tables of numbers and text
SELECT * FROM VALUES (1), ('2');
-- inline tables of numbers
SELECT * FROM VALUES (1, NULL), (2.5, 1), (3D, 2L) AS t(a, b) ORDER BY a;
-- qualify by a count
SELECT user_id, ev, count(*) AS n FROM clicks GROUP BY user_id, ev QUALIFY rank() OVER (PARTITION BY user_id ORDER BY n DESC) = 1 ORDER BY user_id, ev;
-- a query for each group
SELECT dept, (SELECT max(amount) FROM clicks WHERE qty = min(e.id)) AS m FROM emp e GROUP BY dept ORDER BY dept;
-- a correlated count of nothing
SELECT id, (SELECT count(*) FROM clicks c WHERE c.id = e.id * 1000) AS n, (SELECT sum(amount) FROM clicks c WHERE c.id = e.id * 1000) AS s FROM emp e ORDER BY id;
-- a scalar query of two rows
SELECT (SELECT id FROM emp);
-- a correlated query without an aggregate
SELECT id, (SELECT name FROM emp m WHERE m.id = e.mgr) AS boss FROM emp e ORDER BY id;
-- exists with a condition of two tables
SELECT id FROM emp e WHERE EXISTS (SELECT 1 FROM subs s WHERE s.valid_from > e.hired AND s.fee > e.sal / 200) ORDER BY id;
-- not exists over two levels
SELECT id FROM emp e WHERE NOT EXISTS (SELECT 1 FROM emp m WHERE m.mgr = e.id AND EXISTS (SELECT 1 FROM emp x WHERE x.mgr = m.id)) ORDER BY id;
-- names that with hides
WITH emp AS (SELECT 1 AS id), x AS (WITH emp AS (SELECT 2 AS id) SELECT id FROM emp) SELECT * FROM emp UNION ALL SELECT * FROM x ORDER BY id;
-- a group by a struct
SELECT struct(ev, qty) AS g, count(*) AS n FROM clicks GROUP BY struct(ev, qty) ORDER BY g;
-- a group by a list
SELECT a, count(*) FROM (SELECT a FROM nest UNION ALL SELECT array(5, 5, 1)) GROUP BY a ORDER BY a;
-- distinct structs in a job
SELECT DISTINCT st FROM nest ORDER BY st;
-- an order by an aggregate
SELECT ev FROM clicks GROUP BY ev ORDER BY sum(amount) DESC, ev;
-- an order by a position and a name
SELECT dept AS d, sal AS s FROM emp ORDER BY 1 NULLS LAST, s DESC, id;
-- an order by what is not selected
SELECT name FROM emp ORDER BY sal DESC NULLS LAST, id DESC;
-- a name of the table and an alias
SELECT -id AS id FROM emp ORDER BY id;
-- a condition on an alias
SELECT id * 2 AS twice FROM emp WHERE twice > 4;
-- an alias that is a column
SELECT id + 1 AS sal, sal + 1 AS x FROM emp ORDER BY emp.id;
-- a column that is not grouped
SELECT dept, name FROM emp GROUP BY dept;
-- an aggregate in where
SELECT dept FROM emp WHERE count(*) > 1;
-- a window in where
SELECT id FROM emp WHERE row_number() OVER (ORDER BY id) = 1;
-- an ambiguous column
SELECT id FROM emp a JOIN emp b ON a.id = b.id;
-- an unknown column
SELECT nope FROM emp;
-- an unknown function
SELECT nope(id) FROM emp;
-- a number of columns that differs
SELECT 1 UNION ALL SELECT 1, 2;
-- a cast that fails
SELECT CAST('abc' AS int);
-- a date that is none
SELECT CAST('2024-02-30' AS date);
-- an index beyond a list
SELECT a[9] FROM nest;
-- a key that a map has not
SELECT element_at(map('a', 1), 'b') AS x, map('a', 1)['b'] AS y, try_element_at(map('a', 1), 'b') AS z;
-- an overflow of int
SELECT CAST(2147483647 AS int) + 1;
-- an overflow of tinyint
SELECT CAST(200 AS tinyint);
-- a decimal that overflows
SELECT CAST(12345.678 AS decimal(5, 2));
-- a negative root
SELECT sqrt(-1) AS a, ln(0) AS b, ln(-1) AS c, acos(2) AS d, log(0, 1) AS e, pow(0, -1) AS f, 0.0D / nullif(0, 0) AS g;
-- leap years
SELECT add_months(DATE'2024-02-29', 12) a, DATE'2024-02-29' + INTERVAL 1 YEAR b, date_add(DATE'2024-02-28', 2) c, last_day(DATE'2023-02-01') d, make_date(2023, 2, 28) + INTERVAL 1 DAY e, months_between(DATE'2024-02-29', DATE'2023-02-28') f, DATE'2024-03-31' - INTERVAL 1 MONTH g;
-- epochs
SELECT unix_timestamp(TIMESTAMP'1970-01-01 00:00:00') a, unix_micros(TIMESTAMP'1969-12-31 23:59:59.5') b, timestamp_micros(-1) c, unix_millis(TIMESTAMP'2024-01-01 00:00:00.123456') d, CAST(TIMESTAMP'2024-01-01 00:00:00.5' AS double) e, CAST(1.5 AS timestamp) f, timestamp_millis(1) g, to_unix_timestamp('2024-01-01', 'yyyy-MM-dd') h;
-- words of days
SELECT date_format(dt, 'EEE, d MMM yyyy') a, date_format(ts, 'hh:mm a') b, date_format(n, 'D') c, date_format(dt, "'week' q") d, to_char(d1, '$99,990.99') e, to_number('$1,234.5', '$9,999.9') f FROM kinds WHERE k IN (1, 7, 8) ORDER BY k;
-- a list of each pair
SELECT k, x, y FROM nest LATERAL VIEW explode(a) t1 AS x LATERAL VIEW explode(a) t2 AS y WHERE x < y ORDER BY k, x, y;
-- explode of a map of structs
SELECT k, explode(ms) AS (key, val) FROM nest ORDER BY k, key;
-- explode beside columns
SELECT k, explode_outer(a) AS e, size(a) AS n FROM nest ORDER BY k, e;
-- positions of a list
SELECT k, posexplode(a) FROM nest ORDER BY k, pos;
-- inline of structs
SELECT k, inline(ss) FROM nest WHERE k IN (1, 5) ORDER BY k, p;
-- rows of a function in from
SELECT e.id, x.col FROM emp e, LATERAL explode(array(e.id, e.id * 10)) AS x ORDER BY 1, 2;
-- a range of numbers
SELECT id, id % 3 AS m FROM range(2, 12, 3) ORDER BY id;
-- a sample of buckets
SELECT count(*) > 0 AS some FROM clicks TABLESAMPLE (50 PERCENT) REPEATABLE (1);
-- trees of json in a list
SELECT transform(from_json('[{"a": 1, "b": [1, 2]}, {"a": null}]', 'ARRAY<STRUCT<a: INT, b: ARRAY<INT>>>'), x -> struct(x.a AS a, size(x.b) AS n)) AS r;
-- an aggregate with a struct
SELECT aggregate(array(1, 2, 3), named_struct('s', 0, 'n', 0), (acc, x) -> named_struct('s', acc.s + x, 'n', acc.n + 1), acc -> acc.s / acc.n) AS mean;
-- functions of functions
SELECT k, transform(aa, x -> filter(x, y -> y IS NOT NULL)) AS a, aggregate(flatten(aa), 0, (s, y) -> s + coalesce(y, 0)) AS b, map_from_arrays(transform(sequence(1, 2), i -> concat('k', i)), array(1, 2)) AS c FROM nest WHERE k <> 1 ORDER BY k;
-- text in pieces
SELECT split_part('a.b.c', '.', 2) a, substring_index('a.b.c', '.', -1) b, overlay('abcdef' PLACING 'XY' FROM 2 FOR 3) c, trim(BOTH 'x' FROM 'xxaxx') d, ltrim('  a') e, rpad('a', 3, 'bc') f, left('abc', 2) g, right('abc', 2) h, replace('aab', 'a', 'c') i, position('b' IN 'abc') j, chr(65) k, initcap('hello world') l, find_in_set('b', 'a,b,c') m, format_string('%s-%03d', 'x', 7) n, levenshtein('kitten', 'sitting') o, luhn_check('79927398713') p;
-- fields of intervals as numbers
SELECT CAST(INTERVAL '1 02' DAY TO HOUR AS int) a, CAST(INTERVAL '1-2' YEAR TO MONTH AS int) b, CAST(INTERVAL '1 00:00:01.5' DAY TO SECOND AS decimal(10,2)) c, CAST(INTERVAL '1.7' SECOND AS int) d, CAST(INTERVAL '1 02' DAY TO HOUR AS decimal(10,2)) e, CAST(INTERVAL '-1.7' SECOND AS int) f, CAST(INTERVAL '1:30' HOUR TO MINUTE AS bigint) g, CAST(INTERVAL 5 DAY AS tinyint) h, CAST(INTERVAL '2' DAY AS decimal(10,3)) i;
-- numbers as intervals of several fields
SELECT CAST(5 AS INTERVAL DAY TO SECOND) a, CAST(5 AS INTERVAL DAY TO HOUR) b;
-- an alias in a window
SELECT id AS x, sum(x) OVER () FROM emp;
-- an alias of an aggregate in a window
SELECT dept, sum(sal) AS t, rank() OVER (ORDER BY t) r FROM emp GROUP BY dept;
-- an alias beside a window
SELECT id + 1 AS x, x + row_number() OVER (ORDER BY id) r FROM emp ORDER BY 1;
-- an alias that hides a column in a window
SELECT id + 1 AS id, row_number() OVER (ORDER BY id) r FROM emp ORDER BY emp.id;
-- a condition of null
SELECT count(*) FROM emp WHERE NULL;
-- a join on null
SELECT a.id FROM emp a JOIN emp b ON NULL;
-- aggregates of null
SELECT COUNT(NULL), SUM(NULL), MAX(NULL), MIN(NULL) FROM emp;
-- an aggregate of null by group
SELECT dept, MAX(NULL) FROM emp GROUP BY dept ORDER BY 1;
-- empty maps
SELECT typeof(map()), CAST(map() AS string), map_concat(map(), map('a', 1)), size(map()), coalesce(m, map()) FROM nest ORDER BY k;
-- an alias of a window
SELECT sum(id) OVER (ORDER BY id) s, s + 1 t FROM emp ORDER BY id;
-- distinct texts in a list
SELECT listagg(DISTINCT ev, ', ') WITHIN GROUP (ORDER BY ev) l, string_agg(ev) IS NULL FROM clicks;
-- the users with most events
SELECT user_id, count(*) FROM clicks GROUP BY user_id ORDER BY count(*) DESC, user_id LIMIT 3;
-- two aggregates as columns
SELECT * FROM (SELECT user_id, ev, amount FROM clicks) PIVOT (sum(amount) AS s, count(amount) AS c FOR ev IN ('view' AS v, 'cart')) ORDER BY user_id;
-- a null as a column
SELECT * FROM (SELECT user_id, ev, amount FROM clicks WHERE user_id IS NOT NULL) PIVOT (avg(amount) FOR ev IN ('view', 'cart', NULL)) ORDER BY user_id;
-- distances from the mean
SELECT id, amount, amount - avg(amount) OVER (PARTITION BY ev) AS d, round((amount - avg(amount) OVER (PARTITION BY ev)) / stddev(amount) OVER (PARTITION BY ev), 6) z FROM clicks WHERE id < 30 ORDER BY id;
-- events by hour and kind
SELECT date_trunc('HOUR', at) h, ev, count(*) FROM clicks GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 20;
-- net sales by month
SELECT date_format(at, 'yyyy-MM') m, sum(CASE ev WHEN 'purchase' THEN amount WHEN 'refund' THEN -amount ELSE 0 END) net FROM clicks GROUP BY m ORDER BY m;
-- a decimal of a variant
SELECT variant_get(parse_json(props), '$.price', 'decimal(5,2)') p FROM clicks WHERE id BETWEEN 1 AND 5 ORDER BY id;
-- items of variants as rows
SELECT id, pos, value FROM clicks, LATERAL variant_explode(try_parse_json(props):tags) WHERE id < 20 ORDER BY id, pos;
-- fields of variants as rows
SELECT id, key, value::string v FROM clicks, LATERAL variant_explode(try_parse_json(props)) t WHERE id < 4 ORDER BY id, key;
-- time since the last event
SELECT user_id, max(at) OVER (PARTITION BY user_id) - at AS since FROM clicks WHERE at IS NOT NULL ORDER BY since, user_id LIMIT 10;
-- a span in many units
SELECT extract(DAY FROM max(at) - min(at)) d, extract(HOUR FROM max(at) - min(at)) h, CAST(max(at) - min(at) AS string) s, (unix_timestamp(max(at)) - unix_timestamp(min(at))) / 3600 hours FROM clicks;
-- differences and sums of times
SELECT timestampdiff(SECOND, min(at), max(at)) s, timestampadd(HOUR, 5, min(at)) a, dateadd(DAY, 3, min(day)) b, datediff(max(day), min(day)) c, date_diff(WEEK, min(at), max(at)) FROM clicks;
-- lists with filters
SELECT dept, array_agg(name) FILTER (WHERE sal > 5000) a, first(name) f, last(sal, true) l FROM (SELECT * FROM emp ORDER BY id) GROUP BY dept ORDER BY dept;
-- a left join that knows nulls
SELECT d.dept, e.cnt FROM (SELECT DISTINCT dept FROM emp) d LEFT JOIN (SELECT dept, count(*) cnt FROM emp GROUP BY dept) e ON d.dept <=> e.dept ORDER BY 1;
-- a right join with a condition
SELECT a.id, b.id bid FROM emp a RIGHT JOIN emp b ON a.mgr = b.id AND a.sal > 5000 ORDER BY b.id, a.id;
-- a row that is left out
SELECT 1 WHERE false;
-- numbers as they are written
SELECT 1e3 a, 1.5e-2 b, .5 c, 5. d, 10L f, 5S g, 3Y h, 2.5F i, X'1F' j, -5 % 3 k, 5 % -3 l, -7 div 2 m, 7 / 2 n, 2 * 3 + 4 o, 2 + 3 * 4 p, NOT true AND false q, 1 = 1 AND 2 > 1 r;
-- decimals and doubles
SELECT 0.1 + 0.2 a, 1.10 * 1.10 b, 10.0 / 3 c, CAST(1 AS decimal(38, 0)) / 3 d, 1.0 / 3.0 e, 100000000000000000000 f, 0.1D + 0.2D g, CAST(0.1 AS float) + 0.2 h, 2.50 % 1.2 i, 5 div 2.0 j;
-- sums of decimals
SELECT sum(d1) a, avg(d1) b, sum(d1 * d1) c, sum(d1 / 3) d, avg(d1 * 1.5) e FROM kinds;
-- a division of long decimals
SELECT k, d2 / 3 FROM kinds WHERE k <> 4 ORDER BY k;
-- arithmetic of long decimals
SELECT k, d2 * d1, d2 + d1, d2 - 1, d2 % 7 FROM kinds WHERE k <> 4 ORDER BY k;
-- pieces of text at the edges
SELECT substr('hello', 2), substr('hello', -3, 2), substr('hello', 0, 2), substr('hello', 10), left('hello', -1), right('hello', 0), lpad('x', 0), repeat('a', 0), repeat('a', -1), space(3), rpad('abc', 2), instr('', 'a'), locate('l', 'hello', 4), ascii(''), chr(256), char(0);
-- text that is cut and joined
SELECT trim('  a b '), trim(LEADING '0' FROM '00012'), trim(TRAILING FROM 'x '), btrim('xxhixx', 'x'), ltrim('0', '0012'), rtrim('xy', 'axyxy'), translate('a-b', '-', '_'), regexp_replace('a  b', '\\s+', ' '), split('a,,b,', ','), split('a.b', '\\.'), array_join(array('a', NULL, 'b'), '-', '?'), reverse('añb'), initcap("o'neil mc-x");
-- the largest group
SELECT dept, count(*) n FROM emp GROUP BY dept HAVING n = (SELECT max(c) FROM (SELECT count(*) c FROM emp GROUP BY dept));
-- the best of each department
SELECT id FROM emp WHERE sal = (SELECT max(sal) FROM emp e2 WHERE e2.dept = emp.dept) ORDER BY id;
-- employees with two above
SELECT name FROM emp e WHERE 1 < (SELECT count(DISTINCT sal) FROM emp f WHERE f.sal > e.sal) ORDER BY name;
-- with that reads with
WITH a AS (SELECT 1 x), b AS (SELECT x + 1 y FROM a), c AS (SELECT a.x, b.y FROM a, b) SELECT * FROM c CROSS JOIN a ORDER BY 1;
-- all but a column and another
SELECT t.* EXCEPT (name), upper(name) AS name FROM emp t WHERE id = 1;
-- a column and a star
SELECT emp.id, emp.* FROM emp WHERE id = 2;
-- names in quotes
SELECT id AS `a b`, `name` FROM `emp` WHERE `id` = 3;
-- a rollup behind the keys
SELECT dept, sum(sal) FROM emp GROUP BY dept WITH ROLLUP ORDER BY dept NULLS LAST, 2;
-- keys and values of maps
SELECT transform_keys(m, (k, v) -> upper(k)), map_filter(m, (k, v) -> v IS NOT NULL), cardinality(m), map_entries(m), map_values(m), m.a, m['b'], try_element_at(m, 'c') FROM nest ORDER BY k;
-- lists that are sorted and cut
SELECT array_sort(array(3, NULL, 1)), sort_array(array('b', NULL, 'a'), false), array_sort(array(struct(2, 'b'), struct(1, 'c'))), array_max(array(1.5, NULL)), sequence(5, 1, -2), sequence(DATE'2024-01-31', DATE'2024-04-30', INTERVAL 1 MONTH), flatten(array(array(1), NULL)), array_position(array('a'), 'b'), element_at(array(1, 2), -1), get(array(1), 5), array_prepend(array(1), 0);
