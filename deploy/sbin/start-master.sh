#!/bin/bash
# Starts a standalone master. Apache's operator calls it by this name, and pip's Spark does not have it.
set -euo pipefail
exec "${SPARK_HOME}/sbin/spark-daemon.sh" start org.apache.spark.deploy.master.Master 1 \
  --host "${SPARK_MASTER_HOST:-$(hostname -f)}" \
  --port "${SPARK_MASTER_PORT:-7077}" \
  --webui-port "${SPARK_MASTER_WEBUI_PORT:-8080}"
