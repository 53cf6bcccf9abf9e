"""An AWS account on this machine: MiniStack in a process of its own, and what the scenario asks of it.

Knows nothing about limits. Needs boto3; MiniStack itself may live in another environment.
"""

import io
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import zipfile
from pathlib import Path

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

REGION = "us-east-1"
BUCKET = "code"
# How long a stack may take, in seconds. It takes one or two; a busy machine takes longer.
PATIENCE = 300


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Account:
    """Runs while the `with` block does."""

    def __init__(self, ministack):
        port = str(free_port())
        self.url = f"http://127.0.0.1:{port}"
        self.folder = tempfile.mkdtemp(prefix="account-")
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": self.folder,
            "TMPDIR": self.folder,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        server = {
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": port,
            "EDGE_PORT": port,
            "MINISTACK_HOST": "127.0.0.1",
            "MINISTACK_REGION": REGION,
        }
        self.log = open(Path(self.folder) / "account.log", "w+")
        self.process = subprocess.Popen(
            [ministack],
            env=self.environment | server,
            cwd=self.folder,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        os.environ.update(self.environment)

    def __enter__(self):
        s3 = self.client("s3")
        for _ in range(600):
            try:
                s3.create_bucket(Bucket=BUCKET)
                return self
            except (BotoCoreError, ClientError):
                if self.process.poll() is not None:
                    break
                time.sleep(0.1)
        raise RuntimeError(f"MiniStack did not start: {self.said()}")

    def __exit__(self, kind, error, trace):
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if error is not None:
            print(self.said()[-6000:], flush=True)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def said(self):
        self.log.flush()
        return Path(self.log.name).read_text(errors="replace")

    def client(self, service):
        # A function may take long, and invoking it twice would hide what the first one did.
        config = Config(read_timeout=PATIENCE, retries={"total_max_attempts": 1})
        return boto3.client(service, endpoint_url=self.url, region_name=REGION, config=config)

    def deploy(self, stack, template, **parameters):
        """Creates or updates a stack; gives its status and the reasons of what failed."""
        cloudformation = self.client("cloudformation")
        try:
            cloudformation.describe_stacks(StackName=stack)
            act = cloudformation.update_stack
        except ClientError:
            act = cloudformation.create_stack
        before = {event["EventId"] for event in self.events(stack)}
        key = f"{stack}.yaml"
        self.client("s3").put_object(Bucket=BUCKET, Key=key, Body=template.encode())
        act(
            StackName=stack,
            TemplateURL=f"{self.url}/{BUCKET}/{key}",
            Parameters=[
                {"ParameterKey": name, "ParameterValue": value}
                for name, value in parameters.items()
            ],
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        )
        status = self.settled(stack)
        reasons = [
            f"{event['LogicalResourceId']}: {event['ResourceStatusReason']}"
            for event in self.events(stack)
            if event["EventId"] not in before
            and event["ResourceStatus"].endswith("FAILED")
            and event.get("ResourceStatusReason")
        ]
        return status, reasons

    def delete(self, stack):
        identity = self.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]["StackId"]
        self.client("cloudformation").delete_stack(StackName=stack)
        return self.settled(identity)

    def settled(self, stack):
        for _ in range(PATIENCE * 5):
            stacks = self.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
            status = stacks[0]["StackStatus"]
            if not status.endswith("IN_PROGRESS"):
                return status
            time.sleep(0.2)
        raise RuntimeError(f"{stack} is still {status}")

    def events(self, stack):
        try:
            return self.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
        except ClientError:
            return []

    def resource(self, stack, logical_id):
        found = self.client("cloudformation").describe_stack_resources(StackName=stack)
        for resource in found["StackResources"]:
            if resource["LogicalResourceId"] == logical_id:
                return resource
        raise KeyError(f"{stack} has no {logical_id}")

    def outputs(self, stack):
        found = self.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
        return {output["OutputKey"]: output["OutputValue"] for output in found["Outputs"]}

    def exports(self):
        found = self.client("cloudformation").list_exports()["Exports"]
        return {export["Name"]: export["Value"] for export in found}

    def invoke(self, function, event):
        answer = self.client("lambda").invoke(FunctionName=function, Payload=json.dumps(event))
        return json.loads(answer["Payload"].read())


def package(bootstrap, manifests):
    """The function as `sam build` lays it out, zipped: the binary, and the manifests beside it."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        binary = zipfile.ZipInfo("bootstrap")
        binary.external_attr = 0o755 << 16
        binary.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(binary, Path(bootstrap).read_bytes())
        for name, text in manifests.items():
            archive.writestr(f"manifests/{name}", text)
    return content.getvalue()
