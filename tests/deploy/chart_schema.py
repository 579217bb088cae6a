"""What Dagster's official chart takes, as far as deploy/dagster/values.yaml sets it.

Written down from the chart's published values (version 1.13). The chart itself refuses unknown names
only in some places; here all of them are.
"""

from __future__ import annotations

from tests.deploy.crd_schemas import COUNT, NUMBER, TEXTS, Schema, strict

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
OBJECTS: Schema = {"type": "array", "items": OBJECT}
NAMES: Schema = {"type": "array", "items": strict(("name",), name=TEXT)}
PULL: Schema = {"enum": ["Always", "IfNotPresent", "Never"]}
SERVICE = strict(("type", "port"), type=TEXT, port=COUNT, annotations=TEXTS)

_CODE_LOCATION = strict(
    ("name", "image", "port"),
    name=TEXT,
    image=strict(("repository", "tag", "pullPolicy"), repository=TEXT, tag=TEXT, pullPolicy=PULL),
    codeServerArgs={"type": "array", "items": TEXT},
    port=COUNT,
    includeConfigInLaunchedRuns=strict(("enabled",), enabled=FLAG),
    envConfigMaps=NAMES,
    envSecrets=NAMES,
    podSecurityContext=OBJECT,
    securityContext=OBJECT,
    resources=OBJECT,
)

_RUN_LAUNCHER = strict(
    ("imagePullPolicy", "loadInclusterConfig", "envConfigMaps", "envSecrets", "envVars",
     "volumeMounts", "volumes"),
    imagePullPolicy=PULL,
    loadInclusterConfig=FLAG,
    envConfigMaps=NAMES,
    envSecrets=NAMES,
    envVars={"type": "array", "items": TEXT},
    volumeMounts=OBJECTS,
    volumes=OBJECTS,
    labels=TEXTS,
    failPodOnRunFailure=FLAG,
    resources=OBJECT,
    securityContext=OBJECT,
    runK8sConfig=strict(
        containerConfig=OBJECT, podSpecConfig=OBJECT, jobSpecConfig=OBJECT, jobMetadata=OBJECT
    ),
)  # fmt: skip

VALUES = strict(
    (),
    **{
        "global": strict((), postgresqlSecretName=TEXT, dagsterHome=TEXT, serviceAccountName=TEXT),
        "serviceAccount": strict(("create",), create=FLAG, name=TEXT, annotations=TEXTS),
        "generatePostgresqlPasswordSecret": FLAG,
        "postgresql": strict(
            ("enabled",),
            enabled=FLAG,
            postgresqlHost=TEXT,
            postgresqlUsername=TEXT,
            postgresqlDatabase=TEXT,
            postgresqlParams=OBJECT,
            postgresqlScheme=TEXT,
            service=strict(("port",), port=COUNT),
        ),
        "computeLogManager": strict(
            ("type", "config"),
            type={"const": "S3ComputeLogManager"},
            config=strict(
                ("s3ComputeLogManager",),
                s3ComputeLogManager=strict(
                    ("bucket",), bucket=TEXT, prefix=TEXT, showUrlOnly=FLAG, uploadInterval=COUNT
                ),
            ),
        ),
        "dagster-user-deployments": strict(
            ("enabled", "enableSubchart", "deployments"),
            enabled=FLAG,
            enableSubchart=FLAG,
            deployments={"type": "array", "items": _CODE_LOCATION, "minItems": 1},
        ),
        "runLauncher": strict(
            ("type", "config"),
            type={"const": "K8sRunLauncher"},
            config=strict(("k8sRunLauncher",), k8sRunLauncher=_RUN_LAUNCHER),
        ),
        "dagsterDaemon": strict(
            (),
            runCoordinator=strict(
                ("enabled", "type", "config"),
                enabled=FLAG,
                type={"const": "QueuedRunCoordinator"},
                config=strict(
                    ("queuedRunCoordinator",),
                    queuedRunCoordinator=strict((), maxConcurrentRuns=NUMBER),
                ),
            ),
            runMonitoring=OBJECT,
            runRetries=OBJECT,
        ),
        "dagsterWebserver": strict((), replicaCount=COUNT, service=SERVICE),
        "ingress": strict(("enabled",), enabled=FLAG),
        "telemetry": strict(("enabled",), enabled=FLAG),
    },
)
