-- Whole queries in Spark's SQL over the tables of query_tables.py, in the dialect of decision support: each is asked of Spark
-- (scripts/record_spark_queries.py) and answered by test_queries_recorded.py. A name follows two dashes. Rows of a query with ORDER BY at
-- its end are compared in their order, so that it must be total.
-- returns above the average of their store
WITH ctr AS (SELECT sr_customer_sk AS ctr_customer_sk, sr_store_sk AS ctr_store_sk, sum(sr_return_amt) AS ctr_total_return
  FROM store_returns, date_dim WHERE sr_returned_date_sk = d_date_sk AND d_year = 2000 GROUP BY sr_customer_sk, sr_store_sk)
SELECT c_customer_id, ctr1.ctr_total_return FROM ctr ctr1, store, customer
WHERE ctr1.ctr_total_return > (SELECT avg(ctr_total_return) * 1.2 FROM ctr ctr2 WHERE ctr1.ctr_store_sk = ctr2.ctr_store_sk)
  AND s_store_sk = ctr1.ctr_store_sk AND ctr1.ctr_customer_sk = c_customer_sk
ORDER BY c_customer_id, ctr_total_return LIMIT 100;
-- weeks of two years side by side
WITH wscs AS (SELECT sold_date_sk, sales_price FROM (SELECT ws_sold_date_sk sold_date_sk, ws_ext_sales_price sales_price FROM web_sales
    UNION ALL SELECT cs_sold_date_sk, cs_ext_sales_price FROM catalog_sales)),
 wswscs AS (SELECT d_week_seq, sum(CASE WHEN d_day_name = 'Sunday' THEN sales_price ELSE NULL END) sun_sales,
    sum(CASE WHEN d_day_name = 'Monday' THEN sales_price ELSE NULL END) mon_sales
    FROM wscs, date_dim WHERE d_date_sk = sold_date_sk GROUP BY d_week_seq)
SELECT y.d_week_seq, round(y.sun_sales / z.mon_sales, 2) r FROM wswscs y, wswscs z WHERE y.d_week_seq < z.d_week_seq AND z.mon_sales <> 0
ORDER BY 1, 2 LIMIT 30;
-- brand by month
SELECT dt.d_year, item.i_brand_id brand_id, item.i_brand brand, sum(ss_ext_sales_price) sum_agg FROM date_dim dt, store_sales, item
WHERE dt.d_date_sk = store_sales.ss_sold_date_sk AND store_sales.ss_item_sk = item.i_item_sk AND dt.d_moy IN (3, 11, 12)
GROUP BY dt.d_year, item.i_brand, item.i_brand_id ORDER BY dt.d_year, sum_agg DESC, brand_id LIMIT 100;
-- growth of customers across channels
WITH year_total AS (
  SELECT c_customer_id customer_id, d_year dyear, sum(ss_net_profit) year_total, 's' sale_type FROM customer, store_sales, date_dim
  WHERE c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk GROUP BY c_customer_id, d_year
  UNION ALL
  SELECT c_customer_id, d_year, sum(ws_net_profit), 'w' FROM customer, web_sales, date_dim
  WHERE c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk GROUP BY c_customer_id, d_year)
SELECT s.customer_id, s.dyear, s.year_total, w.year_total FROM year_total s JOIN year_total w
  ON s.customer_id = w.customer_id AND s.dyear = w.dyear AND s.sale_type = 's' AND w.sale_type = 'w'
WHERE CASE WHEN s.year_total > 0 THEN w.year_total / s.year_total ELSE NULL END > -5 ORDER BY 1, 2;
-- rollup over channels
WITH ssr AS (SELECT s_store_id, sum(ss_ext_sales_price) AS sales, sum(ss_net_profit) AS profit FROM store_sales, store
    WHERE ss_store_sk = s_store_sk GROUP BY s_store_id),
 wsr AS (SELECT ws_warehouse_sk, sum(ws_ext_sales_price) AS sales, sum(ws_net_profit) AS profit FROM web_sales GROUP BY ws_warehouse_sk)
SELECT channel, id, sum(sales) AS sales, sum(profit) AS profit FROM (
  SELECT 'store channel' AS channel, concat('store', s_store_id) AS id, sales, profit FROM ssr
  UNION ALL SELECT 'web channel' AS channel, concat('web', ws_warehouse_sk) AS id, sales, profit FROM wsr) x
GROUP BY ROLLUP (channel, id) ORDER BY channel, id, sales, profit LIMIT 100;
-- items above the average of their category
SELECT a.ca_state state, count(*) cnt FROM customer_address a, customer c, store_sales s, date_dim d, item i
WHERE a.ca_address_sk = c.c_current_addr_sk AND c.c_customer_sk = s.ss_customer_sk AND s.ss_sold_date_sk = d.d_date_sk
  AND s.ss_item_sk = i.i_item_sk AND i.i_current_price > 0.8 * (SELECT avg(j.i_current_price) FROM item j WHERE j.i_category = i.i_category)
GROUP BY a.ca_state HAVING count(*) >= 1 ORDER BY cnt, a.ca_state LIMIT 100;
-- averages by item
SELECT i_item_id, avg(ss_quantity) agg1, avg(ss_sales_price) agg2, avg(ss_coupon_amt) agg3 FROM store_sales, item
WHERE ss_item_sk = i_item_sk GROUP BY i_item_id ORDER BY i_item_id LIMIT 100;
-- intersect of zips
SELECT s_store_name, sum(ss_net_profit) FROM store_sales, store,
  (SELECT ca_zip FROM (SELECT substr(ca_zip, 1, 5) ca_zip FROM customer_address WHERE substr(ca_zip, 1, 5) IN ('24000', '24037', '24111')
    INTERSECT SELECT ca_zip FROM (SELECT substr(ca_zip, 1, 5) ca_zip, count(*) cnt FROM customer_address, customer
      WHERE ca_address_sk = c_current_addr_sk GROUP BY ca_zip HAVING count(*) >= 1) a1) a2) v1
WHERE ss_store_sk = s_store_sk AND substr(v1.ca_zip, 1, 2) = '24' GROUP BY s_store_name ORDER BY s_store_name;
-- buckets by scalar subqueries
SELECT CASE WHEN (SELECT count(*) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20) > 5
    THEN (SELECT avg(ss_ext_sales_price) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20)
    ELSE (SELECT avg(ss_net_profit) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20) END bucket1,
  CASE WHEN (SELECT count(*) FROM store_sales WHERE ss_quantity BETWEEN 21 AND 40) > 500
    THEN (SELECT avg(ss_ext_sales_price) FROM store_sales) ELSE (SELECT min(ss_net_profit) FROM store_sales) END bucket2
FROM store WHERE s_store_sk = 1;
-- exists in or
SELECT c_first_name, c_last_name, count(*) cnt1 FROM customer c, customer_address ca WHERE c.c_current_addr_sk = ca.ca_address_sk
  AND EXISTS (SELECT * FROM store_sales, date_dim WHERE c.c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2000)
  AND (EXISTS (SELECT * FROM web_sales, date_dim WHERE c.c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk AND d_moy < 6)
    OR EXISTS (SELECT * FROM catalog_sales, date_dim WHERE c.c_customer_sk = cs_bill_customer_sk AND cs_sold_date_sk = d_date_sk))
GROUP BY c_first_name, c_last_name ORDER BY c_first_name, c_last_name;
-- share of class
SELECT i_item_id, i_category, i_class, sum(ws_ext_sales_price) AS itemrevenue,
  sum(ws_ext_sales_price) * 100 / sum(sum(ws_ext_sales_price)) OVER (PARTITION BY i_class) AS revenueratio
FROM web_sales, item WHERE ws_item_sk = i_item_sk GROUP BY i_item_id, i_category, i_class
ORDER BY i_category, i_class, i_item_id, itemrevenue, revenueratio;
-- disjunctions over joins
SELECT avg(ss_quantity), avg(ss_ext_sales_price), sum(ss_net_profit) FROM store_sales, store, customer
WHERE s_store_sk = ss_store_sk AND ss_customer_sk = c_customer_sk
  AND ((c_birth_country = 'CHILE' AND ss_sales_price BETWEEN 10.00 AND 150.00) OR (c_birth_country = 'JAPAN' AND ss_sales_price > 100.00));
-- three channels with intersect
WITH cross_items AS (SELECT i_item_sk ss_item_sk FROM item, (SELECT iss.i_brand_id brand_id, iss.i_class cls FROM store_sales, item iss
      WHERE ss_item_sk = iss.i_item_sk INTERSECT SELECT ics.i_brand_id, ics.i_class FROM catalog_sales, item ics WHERE cs_item_sk = ics.i_item_sk
      INTERSECT SELECT iws.i_brand_id, iws.i_class FROM web_sales, item iws WHERE ws_item_sk = iws.i_item_sk)
    WHERE i_brand_id = brand_id AND i_class = cls),
 avg_sales AS (SELECT avg(quantity * list_price) average_sales FROM (SELECT ss_quantity quantity, ss_sales_price list_price FROM store_sales
    UNION ALL SELECT cs_quantity, cs_sales_price FROM catalog_sales UNION ALL SELECT ws_quantity, ws_sales_price FROM web_sales) x)
SELECT channel, i_brand_id, i_class, sum(sales), sum(number_sales) FROM (
  SELECT 'store' channel, i_brand_id, i_class, sum(ss_quantity * ss_sales_price) sales, count(*) number_sales FROM store_sales, item
  WHERE ss_item_sk IN (SELECT ss_item_sk FROM cross_items) AND ss_item_sk = i_item_sk GROUP BY i_brand_id, i_class
  HAVING sum(ss_quantity * ss_sales_price) > (SELECT average_sales FROM avg_sales)
  UNION ALL SELECT 'web', i_brand_id, i_class, sum(ws_quantity * ws_sales_price), count(*) FROM web_sales, item
  WHERE ws_item_sk IN (SELECT ss_item_sk FROM cross_items) AND ws_item_sk = i_item_sk GROUP BY i_brand_id, i_class
  HAVING sum(ws_quantity * ws_sales_price) > (SELECT average_sales FROM avg_sales)) y
GROUP BY ROLLUP (channel, i_brand_id, i_class) ORDER BY channel, i_brand_id, i_class, 4 LIMIT 100;
-- orders from two warehouses and not returned
SELECT count(DISTINCT cs_order_number) AS order_count, sum(cs_ext_sales_price) AS total, sum(cs_net_profit) AS profit FROM catalog_sales cs1
WHERE EXISTS (SELECT * FROM catalog_sales cs2 WHERE cs1.cs_order_number = cs2.cs_order_number AND cs1.cs_warehouse_sk <> cs2.cs_warehouse_sk)
  AND NOT EXISTS (SELECT * FROM store_returns WHERE cs1.cs_order_number = sr_ticket_number) ORDER BY count(DISTINCT cs_order_number) LIMIT 100;
-- deviations
SELECT i_item_id, count(ss_quantity) c, round(stddev_samp(ss_quantity), 6) s, round(stddev_samp(ss_quantity) / avg(ss_quantity), 6) cov
FROM store_sales JOIN item ON i_item_sk = ss_item_sk GROUP BY i_item_id ORDER BY i_item_id;
-- rollup of geography
SELECT i_item_id, ca_country, ca_state, avg(cast(cs_quantity AS decimal(12, 2))) agg1, avg(cast(cs_sales_price AS decimal(12, 2))) agg2
FROM catalog_sales, customer, customer_address, item WHERE cs_item_sk = i_item_sk AND cs_bill_customer_sk = c_customer_sk
  AND c_current_addr_sk = ca_address_sk GROUP BY ROLLUP (i_item_id, ca_country, ca_state)
ORDER BY ca_country, ca_state, i_item_id, agg1, agg2 LIMIT 100;
-- ratios within a window without order
SELECT i_item_id, i_category, sum(cs_ext_sales_price) AS itemrevenue,
  sum(cs_ext_sales_price) * 100 / sum(sum(cs_ext_sales_price)) OVER (PARTITION BY i_category) AS ratio
FROM catalog_sales, item, date_dim WHERE cs_item_sk = i_item_sk AND cs_sold_date_sk = d_date_sk
  AND d_date BETWEEN cast('2000-02-22' AS date) AND (cast('2000-02-22' AS date) + INTERVAL 30 days)
GROUP BY i_item_id, i_category ORDER BY i_category, i_item_id, itemrevenue;
-- grouping of nulls in a hierarchy
SELECT sum(ss_net_profit) AS total_sum, s_state, s_city, grouping(s_state) + grouping(s_city) AS lochierarchy,
  rank() OVER (PARTITION BY grouping(s_state) + grouping(s_city), CASE WHEN grouping(s_city) = 0 THEN s_state END
    ORDER BY sum(ss_net_profit) DESC) AS rank_within_parent
FROM store_sales, store WHERE s_store_sk = ss_store_sk GROUP BY ROLLUP (s_state, s_city)
ORDER BY lochierarchy DESC, CASE WHEN lochierarchy = 0 THEN s_state END, rank_within_parent;
-- inventory before and after
SELECT * FROM (SELECT i_item_id, sum(CASE WHEN d_date < cast('2000-06-11' AS date) THEN ss_quantity ELSE 0 END) AS before,
    sum(CASE WHEN d_date >= cast('2000-06-11' AS date) THEN ss_quantity ELSE 0 END) AS after
  FROM store_sales, item, date_dim WHERE i_item_sk = ss_item_sk AND ss_sold_date_sk = d_date_sk GROUP BY i_item_id) x
