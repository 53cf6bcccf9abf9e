//! A table of this crate's own, served over HTTP to whoever speaks to it, on the machine's clock.

use super::Peer;
use crate::python::Release;
use crate::world::{Item, World, bucket_id, manifest, s};
use std::net::TcpListener;
use tokio::sync::oneshot;
use zae_limits::clock::Clock;
use zae_limits::model::ManifestOwner;
use zae_limits::plan::Policy;
use zae_limits::reconcile::{self, ApplyOptions};
use zae_limits::report::ApplyReport;
use zae_limits::store::{Embedded, serve};

/// A world in this process, and where other processes reach it.
pub struct Served {
    pub world: World,
    pub embedded: Embedded,
    pub url: String,
    /// The server ends when this goes.
    _stop: oneshot::Sender<()>,
}

impl Served {
    /// A fresh table with the namespace `tenant-alpha`.
    pub async fn start() -> Served {
        let embedded = Embedded::memory().expect("an embedded database");
        let mut world = World::over(embedded.client()).await;
        // Clients keep no clock but their own.
        world.clock = Clock::system();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (stop, stopped) = oneshot::channel::<()>();
        let server = serve(&embedded, listener, async {
            let _ = stopped.await;
        });
        let url = server.expect("a server").url();
        let _stop = stop;
        Served {
            world,
            embedded,
            url,
            _stop,
        }
    }

    /// A process of clients of this table.
    pub fn peer(&self, release: &'static Release) -> Option<Peer> {
        Peer::start(release, &self.url, self.world.store.table())
    }

    /// Applies a manifest as the command line does, while clients may be at work: once, the reading pass included.
    pub async fn apply(&self, yaml: &str) -> ApplyReport {
        let plan = self.world.plan(&manifest(yaml)).await;
        let policy = Policy::strict(ManifestOwner::Cli);
        let guarded = plan.guard(&policy).expect("no guard refuses");
        let options = ApplyOptions::default();
        let World { store, clock, .. } = &self.world;
        let report = reconcile::apply(store, clock, &guarded, &options, &()).await;
        let report = report.expect("an apply");
        assert_eq!((&report.errors[..], report.pending), (&[][..], 0));
        report
    }

    /// Every shard there is of a bucket.
    pub async fn shards(&self, entity: &str, resource: &str) -> Vec<Item> {
        let mut shards = Vec::new();
        for shard in 0..8 {
            let id = bucket_id(entity, resource, shard);
            let get = self.world.client.get_item();
            let get = get.table_name(self.world.store.table());
            let get = get.key("PK", s(&id.pk(&self.world.ns)));
            let answer = get.key("SK", s("#STATE")).send().await;
            shards.extend(answer.expect("a read").item);
        }
        shards
    }

    /// The balance of `rpm` in a bucket.
    pub async fn rpm(&self, entity: &str, resource: &str) -> Balance {
        Balance::of(&self.shards(entity, resource).await)
    }
}

/// What a bucket has left of a limit, and what was ever consumed of it, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Balance {
    pub tokens: i64,
    pub consumed: i64,
}

impl Balance {
    /// That of `rpm`, all shards of a bucket together.
    pub fn of(shards: &[Item]) -> Balance {
        let sum = |name: &str| shards.iter().map(|shard| number(shard, name)).sum();
        Balance {
            tokens: sum("b_rpm_tk"),
            consumed: sum("b_rpm_tc"),
        }
    }

    /// What changed since an earlier one: `(tokens, consumed)` in whole ones.
    pub fn since(self, before: Balance) -> (i64, i64) {
        let whole = |thousandths: i64| {
            assert_eq!(thousandths % 1000, 0, "{self:?} since {before:?}");
            thousandths / 1000
        };
        (
            whole(self.tokens - before.tokens),
            whole(self.consumed - before.consumed),
        )
    }
}

/// A number of an item.
pub fn number(item: &Item, name: &str) -> i64 {
    let value = item
        .get(name)
        .unwrap_or_else(|| panic!("no {name}: {item:?}"));
    let number = value.as_n().expect("a number");
    number.parse().expect("a whole number")
}
