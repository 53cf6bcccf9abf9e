//! The provisioner record of a namespace that one item does not hold: split, read back, and never a
//! mixture of two writes, wherever one dies and whoever else writes.

use crate::transport::{Counted, Fault, Landing, Layer, over};
use crate::world::World;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use zae_limits::model::{Level, ProvisionerRecord};
use zae_limits::store::{Embedded, RecordDelta};

fn level(index: usize) -> Level {
    let target = format!("{index:0>200}/gpt-4");
    Level::from_parts("entity", &target).expect("a level")
}

fn levels(indices: impl IntoIterator<Item = usize>) -> BTreeSet<Level> {
    indices.into_iter().map(level).collect()
}

async fn update(world: &World, managed: BTreeSet<Level>, released: BTreeSet<Level>) {
    let delta = RecordDelta {
        managed,
        released,
        ..RecordDelta::default()
    };
    let updated = world.store.update_record(&world.ns, &delta).await;
    updated.expect("an update");
}

async fn stored(world: &World) -> ProvisionerRecord {
    let record = world.store.record(&world.ns).await.expect("it reads");
    record.expect("a record")
}

/// How many overflow items there are, and how many the record counts.
async fn overflow(world: &World) -> (usize, usize) {
    let dump = world.dump().await;
    let is_overflow = |sk: &str| sk.starts_with("#PROVISIONER#MANAGED#");
    let there = dump.keys().filter(|(_, sk)| is_overflow(sk)).count();
    let main = world.item("SYSTEM#", "#PROVISIONER").await;
    let counted = main["overflow"].as_n().expect("a count");
    (there, counted.parse().expect("a number"))
}

#[tokio::test]
async fn a_hundred_thousand_entities_are_stored_read_back_and_forgotten() {
    let world = World::new().await;
    let name = |index: usize| {
        let target = format!("customer-{index:06}/gpt-4");
        Level::from_parts("entity", &target).expect("a level")
    };
    let all: BTreeSet<Level> = (0..100_000).map(name).collect();
    update(&world, all.clone(), BTreeSet::new()).await;
    let (there, counted) = overflow(&world).await;
    assert!(there > 10, "{there} items");
    assert_eq!(there, counted);
    assert_eq!(stored(&world).await.managed, all);
    // One more rewrites them, and a namespace that shrinks leaves none behind.
    let more = name(100_000);
    update(&world, [more.clone()].into(), BTreeSet::new()).await;
    let (there, counted) = overflow(&world).await;
    assert_eq!(there, counted);
    assert_eq!(stored(&world).await.managed.len(), 100_001);
    update(&world, BTreeSet::new(), all).await;
    assert_eq!(overflow(&world).await, (0, 0));
    assert_eq!(stored(&world).await.managed, [more].into());
}

/// A database whose record fills three overflow items, from a thousand levels on.
async fn large() -> Embedded {
    let embedded = Embedded::memory().expect("an embedded database");
    let world = World::over(embedded.client()).await;
    update(&world, levels(1000..3000), BTreeSet::new()).await;
    assert_eq!(overflow(&world).await, (3, 3));
    embedded
}

#[tokio::test]
async fn a_write_that_dies_leaves_the_record_as_it_was_or_as_it_was_to_be() {
    // What comes sorts before what is there, so that every part is another one than before.
    let comes = levels(0..10);
    let goes = levels(1000..1100);
    let old = levels(1000..3000);
    let new: BTreeSet<Level> = comes.iter().cloned().chain(levels(1100..3000)).collect();
    let mut tried = 0;
    for landing in [Landing::Before, Landing::After] {
        for at in 1.. {
            let embedded = large().await;
            let fault = Fault::crash(at, Counted::Requests, landing);
            let dying = Embedded::client_over(over(embedded.http_client(), fault.clone()));
            let dying = World::before_first_use(dying);
            let delta = RecordDelta {
                managed: comes.clone(),
                released: goes.clone(),
                ..RecordDelta::default()
            };
            let updated = dying.store.update_record(&dying.ns, &delta).await;
            if !fault.struck() {
                break;
            }
            tried += 1;
            let world = World::before_first_use(embedded.client());
            let managed = stored(&world).await.managed;
            assert!(
                managed == old || managed == new,
                "{landing:?} {at}: a mixture"
            );
            assert!(updated.is_err() || managed == new, "{landing:?} {at}");
            update(&world, comes.clone(), goes.clone()).await;
            assert_eq!(stored(&world).await.managed, new, "{landing:?} {at}");
            // What the dead one left goes with the next write at the latest.
            update(&world, levels([5000]), BTreeSet::new()).await;
            let (there, counted) = overflow(&world).await;
            assert_eq!(there, counted, "{landing:?} {at}");
        }
    }
    println!("{tried} crash points");
    assert!(tried > 15, "{tried}");
}

/// Another writer's whole write happens before the k-th request, from 1.
#[derive(Clone)]
struct Between {
    at: usize,
    passed: Arc<AtomicUsize>,
    embedded: Embedded,
}

impl fmt::Debug for Between {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a write before request {}", self.at)
    }
}

impl Layer for Between {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        if self.passed.fetch_add(1, Ordering::SeqCst) + 1 != self.at {
            return next.call(request);
        }
        let (this, next) = (self.clone(), next.clone());
        HttpConnectorFuture::new(async move {
            let other = World::before_first_use(this.embedded.client());
            // It comes first in the order of levels, so that every part shifts.
            update(&other, levels([0]), levels([1500])).await;
            next.call(request).await
        })
    }
}

#[tokio::test]
async fn two_writes_at_once_lose_nothing_of_either() {
    let expected: BTreeSet<Level> = levels([0, 1])
        .into_iter()
        .chain(levels((1000..3000).filter(|n| ![1500, 1600].contains(n))))
        .collect();
    let mut tried = 0;
    for at in 1.. {
        let embedded = large().await;
        let between = Between {
            at,
            passed: Arc::default(),
            embedded: embedded.clone(),
        };
        let disturbed = over(embedded.http_client(), between.clone());
        let disturbed = World::before_first_use(Embedded::client_over(disturbed));
        update(&disturbed, levels([1]), levels([1600])).await;
        if between.passed.load(Ordering::SeqCst) < at {
            break;
        }
        tried += 1;
        let world = World::before_first_use(embedded.client());
        assert_eq!(stored(&world).await.managed, expected, "{at}");
        // What the loser had written goes with the next write at the latest.
        update(&world, levels([2]), BTreeSet::new()).await;
        let (there, counted) = overflow(&world).await;
        assert_eq!(there, counted, "{at}");
    }
    assert!(tried > 6, "{tried}");
}

/// The record is read while it is replaced: what is read is one or the other.
#[tokio::test]
async fn a_read_beside_a_write_is_never_a_mixture() {
    let (old, new) = (levels(1000..3000), {
        let mut new = levels((1000..3000).filter(|n| *n != 1500));
        new.insert(level(0));
        new
    });
    for at in 1..=2 {
        let embedded = large().await;
        let between = Between {
            at,
            passed: Arc::default(),
            embedded: embedded.clone(),
        };
        let disturbed = over(embedded.http_client(), between.clone());
        let reader = World::before_first_use(Embedded::client_over(disturbed));
        let managed = stored(&reader).await.managed;
        assert!(managed == old || managed == new, "{at}: {}", managed.len());
        assert!(between.passed.load(Ordering::SeqCst) >= at);
    }
}