WHERE (CASE WHEN before > 0 THEN after / before ELSE NULL END) BETWEEN 0.1 AND 9.0 ORDER BY i_item_id;
-- best customers and frequent items
WITH frequent AS (SELECT substr(i_item_id, 1, 30) itemdesc, i_item_sk item_sk, count(*) cnt FROM store_sales, item
    WHERE ss_item_sk = i_item_sk GROUP BY substr(i_item_id, 1, 30), i_item_sk HAVING count(*) > 4),
 max_store AS (SELECT max(csales) tpcds_cmax FROM (SELECT c_customer_sk, sum(ss_quantity * ss_sales_price) csales FROM store_sales, customer
    WHERE ss_customer_sk = c_customer_sk GROUP BY c_customer_sk)),
 best AS (SELECT c_customer_sk, sum(ss_quantity * ss_sales_price) ssales FROM store_sales, customer WHERE ss_customer_sk = c_customer_sk
    GROUP BY c_customer_sk HAVING sum(ss_quantity * ss_sales_price) > 0.5 * (SELECT * FROM max_store))
SELECT sum(sales) FROM (SELECT cs_quantity * cs_sales_price sales FROM catalog_sales WHERE cs_item_sk IN (SELECT item_sk FROM frequent)
    AND cs_bill_customer_sk IN (SELECT c_customer_sk FROM best)
  UNION ALL SELECT ws_quantity * ws_sales_price FROM web_sales WHERE ws_item_sk IN (SELECT item_sk FROM frequent)) x;
-- purchases with returns
SELECT i_item_id, s_store_id, sum(ss_quantity) q, sum(sr_return_quantity) rq FROM store_sales JOIN store_returns
  ON ss_customer_sk = sr_customer_sk AND ss_item_sk = sr_item_sk AND ss_ticket_number = sr_ticket_number
JOIN item ON i_item_sk = ss_item_sk LEFT JOIN store ON s_store_sk = ss_store_sk GROUP BY i_item_id, s_store_id ORDER BY i_item_id, s_store_id;
-- rollup with grouping column
SELECT i_item_id, s_state, grouping(s_state) g_state, avg(ss_quantity) agg1 FROM store_sales, store, item
WHERE ss_store_sk = s_store_sk AND ss_item_sk = i_item_sk GROUP BY ROLLUP (i_item_id, s_state) ORDER BY i_item_id, s_state, g_state LIMIT 100;
-- six averages side by side
SELECT * FROM (SELECT avg(ss_sales_price) b1_lp, count(ss_sales_price) b1_cnt, count(DISTINCT ss_sales_price) b1_cntd FROM store_sales
    WHERE ss_quantity BETWEEN 0 AND 15) b1,
  (SELECT avg(ss_sales_price) b2_lp, count(ss_sales_price) b2_cnt, count(DISTINCT ss_sales_price) b2_cntd FROM store_sales
    WHERE ss_quantity BETWEEN 16 AND 40) b2 LIMIT 100;
-- count in bands by ticket
SELECT c_last_name, c_first_name, ss_ticket_number, cnt FROM (SELECT ss_ticket_number, ss_customer_sk, count(*) cnt FROM store_sales
    GROUP BY ss_ticket_number, ss_customer_sk) dn, customer WHERE ss_customer_sk = c_customer_sk AND cnt BETWEEN 1 AND 5
ORDER BY c_last_name, c_first_name, ss_ticket_number, cnt DESC;
-- top of classes
SELECT i_class, i_category, s, rk FROM (SELECT i_class, i_category, sum(ws_net_profit) s,
    rank() OVER (PARTITION BY i_class ORDER BY sum(ws_net_profit) DESC) rk FROM web_sales, item WHERE i_item_sk = ws_item_sk
  GROUP BY i_class, i_category) WHERE rk <= 2 ORDER BY i_class, rk, i_category;
-- intersect of three channels
SELECT count(*) FROM (SELECT DISTINCT c_last_name, c_first_name FROM store_sales, customer WHERE ss_customer_sk = c_customer_sk
  INTERSECT SELECT DISTINCT c_last_name, c_first_name FROM catalog_sales, customer WHERE cs_bill_customer_sk = c_customer_sk
  INTERSECT SELECT DISTINCT c_last_name, c_first_name FROM web_sales, customer WHERE ws_bill_customer_sk = c_customer_sk) hot_cust;
-- except of two channels
SELECT count(*) FROM ((SELECT DISTINCT c_last_name FROM store_sales, customer WHERE ss_customer_sk = c_customer_sk)
  EXCEPT (SELECT DISTINCT c_last_name FROM web_sales, customer WHERE ws_bill_customer_sk = c_customer_sk)) cool_cust;
-- correlated average beside an or
SELECT sum(ws_ext_sales_price) AS excess FROM web_sales, item WHERE i_item_sk = ws_item_sk AND ws_ext_sales_price > (
  SELECT 0.5 * avg(ws_ext_sales_price) FROM web_sales, date_dim WHERE ws_item_sk = i_item_sk AND d_date_sk = ws_sold_date_sk);
-- best and worst ranks
SELECT asceding.rnk, i1.i_item_id best, i2.i_item_id worst FROM
  (SELECT * FROM (SELECT item_sk, rank() OVER (ORDER BY rank_col ASC, item_sk) rnk FROM (SELECT ss_item_sk item_sk, avg(ss_net_profit) rank_col
      FROM store_sales ss1 WHERE ss_store_sk = 1 GROUP BY ss_item_sk
      HAVING avg(ss_net_profit) > 0.9 * (SELECT avg(ss_net_profit) rank_col FROM store_sales WHERE ss_store_sk = 4 OR ss_store_sk IS NULL GROUP BY ss_store_sk)) v1) v11
    WHERE rnk < 11) asceding,
  (SELECT * FROM (SELECT item_sk, rank() OVER (ORDER BY rank_col DESC, item_sk) rnk FROM (SELECT ss_item_sk item_sk, avg(ss_net_profit) rank_col
      FROM store_sales ss1 WHERE ss_store_sk = 2 GROUP BY ss_item_sk) v2) v21 WHERE rnk < 11) descending, item i1, item i2
WHERE asceding.rnk = descending.rnk AND i1.i_item_sk = asceding.item_sk AND i2.i_item_sk = descending.item_sk ORDER BY asceding.rnk;
-- zip or item in subquery
SELECT ca_zip, sum(ws_sales_price) FROM web_sales, customer, customer_address, item WHERE ws_bill_customer_sk = c_customer_sk
  AND c_current_addr_sk = ca_address_sk AND ws_item_sk = i_item_sk AND (substr(ca_zip, 1, 5) IN ('24000', '24074')
    OR i_item_id IN (SELECT i_item_id FROM item WHERE i_item_sk IN (2, 3, 5, 7))) GROUP BY ca_zip ORDER BY ca_zip;
-- neighbours in time by rank
WITH v1 AS (SELECT i_category, i_brand, d_year, d_moy, sum(ss_sales_price) sum_sales,
    avg(sum(ss_sales_price)) OVER (PARTITION BY i_category, i_brand, d_year) avg_monthly_sales,
    rank() OVER (PARTITION BY i_category, i_brand ORDER BY d_year, d_moy) rn
  FROM item, store_sales, date_dim WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk GROUP BY i_category, i_brand, d_year, d_moy),
 v2 AS (SELECT v1.i_category, v1.i_brand, v1.d_year, v1.d_moy, v1.avg_monthly_sales, v1.sum_sales, v1_lag.sum_sales psum, v1_lead.sum_sales nsum
  FROM v1, v1 v1_lag, v1 v1_lead WHERE v1.i_category = v1_lag.i_category AND v1.i_category = v1_lead.i_category AND v1.i_brand = v1_lag.i_brand
    AND v1.i_brand = v1_lead.i_brand AND v1.rn = v1_lag.rn + 1 AND v1.rn = v1_lead.rn - 1)
SELECT * FROM v2 WHERE avg_monthly_sales > 0 AND CASE WHEN avg_monthly_sales > 0 THEN abs(sum_sales - avg_monthly_sales) / avg_monthly_sales ELSE NULL END >= 0.0
ORDER BY sum_sales - avg_monthly_sales, i_category, i_brand, d_year, d_moy;
-- return ratios with two ranks
SELECT channel, item, return_ratio, return_rank FROM (SELECT 'store' AS channel, s.item, s.return_ratio, s.return_rank FROM (
    SELECT item, return_ratio, rank() OVER (ORDER BY return_ratio, item) AS return_rank FROM (SELECT sts.ss_item_sk AS item,
      (cast(sum(coalesce(sr.sr_return_quantity, 0)) AS decimal(15, 4)) / cast(sum(coalesce(sts.ss_quantity, 0)) AS decimal(15, 4))) AS return_ratio
      FROM store_sales sts LEFT OUTER JOIN store_returns sr ON (sts.ss_ticket_number = sr.sr_ticket_number AND sts.ss_item_sk = sr.sr_item_sk)
      WHERE sts.ss_quantity > 0 GROUP BY sts.ss_item_sk) in_store) s WHERE s.return_rank <= 10) ORDER BY 1, 4, 2;
-- full join of running sums
WITH web_v1 AS (SELECT ws_item_sk item_sk, d_date, sum(sum(ws_sales_price)) OVER (PARTITION BY ws_item_sk ORDER BY d_date
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) cume_sales FROM web_sales, date_dim WHERE ws_sold_date_sk = d_date_sk GROUP BY ws_item_sk, d_date),
 store_v1 AS (SELECT ss_item_sk item_sk, d_date, sum(sum(ss_sales_price)) OVER (PARTITION BY ss_item_sk ORDER BY d_date
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) cume_sales FROM store_sales, date_dim WHERE ss_sold_date_sk = d_date_sk GROUP BY ss_item_sk, d_date)
SELECT * FROM (SELECT item_sk, d_date, web_sales, store_sales,
    max(web_sales) OVER (PARTITION BY item_sk ORDER BY d_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) web_cumulative,
    max(store_sales) OVER (PARTITION BY item_sk ORDER BY d_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) store_cumulative
  FROM (SELECT CASE WHEN web.item_sk IS NOT NULL THEN web.item_sk ELSE store.item_sk END item_sk,
      CASE WHEN web.d_date IS NOT NULL THEN web.d_date ELSE store.d_date END d_date, web.cume_sales web_sales, store.cume_sales store_sales
    FROM web_v1 web FULL OUTER JOIN store_v1 store ON (web.item_sk = store.item_sk AND web.d_date = store.d_date)) x) y
WHERE web_cumulative > store_cumulative ORDER BY item_sk, d_date LIMIT 100;
-- monthly deviations
SELECT * FROM (SELECT i_manufact_id, sum(ss_sales_price) sum_sales, avg(sum(ss_sales_price)) OVER (PARTITION BY i_manufact_id) avg_quarterly_sales
  FROM item, store_sales, date_dim WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk GROUP BY i_manufact_id, d_qoy) tmp1
WHERE CASE WHEN avg_quarterly_sales > 0 THEN abs(sum_sales - avg_quarterly_sales) / avg_quarterly_sales ELSE NULL END > 0.1
ORDER BY avg_quarterly_sales, sum_sales, i_manufact_id;
-- segments of revenue
WITH my_revenue AS (SELECT c_customer_sk, sum(ss_ext_sales_price) AS revenue FROM store_sales, customer WHERE c_customer_sk = ss_customer_sk GROUP BY c_customer_sk),
 segments AS (SELECT cast((revenue / 500) AS int) AS segment FROM my_revenue)
SELECT segment, count(*) AS num_customers, segment * 50 AS segment_base FROM segments GROUP BY segment ORDER BY segment, num_customers;
-- days of the week in columns
SELECT s_store_name, sum(CASE WHEN (d_day_name = 'Sunday') THEN ss_sales_price ELSE NULL END) sun, sum(CASE WHEN (d_day_name = 'Friday') THEN ss_sales_price END) fri
FROM date_dim, store_sales, store WHERE d_date_sk = ss_sold_date_sk AND s_store_sk = ss_store_sk GROUP BY s_store_name ORDER BY s_store_name;
-- ranks over eight keys of a rollup
SELECT * FROM (SELECT i_category, i_class, i_brand, d_year, sumsales, rank() OVER (PARTITION BY i_category ORDER BY sumsales DESC) rk
  FROM (SELECT i_category, i_class, i_brand, d_year, sum(coalesce(ss_sales_price * ss_quantity, 0)) sumsales FROM store_sales, date_dim, item
    WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk GROUP BY ROLLUP (i_category, i_class, i_brand, d_year)) dw1) dw2
WHERE rk <= 4 ORDER BY i_category, i_class, i_brand, d_year, sumsales, rk LIMIT 100;
-- states in a ranked subquery
SELECT sum(ss_net_profit) AS total, s_state, grouping(s_state) AS g FROM store_sales, store WHERE s_store_sk = ss_store_sk
  AND s_state IN (SELECT s_state FROM (SELECT s_state AS s_state, rank() OVER (PARTITION BY s_state ORDER BY sum(ss_net_profit) DESC) AS ranking
    FROM store_sales, store WHERE s_store_sk = ss_store_sk GROUP BY s_state) tmp1 WHERE ranking <= 5) GROUP BY ROLLUP (s_state) ORDER BY g, s_state;
