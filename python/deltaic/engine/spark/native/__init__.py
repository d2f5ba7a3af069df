"""All that deltaic takes from Spark's JVM by py4j, and nothing else: private interfaces of Spark 4.1 to 4.3.

`jvm`: classes by name. `session`: plans, parser, catalog, Hadoop. `catalog`: entries of tables and views.
`callbacks`, `driver_classes`: Java classes that call Python. `scan`, `files`, `file_index`, `filters`,
`deleted_rows`: a scan of Spark's Parquet reader. `tables`: a table that follows its newest version. `stream`:
a stream. No other room calls Java (a test checks this).
"""
