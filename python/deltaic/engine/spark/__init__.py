"""The engine on a Spark cluster, by plain PySpark: `engine` (what the commands ask), `lowering` and `expressions` (plans), `native`
(reading through Spark's own driver interfaces), `portable` (by public ones), `write`, `cluster`."""
