//! A small inhabited table to disturb applies in, and how what they leave is compared.

use crate::world::{Dump, Item, World, bucket_id, manifest, n, s};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use std::collections::BTreeMap;
use zae_limits::plan::PlanOptions;
use zae_limits::store::{Embedded, create_table};

/// Items that one batch writes.
const BATCH: usize = 25;

/// What a table holds, to be set up again and again.
#[derive(Debug, Clone)]
pub struct Stage(Vec<Item>);

impl Stage {
    /// Three entities with buckets, one of them a child, under what was applied before. Nothing was
    /// when that is empty.
    pub async fn after(before: &str) -> Stage {
        Stage::made(async |world| {
            if !before.is_empty() {
                let before = manifest(before);
                world.apply_once(&before, PlanOptions::default()).await;
            }
        })
        .await
    }

    /// The same entities, under what `make` does to the table.
    pub async fn made(make: impl AsyncFnOnce(&World)) -> Stage {
        let world = World::new().await;
        for (entity, resource) in [("alice", "gpt-4"), ("bob", "gpt-4"), ("bob", "claude-3")] {
            world.bucket(entity, resource, 0, &[]).await;
        }
        // Whose limits are those of the resource, or the system's: it gets a ttl and soft stamps.
        for shard in 0..2 {
            world.bucket("carol", "gpt-4", shard, &[]).await;
        }
        for entity in ["alice", "carol"] {
            world.put(child(&world, entity)).await;
        }
        make(&world).await;
        Stage(world.dump().await.into_values().collect())
    }

    /// A database of its own that holds it.
    pub async fn set(&self) -> Embedded {
        let embedded = Embedded::memory().expect("an embedded database");
        let client = embedded.client();
        let world = World::before_first_use(client.clone());
        let table = world.store.table();
        // Its version record and its namespace are among what it held.
        let created = create_table(&client, table, false).await;
        created.expect("a table");
        for batch in self.0.chunks(BATCH) {
            put_all(&client, table, batch).await;
        }
        embedded
    }
}

async fn put_all(client: &Client, table: &str, items: &[Item]) {
    let put = |item: &Item| {
        let put = PutRequest::builder().set_item(Some(item.clone()));
        let put = put.build().expect("a put");
        WriteRequest::builder().put_request(put).build()
    };
    let request = client.batch_write_item();
    let request = request.request_items(table, items.iter().map(put).collect());
    request.send().await.expect("a batch");
}

/// The META of an entity with a parent.
fn child(world: &World, entity: &str) -> Item {
    let item = [
        ("PK", s(&format!("{}/ENTITY#{entity}", world.ns))),
        ("SK", s("#META")),
        ("entity_id", s(entity)),
        ("cascade", AttributeValue::Bool(false)),
        ("parent_id", s("org-1")),
        ("pgen", n(2)),
        ("pinc", s("inc-1")),
        ("created_at", s("2026-01-01T00:00:00Z")),
    ];
    item.into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// A bucket's own item, in a dump.
pub fn bucket<'d>(dump: &'d Dump, world: &World, entity: &str, resource: &str) -> &'d Item {
    let key = (
        bucket_id(entity, resource, 0).pk(&world.ns),
        "#STATE".to_owned(),
    );
    &dump[&key]
}

/// What [`comparable`] leaves of a table.
pub type Stored = (Dump, BTreeMap<String, usize>);

/// Asserts that two tables hold the same, and shows only what differs.
pub fn assert_same(stored: &Stored, expected: &Stored, what: &str) {
    if stored == expected {
        return;
    }
    let mut lines = Vec::new();
    let keys: std::collections::BTreeSet<_> = stored.0.keys().chain(expected.0.keys()).collect();
    for key in keys {
        let (here, there) = (stored.0.get(key), expected.0.get(key));
        if here != there {
            lines.push(format!(
                "{key:?}\n  is        {here:?}\n  should be {there:?}"
            ));
        }
    }
    if stored.1 != expected.1 {
        lines.push(format!("{:?}\n  should be {:?}", stored.1, expected.1));
    }
    panic!("{what}\n{}", lines.join("\n"));
}

/// Everything stored, without what differs from run to run: instants, revisions, the names of
/// overflow items and event ids. Of audit events remains how many there are of each kind for each
/// subject.
pub fn comparable(dump: Dump) -> Stored {
    let mut audits = BTreeMap::new();
    let mut items = Dump::new();
    for ((pk, sk), mut item) in dump {
        if sk.starts_with("#AUDIT#") {
            *audits
                .entry(format!("{pk} {:?}", item["action"]))
                .or_default() += 1;
            continue;
        }
        for changing in ["last_applied", "rev"] {
            item.remove(changing);
        }
        for (name, value) in &mut item {
            let is_instant = name == "bypass" || name == "ttl" || name.ends_with("_soft");
            if is_instant && let AttributeValue::N(at) = value {
                *at = "later".to_owned();
            }
        }
        items.insert((pk, sk), item);
    }
    (items, audits)
}
