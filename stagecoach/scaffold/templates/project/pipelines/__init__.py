"""The queries of this project, their catalog and what Dagster loads."""