-- union of three channels with nulls
SELECT channel, col_name, d_year, i_category, count(*) sales_cnt, sum(ext_sales_price) sales_amt FROM (
  SELECT 'store' AS channel, 'ss_store_sk' col_name, d_year, i_category, ss_ext_sales_price ext_sales_price FROM store_sales, item, date_dim
    WHERE ss_store_sk IS NULL AND ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk
  UNION ALL SELECT 'web', 'ws_warehouse_sk', d_year, i_category, ws_ext_sales_price FROM web_sales, item, date_dim
    WHERE ws_warehouse_sk IS NULL AND ws_sold_date_sk = d_date_sk AND ws_item_sk = i_item_sk) foo
GROUP BY channel, col_name, d_year, i_category ORDER BY channel, col_name, d_year, i_category;
-- left join that keeps the unreturned
WITH ss AS (SELECT d_year AS ss_sold_year, ss_item_sk, ss_customer_sk, sum(ss_quantity) ss_qty FROM store_sales
    LEFT JOIN store_returns ON sr_ticket_number = ss_ticket_number AND ss_item_sk = sr_item_sk JOIN date_dim ON ss_sold_date_sk = d_date_sk
    WHERE sr_ticket_number IS NULL GROUP BY d_year, ss_item_sk, ss_customer_sk)
SELECT ss_sold_year, ss_item_sk, ss_customer_sk, round(ss_qty / (coalesce(ss_qty, 0) + 1), 2) ratio FROM ss WHERE coalesce(ss_qty, 0) > 0
ORDER BY ss_sold_year, ss_item_sk, ss_customer_sk, ratio;
-- returns against the state's average
WITH customer_total_return AS (SELECT sr_customer_sk AS ctr_customer_sk, ca_state AS ctr_state, sum(sr_return_amt) AS ctr_total_return
  FROM store_returns, customer, customer_address WHERE sr_customer_sk = c_customer_sk AND c_current_addr_sk = ca_address_sk
  GROUP BY sr_customer_sk, ca_state)
SELECT c_customer_id, ctr_state, ctr_total_return FROM customer_total_return ctr1, customer WHERE ctr1.ctr_total_return > (
    SELECT avg(ctr_total_return) * 0.9 FROM customer_total_return ctr2 WHERE ctr1.ctr_state = ctr2.ctr_state) AND ctr1.ctr_customer_sk = c_customer_sk
ORDER BY c_customer_id, ctr_state, ctr_total_return;
-- distinct of an exists with or
SELECT DISTINCT i_item_id FROM item i1 WHERE i_manufact_id BETWEEN 100 AND 900 AND (SELECT count(*) AS item_cnt FROM item
  WHERE (i_manufact_id = i1.i_manufact_id AND ((i_category = 'Books' AND i_color IN ('red', 'powder')) OR (i_category = 'Music' AND i_color = 'green')))) > 0
ORDER BY i_item_id;
-- top of each group by qualify
SELECT i_category, i_item_id, i_current_price FROM item QUALIFY row_number() OVER (PARTITION BY i_category ORDER BY i_current_price DESC NULLS LAST, i_item_id) <= 2
ORDER BY i_category, i_current_price, i_item_id;
-- windows: every rank
SELECT i_item_sk, row_number() OVER w rn, rank() OVER w rk, dense_rank() OVER w dr, percent_rank() OVER w pr, cume_dist() OVER w cd, ntile(3) OVER w nt
FROM item WINDOW w AS (PARTITION BY i_class ORDER BY i_manufact_id, i_color) QUALIFY rn >= 1 ORDER BY i_item_sk;
-- windows: ranks of unordered rows are the same
SELECT i_item_sk, rank() OVER (ORDER BY i_manufact_id) rk, dense_rank() OVER (ORDER BY i_manufact_id DESC) dr FROM item ORDER BY i_item_sk;
-- windows: lag and lead
SELECT i_item_sk, lag(i_color) OVER (ORDER BY i_item_sk) a, lag(i_color, 2) OVER (ORDER BY i_item_sk) b, lead(i_color, 1, 'none') OVER (ORDER BY i_item_sk) c,
  lead(i_item_sk, -1) OVER (ORDER BY i_item_sk) d, lag(i_color, 1) IGNORE NULLS OVER (ORDER BY i_item_sk) e FROM item ORDER BY i_item_sk;
-- windows: default of lag in another type
SELECT i_item_sk, lag(i_current_price, 1, 0) OVER (ORDER BY i_item_sk) a, lead(i_item_sk, 1, 1.5) OVER (ORDER BY i_item_sk) b FROM item ORDER BY 1;
-- windows: first and last values
SELECT i_item_sk, first_value(i_color) OVER w a, last_value(i_color) OVER w b, first_value(i_color, true) OVER w c, nth_value(i_color, 2) OVER w d,
  last(i_color) IGNORE NULLS OVER w e, first(i_color) OVER w f FROM item WINDOW w AS (PARTITION BY i_class ORDER BY i_item_sk) ORDER BY i_item_sk;
-- windows: frames of rows
SELECT ss_ticket_number, ss_item_sk, sum(ss_quantity) OVER (ORDER BY ss_ticket_number, ss_item_sk, ss_quantity, ss_sales_price ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) a,
  count(*) OVER (ORDER BY ss_ticket_number, ss_item_sk, ss_quantity, ss_sales_price ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) b,
  min(ss_net_profit) OVER (PARTITION BY ss_store_sk ORDER BY ss_ticket_number, ss_item_sk, ss_quantity, ss_sales_price ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) c,
  max(ss_net_profit) OVER (ORDER BY ss_ticket_number, ss_item_sk, ss_quantity, ss_sales_price ROWS 3 PRECEDING) d
FROM store_sales ORDER BY 1, 2, 3, 4, 5, 6;
-- windows: frames of ranges
SELECT d_date_sk, sum(d_moy) OVER (ORDER BY d_date_sk RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING) a, count(*) OVER (ORDER BY d_year, d_moy) b,
  count(*) OVER (PARTITION BY d_year ORDER BY d_qoy RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) c FROM date_dim ORDER BY d_date_sk;
-- windows: ranges of days
SELECT d_date, count(*) OVER (ORDER BY d_date RANGE BETWEEN INTERVAL 20 DAYS PRECEDING AND CURRENT ROW) a,
  count(*) OVER (ORDER BY d_date RANGE BETWEEN 9 PRECEDING AND 9 FOLLOWING) b, count(*) OVER (ORDER BY d_date DESC RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) c
FROM date_dim ORDER BY d_date;
-- windows: ranges of hours
SELECT id, count(*) OVER (ORDER BY at RANGE BETWEEN INTERVAL 10 HOURS PRECEDING AND INTERVAL 10 HOURS FOLLOWING) n FROM events ORDER BY id;
-- windows: ranges over nulls
SELECT ss_quantity, sum(ss_quantity) OVER (ORDER BY ss_quantity RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING) s, count(*) OVER (ORDER BY ss_quantity DESC NULLS FIRST RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) c
FROM store_sales ORDER BY 1, 2, 3;
-- windows: ranges of decimals
SELECT i_current_price, count(*) OVER (ORDER BY i_current_price RANGE BETWEEN 10.00 PRECEDING AND 10.00 FOLLOWING) c FROM item ORDER BY 1, 2;
-- windows: floats and nans
SELECT id, rank() OVER (ORDER BY score) r, count(*) OVER (PARTITION BY score) c, sum(id) OVER (ORDER BY score DESC) s FROM events ORDER BY id;
-- windows: every aggregate
SELECT i_item_sk, sum(i_current_price) OVER w a, avg(i_current_price) OVER w b, avg(i_item_sk) OVER w c, count(i_color) OVER w d, min(i_color) OVER w e,
  count_if(i_color = 'red') OVER w f, bool_and(i_item_sk > 3) OVER w g, collect_list(i_color) OVER w h, sum(i_item_sk) FILTER (WHERE i_color = 'red') OVER w i,
  round(stddev(i_item_sk) OVER w, 9) j, any(i_item_sk > 3) OVER w k, size(collect_set(i_color) OVER w) l
FROM item WINDOW w AS (PARTITION BY i_class ORDER BY i_item_sk ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) ORDER BY i_item_sk;
-- windows: several over one group
SELECT d_year, d_moy, count(*) c, sum(count(*)) OVER (PARTITION BY d_year ORDER BY d_moy) running, lag(count(*)) OVER (ORDER BY d_year, d_moy) before,
  max(d_moy) OVER () m, first_value(count(*)) OVER (PARTITION BY d_year ORDER BY d_moy DESC) last FROM date_dim GROUP BY d_year, d_moy ORDER BY 1, 2;
-- windows: over DISTINCT
SELECT DISTINCT i_class, count(*) OVER (PARTITION BY i_class) c FROM item ORDER BY 1;
-- windows: expressions around
SELECT i_item_sk, coalesce(i_current_price - lag(i_current_price) OVER (ORDER BY i_item_sk), 0) d, CASE WHEN rank() OVER (ORDER BY i_item_sk) > 3 THEN 'x' ELSE 'y' END e
FROM item ORDER BY i_item_sk;
-- windows: of windows in a subquery
SELECT i_class, max(rn) FROM (SELECT i_class, row_number() OVER (PARTITION BY i_class ORDER BY i_item_sk) rn FROM item) GROUP BY i_class ORDER BY 1;
-- windows: islands and gaps
SELECT grp, min(d_date_sk) a, max(d_date_sk) b FROM (SELECT d_date_sk, d_date_sk - row_number() OVER (ORDER BY d_date_sk) grp FROM date_dim
  WHERE d_date_sk IN (SELECT ss_sold_date_sk FROM store_sales)) GROUP BY grp ORDER BY grp;
-- windows: without a name
SELECT i_item_sk, sum(i_item_sk) OVER (PARTITION BY i_class ORDER BY i_item_sk), rank() OVER (ORDER BY i_class), lag(i_class) OVER (ORDER BY i_item_sk DESC NULLS LAST) FROM item ORDER BY 1;
-- windows: unnamed frames
SELECT count(*) OVER (ORDER BY i_item_sk ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), max(i_item_sk) OVER () FROM item ORDER BY 1, 2;
-- windows: names of the others
SELECT row_number() OVER (ORDER BY i_item_sk), dense_rank() OVER (PARTITION BY i_class, i_color ORDER BY i_item_sk), percent_rank() OVER (ORDER BY i_item_sk), cume_dist() OVER (ORDER BY i_item_sk), ntile(3) OVER (ORDER BY i_item_sk),
  lead(i_class, 2, 'x') OVER (ORDER BY i_item_sk), lag(i_class) IGNORE NULLS OVER (ORDER BY i_item_sk), first_value(i_class) OVER (ORDER BY i_item_sk), last_value(i_color, true) OVER (ORDER BY i_item_sk), nth_value(i_class, 2) OVER (ORDER BY i_item_sk),
  first(i_color) IGNORE NULLS OVER (ORDER BY i_item_sk), any_value(i_class) OVER (ORDER BY i_item_sk) FROM item ORDER BY 1 LIMIT 3;
