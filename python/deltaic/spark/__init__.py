"""Delta tables on a Spark cluster, by plain PySpark and without a jar."""
