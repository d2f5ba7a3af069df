"""The Python data source for Spark, by public interfaces of PySpark alone, those of Spark Connect included."""
