"""The native path: all calls of deltaic to Spark's driver JVM by py4j, and to private interfaces of Spark 4.1
to 4.3. No other package calls Java (a test checks this).

`jvm`: Java classes and arrays. `session`: plans, parser, catalog, Hadoop. `catalog`: entries of tables and
views. `callbacks`, `driver_classes`, `leaf_classes`, `listing_classes`: Java classes that call Python.
`scan`, `files`, `file_index`, `filters`, `deleted_rows`: a scan by Spark's Parquet reader. `tables`: a table
that follows its newest version. `totals`: counts and bounds from the log. `curve`: keys of the Z-order curve.
`stream`: a stream. `column_text`: SQL text of Columns. `hadoop_store`: a store over Hadoop's file system.
`java_errors`: errors that are caught as Py4JJavaError.
"""
