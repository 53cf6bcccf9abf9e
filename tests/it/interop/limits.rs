//! Limits: what a client reads back of every kind, what it makes of them, and how soon.

use super::{Became, Served};
use crate::python::PEER;
use crate::world::Item;
use serde_json::{Value, json};
use std::time::Duration;

/// A limit as the client reads it, with whatever is not the default.
fn limit(name: &str, (capacity, amount, period): (u64, u64, u64), more: Value) -> Value {
    let mut limit = json!({
        "name": name, "capacity": capacity, "refill_amount": amount, "refill_period_seconds": period,
        "schedule": [], "reset_schedule": [], "reset_after": null, "soft": false,
    });
    for (field, value) in more.as_object().expect("a mapping") {
        limit[field] = value.clone();
    }
    limit
}

/// An entry of a schedule as the client reads it.
fn entry(cron: &str, more: Value) -> Value {
    let mut entry = json!({
        "cron": cron, "tz": "Europe/Berlin", "scale": null, "capacity": null, "refill_amount": null,
        "refill_period_seconds": null, "_reset": false,
    });
    for (field, value) in more.as_object().expect("a mapping") {
        entry[field] = value.clone();
    }
    entry
}

/// Every kind of limit, as one level declares them.
const KINDS: &str = r#"
      plain: { capacity: 100 }
      slow: { capacity: 75000, refill_amount: 50000, refill_period: 3600 }
      shaped:
        capacity: 40
        schedule:
          - { cron: "* 12 * * *", tz: Europe/Berlin, capacity: 10, refill_amount: 5, refill_period_seconds: 30 }
          - { cron: "*/15 9-17 * * MON-FRI", tz: Europe/Berlin, scale: 0.5 }
      daily:
        capacity: 1000
        reset_schedule: [{ cron: "0 0 * * *", tz: Europe/Berlin }, { cron: "30 6 1 * SUN", tz: Europe/Berlin }]
      session: { capacity: 20, reset_after_seconds: 18000 }
      spend: { capacity: 7, soft: true }
"#;

/// The same, as the client reads them, by name.
fn kinds() -> Value {
    let dripping = |capacity| (capacity, capacity, 60);
    let resets = json!([
        entry("0 0 * * *", json!({"_reset": true})),
        entry("30 6 1 * 7", json!({"_reset": true})),
    ]);
    let windows = json!([
        entry(
            "* 12 * * *",
            json!({"capacity": 10, "refill_amount": 5, "refill_period_seconds": 30})
        ),
        entry("*/15 9-17 * * 1-5", json!({"scale": 0.5})),
    ]);
    json!([
        limit("daily", (1000, 0, 60), json!({"reset_schedule": resets})),
        limit("plain", dripping(100), json!({})),
        limit("session", (20, 0, 60), json!({"reset_after": 18000.0})),
        limit("shaped", dripping(40), json!({"schedule": windows})),
        limit("slow", (75000, 50000, 3600), json!({})),
        limit("spend", dripping(7), json!({"soft": true})),
    ])
}