-- windows: names of frames
SELECT sum(i_item_sk) OVER (ORDER BY i_item_sk RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING), count(*) OVER (PARTITION BY i_class), sum(i_item_sk) FILTER (WHERE i_color = 'red') OVER (ORDER BY i_item_sk DESC), sum(sum(i_item_sk)) OVER (ORDER BY i_item_sk ROWS 2 PRECEDING) FROM item GROUP BY i_item_sk, i_class, i_color ORDER BY 1 LIMIT 3;
-- windows: names by a range of days
SELECT count(*) OVER (ORDER BY d_date RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 2 DAYS FOLLOWING) FROM date_dim LIMIT 1;
-- windows: rank without order
SELECT rank() OVER (PARTITION BY i_class) FROM item;
-- windows: in WHERE
SELECT i_item_sk FROM item WHERE rank() OVER (ORDER BY i_item_sk) = 1;
-- windows: of a window
SELECT sum(rank() OVER (ORDER BY i_item_sk)) OVER () FROM item;
-- windows: distinct
SELECT count(DISTINCT i_class) OVER () FROM item;
-- windows: unknown name
SELECT count(*) OVER nowhere FROM item;
-- windows: frame of a rank
SELECT rank() OVER (ORDER BY i_item_sk ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM item;
-- subquery: scalar in the list
SELECT s_store_sk, (SELECT count(*) FROM store_sales WHERE ss_store_sk = s_store_sk) n, (SELECT max(ss_net_profit) FROM store_sales WHERE ss_store_sk = s_store_sk) m FROM store ORDER BY 1;
-- subquery: count of none is zero
SELECT i_item_sk, (SELECT count(*) FROM store_returns WHERE sr_item_sk = i_item_sk AND sr_return_quantity > 8) n, (SELECT sum(sr_return_quantity) FROM store_returns WHERE sr_item_sk = i_item_sk AND sr_return_quantity > 8) s FROM item ORDER BY 1;
-- subquery: within expressions
SELECT i_item_sk, coalesce((SELECT sum(ss_quantity) FROM store_sales WHERE ss_item_sk = i_item_sk), 0) + 1 n, i_current_price > (SELECT avg(i_current_price) FROM item) b FROM item ORDER BY 1;
-- subquery: two levels
SELECT c_customer_sk FROM customer c WHERE EXISTS (SELECT 1 FROM store_sales s WHERE s.ss_customer_sk = c.c_customer_sk
  AND s.ss_quantity > (SELECT avg(ss_quantity) FROM store_sales t WHERE t.ss_item_sk = s.ss_item_sk)) ORDER BY 1;
-- subquery: in HAVING
SELECT ss_store_sk, count(*) c FROM store_sales GROUP BY ss_store_sk HAVING count(*) > (SELECT count(*) / 4 FROM store_sales) ORDER BY 1;
-- subquery: in HAVING by a key
SELECT ss_store_sk, count(*) c FROM store_sales x GROUP BY ss_store_sk HAVING count(*) > (SELECT count(*) FROM store_returns WHERE sr_store_sk = x.ss_store_sk) ORDER BY 1;
-- subquery: not in with nulls
SELECT c_customer_sk FROM customer WHERE c_customer_sk NOT IN (SELECT ss_customer_sk FROM store_sales) ORDER BY 1;
-- subquery: not in without nulls
SELECT c_customer_sk FROM customer WHERE c_customer_sk NOT IN (SELECT ss_customer_sk FROM store_sales WHERE ss_customer_sk IS NOT NULL AND ss_quantity > 20) ORDER BY 1;
-- subquery: in of nulls
SELECT ca_address_sk, ca_state IN (SELECT s_state FROM store) a, ca_state NOT IN (SELECT s_state FROM store WHERE s_state IS NOT NULL) b FROM customer_address ORDER BY 1;
-- subquery: in by the row around
SELECT i_item_sk FROM item WHERE i_color IN (SELECT j.i_color FROM item j WHERE j.i_class = item.i_class AND j.i_item_sk <> item.i_item_sk) ORDER BY 1;
-- subquery: not in by the row around
SELECT i_item_sk FROM item WHERE i_color NOT IN (SELECT j.i_color FROM item j WHERE j.i_class = item.i_class AND j.i_item_sk <> item.i_item_sk) ORDER BY 1;
-- subquery: in of pairs
SELECT ss_ticket_number, ss_item_sk FROM store_sales WHERE (ss_ticket_number, ss_item_sk) IN (SELECT sr_ticket_number, sr_item_sk FROM store_returns) ORDER BY 1, 2;
-- subquery: not in of pairs
SELECT c_customer_sk, c_birth_year FROM customer WHERE (c_first_name, c_last_name) NOT IN (SELECT c_first_name, c_last_name FROM customer WHERE c_birth_year > 1960) ORDER BY 1;
-- subquery: in of another type
SELECT i_item_sk FROM item WHERE i_item_sk IN (SELECT cast(ss_quantity AS bigint) FROM store_sales) AND i_item_sk IN (SELECT cast(ss_item_sk AS string) FROM store_sales) ORDER BY 1;
-- subquery: in of floats
SELECT id FROM events WHERE score IN (SELECT score FROM events WHERE id > 1) ORDER BY 1;
-- subquery: exists of nothing
SELECT count(*) FROM store WHERE EXISTS (SELECT 1 FROM item WHERE 1 = 0) OR NOT EXISTS (SELECT NULL FROM item);
-- subquery: exists with limit
SELECT s_store_sk FROM store WHERE EXISTS (SELECT 1 FROM store_sales WHERE ss_store_sk = s_store_sk LIMIT 1) ORDER BY 1;
-- subquery: exists in the list
SELECT s_store_sk, EXISTS (SELECT 1 FROM store_returns WHERE sr_store_sk = s_store_sk AND sr_return_quantity > 8) e FROM store ORDER BY 1;
-- subquery: unequal correlation
SELECT s_store_sk FROM store WHERE NOT EXISTS (SELECT 1 FROM store s2 WHERE s2.s_number_employees > store.s_number_employees) ORDER BY 1;
-- subquery: in a CASE
SELECT i_item_sk, CASE WHEN i_item_sk IN (SELECT sr_item_sk FROM store_returns) THEN 'returned' WHEN EXISTS (SELECT 1 FROM web_sales WHERE ws_item_sk = i_item_sk) THEN 'web' ELSE 'none' END c FROM item ORDER BY 1;
-- subquery: in an aggregate
SELECT sum(CASE WHEN ss_item_sk IN (SELECT i_item_sk FROM item WHERE i_category = 'Books') THEN ss_quantity ELSE 0 END) s, count(*) c FROM store_sales;
-- subquery: in a join condition
SELECT count(*) FROM store_sales JOIN item ON ss_item_sk = i_item_sk AND ss_item_sk IN (SELECT sr_item_sk FROM store_returns);
-- subquery: too many rows
SELECT (SELECT i_item_sk FROM item) FROM store;
-- subquery: too many columns
SELECT (SELECT i_item_sk, i_class FROM item WHERE i_item_sk = 1) FROM store;
-- subquery: no such column anywhere
SELECT s_store_sk FROM store WHERE EXISTS (SELECT 1 FROM item WHERE i_item_sk = nothing);
-- subquery: inner names come first
SELECT s_store_sk, (SELECT max(s_store_sk) FROM store) m FROM store ORDER BY 1;
-- lateral: of the row before
SELECT s_store_id, q.n, q.p FROM store, LATERAL (SELECT count(*) n, sum(ss_net_profit) p FROM store_sales WHERE ss_store_sk = s_store_sk) q ORDER BY 1;
-- lateral: top of each
SELECT s_store_id, q.ss_ticket_number FROM store LEFT JOIN LATERAL (SELECT ss_ticket_number FROM store_sales WHERE ss_store_sk = s_store_sk ORDER BY ss_ticket_number DESC LIMIT 2) q ON true ORDER BY 1, 2;
-- lateral: an alias for an expression
SELECT x, y FROM (SELECT 1 AS a) JOIN LATERAL (SELECT a + 1 AS x) JOIN LATERAL (SELECT x * 10 AS y);
-- lateral: explode in FROM
SELECT id, t FROM events, LATERAL explode(tags) AS e(t) ORDER BY 1, 2;
-- lateral view: explode
SELECT id, t FROM events LATERAL VIEW explode(tags) x AS t ORDER BY 1, 2;
-- lateral view: outer
SELECT id, t FROM events LATERAL VIEW OUTER explode(tags) x AS t ORDER BY 1, 2;
-- lateral view: with positions
SELECT id, p, t FROM events LATERAL VIEW posexplode(tags) x AS p, t WHERE p >= 0 ORDER BY 1, 2;
-- lateral view: of a map
SELECT id, k, v FROM events LATERAL VIEW OUTER explode(attrs) x AS k, v ORDER BY 1, 2;
-- lateral view: inline
SELECT id, sku, qty FROM events LATERAL VIEW OUTER inline(items) x AS sku, qty ORDER BY 1, 2;
-- lateral view: one after the other
SELECT id, t, sku FROM events LATERAL VIEW explode(tags) x AS t LATERAL VIEW explode(items.sku) y AS sku ORDER BY 1, 2, 3;
-- lateral view: of what it made
SELECT id, e.qty FROM events LATERAL VIEW explode(items) x AS e WHERE e.sku = 'p' ORDER BY 1;
-- lateral view: grouped
SELECT t, count(*) c FROM events LATERAL VIEW explode(tags) x AS t GROUP BY t ORDER BY 1;
-- lateral view: qualified star
SELECT x.*, id FROM events LATERAL VIEW posexplode(tags) x AS p, t ORDER BY id, p;
-- generator: in the list
SELECT id, explode(tags) FROM events ORDER BY 1, 2;
-- generator: with an alias
SELECT id, explode_outer(tags) AS t FROM events ORDER BY 1, 2;
-- generator: several columns
SELECT id, posexplode(tags) AS (p, t) FROM events ORDER BY 1, 2;
-- generator: a map
SELECT id, explode(attrs) FROM events ORDER BY 1, 2;
-- generator: inline outer
SELECT id, inline_outer(items) FROM events ORDER BY 1, 2;
-- generator: stack
SELECT stack(3, 'a', 1, 'b', 2, 'c') FROM store WHERE s_store_sk = 1;
-- generator: over an aggregate
SELECT i_class, explode(sort_array(collect_set(i_color))) c FROM item GROUP BY i_class ORDER BY 1, 2;
-- generator: two of them
SELECT explode(tags), explode(tags) FROM events;
-- generator: in an expression
SELECT 1 + explode(array(1, 2)) FROM store;
-- table function: range
SELECT id, id * 2 AS b FROM range(5) WHERE id > 1 ORDER BY 1;
-- table function: range with steps
SELECT r.id FROM range(10, 1, -3) AS r ORDER BY 1;
-- table function: explode
SELECT * FROM explode(array(10, 20)) AS t(x) ORDER BY x;
-- table function: a calendar
SELECT date_add(date '2024-01-01', cast(id AS int)) d FROM range(0, 3) ORDER BY 1;
-- grouping: cube
SELECT i_category, i_class, count(*) c, grouping_id() g, grouping(i_class) gc FROM item GROUP BY CUBE (i_category, i_class) ORDER BY g, i_category, i_class;
-- grouping: sets
SELECT i_category, i_class, i_color, count(*) c, grouping_id(i_color, i_class) g FROM item GROUP BY GROUPING SETS ((i_category, i_class), (i_color), ()) ORDER BY g, i_category, i_class, i_color;
-- grouping: sets behind keys
SELECT i_category, i_class, sum(i_item_sk) s FROM item GROUP BY i_category, i_class GROUPING SETS ((i_category, i_class), i_category) ORDER BY 1, 2, 3;
-- grouping: with rollup
SELECT i_category, i_class, sum(i_item_sk) s FROM item GROUP BY i_category, i_class WITH ROLLUP ORDER BY 1, 2, 3;
-- grouping: mixed
SELECT d_year, d_qoy, d_moy, count(*) c FROM date_dim GROUP BY d_year, ROLLUP (d_qoy, d_moy) ORDER BY 1, 2, 3, 4;
-- grouping: pairs in a rollup
SELECT d_year, d_qoy, d_moy, count(*) c FROM date_dim GROUP BY ROLLUP ((d_year, d_qoy), d_moy) ORDER BY 1, 2, 3, 4;
-- grouping: of expressions
SELECT i_item_sk % 3 AS m, upper(i_class) u, count(*) c FROM item GROUP BY ROLLUP (i_item_sk % 3, upper(i_class)) ORDER BY 1, 2, 3;
-- grouping: aggregate of a key
SELECT i_class, sum(length(i_class)) s, max(i_class) m FROM item GROUP BY ROLLUP (i_class) ORDER BY 1, 2;
-- grouping: having a level
SELECT i_category, i_class, count(*) c FROM item GROUP BY CUBE (i_category, i_class) HAVING grouping(i_category) = 1 ORDER BY 1, 2;
-- grouping: of the empty set
SELECT count(*) c, sum(i_item_sk) s FROM item GROUP BY ();
-- grouping: of nothing by a rollup
SELECT i_class, count(*) c FROM item WHERE 1 = 0 GROUP BY ROLLUP (i_class);
-- grouping: grouping without sets
SELECT grouping(i_class) FROM item GROUP BY i_class;
-- grouping: all
SELECT i_class, upper(i_category) c, count(*) n, max(i_item_sk) + 1 m FROM item GROUP BY ALL ORDER BY ALL;
-- grouping: by position and alias
SELECT substr(i_brand, 1, 5) b, i_class, count(*) FROM item GROUP BY b, 2 ORDER BY 1, 2;
-- grouping: alias and column of one name
SELECT upper(i_class) AS i_class, count(*) c FROM item GROUP BY i_class ORDER BY 1;
-- grouping: having an alias
SELECT i_class, count(*) AS n FROM item GROUP BY i_class HAVING n > 4 AND max(i_item_sk) > 1 ORDER BY i_class;
-- grouping: having without group
SELECT max(i_item_sk) m FROM item HAVING count(*) > 3;
-- grouping: having alone
SELECT 1 AS one FROM item HAVING max(i_item_sk) > 1000;
-- grouping: order by another aggregate
SELECT i_class FROM item GROUP BY i_class ORDER BY sum(i_item_sk) DESC, i_class;
-- grouping: order by an expression of aliases
SELECT i_class, count(*) n, max(i_item_sk) m FROM item GROUP BY i_class ORDER BY n + m DESC, i_class;
-- grouping: position out of range
SELECT i_class FROM item GROUP BY 3;
-- grouping: ungrouped column
SELECT i_class, i_color FROM item GROUP BY i_class;
-- grouping: aggregate in where
SELECT i_class FROM item WHERE count(*) > 1 GROUP BY i_class;
-- grouping: aggregate of an aggregate
SELECT sum(count(*)) FROM item;
-- grouping: filters and distinct together
SELECT count(DISTINCT i_class) a, count(DISTINCT i_color) b, sum(DISTINCT i_brand_id) c, count(*) FILTER (WHERE i_color = 'red') d, avg(DISTINCT i_brand_id) e, max(i_item_sk) f FROM item;
-- grouping: distinct of several columns
SELECT i_category, count(DISTINCT i_class, i_color) c FROM item GROUP BY i_category ORDER BY 1;
-- grouping: struct field keys
SELECT point.y % 2 AS odd, count(*) c, max(point.x) m FROM events GROUP BY point.y % 2 ORDER BY 1;
-- join: using
SELECT * FROM (SELECT s_state AS state, s_store_id FROM store) JOIN (SELECT ca_state AS state, ca_city FROM customer_address) USING (state) ORDER BY 1, 2, 3;
-- join: full using
SELECT k, a, b FROM (VALUES (1, 'x'), (2, 'y'), (NULL, 'z')) AS l(k, a) FULL JOIN (VALUES (2, 'p'), (3, 'q'), (NULL, 'r')) AS r(k, b) USING (k) ORDER BY 1, 2, 3;
-- join: right using
SELECT *, l.k lk, r.k rk FROM (VALUES (1, 'x'), (2, 'y')) AS l(k, a) RIGHT JOIN (VALUES (2, 'p'), (3, 'q')) AS r(k, b) USING (k) ORDER BY k;
-- join: left using shows its side
SELECT *, r.k FROM (VALUES (1, 'x'), (2, 'y')) AS l(k, a) LEFT JOIN (VALUES (2, 'p'), (3, 'q')) AS r(k, b) USING (k) ORDER BY 1;
-- join: qualified stars of using
SELECT r.*, l.* FROM (VALUES (1, 'x'), (2, 'y')) AS l(k, a) FULL JOIN (VALUES (2, 'p'), (3, 'q')) AS r(k, b) USING (k) ORDER BY l.k, r.k;
-- join: natural
SELECT * FROM (VALUES (1, 2, 'x')) AS l(k, j, a) NATURAL JOIN (VALUES (2, 1, 'p')) AS r(j, k, b);
-- join: natural full
SELECT * FROM (VALUES (1, 'x')) AS l(k, a) NATURAL FULL OUTER JOIN (VALUES (2, 'p')) AS r(k, b) ORDER BY k;
-- join: natural without a common column
SELECT * FROM (VALUES (1), (2)) AS l(k) NATURAL JOIN (VALUES (3)) AS r(j) ORDER BY 1;
-- join: using several times
SELECT k, a, b, c FROM (VALUES (1, 'a')) AS x(k, a) JOIN (VALUES (1, 'b')) AS y(k, b) USING (k) LEFT JOIN (VALUES (2, 'c')) AS z(k, c) USING (k);
-- join: semi and anti
SELECT s_store_sk FROM store LEFT SEMI JOIN store_sales ON s_store_sk = ss_store_sk UNION ALL SELECT 100 + c_customer_sk FROM customer LEFT ANTI JOIN store_sales ON c_customer_sk = ss_customer_sk ORDER BY 1;
-- join: semi without side
SELECT count(*) FROM item SEMI JOIN store_returns ON i_item_sk = sr_item_sk;
-- join: anti by using
SELECT * FROM (VALUES (1), (2), (NULL)) AS l(k) ANTI JOIN (VALUES (2)) AS r(k) USING (k) ORDER BY k;
-- join: comma and join
SELECT count(*) FROM store s, date_dim d JOIN store_sales x ON x.ss_sold_date_sk = d.d_date_sk AND x.ss_store_sk = s.s_store_sk;
-- join: cross
SELECT count(*) FROM store CROSS JOIN item JOIN customer;
-- join: left without a condition
SELECT count(*) FROM store LEFT JOIN item;
-- join: full with other conditions
SELECT l.k, r.j FROM (VALUES (1), (2), (3)) AS l(k) FULL JOIN (VALUES (1), (5)) AS r(j) ON l.k = r.j AND l.k > 0 ORDER BY 1, 2;
-- join: unequal
SELECT l.k, r.j FROM (VALUES (1), (2), (3)) AS l(k) LEFT JOIN (VALUES (1), (2)) AS r(j) ON l.k > r.j ORDER BY 1, 2;
-- join: null safe
SELECT l.k, r.j FROM (VALUES (1), (NULL)) AS l(k) JOIN (VALUES (1), (NULL)) AS r(j) ON l.k <=> r.j ORDER BY 1;
-- join: with itself
SELECT a.i_item_sk, b.i_item_sk FROM item a JOIN item b ON a.i_item_id = b.i_item_id AND a.i_item_sk < b.i_item_sk ORDER BY 1, 2;
-- join: ambiguous
SELECT i_item_sk FROM item a JOIN item b ON a.i_item_sk = b.i_item_sk;
-- join: using a missing column
SELECT * FROM item JOIN store USING (i_item_sk);
-- join: in brackets
SELECT count(*) FROM store_sales LEFT JOIN (store_returns JOIN item ON sr_item_sk = i_item_sk) ON ss_ticket_number = sr_ticket_number;
-- cte: used three times
WITH a AS (SELECT i_class c, count(*) n FROM item GROUP BY i_class) SELECT x.c, x.n, (SELECT sum(n) FROM a) t FROM a x JOIN a y ON x.c = y.c ORDER BY 1;
-- cte: names of columns
WITH a(x, y) AS (SELECT i_item_sk, i_class FROM item), b(z) AS (SELECT max(x) FROM a) SELECT y, z FROM a, b WHERE x = z;
-- cte: nested
WITH a AS (WITH b AS (SELECT 1 AS one) SELECT one + 1 AS two FROM b) SELECT * FROM a;
-- cte: in a subquery
SELECT s_store_sk FROM store WHERE s_store_sk IN (WITH q AS (SELECT ss_store_sk k FROM store_sales WHERE ss_quantity > 30) SELECT k FROM q) ORDER BY 1;
-- cte: inner hides outer
WITH a AS (SELECT 1 AS x) SELECT * FROM (WITH a AS (SELECT 2 AS x) SELECT * FROM a), a;
-- cte: recursive
WITH RECURSIVE r(n, f) AS (SELECT 1, cast(1 AS bigint) UNION ALL SELECT n + 1, f * (n + 1) FROM r WHERE n < 10) SELECT * FROM r ORDER BY n;
-- cte: recursive over a table
WITH RECURSIVE r AS (SELECT d_date_sk, d_date, 0 AS depth FROM date_dim WHERE d_date_sk = 1 UNION ALL SELECT d.d_date_sk, d.d_date, depth + 1 FROM date_dim d JOIN r ON d.d_date_sk = r.d_date_sk * 2) SELECT * FROM r ORDER BY depth;
-- set: precedence
SELECT 1 AS a UNION ALL SELECT 2 INTERSECT SELECT 2 EXCEPT SELECT 1 ORDER BY a;
-- set: all of each
SELECT a FROM VALUES (1), (1), (2), (NULL), (NULL) AS t(a) INTERSECT ALL SELECT a FROM VALUES (1), (1), (1), (NULL) AS s(a) ORDER BY a;
-- set: except all
SELECT a FROM VALUES (1), (1), (2), (NULL), (NULL) AS t(a) EXCEPT ALL SELECT a FROM VALUES (1), (NULL) AS s(a) ORDER BY a;
-- set: minus
SELECT i_class FROM item MINUS SELECT 'class1' ORDER BY 1;
-- set: types meet
SELECT 1 AS a UNION SELECT 2.5 UNION ALL SELECT NULL UNION SELECT cast(3 AS bigint) ORDER BY a;
-- set: with limits inside
(SELECT i_item_sk FROM item ORDER BY i_item_sk DESC LIMIT 2) UNION ALL (SELECT i_item_sk FROM item ORDER BY i_item_sk LIMIT 1 OFFSET 1) ORDER BY 1;
-- set: of three with an order
SELECT 'a' AS k, 1 AS v UNION ALL SELECT 'b', 2 UNION SELECT 'a', 1 ORDER BY v DESC, k LIMIT 5 OFFSET 0;
-- set: unequal widths
SELECT 1, 2 UNION SELECT 1;
-- select: star except
SELECT * EXCEPT (i_brand, i_brand_id, i_manufact_id, i_current_price) FROM item WHERE i_item_sk < 3 ORDER BY 1;
-- select: star of a table with more
SELECT s.*, 1 AS one, s.s_state || '!' FROM store s ORDER BY s_store_sk;
-- select: two columns of one name
SELECT a.i_class, b.i_class, 1 AS x, 2 AS x FROM item a JOIN item b ON a.i_item_sk = b.i_item_sk + 12 ORDER BY 1, 2;
-- select: aliases of aliases
SELECT i_item_sk + 1 AS a, a * 2 AS b, b + a AS c FROM item WHERE i_item_sk < 4 ORDER BY c;
-- select: an alias that is a column
SELECT i_brand_id + 100 AS i_item_sk, i_item_sk AS y FROM item WHERE i_item_sk < 4 ORDER BY i_item_sk, y;
-- select: aliases of aggregates
SELECT i_class, sum(i_item_sk) AS s, s / count(*) AS mean FROM item GROUP BY i_class ORDER BY mean DESC;
-- select: distinct with an order
SELECT DISTINCT i_class, i_category FROM item ORDER BY i_category DESC, i_class;
-- select: distinct ordered by an expression
SELECT DISTINCT i_class FROM item ORDER BY upper(i_class) DESC;
-- select: order by a hidden column
SELECT i_item_id FROM item ORDER BY i_current_price DESC NULLS LAST, i_item_sk LIMIT 3;
-- select: limit all and offset
SELECT i_item_sk FROM item ORDER BY 1 LIMIT ALL OFFSET 12;
-- select: hints
SELECT /*+ BROADCAST(s), REPARTITION(3) */ count(*) FROM store s JOIN store_sales ON s_store_sk = ss_store_sk;
-- select: distribute and sort
SELECT count(*) FROM (SELECT i_item_sk FROM item DISTRIBUTE BY i_class SORT BY i_item_sk);
-- select: names of columns
SELECT i_item_sk + 1, upper(i_class), count(*) OVER (), (SELECT 1), CASE WHEN i_item_sk = 1 THEN 2 END, i_color IN ('red'), i_class LIKE 'c%', -i_item_sk, EXISTS (SELECT 1) FROM item ORDER BY 1 LIMIT 1;
-- select: no such column
SELECT nothing FROM item;
-- select: no such table
SELECT 1 FROM nowhere;
-- values: in FROM
SELECT a, sum(b) s FROM VALUES ('x', 1), ('y', 2), ('x', NULL) AS t(a, b) GROUP BY a ORDER BY a;
-- values: alone
VALUES (1, 'a'), (2, NULL), (3, 'c') ORDER BY 1 DESC LIMIT 2;
-- values: joined
SELECT s_store_id, label FROM store JOIN (VALUES ('TN', 'Tennessee'), ('GA', 'Georgia')) AS m(code, label) ON s_state = code ORDER BY 1;
-- pivot: one aggregate
SELECT * FROM (SELECT d_year, d_qoy, d_date_sk FROM date_dim) PIVOT (count(d_date_sk) FOR d_qoy IN (1, 2, 3 AS third)) ORDER BY d_year;
-- pivot: several aggregates
SELECT * FROM (SELECT i_class, i_color, i_item_sk, i_current_price FROM item) PIVOT (sum(i_item_sk) AS s, max(i_current_price) FOR i_color IN ('red' AS r, 'green')) ORDER BY i_class;
-- pivot: several columns
SELECT * FROM (SELECT i_class, i_color, i_brand_id, i_item_sk FROM item) PIVOT (sum(i_item_sk) FOR (i_color, i_brand_id) IN (('red', 1) AS a, ('green', 2) AS b)) ORDER BY 1;
-- pivot: with one alias
SELECT * FROM (SELECT i_class, i_color, i_item_sk FROM item) PIVOT (sum(i_item_sk) AS s FOR i_color IN ('red', 'green')) ORDER BY 1;
-- unpivot: columns
SELECT * FROM (SELECT i_item_sk, i_brand_id, i_manufact_id FROM item) UNPIVOT (v FOR k IN (i_brand_id, i_manufact_id AS m)) ORDER BY i_item_sk, k;
-- unpivot: with nulls
SELECT * FROM (SELECT s_store_sk, s_state, s_city FROM store) UNPIVOT INCLUDE NULLS (v FOR k IN (s_state, s_city)) ORDER BY 1, 2;
-- unpivot: pairs
SELECT * FROM (SELECT s_store_sk, s_state, s_city, s_store_id, s_store_name FROM store) UNPIVOT ((a, b) FOR k IN ((s_state, s_city) AS one, (s_store_id, s_store_name) AS two)) ORDER BY 1, 2;
-- sample: all rows
SELECT count(*) FROM item TABLESAMPLE (100 PERCENT);
-- sample: rows
SELECT count(*) FROM item TABLESAMPLE (5 ROWS) AS s;
-- pipe: where and select
FROM item |> WHERE i_item_sk < 5 |> SELECT i_item_sk, i_class |> ORDER BY i_item_sk DESC |> LIMIT 2;
-- pipe: extend and set
FROM item |> WHERE i_item_sk < 4 |> EXTEND i_item_sk * 2 AS double |> SET i_class = upper(i_class) |> SELECT i_item_sk, double, i_class |> ORDER BY i_item_sk;
-- pipe: aggregate
FROM item |> AGGREGATE count(*) AS n, sum(i_item_sk) AS s GROUP BY i_class |> WHERE n > 1 |> ORDER BY i_class;
-- pipe: join and drop
FROM store |> LEFT JOIN store_sales ON s_store_sk = ss_store_sk |> AGGREGATE count(ss_item_sk) AS n GROUP BY s_store_id |> ORDER BY s_store_id;
-- pipe: union and as
FROM item |> SELECT i_item_sk AS k |> WHERE k < 3 |> UNION ALL (SELECT 100) |> AS t |> WHERE t.k > 1 |> ORDER BY k;
-- pipe: windows
FROM item |> EXTEND rank() OVER (PARTITION BY i_class ORDER BY i_item_sk) AS r |> WHERE r = 1 |> SELECT i_class, i_item_sk |> ORDER BY i_class;
-- pipe: after a query
SELECT i_item_sk, i_class FROM item |> WHERE i_item_sk > 12 |> DROP i_class |> ORDER BY i_item_sk;
-- more: order by an alias over an expression of its column
SELECT substr(i_class, 2) AS i_class, count(*) c FROM item GROUP BY substr(i_class, 2) ORDER BY substr(i_class, 2) DESC;
-- more: qualified names of a subquery in order
SELECT q.c FROM (SELECT i_class c, i_item_sk k FROM item) q ORDER BY q.k LIMIT 3;
-- more: distinct ordered by a qualified name
SELECT DISTINCT i.i_class FROM item i ORDER BY i.i_class DESC;
-- more: union in a correlated subquery
SELECT s_store_sk FROM store WHERE s_store_sk IN (SELECT ss_store_sk FROM store_sales WHERE ss_quantity > 30 UNION SELECT sr_store_sk FROM store_returns WHERE sr_return_quantity > 5) ORDER BY 1;
-- more: correlated in a derived table of a subquery
SELECT c_customer_sk FROM customer c WHERE 1 < (SELECT count(*) FROM (SELECT ss_item_sk FROM store_sales WHERE ss_customer_sk = c.c_customer_sk) q) ORDER BY 1;
-- more: correlated with order and limit
SELECT s_store_sk, (SELECT ss_item_sk FROM store_sales WHERE ss_store_sk = s_store_sk AND ss_quantity IS NOT NULL ORDER BY ss_quantity DESC, ss_item_sk, ss_ticket_number LIMIT 1) i FROM store ORDER BY 1;
-- more: exists over an aggregate
SELECT s_store_sk FROM store WHERE EXISTS (SELECT count(*) FROM store_sales WHERE ss_store_sk = -1) ORDER BY 1;
-- more: exists over a group with having
SELECT s_store_sk FROM store WHERE EXISTS (SELECT ss_item_sk FROM store_sales WHERE ss_store_sk = s_store_sk GROUP BY ss_item_sk HAVING count(*) > 3) ORDER BY 1;
-- more: outer column and inner alias of one name
SELECT i_item_sk, (SELECT max(i_item_sk) FROM (SELECT ss_item_sk AS i_item_sk FROM store_sales WHERE ss_store_sk = 1)) m FROM item ORDER BY 1;
-- more: nulls in every key
SELECT i_category, count(*) c, count(i_category) d FROM item GROUP BY i_category ORDER BY i_category NULLS LAST;
-- more: a void column
SELECT n, count(*) c FROM (SELECT NULL AS n, i_item_sk FROM item) GROUP BY n;
-- more: void meets text in a union
SELECT n FROM (SELECT NULL AS n UNION ALL SELECT 'x') ORDER BY n;
-- more: intervals inside
SELECT max(d) - min(d) > INTERVAL 1 DAY AS b FROM (SELECT d_date AS d FROM date_dim);
-- more: case over aggregates
SELECT CASE WHEN count(*) > 10 THEN 'many' WHEN sum(i_item_sk) > 3 THEN 'some' ELSE 'few' END c, i_class FROM item GROUP BY i_class ORDER BY i_class;
-- more: group by a case and an order by it
SELECT CASE WHEN i_item_sk < 5 THEN 'a' ELSE 'b' END g, count(*) FROM item GROUP BY CASE WHEN i_item_sk < 5 THEN 'a' ELSE 'b' END ORDER BY CASE WHEN i_item_sk < 5 THEN 'a' ELSE 'b' END DESC;
-- more: expression over a key
SELECT i_brand_id + 1 AS n, (i_brand_id + 1) * 2 AS m FROM item GROUP BY i_brand_id + 1 ORDER BY 1;
-- more: key within a function
SELECT concat(i_class, '-', i_color) x, count(*) FROM item GROUP BY i_class, i_color ORDER BY i_class, i_color;
-- more: aggregates of distinct values by filter
SELECT count(DISTINCT i_class) FILTER (WHERE i_item_sk > 5) c, sum(DISTINCT i_brand_id) FILTER (WHERE i_color = 'red') s FROM item;
-- more: having with a window's neighbour
SELECT i_class, count(*) n, rank() OVER (ORDER BY count(*) DESC, i_class) r FROM item GROUP BY i_class HAVING count(*) > 4 ORDER BY r;
-- more: window over rollup
SELECT i_class, i_color, count(*) n, sum(count(*)) OVER (PARTITION BY grouping_id(i_class, i_color)) t FROM item GROUP BY CUBE (i_class, i_color) ORDER BY i_class, i_color, n;
-- more: last value over the whole partition
SELECT i_item_sk, last_value(i_color) OVER (PARTITION BY i_class ORDER BY i_item_sk ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) l FROM item ORDER BY 1;
-- more: moving averages of decimals
SELECT i_item_sk, avg(i_current_price) OVER (ORDER BY i_item_sk ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING) a, sum(i_current_price) OVER (ORDER BY i_item_sk ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) s FROM item ORDER BY 1;
-- more: empty frames
SELECT i_item_sk, count(*) OVER (ORDER BY i_item_sk ROWS BETWEEN 3 FOLLOWING AND 5 FOLLOWING) c, sum(i_item_sk) OVER (ORDER BY i_item_sk ROWS BETWEEN 5 PRECEDING AND 3 PRECEDING) s FROM item ORDER BY 1;
-- more: ntile of uneven groups
SELECT i_item_sk, ntile(4) OVER (ORDER BY i_item_sk) n FROM item ORDER BY 1;
-- more: max of text over a window
SELECT i_item_sk, max(i_color) OVER (ORDER BY i_item_sk) m, min(i_color) OVER (PARTITION BY i_class) n FROM item ORDER BY 1;
-- more: full join of grouped queries
SELECT coalesce(a.k, b.k) k, a.n, b.n FROM (SELECT ss_item_sk k, count(*) n FROM store_sales GROUP BY ss_item_sk) a FULL JOIN (SELECT ws_item_sk k, count(*) n FROM web_sales WHERE ws_item_sk > 6 GROUP BY ws_item_sk) b ON a.k = b.k ORDER BY 1;
-- more: full join on an inequality
SELECT a.k, b.k FROM (VALUES (1), (2)) a(k) FULL JOIN (VALUES (2), (3)) b(k) ON a.k > b.k ORDER BY 1, 2;
-- more: right join and where
SELECT s_store_id, c FROM (SELECT ss_store_sk k, count(*) c FROM store_sales GROUP BY 1) RIGHT JOIN store ON k = s_store_sk AND c > 20 WHERE s_store_id <> 'S9' ORDER BY 1;
-- more: left join with a null side condition
SELECT s_store_id, ss_ticket_number FROM store LEFT JOIN store_sales ON ss_store_sk = s_store_sk AND ss_quantity > 38 ORDER BY 1, 2;
-- more: join of three with using and on
SELECT count(*), sum(ss_quantity) FROM store_sales JOIN (SELECT i_item_sk AS ss_item_sk, i_class FROM item) USING (ss_item_sk) LEFT JOIN date_dim ON d_date_sk = ss_sold_date_sk;
-- more: anti join by not exists with inequality
SELECT count(*) FROM store_sales a WHERE NOT EXISTS (SELECT 1 FROM store_sales b WHERE a.ss_item_sk = b.ss_item_sk AND a.ss_quantity < b.ss_quantity);
-- more: in within a select with or
SELECT count(*) FROM item WHERE i_class = 'class1' OR i_item_sk IN (SELECT sr_item_sk FROM store_returns) OR EXISTS (SELECT 1 FROM web_sales WHERE ws_item_sk = i_item_sk AND ws_quantity > 35);
-- more: not of an or with in
SELECT count(*) FROM item WHERE NOT (i_class = 'class1' OR i_item_sk IN (SELECT sr_item_sk FROM store_returns));
-- more: in is null
SELECT count(*) FROM customer_address WHERE (ca_state IN (SELECT s_state FROM store)) IS NULL;
-- more: subquery in between and in a function
SELECT i_item_sk FROM item WHERE i_current_price BETWEEN (SELECT min(i_current_price) FROM item) AND (SELECT avg(i_current_price) FROM item) AND upper((SELECT 'x')) = 'X' ORDER BY 1;
-- more: subquery as a group key
SELECT (SELECT max(s_state) FROM store WHERE s_store_sk = ss_store_sk) st, count(*) c FROM store_sales GROUP BY 1 ORDER BY 1;
-- more: subquery in an aggregate's argument
SELECT max((SELECT i_class FROM item WHERE i_item_sk = ss_item_sk)) m FROM store_sales;
-- more: subquery in case in having
SELECT ss_store_sk FROM store_sales GROUP BY ss_store_sk HAVING CASE WHEN max(ss_quantity) > (SELECT avg(ss_quantity) FROM store_sales) THEN true ELSE false END ORDER BY 1;
-- more: derived tables three deep
SELECT a FROM (SELECT b AS a FROM (SELECT c AS b FROM (SELECT i_item_sk AS c FROM item WHERE i_item_sk < 4) x) y) z WHERE z.a > 1 ORDER BY a;
-- more: star through layers
SELECT * FROM (SELECT *, 1 AS one FROM (SELECT s_store_id, s_state FROM store)) ORDER BY s_store_id;
-- more: star of two tables with the same columns
SELECT * FROM (SELECT s_store_sk FROM store) a, (SELECT s_store_sk FROM store) b WHERE a.s_store_sk = b.s_store_sk ORDER BY 1;
-- more: limit in a subquery of IN
SELECT i_item_sk FROM item WHERE i_item_sk IN (SELECT i_item_sk FROM item ORDER BY i_item_sk DESC LIMIT 3) ORDER BY 1;
-- more: offset without limit
SELECT i_item_sk FROM item ORDER BY i_item_sk OFFSET 11;
-- more: limit zero
SELECT i_item_sk FROM item LIMIT 0;
-- more: intersect of pairs with nulls
SELECT i_category, i_class FROM item INTERSECT SELECT i_category, 'class1' FROM item ORDER BY 1;
-- more: nested set operations in brackets
SELECT 1 AS x UNION (SELECT 2 UNION ALL SELECT 2) EXCEPT (SELECT 1) ORDER BY x;
-- more: union of a with
WITH a AS (SELECT 1 AS x) SELECT x FROM a UNION ALL SELECT x + 1 FROM a ORDER BY x;
-- more: values with expressions and types
SELECT a, b, c FROM VALUES (1 + 1, date '2024-01-01', NULL), (2L, NULL, 1.5) AS t(a, b, c) ORDER BY c;
-- more: arrays and maps in rows
SELECT id, tags[0] AS t, attrs['k'] AS k, point.x AS x FROM events WHERE id IN (0, 3, 4) ORDER BY id;
-- more: collect and explode again
SELECT c, x FROM (SELECT i_class c, collect_list(i_item_sk) l FROM item WHERE i_item_sk < 7 GROUP BY i_class) LATERAL VIEW explode(l) e AS x ORDER BY c, x;
-- more: posexplode outer of nothing
SELECT id, p, t FROM events LATERAL VIEW OUTER posexplode(tags) x AS p, t WHERE id < 4 ORDER BY id, p;
-- more: generators and windows
SELECT id, t, row_number() OVER (PARTITION BY id ORDER BY t) rn FROM events LATERAL VIEW explode(tags) x AS t ORDER BY id, rn;
-- more: generator with where on its source
SELECT explode(array(i_item_sk, i_brand_id)) AS v, i_class FROM item WHERE i_item_sk < 3 ORDER BY v, i_class;
-- more: stack unpivots
SELECT s_store_id, k, v FROM store LATERAL VIEW stack(2, 'state', s_state, 'city', s_city) x AS k, v ORDER BY 1, 2;
-- more: recursion by join of a tree
WITH RECURSIVE tree(id, parent, path) AS (SELECT 1, 0, '1' UNION ALL SELECT e.id, e.parent, concat(t.path, '/', e.id) FROM (VALUES (2, 1), (3, 1), (4, 2), (5, 4)) e(id, parent) JOIN tree t ON e.parent = t.id) SELECT * FROM tree ORDER BY id;
-- more: pivot without other columns
SELECT * FROM (SELECT i_color, i_item_sk FROM item) PIVOT (count(*) FOR i_color IN ('red', 'blue', NULL));
-- more: pivot of averages with an expression around
SELECT i_class, red * 2 AS r FROM (SELECT i_class, i_color, i_item_sk FROM item) PIVOT (avg(i_item_sk) FOR i_color IN ('red' AS red)) ORDER BY 1;
-- more: grouping by a date part with a rollup
SELECT year(d_date) y, month(d_date) m, count(*) FROM date_dim GROUP BY ROLLUP (year(d_date), month(d_date)) HAVING count(*) > 3 ORDER BY 1, 2;
-- more: two rollups
SELECT i_class, i_color, count(*) c FROM item GROUP BY ROLLUP (i_class), ROLLUP (i_color) ORDER BY 1, 2, 3;
-- more: grouping sets with duplicates
SELECT i_class, count(*) c FROM item GROUP BY GROUPING SETS ((i_class), (i_class)) ORDER BY 1, 2;
-- more: sum of nothing
SELECT sum(i_item_sk) s, avg(i_current_price) a, max(i_class) m, count(*) c, collect_list(i_class) l FROM item WHERE 1 = 0;
-- more: grouped nothing
SELECT i_class, sum(i_item_sk) s FROM item WHERE 1 = 0 GROUP BY i_class;
-- more: alias of a table hides its name
SELECT item.i_item_sk FROM item i;
-- more: alias used in where
SELECT i_item_sk AS k FROM item WHERE k < 3;
-- more: order of a union by an expression
SELECT 1 AS a UNION ALL SELECT 3 UNION ALL SELECT 2 ORDER BY -a;
-- more: division by zero in a dropped branch
SELECT i_item_sk, CASE WHEN i_brand_id > 1 THEN i_item_sk / (i_brand_id - 1) END q FROM item ORDER BY 1;
-- more: a failing row behind a filter of the same table
SELECT i_item_sk / (i_brand_id - 1) q FROM item WHERE i_brand_id <> 1 ORDER BY i_item_sk;
-- more: a failing row
SELECT i_item_sk / (i_brand_id - 1) q FROM item;
-- keys of windows that may fail
SELECT i_brand, rank() OVER (ORDER BY sum(i_current_price) / sum(i_brand_id) DESC) r,
  row_number() OVER (PARTITION BY sum(i_brand_id) / 2 ORDER BY i_brand) n FROM item GROUP BY i_brand ORDER BY i_brand;
-- grouping by a struct
SELECT point, count(*) c FROM events GROUP BY point ORDER BY point;
-- grouping by an array
SELECT tags, count(*) c, min(id) m FROM events GROUP BY tags ORDER BY tags;
-- distinct structs
SELECT DISTINCT items FROM events ORDER BY items DESC;
-- a set operation of arrays
SELECT tags FROM events INTERSECT SELECT tags FROM events ORDER BY tags;
-- extremes of structs
SELECT i_brand b, max(struct(i_current_price, i_item_sk)) m, min(struct(i_color, i_item_sk)) l FROM item GROUP BY i_brand ORDER BY b;
-- extremes of arrays
SELECT max(tags) a, min(tags) b, max(point) c, max_by(id, point) d FROM events;
-- a window over structs
SELECT id, rank() OVER (ORDER BY tags) r, count(*) OVER (PARTITION BY point) c FROM events ORDER BY id;
-- counting different structs
SELECT count(DISTINCT point) a, count(DISTINCT tags) b, size(collect_set(point)) c FROM events;
-- percentiles within groups
SELECT ss_store_sk, percentile_cont(0.5) WITHIN GROUP (ORDER BY ss_quantity) a, percentile_cont(0.3) WITHIN GROUP (ORDER BY ss_quantity DESC) b,
  percentile_disc(0.5) WITHIN GROUP (ORDER BY ss_sales_price) c, percentile_disc(0.3) WITHIN GROUP (ORDER BY ss_sales_price DESC) d,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY ss_quantity) FILTER (WHERE ss_quantity > 3) e FROM store_sales GROUP BY ss_store_sk ORDER BY 1;
