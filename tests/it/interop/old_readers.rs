//! Clients of older releases: what they enforce of a manifest, and how those that would misread it are kept away.

use super::{Became, Client, Peer, Served};
use crate::gate::{FEATURES, around, declaring, refusals};
use crate::python::{PEER, V0_12, V0_16};
use crate::world::s;
use serde_json::json;

const LIMITS: &str =
    "limits: { rpm: { capacity: 100, refill_amount: 1, refill_period: 100000000 } }";

/// A stopped resource with one tenant carved out, and what another tenant's own level says.
fn stopped(other: &str) -> String {
    format!(
        "resources: {{ gpt-4: {{ disabled: true, {LIMITS} }} }}\n\
         entities:\n  carved: {{ resources: {{ gpt-4: {{ disabled: false }} }} }}\n{other}"
    )
}

/// A client that has been admitted for some entities, so that it knows their buckets.
async fn warmed<'p>(served: &Served, peer: &'p Peer, entities: &[&str]) -> Client<'p> {
    served
        .world
        .apply(&format!("resources: {{ gpt-4: {{ {LIMITS} }} }}"))
        .await;
    let client = peer.connect();
    for entity in entities {
        assert_eq!(client.acquire(entity, "gpt-4", 1), Became::Admitted);
    }
    client
}

async fn assert_stopped_but_for_the_carve_out(served: &Served, client: &Client<'_>) {
    for (entity, word) in [
        ("alice", "disabled"),
        ("carved", "admitted"),
        ("stranger", "disabled"),
    ] {
        let before = served.rpm(entity, "gpt-4").await;
        let became = client.acquire(entity, "gpt-4", 1);
        assert_eq!(became.word(), word, "{entity}: {became:?}");
        let cost = if word == "admitted" { (-1, 1) } else { (0, 0) };
        assert_eq!(
            served.rpm(entity, "gpt-4").await.since(before),
            cost,
            "{entity}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn release_0_12_enforces_switches_and_takes_bypass_for_enabled() {
    let served = Served::start().await;
    let (Some(old), Some(new)) = (served.peer(&V0_12), served.peer(&PEER)) else {
        return;
    };
    let warm = warmed(&served, &old, &["alice", "carved", "favoured"]).await;
    let favoured = "  favoured: { resources: { gpt-4: { disabled: bypass } } }\n";
    for yaml in [stopped(""), stopped(favoured)] {
        served.world.apply(&yaml).await;
        assert_stopped_but_for_the_carve_out(&served, &warm).await;
        assert_stopped_but_for_the_carve_out(&served, &old.connect()).await;
    }
    // It never asks which client is the oldest allowed: it connects, and meters what the new one waves through.
    let before = served.rpm("favoured", "gpt-4").await;
    assert_eq!(
        new.connect().acquire("favoured", "gpt-4", 500),
        Became::Bypassed
    );
    let after = served.rpm("favoured", "gpt-4").await;
    assert_eq!(after.since(before), (0, 500));
    for client in [&warm, &old.connect()] {
        let before = served.rpm("favoured", "gpt-4").await;
        assert_eq!(client.acquire("favoured", "gpt-4", 2), Became::Admitted);
        assert_eq!(served.rpm("favoured", "gpt-4").await.since(before), (-2, 2));
        assert_eq!(client.acquire("favoured", "gpt-4", 500), Became::Limited);
    }
    served
        .world
        .apply(&format!("resources: {{ gpt-4: {{ {LIMITS} }} }}"))
        .await;
    assert_eq!(warm.acquire("alice", "gpt-4", 1), Became::Admitted);
}

#[tokio::test(flavor = "multi_thread")]
async fn release_0_16_enforces_switches_until_a_bypass_keeps_it_away() {
    let served = Served::start().await;
    let Some(old) = served.peer(&V0_16) else {
        return;
    };
    let warm = warmed(&served, &old, &["alice", "carved"]).await;
    // A cascade policy raises the oldest client to 0.16.0 and no further.
    served
        .world
        .apply(&(stopped("") + "  alice: { resources: { gpt-4: { cascade: false } } }\n"))
        .await;
    assert_stopped_but_for_the_carve_out(&served, &warm).await;
    assert_stopped_but_for_the_carve_out(&served, &old.connect()).await;

    served
        .world
        .apply(&stopped(
            "  alice: { resources: { gpt-4: { disabled: bypass } } }\n",
        ))
        .await;
    let refused = old.try_connect(&json!({})).err().expect("a refusal");
    assert_eq!(refused.kind, "VersionMismatchError", "{refused:?}");
    assert!(refused.message.contains("0.17.0"), "{refused:?}");
    // Not even an apply without any bypass lets it in again: somewhere a stamp may be left.
    served.world.apply(&stopped("")).await;
    let refused = old.try_connect(&json!({})).err().expect("a refusal");
    assert_eq!(refused.kind, "VersionMismatchError", "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_deployed_functions_would_misread_is_refused_and_their_clients_stay_connected() {
    let served = Served::start().await;
    let world = &served.world;
    let (Some(oldest), Some(old)) = (served.peer(&V0_12), served.peer(&V0_16)) else {
        return;
    };
    world
        .apply(&format!("resources: {{ gpt-4: {{ {LIMITS} }} }}"))
        .await;
    let deploy = async |release: &str| {
        let key = ("_/SYSTEM#".to_owned(), "#VERSION".to_owned());
        let mut record = world.dump().await.remove(&key).expect("a record");
        record.insert("lambda_version".to_owned(), s(release));
        world.put(record).await;
    };
    for (_, feature, since) in FEATURES {
        let [before, ..] = around(since);
        deploy(&before).await;
        let unchanged = world.dump().await;
        let said = refusals(world, &declaring(feature)).await;
        for named in [since, &before] {
            assert!(said.contains(named), "{feature}: {said}");
        }
        assert_eq!(world.dump().await, unchanged);
        // 0.12 refuses a deployment that is older than itself, and accepts every newer one.
        assert_eq!(
            oldest.connect().acquire("alice", "gpt-4", 1),
            Became::Admitted
        );
        if before.starts_with("0.16.") {
            assert_eq!(old.connect().acquire("alice", "gpt-4", 1), Became::Admitted);
        }
    }
}