fn by_name(mut limits: Value) -> Value {
    let list = limits.as_array_mut().expect("a list");
    list.sort_by_key(|limit| limit["name"].as_str().expect("a name").to_owned());
    limits
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_reads_back_every_kind_of_limit_at_every_level() {
    let served = Served::start().await;
    let Some(peer) = served.peer(&PEER) else {
        return;
    };
    let client = peer.connect();
    let yaml = format!(
        "system:\n  on_unavailable: block\n  limits:{KINDS}\nresources:\n  gpt-4:\n    disabled: bypass\n    \
         cascade: true\n    limits:{KINDS}\nentities:\n  alice:\n    resources:\n      gpt-4:\n       limits:{}\n      \
         _default_:\n       disabled: true\n       cascade: false\n       limits:{}",
        KINDS.replace('\n', "\n  "),
        KINDS.replace('\n', "\n  "),
    );
    served.world.apply(&yaml).await;
    let system = client.call("get_system_defaults", &json!({}));
    assert_eq!(system[1], "block");
    assert_eq!(by_name(system[0].clone()), kinds());
    let of_resource = json!({"resource": "gpt-4"});
    assert_eq!(
        by_name(client.call("get_resource_defaults", &of_resource)),
        kinds()
    );
    assert_eq!(client.call("get_resource_disabled", &of_resource), "bypass");
    assert_eq!(client.call("get_resource_cascade", &of_resource), true);
    for (resource, disabled, cascade) in [
        ("gpt-4", Value::Null, Value::Null),
        ("_default_", json!(true), json!(false)),
    ] {
        let level = json!({"entity_id": "alice", "resource": resource});
        assert_eq!(by_name(client.call("get_limits", &level)), kinds());
        assert_eq!(client.call("get_entity_disabled", &level), disabled);
        assert_eq!(client.call("get_entity_cascade", &level), cascade);
    }
}

fn expiry(shards: &[Item]) -> Option<i64> {
    let [shard] = shards else {
        panic!("{} shards", shards.len());
    };
    shard
        .contains_key("ttl")
        .then(|| super::served::number(shard, "ttl"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_expires_exactly_when_no_entity_level_gives_its_limits() {
    let served = Served::start().await;
    let Some(peer) = served.peer(&PEER) else {
        return;
    };
    // A client that caches its config may say for that long what held before.
    let client = peer.connect_with(&json!({"config_cache_ttl": 0}));
    let base = "resources: { gpt-4: { limits: { rpm: { capacity: 100 } } } }\n";
    let level = |resource: &str, says: &str| {
        format!("{base}entities: {{ alice: {{ resources: {{ {resource}: {{ {says} }} }} }} }}\n")
    };
    let limits = "limits: { rpm: { capacity: 50, refill_amount: 50, refill_period: 600 } }";
    served.world.apply(base).await;
    client.acquire("alice", "gpt-4", 1);
    // Seven recoveries of a minute, as the client that made it says.
    let now = || served.world.clock.now().0 as i64 / 1000;
    let left = |at: Option<i64>| at.map(|at| at - now());
    let of_client = left(expiry(&served.shards("alice", "gpt-4").await)).expect("it expires");
    assert!((360..=421).contains(&of_client), "{of_client}");
    for (yaml, expires) in [
        (level("gpt-4", limits), false),
        (base.to_owned(), true),
        (level("_default_", limits), false),
        (level("gpt-4", "disabled: false"), true),
        (level("gpt-4", limits), false),
        (base.to_owned(), true),
    ] {
        served.world.apply(&yaml).await;
        // What we wrote, and what a client that meters on it leaves.
        for writer in ["ours", "the client's"] {
            let left = left(expiry(&served.shards("alice", "gpt-4").await));
            assert_eq!(left.is_some(), expires, "{writer} after {yaml}");
            assert!(
                left.is_none_or(|left| (360..=421).contains(&left)),
                "{yaml}: {left:?}"
            );
            assert_eq!(client.acquire("alice", "gpt-4", 1), Became::Admitted);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warm_client_follows_new_limits_within_its_cache_time() {
    let served = Served::start().await;
    let Some(peer) = served.peer(&PEER) else {
        return;
    };
    let seconds = 2;
    let warm = peer.connect_with(&json!({"config_cache_ttl": seconds, "rejection_cache_ttl": 0}));
    let yaml = |of_resource: u64, of_alice: u64| {
        let limits = |capacity: u64| {
            format!(
                "limits: {{ rpm: {{ capacity: {capacity}, refill_amount: 1, refill_period: 100000000 }} }}"
            )
        };
        format!(
            "resources: {{ gpt-4: {{ {} }} }}\nentities: {{ alice: {{ resources: {{ gpt-4: {{ {} }} }} }} }}",
            limits(of_resource),
            limits(of_alice)
        )
    };
    served.world.apply(&yaml(100, 50)).await;
    assert_eq!(warm.acquire("alice", "gpt-4", 1), Became::Admitted);
    assert_eq!(warm.acquire("bob", "gpt-4", 1), Became::Admitted);
    assert_eq!(warm.acquire("newcomer-1", "gpt-4", 101), Became::Limited);

    // An entity's limits are in its bucket when apply returns; a resource's reach buckets that are made anew.
    served.world.apply(&yaml(300, 40)).await;
    let capacity = async |entity: &str| {
        super::served::number(&served.shards(entity, "gpt-4").await[0], "b_rpm_cp")
    };
    assert_eq!(capacity("alice").await, 40_000);
    assert_eq!(capacity("bob").await, 100_000);
    assert_eq!(warm.acquire("alice", "gpt-4", 41), Became::Limited);

    tokio::time::sleep(Duration::from_millis(1000 * seconds + 100)).await;
    assert_eq!(warm.acquire("newcomer-2", "gpt-4", 300), Became::Admitted);
    assert_eq!(warm.acquire("newcomer-3", "gpt-4", 301), Became::Limited);
    assert_eq!(warm.acquire("alice", "gpt-4", 1), Became::Admitted);
    assert_eq!(capacity("alice").await, 40_000);
    assert_eq!(capacity("newcomer-2").await, 300_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn soft_limits_windows_and_quotas_are_enforced_as_declared() {
    let served = Served::start().await;
    let Some(peer) = served.peer(&PEER) else {
        return;
    };
    // What it remembers of a rejection it rejects for a second more.
    let warm = peer.connect_with(&json!({"rejection_cache_ttl": 0}));
    let yaml =
        |says: &str| format!("resources: {{ gpt-4: {{ limits: {{ rpm: {{ {says} }} }} }} }}");
    let entity = |who: &str, says: &str| {
        format!(
            "{}\nentities: {{ {who}: {{ resources: {{ gpt-4: {{ limits: {{ rpm: {{ {says} }} }} }} }} }} }}",
            yaml("capacity: 10")
        )
    };
    // One limit after another, each on a bucket of the kind before it.
    for (says, first, second) in [
        (
            "capacity: 10, soft: true",
            Became::Admitted,
            Became::Admitted,
        ),
        ("capacity: 10", Became::Limited, Became::Limited),
        (
            "capacity: 10, reset_after_seconds: 18000",
            Became::Limited,
            Became::Limited,
        ),
        (
            "capacity: 10, reset_schedule: [{ cron: 0 0 1 1 * }]",
            Became::Limited,
            Became::Limited,
        ),
        (
            "capacity: 10, schedule: [{ cron: '* * * * *', capacity: 20, refill_amount: 1, refill_period_seconds: 100000 }]",
            Became::Admitted,
            Became::Limited,
        ),
    ] {
        let who = format!("fresh-{}", says.len());
        served.world.apply(&entity(&who, says)).await;
        assert_eq!(warm.acquire(&who, "gpt-4", 15), first, "{says}");
        assert_eq!(warm.acquire(&who, "gpt-4", 15), second, "{says}");
        assert_eq!(warm.acquire(&who, "gpt-4", 1).word(), "admitted", "{says}");
    }
    // Soft and hard again, on one bucket that is there.
    for (says, became) in [
        ("soft: true", Became::Admitted),
        ("soft: false", Became::Limited),
        ("soft: true", Became::Admitted),
    ] {
        served
            .world
            .apply(&entity(
                "moved",
                &format!("capacity: 10, refill_amount: 1, refill_period: 100000000, {says}"),
            ))
            .await;
        assert_eq!(warm.acquire("moved", "gpt-4", 30), became, "{says}");
    }
}