-- arrays of percentiles
SELECT percentile(ss_quantity, array(0.25, 0.5)) a, percentile_approx(ss_quantity, array(0.25, 0.5), 100) b,
  percentile(ss_quantity, array(0.5)) FILTER (WHERE ss_quantity > 1000) c FROM store_sales;
-- percentiles over windows
SELECT i_item_sk, percentile_cont(0.5) WITHIN GROUP (ORDER BY i_current_price) OVER (PARTITION BY i_color) p FROM item ORDER BY 1;
-- listagg in an order
SELECT i_brand b, listagg(i_color, ',') WITHIN GROUP (ORDER BY i_item_sk DESC) a, listagg(DISTINCT i_color, '|') WITHIN GROUP (ORDER BY i_color) c,
  string_agg(i_item_sk, '-') WITHIN GROUP (ORDER BY i_item_sk) d FROM item GROUP BY i_brand ORDER BY 1;
-- mode in an order
SELECT mode() WITHIN GROUP (ORDER BY i_brand_id) a, mode() WITHIN GROUP (ORDER BY i_brand_id DESC) b, mode(i_manufact_id, true) c FROM item;
-- first under a condition
SELECT first(i_color) FILTER (WHERE i_item_sk = 3) a, first(i_color) IGNORE NULLS b, any_value(i_color) FILTER (WHERE i_item_sk > 99) c,
  last(i_color, true) FILTER (WHERE i_item_sk < 2) d FROM item WHERE i_item_sk IN (1, 3);
