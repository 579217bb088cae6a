"""What Dagster does on its own: conditions, schedules, sensors, maintenance jobs and alerts."""
