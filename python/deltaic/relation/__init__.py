"""SQL expressions and relations: Spark's dialect, read once, written for the embedded engine."""