-- rows with the greatest values
SELECT max_by(i_item_sk, i_current_price, 3) a, min_by(i_item_sk, i_current_price, 2) b, max_by(i_color, i_item_sk, 2) FILTER (WHERE i_item_sk > 99) c
FROM item;
-- the most frequent values
SELECT approx_top_k(i_category, 2) a FROM item WHERE i_category IN ('Books', 'Home') AND i_item_sk < 6;
-- sums that may not overflow
SELECT try_sum(ss_sales_price) a, try_avg(ss_sales_price) b FROM store_sales;
-- a union of arrays
SELECT sort_array(collect_union(tags)) a FROM events;
-- windows of a day
SELECT window(at, '1 day').start s, count(*) c FROM events GROUP BY window(at, '1 day') ORDER BY 1;
-- windows as a column
SELECT window.start, window.end, count(*) c FROM (SELECT window(at, '12 hours') AS window FROM events) GROUP BY window ORDER BY 1;
-- sliding windows
SELECT window.start s, window.end e, count(*) c FROM events GROUP BY window(at, '12 hours', '6 hours') ORDER BY 1;
-- windows that begin later, beside a key
SELECT who, window, count(*) c FROM events WHERE id > 2 GROUP BY who, window(at, '1 day 12 hours', '1 day', '3 hours') ORDER BY 1, 2;
-- windows without grouping
SELECT id, window(at, '10 hours') FROM events ORDER BY id;
-- an array that begins with a null
SELECT array(NULL, 3) a, aggregate(array(NULL, 3), 0, (acc, v) -> acc + coalesce(v, 10)) b;
-- windows of time: the last moment of each
SELECT window_time(window), c FROM (SELECT window, count(*) c FROM events GROUP BY window(at, '1 day')) ORDER BY 1;
-- windows of time: windows of windows
SELECT window(window_time(window), '2 days').end e, sum(c) FROM (SELECT window, count(*) c FROM events GROUP BY window(at, '12 hours')) GROUP BY window(window_time(window), '2 days') ORDER BY 1;
-- windows of time: the last moment of a window of each row
SELECT id, window_time(window(at, '10 hours')) AS m FROM events ORDER BY id;
-- rows of several columns in a list
SELECT i_item_sk FROM item WHERE (i_color, i_brand_id) IN (('red', 1), ('green', 2)) ORDER BY 1;
-- limits of literals
SELECT i_item_sk FROM item ORDER BY i_item_sk LIMIT 1 + 1 OFFSET 2 * 2;
-- grouping by a number that is no position
SELECT count(*) c FROM item GROUP BY 0.25;
-- conditions on aggregates of constants
SELECT sum(DISTINCT datediff(DATE '2024-01-30', DATE '2024-01-01')) FILTER (WHERE i_color = 'red') a, max(add_months(DATE '2024-01-30', 1))
  FILTER (WHERE i_item_sk > 99) b FROM item;
