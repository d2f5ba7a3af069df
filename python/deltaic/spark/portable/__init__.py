"""What needs nothing but PySpark's public interfaces, Spark Connect's included."""
