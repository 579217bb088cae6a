"""Running a stage inside a Dagster step, and the steps of a run as threads of one process."""
