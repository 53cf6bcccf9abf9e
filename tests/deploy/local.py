"""`cargo lambda watch` and `invoke` on this machine: plan, apply, Create, Update and Delete over the embedded table.

    python local.py --zae-limits PATH

Needs cargo-lambda on the path and nothing beyond the standard library. The table is served by `zae-limits local
serve`, the answers that CloudFormation would get are caught by a sink, and both that and what `invoke` prints are held
against what must be. Run by CI.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FUNCTION = "limits-provisioner"
MANIFEST = "tenant-alpha.limits.yaml"
# How long the first build of the function may take, in seconds.
BUILD = 1200


class Sink:
    """Keeps every PUT, as S3 would."""

    def __init__(self):
        self.puts = puts = []

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self):
                length = int(self.headers["content-length"])
                puts.append((self.path, self.headers, json.loads(self.rfile.read(length))))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        # As S3 writes it: escaped characters that must arrive as they are.
        self.path = "/answers/arn%3Aaws%3Acloudformation%7Cone?X-Amz-Signature=abc%2Fdef"
        self.url = f"http://127.0.0.1:{self.server.server_port}{self.path}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self):
        (path, headers, body), *more = self.puts
        self.puts.clear()
        expect(more, [])
        expect((path, headers["content-type"]), (self.path, ""))
        return body


class Process:
    """A process, with all that it starts, that ends with the `with` block."""

    def __init__(self, command, environment, cwd, log):
        self.log = log
        with open(log, "w") as output:
            self.process = subprocess.Popen(
                command, env=environment, cwd=cwd, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if error is not None:
            print(Path(self.log).read_text()[-4000:], flush=True)

    def until(self, ready, seconds):
        for _ in range(seconds * 5):
            if self.process.poll() is not None:
                raise RuntimeError(f"it ended: {Path(self.log).read_text()}")
            found = ready(Path(self.log).read_text())
            if found:
                return found
            time.sleep(0.2)
        raise RuntimeError(f"not ready after {seconds} s: {Path(self.log).read_text()}")


def step(text):
    print(f"- {text}", flush=True)


def expect(found, expected):
    if found != expected:
        raise AssertionError(f"expected {expected!r}, found {found!r}")


def run(command, environment, cwd, code=0):
    done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True)
    if done.returncode != code:
        raise AssertionError(f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def answers(port):
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", int(port))) == 0


def story(shell, invoke, sink, manifest):
    def event(kind, *options):
        return json.loads(shell("event", kind, "-f", manifest.name, *options))

    def request(kind):
        told = invoke(event(kind, "--response-url", sink.url))
        body = sink.take()
        expect(told, body)
        return body

    step("plan: what would be created, and nothing is")
    planned = invoke(event("plan"))
    expect((planned["status"], planned["created"]), ("planned", 7))

    step("Create: SUCCESS, the levels are there")
    created = request("create")
    expect((created["Status"], created["Data"]["Created"]), ("SUCCESS", "7"))
    shown = shell("plan", "-f", manifest.name, "--detailed-exitcode")
    assert "7 unchanged" in shown, shown

    step("Update: a stopped resource, and its buckets")
    shell("--local=limits.db", "local", "seed")
    manifest.write_text(manifest.read_text().replace("  gpt-4:\n", "  gpt-4:\n    disabled: true\n", 1))
    updated = request("update")
    expect((updated["Status"], updated["Data"]["Updated"], updated["Data"]["Stamped"]), ("SUCCESS", "1", "4"))
    expect(updated["PhysicalResourceId"], created["PhysicalResourceId"])

    step("an Update with a bad manifest: FAILED, with the reason, and the invoke itself is no error")
    bad = event("update", "--response-url", sink.url)
    bad["ResourceProperties"]["Resources"]["gpt-4"]["Disabled"] = "ture"
    told = invoke(bad)
    expect(told, sink.take())
    expect((told["Status"], told["PhysicalResourceId"]), ("FAILED", created["PhysicalResourceId"]))
    assert "Resources.gpt-4.Disabled" in told["Reason"], told

    step("apply: refused while a stack owns the namespace, done with leave")
    refused = invoke(event("apply"), code=1)
    assert "adopt: true" in refused, refused
    expect(invoke(event("apply", "--adopt"))["unchanged"], 7)
    expect(invoke({"action": "resume"})["pending"], 0)

    step("Delete: of the command line's levels nothing, of its own everything")
    kept = request("delete")
    expect((kept["Status"], kept["Data"]["Status"]), ("SUCCESS", "skipped"))
    expect(invoke(event("create", "--adopt"))["Status"], "SUCCESS")
    deleted = request("delete")
    expect((deleted["Status"], deleted["Data"]["Deleted"]), ("SUCCESS", "7"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--zae-limits", required=True)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="local-"))
    manifest = folder / MANIFEST
    shutil.copy(ROOT / "manifests" / MANIFEST, manifest)
    binary = os.path.abspath(arguments.zae_limits)
    port = free_port()
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "ZAEL_"))}
    sink = Sink()
    try:
        serve = [binary, "--local=limits.db", "local", "serve", "--port", "0"]
        # Made by the first command that writes: another namespace's sample.
        run([binary, "--local=limits.db", "local", "seed", "-N", "another"], plain, folder)
        with Process(serve, plain, folder, folder / "serve.log") as server:
            url = server.until(lambda said: said.partition(" at ")[2].partition("\n")[0], 60)
            environment = plain | {
                "AWS_ENDPOINT_URL_DYNAMODB": url,
                "AWS_REGION": "local",
                "AWS_ACCESS_KEY_ID": "local",
                "AWS_SECRET_ACCESS_KEY": "local",
                "ZAEL_STACK": "rate-limits",
                "TABLE_NAME": "rate-limits",
            }
            watch = ["cargo", "lambda", "watch", "--ignore-changes", "-A", "127.0.0.1", "-P", port]
            watch += ["--no-default-features", "--features", "lambda", "--bin", FUNCTION]
            with Process(watch, environment, ROOT, folder / "watch.log") as watching:
                watching.until(lambda _: answers(port), 60)

                def shell(*words):
                    return run([binary, *words], environment, folder)

                def invoke(event, code=0):
                    file = folder / "event.json"
                    file.write_text(json.dumps(event))
                    command = ["cargo", "lambda", "invoke", FUNCTION, "-A", "127.0.0.1", "-P", port]
                    command += ["--data-file", str(file)]
                    done = subprocess.run(
                        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=BUILD
                    )
                    if done.returncode != code:
                        raise AssertionError(f"invoke ended with {done.returncode}: {done.stdout}{done.stderr}")
                    return json.loads(done.stdout) if code == 0 else done.stdout + done.stderr

                story(shell, invoke, sink, manifest)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
