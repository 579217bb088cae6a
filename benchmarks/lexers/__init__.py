"""Random texts that Spark's lexer and ours must cut alike (`python -m benchmarks.lexers`)."""
