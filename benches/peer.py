"""The Python provisioner throwing a switch: `peer.py URL ROUNDS`.

Takes what the bench's own client takes and prints the same JSON: each round one whole apply through the
provisioner's entry point, without the start of the interpreter.
"""

import json
import os
import resource
import sys
import time

url, rounds = sys.argv[1], int(sys.argv[2])
os.environ["AWS_ENDPOINT_URL_DYNAMODB"] = url
os.environ["AWS_DEFAULT_REGION"] = "us-east-1"

import boto3
from zae_limiter.schema import pk_system, sk_namespace
from zae_limiter_provisioner.handler import on_event

TABLE = "rate-limits"
requests = 0


def count(**_):
    global requests
    requests += 1


def namespace_id():
    key = {"PK": {"S": pk_system("_")}, "SK": {"S": sk_namespace("bench")}}
    item = boto3.client("dynamodb").get_item(TableName=TABLE, Key=key)["Item"]
    return item["namespace_id"]["S"]


def throw(namespace, disabled):
    switched = {"disabled": disabled, "limits": {"rpm": {"capacity": 1000}}}
    event = {
        "action": "apply",
        "table_name": TABLE,
        "namespace_id": namespace,
        "manifest": {"namespace": "bench", "resources": {"gpt-4": switched}},
    }
    report = on_event(event, None)
    if report["errors"] or report["created"] + report["updated"] != 1:
        sys.exit(f"the peer's apply failed: {report}")


boto3.setup_default_session()
boto3.DEFAULT_SESSION.events.register("before-send.dynamodb", count)
namespace = namespace_id()
measured = []
for turn in range(rounds):
    requests = 0
    wall, processor = time.perf_counter(), time.process_time()
    throw(namespace, turn % 2 == 0)
    measured.append(
        {
            "seconds": time.perf_counter() - wall,
            "processor_seconds": time.process_time() - processor,
            "requests": requests,
        }
    )
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"rounds": measured, "peak_kib": peak}))
