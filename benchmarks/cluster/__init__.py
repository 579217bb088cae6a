"""A real standalone Spark cluster on the loopback address, with an S3 server beside it."""
