//! Switches: who is admitted, which exception says why not, and what it costs the bucket.

use super::served::Balance;
use super::{Became, Client, Served};
use crate::python::PEER;
use std::fmt::Write;
use zae_limits::model::EpochMs;

/// What a level can say, and how a manifest spells it.
const SAYS: [Option<&str>; 4] = [None, Some("true"), Some("false"), Some("bypass")];
/// Tokens do not drip back while a test runs.
const LIMIT: &str = "rpm: { capacity: 8000, refill_amount: 1, refill_period: 100000000 }";

/// An entity, and what its level of `gpt-4` and its `_default_` say of access.
struct Tenant {
    id: String,
    own: Option<&'static str>,
    default: Option<&'static str>,
}

/// One tenant for every pair of what its levels can say.
fn tenants() -> Vec<Tenant> {
    let spell = |says: Option<&str>| says.unwrap_or("silent").to_owned();
    let pairs = SAYS
        .into_iter()
        .flat_map(|own| SAYS.map(|default| (own, default)));
    pairs
        .map(|(own, default)| Tenant {
            id: format!("own-{}.default-{}", spell(own), spell(default)),
            own,
            default,
        })
        .collect()
}

/// The manifest in which the resources and every tenant say what they say.
fn manifest(resource: Option<&str>, tenants: &[Tenant]) -> String {
    let switch =
        |says: Option<&str>| says.map_or(String::new(), |says| format!("disabled: {says}"));
    let mut yaml = format!(
        "system: {{ limits: {{ {LIMIT} }} }}\nresources:\n  gpt-4: {{ {} }}\n",
        switch(resource)
    );
    if tenants
        .iter()
        .any(|tenant| tenant.own.or(tenant.default).is_some())
    {
        yaml.push_str("entities:\n");
    }
    for Tenant { id, own, default } in tenants {
        let levels: Vec<String> = [("gpt-4", own), ("_default_", default)]
            .into_iter()
            .filter_map(|(name, says)| Some(format!("{name}: {{ disabled: {} }}", (*says)?)))
            .collect();
        if !levels.is_empty() {
            let _ = writeln!(yaml, "  {id}: {{ resources: {{ {} }} }}", levels.join(", "));
        }
    }
    yaml
}

/// What a client must do: the most specific level that says anything decides.
fn expected(levels: [Option<&str>; 3]) -> &'static str {
    match levels.into_iter().flatten().next() {
        Some("true") => "disabled",
        Some("bypass") => "bypassed",
        _ => "admitted",
    }
}

/// Acquires three times, five tokens in all, and checks what that did to the bucket. A bypass that is no longer fresh
/// costs the client that renews it a few requests more.
async fn try_three(
    served: &Served,
    client: &Client<'_>,
    tenant: &str,
    resource: &str,
    expected: &str,
    fresh_until: EpochMs,
) {
    let before = served.shards(tenant, resource).await;
    let had = Balance::of(&before);
    let became = [
        client.acquire(tenant, resource, 1),
        client.acquire(tenant, resource, 1),
        client.acquire_and_adjust(tenant, resource, 1, 2),
    ];
    let sent = client.requests();
    if expected != "bypassed" || served.world.clock.now() < fresh_until {
        assert_requests(expected, &sent);
    }
    for became in &became {
        assert_eq!(
            became.word(),
            expected,
            "{tenant} on {resource}: {became:?}"
        );
        if let Became::Disabled { entity, .. } = became {
            assert_eq!(entity, tenant);
        }
    }
    let after = served.shards(tenant, resource).await;
    let change = Balance::of(&after).since(had);
    match expected {
        "disabled" => assert_eq!(after, before, "{tenant}"),
        "bypassed" => assert_eq!(change, (0, 5), "{tenant}"),
        _ => assert_eq!(change, (-5, 5), "{tenant}"),
    }
}

/// Whatever was switched, a client decides with its one write on the bucket: it reads no level's config and makes no
/// transaction. Another write is the adjustment, and once more when it learns of a bypass or that one ended.
fn assert_requests(expected: &str, sent: &[String]) {
    let count = |name: &str| sent.iter().filter(|sent| *sent == name).count();
    // A client that has just connected asks what to do when the table is away.
    let (writes, reads) = (count("UpdateItem"), count("GetItem"));
    assert!(
        reads <= 1 && reads + writes == sent.len(),
        "{expected}: {sent:?}"
    );
    match expected {
        "disabled" => assert_eq!(writes, 3, "{sent:?}"),
        _ => assert!((4..=5).contains(&writes), "{expected}: {sent:?}"),
    }
}

/// Gives a tenant all eight shards of `gpt-4`. Which one an acquire draws is chance.
async fn spread_over_eight(served: &Served, client: &Client<'_>, tenant: &str) {
    client.double_to_eight(tenant, "gpt-4", 8_000);
    for _ in 0..40 {
        for _ in 0..8 {
            client.acquire(tenant, "gpt-4", 1);
        }
        if served.shards(tenant, "gpt-4").await.len() == 8 {
            return;
        }
    }
}

async fn every_combination(shards: usize) {
    let served = Served::start().await;
    let Some(peer) = served.peer(&PEER) else {
        return;
    };
    let tenants = tenants();
    served.world.apply(&manifest(None, &[])).await;
    let warm = peer.connect();
    for Tenant { id, .. } in &tenants {
        warm.acquire(id, "claude-3", 1);
        warm.acquire(id, "gpt-4", 1);
        if shards == 8 {
            spread_over_eight(&served, &warm, id).await;
        }
        assert_eq!(served.shards(id, "gpt-4").await.len(), shards);
    }
    warm.requests();
    // The last step takes every switch away again.
    let steps = SAYS.map(|says| (says, &tenants[..]));
    for (resource, declared) in steps.into_iter().chain([(None, &[][..])]) {
        served.world.apply(&manifest(resource, declared)).await;
        // A stamp of a bypass is good for at least 48 s.
        let fresh_until = EpochMs(served.world.clock.now().0 + 40_000);
        let cold = peer.connect();
        for tenant in &tenants {
            let (own, default) = match declared {
                [] => (None, None),
                _ => (tenant.own, tenant.default),
            };
            for client in [&warm, &cold] {
                let of = |resource, levels| (resource, expected(levels));
                let own_and_all = of("gpt-4", [own, default, resource]);
                for (resource, expected) in [own_and_all, of("claude-3", [None, default, None])] {
                    let id = &tenant.id;
                    try_three(&served, client, id, resource, expected, fresh_until).await;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_combination_of_switches_is_enforced_on_one_shard() {
    every_combination(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_combination_of_switches_is_enforced_on_eight_shards() {
    every_combination(8).await;
}
