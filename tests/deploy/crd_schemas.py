"""What the operators' custom resources may hold, as far as deploy/ uses them.

Written down from the operators' published definitions: Kubeflow's SparkConnect
(sparkoperator.k8s.io/v1alpha1), Apache's SparkApplication and SparkCluster (spark.apache.org/v1).
Names that are not here are refused, so that a misspelled one is not dropped by a server.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
NUMBER: Schema = {"type": "integer", "minimum": 0}
COUNT: Schema = {"type": "integer", "minimum": 1}
POD_TEMPLATE: Schema = {"type": "object"}  # checked as part of a pod of Kubernetes


def strict(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """An object with these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def resource(spec: Schema) -> Schema:
    """A resource with such a `spec`."""
    text: Schema = {"type": "string"}
    metadata = strict(("name", "namespace"), name=text, namespace=text, labels=TEXTS)
    required = ("apiVersion", "kind", "metadata", "spec")
    return strict(required, apiVersion=text, kind=text, metadata=metadata, spec=spec)


_SPARK_POD = {"cores": COUNT, "memory": {"type": "string"}, "template": POD_TEMPLATE}
_VERSIONS = strict(
    ("sparkVersion",),
    sparkVersion={"type": "string"},
    scalaVersion={"type": "string"},
    jdkVersion={"type": "string"},
)

SPARK_CONNECT = resource(
    strict(
        ("sparkVersion", "server", "executor"),
        sparkVersion={"type": "string"},
        image={"type": "string"},
        sparkConf=TEXTS,
        hadoopConf=TEXTS,
        dynamicAllocation=strict(
            enabled={"type": "boolean"},
            initialExecutors=NUMBER,
            minExecutors=NUMBER,
            maxExecutors=NUMBER,
            shuffleTrackingEnabled={"type": "boolean"},
            shuffleTrackingTimeout=NUMBER,
        ),
        server=strict(**_SPARK_POD, service={"type": "object"}),
        executor=strict(**_SPARK_POD, instances=NUMBER),
    )
)

SPARK_APPLICATION = resource(
    strict(
        ("runtimeVersions",),
        runtimeVersions=_VERSIONS,
        deploymentMode={"enum": ["ClientMode", "ClusterMode"]},
        mainClass={"type": "string"},
        jars={"type": "string"},
        pyFiles={"type": "string"},
        driverArgs={"type": "array", "items": {"type": "string"}},
        sparkConf=TEXTS,
        driverSpec=strict(podTemplateSpec=POD_TEMPLATE),
        executorSpec=strict(podTemplateSpec=POD_TEMPLATE),
        applicationTolerations=strict(
            resourceRetainPolicy={"enum": ["Always", "Never", "OnFailure"]},
            restartConfig=strict(
                restartPolicy={"enum": ["Always", "Never", "OnFailure", "OnInfrastructureFailure"]},
                maxRestartAttempts=NUMBER,
                restartBackoffMillis=NUMBER,
            ),
            instanceConfig=strict(initExecutors=NUMBER, minExecutors=NUMBER, maxExecutors=NUMBER),
        ),
    )
)

_SET = strict(statefulSetSpec=strict(template=POD_TEMPLATE))

SPARK_CLUSTER = resource(
    strict(
        ("runtimeVersions", "clusterTolerations"),
        runtimeVersions=_VERSIONS,
        sparkConf=TEXTS,
        clusterTolerations=strict(
            ("instanceConfig",),
            instanceConfig=strict(
                ("initWorkers", "minWorkers", "maxWorkers"),
                initWorkers=NUMBER,
                minWorkers=NUMBER,
                maxWorkers=NUMBER,
            ),
        ),
        masterSpec=_SET,
        workerSpec=_SET,
    )
)

SCHEMAS: dict[tuple[str, str], Schema] = {
    ("sparkoperator.k8s.io/v1alpha1", "SparkConnect"): SPARK_CONNECT,
    ("spark.apache.org/v1", "SparkApplication"): SPARK_APPLICATION,
    ("spark.apache.org/v1", "SparkCluster"): SPARK_CLUSTER,
}
