"""The templates, the function's real binary and the Python client on an emulated account, end to end.

    python scenario.py --ministack PATH --bootstrap PATH

Prints a line for each step and fails at the first thing that is not as it must be. Run by tests/it/deploy.rs and,
with the binary that is deployed, by CI.
"""

import argparse
import hashlib
import os
import platform
import subprocess
import sys
from pathlib import Path

import clients
from account import BUCKET, REGION, Account, package

ROOT = Path(__file__).resolve().parents[2]
TABLE = "rate-limits"
FUNCTION = "rate-limits-limits-provisioner"
ALPHA = "tenant-alpha.limits.yaml"
ARCHITECTURE = {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()]


class Deployment:
    def __init__(self, account, bootstrap):
        self.account = account
        self.bootstrap = bootstrap
        self.manifest = (ROOT / "manifests" / ALPHA).read_text()

    def function(self, manifest):
        """Deploys the function's stack with a bundled manifest, as `sam build && sam deploy` would."""
        code = package(self.bootstrap, {ALPHA: manifest})
        key = hashlib.sha256(code).hexdigest()
        self.account.client("s3").put_object(Bucket=BUCKET, Key=key, Body=code)
        template = (ROOT / "template.yaml").read_text()
        for line, instead in [
            ("CodeUri: .", f"CodeUri: s3://{BUCKET}/{key}"),
            # The emulator evaluates no Fn::Split within a condition.
            ('HasTableArn: !Equals [!Select [0, !Split [":", !Ref TableName]], arn]', 'HasTableArn: !Equals ["name", arn]'),
        ]:
            assert template.count(f" {line}\n") == 1, line
            template = template.replace(f" {line}\n", f" {instead}\n")
        return self.account.deploy(
            "provisioner",
            template,
            TableName=TABLE,
            Architecture=ARCHITECTURE,
            ExampleLimits="true",
        )

    def alpha(self, entity, resource, amount=1):
        return clients.asks(TABLE, "tenant-alpha", entity, resource, amount)

    def stamp(self, entity, resource):
        """What a bucket carries, whatever clients make of it; `None` where there is no bucket."""
        found = self.account.client("dynamodb").scan(TableName=TABLE, ConsistentRead=True)["Items"]
        for item in found:
            if f"/BUCKET#{entity}#{resource}#0" in item["PK"]["S"] and item["SK"]["S"] == "#STATE":
                return "disabled" if "disabled" in item else "bypass" if "bypass" in item else "enforce"
        return None


def step(text):
    print(f"- {text}", flush=True)


def expect(found, expected):
    if found != expected:
        raise AssertionError(f"expected {expected!r}, found {found!r}")


def deployed(outcome, status):
    expect(outcome, (status, []))


def table(it):
    step("the table's stack makes the table, with every index, an expiry and a stream")
    template = (ROOT / "templates" / "table.yaml").read_text()
    outcome = it.account.deploy("table", template, TableName=TABLE, DeletionProtection="false")
    deployed(outcome, "CREATE_COMPLETE")
    found = it.account.client("dynamodb").describe_table(TableName=TABLE)["Table"]
    expect(len(found["GlobalSecondaryIndexes"]), 4)
    expect(len(found["LocalSecondaryIndexes"]), 5)
    expect(found["StreamSpecification"]["StreamViewType"], "NEW_AND_OLD_IMAGES")
    expect(it.account.outputs("table")["TableName"], TABLE)
    clients.prepare(TABLE, it.account.url, REGION)


def function(it):
    step("the function's stack applies the bundled manifest, and exports what tenants import")
    deployed(it.function(it.manifest), "CREATE_COMPLETE")
    arn = it.account.outputs("provisioner")["ProvisionerArn"]
    expect(arn.rsplit(":", 1)[-1], FUNCTION)
    expect(it.account.exports()[f"{TABLE}-ProvisionerArn"], arn)
    expect(it.alpha("user-789", "legacy-model"), "disabled")
    expect(it.alpha("user-456", "legacy-model"), "admitted")
    expect(it.alpha("user-789", "gpt-4"), "admitted")
    expect(it.alpha("user-123", "gpt-4", 9999), "admitted")
    expect(it.alpha("user-456", "claude-3", 9999), "exceeded")
    expect(it.stamp("user-789", "gpt-4"), "enforce")

    step("what cannot be answered goes to the queue, and the schedule resumes")
    config = it.account.client("lambda").get_function_event_invoke_config(FunctionName=FUNCTION, Qualifier="$LATEST")
    expect(config["MaximumEventAgeInSeconds"], 240)
    rules = it.account.client("events").list_rule_names_by_target(TargetArn=arn)["RuleNames"]
    targets = it.account.client("events").list_targets_by_rule(Rule=rules[0])["Targets"]
    expect(targets[0]["Input"], '{"action": "resume"}')
    resumed = it.account.invoke(FUNCTION, {"action": "resume"})
    expect((resumed["namespaces"], resumed["pending"], resumed["errors"]), (1, 0, []))


