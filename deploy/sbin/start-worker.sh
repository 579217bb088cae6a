#!/bin/bash
# Starts a standalone worker of a master (`spark://host:port`), which Apache's operator calls by this
# name. SPARK_WORKER_CORES and SPARK_WORKER_MEMORY say how large it is.
set -euo pipefail
exec "${SPARK_HOME}/sbin/spark-daemon.sh" start org.apache.spark.deploy.worker.Worker 1 \
  --webui-port "${SPARK_WORKER_WEBUI_PORT:-8081}" "$@"