-- like any in a query
SELECT i_item_sk FROM item WHERE i_color LIKE ANY ('r%', '%n') AND i_color NOT LIKE ALL ('re%', '%x') ORDER BY 1;
-- structs in order by
SELECT id, point FROM events ORDER BY point DESC NULLS FIRST, id;
-- sums of sales by month
SELECT m, coalesce(sum(ss_quantity), 0) q FROM (SELECT explode(sequence(DATE '2000-01-01', DATE '2000-12-01', INTERVAL 1 MONTH)) m)
  LEFT JOIN (date_dim JOIN store_sales ON ss_sold_date_sk = d_date_sk) ON trunc(d_date, 'MM') = m GROUP BY m ORDER BY m;
-- averages of many digits
SELECT i_brand, avg(CAST(i_current_price AS DECIMAL(26,8)) / 3) a, avg(CAST(i_current_price AS DECIMAL(38,18))) b,
  avg(DISTINCT i_current_price * CAST(i_item_sk AS DECIMAL(20,4))) c, avg(CAST(NULL AS DECIMAL(30,2))) d FROM item GROUP BY i_brand ORDER BY i_brand;
-- averages of many digits over a window
SELECT i_item_sk, avg(CAST(i_current_price AS DECIMAL(30,5))) OVER (ORDER BY i_item_sk ROWS 2 PRECEDING) a FROM item ORDER BY i_item_sk;
-- fields of a struct by a star
SELECT id, point.*, events.point.y z FROM events ORDER BY id;
-- fields of a grouped struct by a star
SELECT p.* FROM (SELECT struct(i_color, count(*) AS n) AS p FROM item GROUP BY i_color) ORDER BY 1;
-- a value of a map by its name
SELECT id, attrs.k, e.attrs.z FROM events e ORDER BY id;
-- sessions of rows near in time
SELECT a, session_window.start, session_window.end, count(*) n, sum(x) FROM VALUES ('A1', '2021-01-01 00:00:00', 1), ('A1', '2021-01-01 00:04:30', 2),
  ('A1', '2021-01-01 00:09:30', 3), ('A1', '2021-01-01 00:14:31', 4), ('A2', '2021-01-01 00:01:00', 5), ('A2', NULL, 6), (NULL, '2021-01-01 00:01:00', 7)
  AS t(a, b, x) GROUP BY a, session_window(b, '5 minutes') ORDER BY a, start;
-- sessions without other keys
SELECT session_window s, count(*) FROM VALUES (timestamp_ntz'2021-01-01 00:00:00'), (timestamp_ntz'2021-01-01 01:00:00'),
  (timestamp_ntz'2021-01-03 00:00:00') t(b) GROUP BY session_window(b, INTERVAL 1 DAY) ORDER BY 1;
-- sessions of no length
SELECT count(*) FROM VALUES ('2021-01-01 00:00:00') t(b) GROUP BY session_window(b, '-5 minutes');
-- a session for each row
SELECT session_window(b, '5 minutes') s FROM VALUES ('2021-01-01 00:00:00'), ('2021-01-01 00:01:00') t(b) ORDER BY 1;
-- sessions of all rows
SELECT session_window s, count(*) FROM VALUES (timestamp_ntz'2021-01-01 00:00:00'), (timestamp_ntz'2021-01-01 01:00:00'),
  (timestamp_ntz'2021-01-03 00:00:00') t(b) GROUP BY session_window(b, '1 day') ORDER BY 1;
-- an aggregate of the groups in a query of HAVING
SELECT ss_store_sk, max(ss_quantity) FROM store_sales s GROUP BY ss_store_sk
HAVING EXISTS (SELECT 1 FROM item WHERE i_brand_id < max(s.ss_quantity) AND i_item_sk = s.ss_store_sk) ORDER BY 1;
-- aggregates of the groups in the scalar query of HAVING
SELECT ss_store_sk FROM store_sales s GROUP BY ss_store_sk
HAVING (SELECT count(*) FROM item WHERE i_item_sk < max(s.ss_quantity) - min(s.ss_quantity)) >= 1 ORDER BY 1;
-- groups whose key is among those below their greatest value
SELECT ss_store_sk FROM store_sales s GROUP BY ss_store_sk
HAVING ss_store_sk IN (SELECT i_item_sk FROM item WHERE i_item_sk < max(s.ss_quantity)) ORDER BY 1;
-- an aggregate of the columns of the query around
SELECT (SELECT max(s.ss_quantity)) FROM store_sales s;
-- an aggregate of columns of both queries
SELECT (SELECT max(s.ss_quantity + i_item_sk) FROM item) FROM store_sales s;
-- an aggregate of the groups in WHERE of a query of SELECT
SELECT (SELECT max(i_item_sk) FROM item WHERE i_item_sk < max(s.ss_quantity)) FROM store_sales s GROUP BY ss_store_sk;
-- the parts of a variant as rows
SELECT pos, key, CAST(value AS STRING) v FROM variant_explode(parse_json('{"b":1,"a":[2,{"c":null}]}')) ORDER BY pos;
-- the items of each row's variant
SELECT k, e.pos, e.key, to_json(e.value) j FROM VALUES (1, '[5,"x"]'), (2, '{"a":1.50}'), (3, '7'), (4, NULL) AS x(k, t),
  LATERAL variant_explode(parse_json(t)) AS e ORDER BY k, pos;
-- a row of nulls for a variant without parts
SELECT k, pos, key, to_json(value) j FROM VALUES (1, '[5]'), (2, '7') AS x(k, t) LEFT JOIN LATERAL variant_explode_outer(parse_json(t)) AS e
  ORDER BY k, pos;
