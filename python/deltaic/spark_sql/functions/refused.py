"""Functions of Spark that the embedded engine does not have, each with the reason; docs/sql.md shows them."""

from __future__ import annotations

_REASONS: dict[str, str] = {
    "the result differs at each call": "randstr uniform shuffle",
    "the result differs at each call: the function is allowed in queries, without a seed": """
        rand random randn uuid""",
    "the result describes Spark's tasks, files or sessions": """
        input_file_name input_file_block_start input_file_block_length monotonically_increasing_id
        spark_partition_id current_catalog current_database current_schema current_user session_user user
        current_path version""",
    "the function calls Java methods": "java_method reflect try_reflect",
    "collations are not supported": "collate collation collations",
    "the bytes are those of Apache DataSketches or Guava, and depend on the hash functions of these libraries"
    " and on the order of rows": """
        hll_sketch_agg hll_sketch_estimate hll_union hll_union_agg theta_sketch_agg theta_sketch_estimate
        theta_union theta_union_agg theta_intersection theta_intersection_agg theta_difference
        kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
        count_min_sketch approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate
        kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
        kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float kll_sketch_get_quantile_bigint
        kll_sketch_get_quantile_double kll_sketch_get_quantile_float kll_sketch_get_rank_bigint
        kll_sketch_get_rank_double kll_sketch_get_rank_float kll_sketch_merge_bigint kll_sketch_merge_double
        kll_sketch_merge_float kll_sketch_to_string_bigint kll_sketch_to_string_double
        kll_sketch_to_string_float
        tuple_difference_double tuple_difference_integer tuple_difference_theta_double
        tuple_difference_theta_integer tuple_intersection_agg_double tuple_intersection_agg_integer
        tuple_intersection_double tuple_intersection_integer tuple_intersection_theta_double
        tuple_intersection_theta_integer tuple_sketch_agg_double tuple_sketch_agg_integer
        tuple_sketch_estimate_double tuple_sketch_estimate_integer tuple_sketch_summary_double
        tuple_sketch_summary_integer tuple_sketch_theta_double tuple_sketch_theta_integer
        tuple_union_agg_double tuple_union_agg_integer tuple_union_double tuple_union_integer
        tuple_union_theta_double tuple_union_theta_integer""",
    "timestamps have microsecond precision": "timestamp_nanos unix_nanos",
    "the sum of floats would have another order than in Spark, and so another last digit": """
        vector_avg vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm
        vector_normalize vector_sum""",
    "the result depends on the rows before, and DuckDB has no such window function": "counter_diff",
    "write the operator instead: x BETWEEN a AND b, CASE WHEN": "between when",
    "metric views are not supported": "measure",
    "the result describes Spark's own grammar or workers": "sql_keywords python_worker_logs",
    "XML is not supported": """
        from_xml to_xml schema_of_xml xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long
        xpath_number xpath_short xpath_string""",
    "Avro and Protobuf are not supported": "from_avro to_avro schema_of_avro from_protobuf to_protobuf",
    "geographic types are not supported": "st_asbinary st_geogfromwkb st_geomfromwkb st_srid st_setsrid",
    "the type TIME is not supported": """
        to_time try_to_time make_time current_time time_diff time_trunc time localtime time_from_micros
        time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds""",
    "time windows are allowed in GROUP BY alone": "window session_window",
    "the function needs the rules of a language for sentences and words": "sentences",
}

REFUSED: dict[str, str] = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""The name of each refused function in lower case, with the reason."""
