#!/bin/bash
# Starts what Spark on Kubernetes asks an image for: `executor`, `driver …`, or any other command.
#
# Spark says the rest in variables: SPARK_DRIVER_URL, SPARK_EXECUTOR_ID, SPARK_JAVA_OPT_0, ….
set -euo pipefail

java_options() {
  # Each of the variables SPARK_JAVA_OPT_<n> is one option, in the order of their numbers.
  env -0 | sort -z -t_ -k4 -n | sed -z -n 's/^SPARK_JAVA_OPT_[0-9]*=//p'
}

case "${1:-}" in
  executor)
    shift
    mapfile -d '' -t options < <(java_options)
    exec "${JAVA_HOME:+${JAVA_HOME}/bin/}java" "${options[@]}" \
      -Xms"${SPARK_EXECUTOR_MEMORY}" -Xmx"${SPARK_EXECUTOR_MEMORY}" \
      -cp "${SPARK_CLASSPATH:+${SPARK_CLASSPATH}:}${SPARK_CONF_DIR:-/opt/spark/conf}:${SPARK_HOME}/jars/*" \
      org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "${SPARK_DRIVER_URL}" \
      --executor-id "${SPARK_EXECUTOR_ID}" \
      --cores "${SPARK_EXECUTOR_CORES}" \
      --app-id "${SPARK_APPLICATION_ID}" \
      --hostname "${SPARK_EXECUTOR_POD_IP}" \
      --resourceProfileId "${SPARK_RESOURCE_PROFILE_ID}" \
      --podName "${SPARK_EXECUTOR_POD_NAME}" \
      "$@"
    ;;
  driver)
    shift
    exec "${SPARK_HOME}/bin/spark-submit" \
      --conf "spark.driver.bindAddress=${SPARK_DRIVER_BIND_ADDRESS}" \
      --deploy-mode client "$@"
    ;;
  *)
    exec "$@"
    ;;
esac