-- the schema of several variants
SELECT schema_of_variant_agg(parse_json(t)) s FROM VALUES ('{"a":1,"b":[1.5]}'), ('{"b":[2,10.25],"c":"x"}'), ('{"a":null}'), (NULL) AS x(t);
-- the schema of no variant
SELECT schema_of_variant_agg(parse_json(t)) s FROM VALUES ('1') AS x(t) WHERE t = '2';
-- variants by groups
SELECT k, sum(parse_json(t):a::bigint) s, min(parse_json(t):b[0]::string) m FROM VALUES (1, '{"a":1,"b":["q"]}'), (1, '{"a":2}'), (2, '{}') AS x(k, t)
  GROUP BY k ORDER BY k;
-- a variant has no equals
SELECT DISTINCT parse_json('1') v;
-- a table function in SELECT
SELECT variant_explode(parse_json('[1]'));

-- aggregates of text
SELECT i_color, sum(CAST(i_item_sk AS STRING)) a, avg(CAST(i_brand_id AS STRING)) b, sum(DISTINCT CAST(i_brand_id AS STRING)) c,
  stddev(CAST(i_item_sk AS STRING)) d, percentile(CAST(i_item_sk AS STRING), 0.5) e, try_sum(CAST(i_item_sk AS STRING)) f, sum(NULL) g FROM item
GROUP BY i_color ORDER BY i_color;
-- a sum of text that is no number
SELECT sum(i_color) FROM item;
-- text summed over windows
SELECT i_item_sk, sum(CAST(i_item_sk AS STRING)) OVER (ORDER BY i_item_sk) s FROM item ORDER BY 1;
-- decimals rounded to tens and hundreds
SELECT i_item_sk, round(i_current_price, -1) a, round(-i_current_price, -1) b, round(i_current_price, -2) c, round(i_current_price, -5) d,
  round(CAST(i_current_price AS DECIMAL(38, 2)), -1) e, round(25.00, -1) f, round(-15.5, -1) g, round(CAST(95 AS DECIMAL(2, 0)), -2) h FROM item ORDER BY 1;
-- seconds of local clocks
SELECT unix_timestamp(b) a, to_unix_timestamp(b) c FROM VALUES (timestamp_ntz'2021-01-01 00:00:00'), (timestamp_ntz'1969-12-31 23:59:59.9'), (NULL) t(b) ORDER BY 1;
-- clocks of twelve hours
SELECT s, try_to_timestamp(s, 'dd/MM/yyyy hh:mm a') t, try_to_timestamp(s, 'd/M/yyyy h:mm:ssa') u FROM VALUES ('31/12/2024 11:59 PM'),
  ('31/12/2024 12:00 AM'), ('31/12/2024 12:30 pm'), ('01/02/2024 01:05 Am'), ('01/02/2024 13:05 PM'), ('01/02/2024 00:05 PM'), ('01/02/2024 1:05 PM'),
  ('1/2/2024 9:05:07PM'), ('1/2/2024 12:05:07AM'), ('1/2/2024 10:05:07'), (NULL) AS x(s) ORDER BY s;
-- months by their names
SELECT s, try_to_timestamp(s, 'MMM d, yyyy') t, try_to_timestamp(s, 'dd MMMM yyyy') u, try_to_timestamp(s, 'dd-MMM-yyyy') w FROM VALUES ('Jan 5, 2024'), ('JAN 5, 2024'),
  ('dec 31, 2024'), ('05 January 2024'), ('31 may 2024'), ('31 Sept 2024'), ('01-Sep-2024'), ('01-SEP-2024'), ('31-Feb-2024'), ('xyz 5, 2024') AS x(s) ORDER BY s;
-- moments with their distance from UTC
SELECT s, try_to_timestamp(s, "yyyy-MM-dd'T'HH:mm:ssX") x, try_to_timestamp(s, "yyyy-MM-dd'T'HH:mm:ssXXX") xxx,
  try_to_timestamp(s, "yyyy-MM-dd'T'HH:mm:ss.SSSXXX") f, try_to_timestamp(s, "yyyy-MM-dd'T'HH:mm:ssZ") z, try_to_timestamp(s, "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXX") xx
FROM VALUES ('2024-01-01T10:00:00Z'), ('2024-01-01T10:00:00+02:00'), ('2024-01-01T10:00:00-0530'), ('2024-01-01T10:00:00+02'), ('2024-01-01T10:00:00+00:00'),
  ('2024-01-01T10:00:00.123Z'), ('2024-01-01T10:00:00.123456+0100'), ('2024-01-01T10:00:00.5-18:00'), ('2024-01-01T10:00:00.125-18:00'), ('2024-01-01T10:00:00+19:00'),
  ('2024-01-01T10:00:00+01:60'), ('2024-01-01T10:00:00z'), ('2024-01-01T10:00:00'), ('2024-01-01T10:00:00 +02:00'), ('2024-12-31T23:30:00-01:00'), (NULL) AS x(s) ORDER BY s;
-- dates and seconds of moments with their distance from UTC
SELECT to_date('2024-12-31T23:30:00-01:00', "yyyy-MM-dd'T'HH:mm:ssXXX") a, unix_timestamp('2024-12-31T23:30:00-01:00', "yyyy-MM-dd'T'HH:mm:ssXXX") b,
  to_timestamp('05/Mar/2024:10:00:00 +0100', 'dd/MMM/yyyy:HH:mm:ss Z') c;
-- quarters and years in a pattern
SELECT d_date, date_format(d_date, 'y') y, date_format(d_date, "yyyy-'Q'Q") q, date_format(d_date, "y 'q'q") r, date_format(d_date, 'LL') l FROM date_dim WHERE d_date_sk < 9 ORDER BY 1;
-- a month of a wrong name
SELECT to_date('5 Foo 2024', 'd MMM yyyy');
-- stars among arguments
SELECT to_json(struct(*)) j, hash(*) h, xxhash64(s.*) x, concat_ws('|', s.* EXCEPT (s_state)) c FROM store s ORDER BY s_store_sk;
-- stars of a join and of a struct among arguments
SELECT to_json(struct(a.*, b.s_state)) j, to_json(struct(p.*)) k FROM (SELECT i_item_sk, i_color, struct(i_class, i_brand) p FROM item) a JOIN store b
  ON i_item_sk = s_store_sk ORDER BY i_item_sk;
-- stars in aggregates
SELECT i_class, count(DISTINCT *) n, max(struct(i_item_sk, i_color)) m, collect_list(struct(* EXCEPT (i_class))) l FROM (SELECT i_class, i_color, i_item_sk
  FROM item WHERE i_item_sk IN (1, 2)) GROUP BY i_class ORDER BY i_class;
-- a star of one table in count
SELECT count(i.*) FROM item i;
-- stars in a condition
SELECT s_store_sk FROM store WHERE hash(*) <> 0 AND s_store_id IN (SELECT max(s_store_id) FROM store WHERE xxhash64(*) <> 0) ORDER BY 1;
-- stars in a query that is read twice
WITH c AS (SELECT s_store_sk, hash(*) h FROM store) SELECT a.s_store_sk FROM c a JOIN c b ON a.h = b.h ORDER BY 1;
-- names of negative zeros and of named fields
SELECT -0.00, -0, -1.50, 1., -0.0D, struct(size(tags) AS n), filter(items, s -> size(array(s.sku)) > 0) FROM events ORDER BY id;
-- names from text
SELECT IDENTIFIER('kinds.' || 'k') + 1, max(IDENTIFIER("k")), IDENTIFIER('upper')('a') FROM IDENTIFIER('kinds') GROUP BY IDENTIFIER('k') ORDER BY 1;
-- quoted names from text
SELECT IDENTIFIER('`x y`'), identifier FROM (SELECT 1 AS `x y`, 2 AS identifier);
-- a text that is no name
SELECT IDENTIFIER('x y') FROM (SELECT 1 AS `x y`);
-- a part of a name from text
SELECT IDENTIFIER('ki' || 'nds').k FROM kinds;
-- arguments by name
SELECT mask('AbC-12', upperChar => 'Q') m, mask('AbC-12', digitChar => 'd', lowerChar => 'z'), mask(str => 'AbC-12', otherChar => 'o'), mask(upperChar => 'Q', str => 'AbC');
-- a table function with an argument by name
SELECT * FROM explode(collection => array(1, 2));
-- an argument without a name behind one with a name
SELECT mask('AbC', digitChar => '0', 'X');
-- an argument by a name that a function has not
SELECT mask('x', nope => 'y');
-- named arguments of a function without them
SELECT upper(str => 'abc');
-- groups of maps
SELECT m, count(*), max(k) FROM nest WHERE k <> 4 GROUP BY m ORDER BY 3;
-- groups of maps in another order
SELECT m, count(*) FROM (SELECT CASE WHEN k % 2 = 0 THEN map('b', 1, 'a', 2) ELSE map('a', 2, 'b', 1) END m FROM nest) GROUP BY m;
-- translate with nulls
SELECT translate('abc', NULL, 'x') a, translate(NULL, 'a', 'b') b, translate('abc', 'a', NULL) c, translate(s, 'a', CAST(NULL AS string)) FROM kinds WHERE k = 1;
-- characters of a text with a limit
SELECT split('abc', '', 2) a, split('abc', '', 1) d, split('abc', '', 10) f, split('', '', 2) g, split(s, '', 3) h, split(s, '') i FROM kinds ORDER BY k;
-- formats of numbers
SELECT format_string('%08.2f|%+.1f|%,.2f|%,012.2f|% .1f|%(.1f|%.0f', d, d, d, d, d, d, d), format_string('%,d|%,10d|%(d|% d|%-,8d|%08d|%+,d', l, l, l, l, l, l, l), format_string('%X|%08x|%o|%x', i, i, i, ti) FROM kinds ORDER BY k;
-- formats of other values
SELECT format_string('%s %s %s %s %s %s', dt, ts, b, f, d, d1), format_string('%b|%B|%5b|%.1b|%b', true, false, true, false, s), format_string('%2$s %1$s %s %s %c', 'a', 'b', 65), format_string('%S|%.2s|%5.1s|%-5s|', 'abc', 'abc', 'xyz', 'q') FROM kinds ORDER BY k;
-- formats of nulls
SELECT format_string('%.2f', CAST(NULL AS double)), format_string('%5.1f|', CAST(NULL AS double)), format_string('%05d', CAST(NULL AS int)), format_string('%.2s', CAST(NULL AS string)), format_string('%.0f', CAST(NULL AS double)), format_string('%X', CAST(NULL AS int)), format_string('%c', CAST(NULL AS int));
-- a format of zeros without a width
SELECT format_string('%0d', 1);
-- rounding to tens
SELECT bround(i, -2), bround(l, -1), bround(d1, -1), bround(d2, 3), bround(d, 2), bround(d, -1), bround(f, 1), bround(f), round(d, -1), round(f, -2) FROM kinds WHERE k NOT IN (4, 5) ORDER BY k;
-- halves that are rounded to even
SELECT bround(25.0D, -1), bround(35.0D, -1), bround(-25.0D, -1), bround(0.35D, 1), bround(0.25D, 1), bround(15F, -1), bround(15.5, -1), bround(25.0, -1), bround(35, -1), round(-0.4D, -1);
-- an overflow of bround
SELECT bround(CAST(2147483647 AS int), -1);
-- nulls without a type as JSON
SELECT to_json(struct(NULL AS a, array(NULL) AS b, map('x', NULL) AS c, named_struct('d', NULL) AS d, 1 AS e));
-- years of two digits and hours without am
SELECT to_date('01/02/24', 'dd/MM/yy'), to_date('1-Feb-99', 'd-MMM-yy'), to_timestamp('24-1-2 3:04', 'yy-M-d h:mm'), to_timestamp('2024-01-01 12:30', 'yyyy-MM-dd hh:mm'), try_to_timestamp('2024-01-01 13:30', 'yyyy-MM-dd hh:mm');
-- a year of four digits where two are asked for
SELECT to_date('01/02/2024', 'dd/MM/yy');
-- offsets and names of UTC in a pattern
SELECT date_format(ts, "yyyy-MM-dd'T'HH:mm:ss.SSSXXX") a, date_format(ts, 'z Z XX X x xx xxx VV O zzzz') b, from_unixtime(0, 'yyyy-MM-dd XXX') FROM kinds WHERE k IN (1, 3, 4) ORDER BY k;
-- a lateral view without a name
SELECT k, col FROM kinds LATERAL VIEW explode(array(1, 2)) WHERE k = 1;
-- a lateral view with names of columns alone
SELECT k, c FROM kinds LATERAL VIEW explode(array(1, 2)) AS c WHERE k = 1 ORDER BY c;
-- an order by a query that reads the row
SELECT k FROM kinds o ORDER BY (SELECT max(id) FROM emp e WHERE e.id = o.k);
-- an order by a column of a query that reads the row
SELECT k, (SELECT max(id) FROM emp e WHERE e.id = o.k) m FROM kinds o ORDER BY m, k;
-- an order by a star
SELECT k FROM kinds ORDER BY *;
-- an order by a function of a star
SELECT id FROM emp ORDER BY hash(*);
-- a window in the order of a star
SELECT id, row_number() OVER (ORDER BY hash(*)) n FROM emp ORDER BY n;
-- stack of whole numbers and decimals
SELECT stack(2, 1, 2.5);
-- stack of numbers and text
SELECT stack(2, 1, 'a');
-- stack of values and nulls
SELECT stack(2, 1, NULL, NULL, 'b');
