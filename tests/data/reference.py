"""Answers questions about schedules and buckets with the released Python library, for tests/it/differential.rs.

Reads a JSON list of questions from standard input and prints a JSON list of answers, in order.
An answer is {"ok": ...} or {"error": "..."}.
"""

import json
import sys
from datetime import timedelta
from importlib.metadata import version

from zae_limiter.models import Limit
from zae_limiter.repository import Repository
from zae_limiter.schedule import (
    ScheduleEntry,
    _active_index,
    _granularity,
    _next_param_change,
    _next_rising_edge,
    _reset_scan,
    decode,
    decode_reset,
    effective_params,
    encode,
    encode_reset,
    next_reset_edge,
    parse_cron,
)
from zae_limiter.schema import calculate_bucket_ttl_seconds
from zae_limiter.version import ratcheted_client_min_version, reads_reset_after
from zae_limiter_provisioner.applier import _build_change_item
from zae_limiter_provisioner.bucket_sync import _decode_limits, build_bucket_param_update
from zae_limiter_provisioner.differ import compute_diff
from zae_limiter_provisioner.manifest import LimitDecl, LimitsManifest


def entries(declared):
    return tuple(ScheduleEntry(**entry) for entry in declared)


def resets(declared):
    return tuple(ScheduleEntry.reset(cron=cron) for cron in declared)


def fields(cron):
    parsed = parse_cron(cron, "UTC")
    names = ("minutes", "hours", "days", "months", "weekdays")
    values = [sorted(getattr(parsed, name)) for name in names]
    return {"values": values, "and": parsed.day_and}


def stored_entry(entry):
    return {
        "cron": entry.cron,
        "scale": None if entry.scale is None else round(entry.scale * 1000),
        "capacity": entry.capacity,
        "refill_amount": entry.refill_amount,
        "refill_period_seconds": entry.refill_period_seconds,
    }


def limit(declared):
    after = declared["reset_after_seconds"]
    return Limit(
        name=declared["name"],
        capacity=declared["capacity"],
        refill_amount=declared["refill_amount"],
        refill_period_seconds=declared["refill_period"],
        schedule=entries(declared["schedule"]),
        reset_schedule=resets(declared["reset_schedule"]),
        reset_after=None if after is None else timedelta(seconds=after),
    )


def bucket_changes(asked):
    """Each attribute that the reference's update changes, with its new value or null."""
    declared = {
        each["name"]: {
            **each,
            "schedule": entries(each["schedule"]),
            "reset_schedule": resets(each["reset_schedule"]),
        }
        for each in asked["limits"]
    }
    return changes(declared, asked["ttl"], set(asked["stale"]), asked["now_ms"])


def changes(limits, ttl, stale, now_ms):
    expression, names, values = build_bucket_param_update(limits, ttl, stale, now_ms)
    sets, _, removes = expression.removeprefix("SET ").partition(" REMOVE ")
    changes = {names[alias]: None for alias in removes.split(", ") if alias}
    for assignment in sets.split(", "):
        alias, value = assignment.split(" = ")
        changes[names[alias]] = values[value]
    return changes


def config_items(asked):
    """Every item that an apply of the manifest writes to a namespace that manages nothing yet."""
    manifest = LimitsManifest.from_dict(asked["manifest"])
    built = [
        _build_change_item(asked["namespace_id"], change) for change in compute_diff(manifest, {})
    ]
    return [item for _, _, item in built]


def decoded(asked):
    """A stored level as clients and as the provisioner read it, and what follows for its buckets."""
    item = asked["item"]
    limits = object.__new__(Repository)._deserialize_composite_limits(item)
    declared = {
        limit.name: LimitDecl(
            capacity=limit.capacity,
            refill_amount=limit.refill_amount,
            refill_period=limit.refill_period_seconds,
            schedule=limit.schedule,
            reset_schedule=limit.reset_schedule,
            reset_after_seconds=limit.reset_after_seconds,
            soft=limit.soft,
        )
        for limit in limits
    }
    # The first scheduled limit gives a bucket its default, and the order of an item's attributes is
    # nobody's promise: the question is what follows for limits in the order of their names.
    read = dict(sorted(_decode_limits(item).items()))
    return {
        "limits": {name: declared[name].to_dict() for name in declared},
        "provisioner_agrees": {name: LimitDecl(**read[name]) for name in read} == declared,
        "ttl": calculate_bucket_ttl_seconds(limits, 7) if limits else None,
        "bucket": changes(read, asked["ttl"], set(), asked["now_ms"]) if limits else {},
    }


def in_force(asked):
    """The open entry, the parameters in thousandths, the next change, and how far it was looked for."""
    schedule = tuple(ScheduleEntry(tz=asked["tz"], **entry) for entry in asked["schedule"])
    now = asked["now_ms"]
    parsed = tuple(parse_cron(entry.cron, entry.tz) for entry in schedule)
    return {
        "open": _active_index(parsed, now),
        "params": [str(value) for value in effective_params(*asked["base"], schedule, now)],
        "change": _next_param_change(schedule, now),
        "reach": _granularity(parsed)[1],
    }


def resets_next(asked):
    """For each reset its next edge and how far it was looked for, and the earliest of them."""
    now = asked["now_ms"]
    edges = []
    for cron in asked["resets"]:
        parsed = parse_cron(cron, asked["tz"])
        unit, reach = _reset_scan(parsed)
        edges.append([_next_rising_edge(parsed, now, unit, reach), reach])
    schedule = tuple(ScheduleEntry.reset(cron=cron, tz=asked["tz"]) for cron in asked["resets"])
    return {"edges": edges, "next": next_reset_edge(schedule, now_ms=now)}


def answer(question):
    kind, value = question["ask"], question["of"]
    if kind == "fields":
        return fields(value)
    if kind == "zone":
        parse_cron("* * * * *", value)
        return value
    if kind == "encode":
        return encode(entries(value))[0]
    if kind == "encode_reset":
        return encode_reset(resets(value))[0]
    if kind == "decode":
        return [stored_entry(entry) for entry in decode(value, "UTC")]
    if kind == "recode":
        return encode(decode(value, "UTC"))[0]
    if kind == "decode_reset":
        return [entry.cron for entry in decode_reset(value, "UTC")]
    if kind == "ttl":
        return calculate_bucket_ttl_seconds([limit(declared) for declared in value], 7)
    if kind == "bucket":
        return bucket_changes(value)
    if kind == "reads":
        return reads_reset_after(value["found"], "none", value["since"])
    if kind == "ratchet":
        return ratcheted_client_min_version(value["found"], version("zae-limiter"), value["since"])
    if kind == "config_items":
        return config_items(value)
    if kind == "decoded":
        return decoded(value)
    if kind == "in_force":
        return in_force(value)
    if kind == "resets_next":
        return resets_next(value)
    raise KeyError(kind)


def attempt(question):
    try:
        return {"ok": answer(question)}
    except (ValueError, OSError) as problem:
        return {"error": str(problem)}


print(json.dumps([attempt(question) for question in json.load(sys.stdin)]))