def switch(it):
    step("an edit of the manifest, deployed, stops a resource: its buckets change, and clients obey")
    before = it.account.outputs("provisioner")["ProvisionerVersion"]
    stopped = it.manifest.replace("  gpt-4:\n", "  gpt-4:\n    disabled: true\n", 1)
    deployed(it.function(stopped), "UPDATE_COMPLETE")
    assert it.account.outputs("provisioner")["ProvisionerVersion"] != before
    expect(it.stamp("user-789", "gpt-4"), "disabled")
    expect(it.stamp("user-123", "gpt-4"), "bypass")
    expect(it.alpha("user-789", "gpt-4"), "disabled")
    expect(it.alpha("somebody-new", "gpt-4"), "disabled")
    expect(it.alpha("user-123", "gpt-4", 9999), "admitted")
    expect(it.alpha("user-789", "claude-3"), "admitted")
    return stopped


def rollback(it, stopped):
    step("a bad manifest rolls back, the stack says why, and clients notice nothing")
    bad = stopped.replace("capacity: 2000 }", "capacity: -2000 }", 1)
    assert bad != stopped
    status, reasons = it.function(bad)
    expect(status, "UPDATE_ROLLBACK_COMPLETE")
    print(f"    {reasons[0]}")
    assert reasons[0].startswith("TenantAlpha: "), reasons
    assert ALPHA in reasons[0] and "resources.claude-3.limits.rpm.capacity" in reasons[0], reasons
    expect(it.stamp("user-789", "gpt-4"), "disabled")
    expect(it.alpha("user-789", "gpt-4"), "disabled")
    expect(it.alpha("user-789", "claude-3"), "admitted")

    step("the manifest mended, and the resource on again")
    deployed(it.function(it.manifest), "UPDATE_COMPLETE")
    expect(it.stamp("user-789", "gpt-4"), "enforce")
    expect(it.alpha("user-789", "gpt-4"), "admitted")


def python_command(it, *arguments):
    """The Python package's own command line, as it is installed."""
    command = [sys.executable, "-m", "zae_limiter.cli", "limits", *arguments]
    return subprocess.run(command, env=os.environ, cwd=it.account.folder, capture_output=True, text=True)


def tenant(it, namespace, disabled):
    """A tenant's template, made by the Python command line for its own provisioner."""
    manifest = Path(it.account.folder) / f"{namespace}.yaml"
    manifest.write_text(
        f"namespace: {namespace}\n"
        "resources:\n"
        f"  gpt-4:\n    disabled: {str(disabled).lower()}\n"
        "    limits:\n      rpm: {capacity: 100}\n"
    )
    made = python_command(it, "cfn-template", "-n", TABLE, "-f", str(manifest))
    expect((made.returncode, made.stderr), (0, ""))
    return made.stdout


