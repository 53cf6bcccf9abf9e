"""Real clients of the table, driven over JSON lines: for tests/it/interop.

Reads one request a line from standard input, `{"do": NAME, ...}`, and answers each with one line: `{"ok": ...}`, or
`{"raised": {"type": ..., "message": ..., ...}}` with what an exception of the library names. One process can hold
several clients, each with connections and caches of its own: a client that has just connected is a cold one.
Works with every release since 0.12.0.
"""

import dataclasses
import datetime
import enum
import json
import os
import sys
import threading
import time

URL, TABLE = sys.argv[1], sys.argv[2]
os.environ.update(
    AWS_ENDPOINT_URL_DYNAMODB=URL,
    AWS_DEFAULT_REGION="us-east-1",
    AWS_ACCESS_KEY_ID="any",
    AWS_SECRET_ACCESS_KEY="any",
    AWS_EC2_METADATA_DISABLED="true",
)

from zae_limiter import RateLimitExceeded, SyncRateLimiter, SyncRepository
from zae_limiter.exceptions import ResourceDisabled


class Client:
    """One application: a repository, a limiter over it, and the names of the requests they send."""

    def __init__(self, namespace, options):
        self.repository = SyncRepository.connect(
            namespace, stack=TABLE, region="us-east-1", endpoint_url=URL, **options
        )
        # Whoever acts is asked of STS, which is not here.
        self.repository._caller_identity_arn = "arn:aws:iam::123456789012:user/client"
        self.repository._caller_identity_fetched = True
        self.limiter = SyncRateLimiter(repository=self.repository)
        self.sent = []
        events = self.repository._get_client().meta.events
        events.register("before-call.dynamodb", lambda model, **_: self.sent.append(model.name))

    def acquire(self, entity, resource, consume, adjust):
        """One request of the application, its lease settled; the exception that refused it, else."""
        with self.limiter.acquire(entity, resource, consume) as lease:
            if adjust:
                lease.adjust(**adjust)
            bypassed = getattr(lease, "bypassed", False)
            overdrawn = getattr(lease, "overdrawn", [])
        return {"bypassed": bypassed, "overdrawn": overdrawn, "consumed": lease.consumed}


class Hammer:
    """Threads that acquire without a pause until they are told to stop, and what became of each request.

    A thread whose entity ends with `*` is another newcomer every time: its bucket is made by the request.
    """

    def __init__(self, clients, entities, resource, consume):
        self.stopping = threading.Event()
        self.records = [[] for _ in clients]
        self.threads = [
            threading.Thread(target=self.run, args=(client, entity, resource, consume, records))
            for client, entity, records in zip(clients, entities, self.records, strict=True)
        ]
        for thread in self.threads:
            thread.start()

    def run(self, client, entity, resource, consume, records):
        turn = 0
        while not self.stopping.is_set():
            turn += 1
            who = entity.replace("*", f"{turn}") if entity.endswith("*") else entity
            began = time.time()
            try:
                lease = client.acquire(who, resource, consume, None)
                became = "bypassed" if lease["bypassed"] else "admitted"
            except (RateLimitExceeded, ResourceDisabled) as error:
                became = type(error).__name__
            except Exception as error:
                became = f"{type(error).__name__}: {error}"
            records.append([began, time.time(), who, became])

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        return [record for records in self.records for record in records]


def plain(value):
    """What JSON can say of a value of the library."""
    if dataclasses.is_dataclass(value):
        named = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        return plain(named)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return value


clients = {}
hammers = []


def connect(client, namespace, options):
    clients[client] = Client(namespace, options)
    return clients[client].repository.namespace_id


def acquire(client, entity, resource, consume, adjust=None):
    return clients[client].acquire(entity, resource, consume, adjust)


def requests(client):
    """The requests a client has sent since it was asked last."""
    sent = clients[client].sent
    taken = sent[:]
    del sent[:]
    return taken


def call(client, method, arguments):
    return getattr(clients[client].repository, method)(**arguments)


def set_limits(client, entity, resource, name, capacity):
    from zae_limiter import Limit

    limit = Limit.per_minute(name, capacity)
    return clients[client].repository.set_limits(entity, [limit], resource=resource)


def hammer(clients_of_threads, entities, resource, consume):
    held = [clients[name] for name in clients_of_threads]
    hammers.append(Hammer(held, entities, resource, consume))


def made():
    """How many requests each thread has made."""
    return [len(records) for records in hammers[-1].records]


def rest():
    return hammers.pop().stop()


def provision(event, dies):
    """Runs the provisioner on an event; one that dies ends before its fan-outs, its lease with it."""
    from unittest import mock

    from zae_limiter_provisioner import handler

    if not dies:
        return handler.on_event(event, None)

    class Killed(BaseException):
        pass

    ended = mock.patch.object(handler, "deadline_for", lambda _: int(time.time() * 1000) - 1)
    killed = mock.patch.object(handler, "_retry_from_table", mock.Mock(side_effect=Killed))
    with ended, killed:
        try:
            handler.on_event(event, None)
        except Killed:
            return None
    raise AssertionError("nothing was owed")


DOES = {
    does.__name__: does
    for does in (connect, acquire, requests, call, set_limits, hammer, made, rest, provision)
}

for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = {"ok": plain(DOES[request.pop("do")](**request))}
    except Exception as error:
        said = {"type": type(error).__name__, "message": str(error)}
        for name in ("entity_id", "resource", "level"):
            if isinstance(getattr(error, name, None), str):
                said[name] = getattr(error, name)
        answer = {"raised": said}
    print(json.dumps(answer), flush=True)
