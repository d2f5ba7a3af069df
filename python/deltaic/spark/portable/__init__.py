"""Reading and writing by public interfaces of PySpark alone: the Python data source, and what Spark Connect
needs."""