def tenants(it):
    step("two stacks of tenants import the function, each for its own namespace")
    for name in ["beta", "gamma"]:
        outcome = it.account.deploy(f"tenant-{name}", tenant(it, f"tenant-{name}", False))
        deployed(outcome, "CREATE_COMPLETE")
        expect(clients.asks(TABLE, f"tenant-{name}", "ada", "gpt-4"), "admitted")

    step("the example of a tenant's template is one more")
    example = (ROOT / "examples" / "tenant.yaml").read_text().replace("tenant-beta", "tenant-example")
    deployed(it.account.deploy("tenant-example", example, Stack=TABLE), "CREATE_COMPLETE")
    expect(len(it.account.outputs("tenant-example")["Fingerprint"]), 64)
    expect(clients.asks(TABLE, "tenant-example", "ada", "gpt-4"), "admitted")
    deleted(it, "tenant-example")

    step("one of them stops a resource, and the other does not notice")
    outcome = it.account.deploy("tenant-beta", tenant(it, "tenant-beta", True))
    deployed(outcome, "UPDATE_COMPLETE")
    expect(clients.asks(TABLE, "tenant-beta", "ada", "gpt-4"), "disabled")
    expect(clients.asks(TABLE, "tenant-gamma", "ada", "gpt-4"), "admitted")

    step("another namespace replaces the resource: the new one is applied, the old one given up")
    before = physical_id(it, "tenant-beta")
    outcome = it.account.deploy("tenant-beta", tenant(it, "tenant-delta", True))
    deployed(outcome, "UPDATE_COMPLETE")
    after = physical_id(it, "tenant-beta")
    assert before != after and before.startswith(f"{TABLE}/") and after.startswith(f"{TABLE}/")
    expect(clients.asks(TABLE, "tenant-delta", "ada", "gpt-4"), "disabled")
    expect(it.account.invoke(FUNCTION, plan_of("tenant-beta"))["changes"], [])
    expect(clients.asks(TABLE, "tenant-gamma", "ada", "gpt-4"), "admitted")

    step("a stack removed takes its levels with it, and no others")
    deleted(it, "tenant-beta")
    expect(it.account.invoke(FUNCTION, plan_of("tenant-delta"))["changes"], [])
    expect(clients.asks(TABLE, "tenant-gamma", "ada", "gpt-4"), "admitted")
    deleted(it, "tenant-gamma")


def physical_id(it, stack):
    for resource in it.account.client("cloudformation").describe_stack_resources(StackName=stack)["StackResources"]:
        if resource["ResourceType"].startswith("Custom::"):
            return resource["PhysicalResourceId"]
    raise KeyError(stack)


def plan_of(namespace):
    """An empty manifest: its plan deletes what is still managed there."""
    return {"action": "plan", "table_name": TABLE, "namespace": namespace, "manifest": {"namespace": namespace}}


def deleted(it, stack):
    expect(it.account.delete(stack), "DELETE_COMPLETE")


def command_line(it):
    step("the Python command line plans, applies and compares through the function, unchanged")
    manifest = Path(it.account.folder) / "cli.yaml"

    def declare(disabled):
        manifest.write_text(
            "namespace: tenant-cli\n"
            "resources:\n"
            f"  gpt-4: {{disabled: {disabled}, limits: {{rpm: {{capacity: 100}}}}}}\n"
        )

    def run(command):
        done = python_command(it, command, "-n", TABLE, "-f", str(manifest))
        expect((done.returncode, done.stderr), (0, ""))
        print("".join(f"    {line}\n" for line in done.stdout.splitlines() if line), end="")
        return done.stdout

    declare("true")
    assert "1 created" in run("apply")
    expect(clients.asks(TABLE, "tenant-cli", "ada", "gpt-4"), "disabled")
    assert "No drift" in run("diff")
    declare("false")
    assert "~ resource: gpt-4" in run("diff")
    assert "resource: gpt-4" in run("plan")
    expect(clients.asks(TABLE, "tenant-cli", "ada", "gpt-4"), "disabled")
    assert "1 updated" in run("apply")
    expect(clients.asks(TABLE, "tenant-cli", "ada", "gpt-4"), "admitted")
    assert "No drift" in run("diff")


def end(it):
    step("without its stack the function is gone, and with it what the bundled manifest declared")
    deleted(it, "provisioner")
    expect(it.stamp("user-789", "legacy-model"), None)
    functions = it.account.client("lambda").list_functions()["Functions"]
    expect([found["FunctionName"] for found in functions], [])

    step("the table outlives its stack")
    deleted(it, "table")
    expect(it.account.client("dynamodb").describe_table(TableName=TABLE)["Table"]["TableStatus"], "ACTIVE")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ministack", required=True)
    parser.add_argument("--bootstrap", required=True)
    arguments = parser.parse_args()
    with Account(arguments.ministack) as account:
        it = Deployment(account, arguments.bootstrap)
        table(it)
        function(it)
        stopped = switch(it)
        rollback(it, stopped)
        tenants(it)
        command_line(it)
        end(it)


if __name__ == "__main__":
    main()
