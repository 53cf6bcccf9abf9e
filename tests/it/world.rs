//! A world to try applies in: a table, a clock, and eyes on every stored byte.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use zae_limits::clock::Clock;
use zae_limits::fanout::Settings;
use zae_limits::manifest::{Manifest, parse_yaml};
use zae_limits::model::{EpochMs, ManifestOwner, NamespaceId, NamespaceName};
use zae_limits::plan::{Plan, PlanOptions, Policy};
use zae_limits::reconcile::{self, ApplyOptions};
use zae_limits::report::{ApplyReport, Status};
use zae_limits::store::{Embedded, Place, Store, StoreError};
use zae_limits::table::{BucketId, namespace};

/// An item as stored.
pub type Item = HashMap<String, AttributeValue>;

/// Everything in the table, by primary key.
pub type Dump = BTreeMap<(String, String), Item>;

/// When every world begins.
pub const NOW: EpochMs = EpochMs(1_800_000_000_000);

/// The variable that names the endpoint of another DynamoDB: there every world is then that [`World::new`] makes.
pub const ENGINE: &str = "ZAE_LIMITS_ENGINE";

/// One table with one namespace.
pub struct World {
    pub store: Store,
    pub client: Client,
    pub clock: Clock,
    pub ns: NamespaceId,
}

impl World {
    /// A fresh table with the namespace `tenant-alpha`, on the engine that [`ENGINE`] names, else in memory.
    pub async fn new() -> World {
        if let Ok(host) = std::env::var(ENGINE) {
            let client = crate::fixture::client_of(&host);
            let table = format!(
                "rate-limits-{}",
                ulid::Ulid::from_parts(NOW.0, rand::random())
            );
            let mut world = World::before_first_use(client.clone());
            world.store = Store::new(client, Place { table, host });
            return world.founded().await;
        }
        let embedded = Embedded::memory().expect("an embedded database");
        World::over(embedded.client()).await
    }

    /// A world whose requests go through a client.
    pub async fn over(client: Client) -> World {
        World::before_first_use(client).founded().await
    }

    /// Makes the table and the namespace.
    async fn founded(self) -> World {
        self.store.create(self.clock.now()).await.expect("a table");
        let name = NamespaceName::parse("tenant-alpha").expect("a name");
        for item in namespace::encode(&name, &self.ns, NOW) {
            self.put(item).await;
        }
        self
    }

    /// A world whose table may be missing.
    pub fn before_first_use(client: Client) -> World {
        let place = Place {
            table: "rate-limits".to_owned(),
            host: "memory".to_owned(),
        };
        let store = Store::new(client.clone(), place);
        let ns = NamespaceId::parse("a7x3kq").expect("an id");
        World {
            store,
            client,
            clock: Clock::fixed(NOW),
            ns,
        }
    }

    /// How the tests' applies run: no waiting for lagging indexes, which the engine does not have.
    pub fn options() -> ApplyOptions {
        ApplyOptions {
            principal: Some("arn:aws:iam::123456789012:user/operator".to_owned()),
            fanout: Settings {
                settle: Duration::ZERO,
                ..Settings::default()
            },
            ..ApplyOptions::default()
        }
    }

    pub async fn plan(&self, manifest: &Manifest) -> Plan {
        self.plan_with(manifest, PlanOptions::default()).await
    }

    pub async fn plan_with(&self, manifest: &Manifest, options: PlanOptions) -> Plan {
        reconcile::prepare(&self.store, manifest, None, options)
            .await
            .expect("a plan")
    }

    /// Applies a manifest whatever the guards say, and then once more: the second plan must be
    /// empty, and the second apply must write nothing.
    pub async fn apply(&self, yaml: &str) -> ApplyReport {
        self.apply_with(yaml, PlanOptions::default()).await
    }

    pub async fn apply_with(&self, yaml: &str, options: PlanOptions) -> ApplyReport {
        let manifest = manifest(yaml);
        let report = self.apply_once(&manifest, options).await;
        assert_eq!(report.errors, Vec::<String>::new());
        assert_eq!(report.pending, 0, "nothing is left pending");
        let again = PlanOptions {
            full: false,
            ..options
        };
        let plan = self.plan_with(&manifest, again).await;
        assert!(plan.is_empty(), "the second plan is empty: {plan:#?}");
        let before = self.dump().await;
        self.clock.advance(1000);
        let second = self.apply_once(&manifest, again).await;
        assert_eq!(second.status, Status::Unchanged);
        assert_eq!(self.dump().await, before, "the second apply writes nothing");
        report
    }

    /// Applies a manifest once.
    pub async fn apply_once(&self, manifest: &Manifest, options: PlanOptions) -> ApplyReport {
        self.try_apply(manifest, options).await.expect("an apply")
    }

    /// Applies a manifest once, and may fail.
    pub async fn try_apply(
        &self,
        manifest: &Manifest,
        options: PlanOptions,
    ) -> Result<ApplyReport, StoreError> {
        self.try_apply_settling(manifest, options, Duration::ZERO)
            .await
    }

    /// The same, with a reading pass after so long.
    pub async fn try_apply_settling(
        &self,
        manifest: &Manifest,
        options: PlanOptions,
        settle: Duration,
    ) -> Result<ApplyReport, StoreError> {
        let plan = reconcile::prepare(&self.store, manifest, None, options).await?;
        let policy = Policy {
            allow_empty: true,
            max_delete: Some(usize::MAX),
            ..Policy::strict(ManifestOwner::Cli)
        };
        let guarded = plan.guard(&policy).expect("the guards let it pass");
        let mut options = ApplyOptions {
            full: options.full,
            ..World::options()
        };
        options.fanout.settle = settle;
        reconcile::apply(&self.store, &self.clock, &guarded, &options, &()).await
    }

    /// Stores a bucket as a client would have created it, with whatever stamps are given.
    pub async fn bucket(
        &self,
        entity: &str,
        resource: &str,
        shard: u32,
        stamps: &[(&str, AttributeValue)],
    ) {
        let id = bucket_id(entity, resource, shard);
        let (gsi2pk, gsi2sk) = id.resource_index(&self.ns);
        let (gsi3pk, gsi3sk) = id.entity_index(&self.ns);
        let mut item: Item = [
            ("PK", s(&id.pk(&self.ns))),
            ("SK", s("#STATE")),
            ("GSI2PK", s(&gsi2pk)),
            ("GSI2SK", s(&gsi2sk)),
            ("GSI3PK", s(&gsi3pk)),
            ("GSI3SK", s(&gsi3sk)),
            ("GSI4PK", s(self.ns.as_str())),
            ("GSI4SK", s(&id.suffix())),
            ("entity_id", s(entity)),
            ("resource", s(resource)),
            ("shard_count", n(1)),
            ("cascade", AttributeValue::Bool(false)),
            ("rf", n(NOW.0)),
            ("b_rpm_tk", n(1_000_000)),
            ("b_rpm_cp", n(1_000_000)),
            ("b_rpm_ra", n(1_000_000)),
            ("b_rpm_rp", n(60_000)),
            ("b_rpm_tc", n(7_000)),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        item.extend(
            stamps
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone())),
        );
        self.put(item).await;
    }

    /// Stores an item as it is.
    pub async fn put(&self, item: Item) {
        let request = self
            .client
            .put_item()
            .table_name(self.store.table())
            .set_item(Some(item));
        request.send().await.expect("a put");
    }

    /// Deletes a stored item.
    pub async fn delete(&self, item: &Item) {
        let key = ["PK", "SK"].map(|name| (name.to_owned(), item[name].clone()));
        let request = self.client.delete_item().table_name(self.store.table());
        let request = request.set_key(Some(key.into()));
        request.send().await.expect("a delete");
    }

    /// What a bucket's stamps say: `disabled`, `bypass`, `both` or `enforce`; `gone` without the bucket.
    pub async fn stamp(&self, entity: &str, resource: &str) -> &'static str {
        self.shard_stamp(entity, resource, 0).await
    }

    pub async fn shard_stamp(&self, entity: &str, resource: &str, shard: u32) -> &'static str {
        let key = (
            bucket_id(entity, resource, shard).pk(&self.ns),
            "#STATE".to_owned(),
        );
        let Some(item) = self.dump().await.remove(&key) else {
            return "gone";
        };
        match (item.get("disabled"), item.get("bypass")) {
            (None, None) => "enforce",
            (Some(AttributeValue::Bool(true)), None) => "disabled",
            (None, Some(AttributeValue::N(_))) => "bypass",
            _ => "both",
        }
    }

    /// Everything in the table.
    pub async fn dump(&self) -> Dump {
        let mut dump = Dump::new();
        let mut start = None;
        loop {
            let request = self.client.scan().table_name(self.store.table());
            let page = request
                .set_exclusive_start_key(start)
                .send()
                .await
                .expect("a scan");
            for item in page.items.unwrap_or_default() {
                let key = |name: &str| item[name].as_s().expect("a key").clone();
                dump.insert((key("PK"), key("SK")), item);
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                return dump;
            }
        }
    }

    /// One stored item; panics when it is not there.
    pub async fn item(&self, pk: &str, sk: &str) -> Item {
        let key = (format!("{}/{pk}", self.ns), sk.to_owned());
        let mut dump = self.dump().await;
        let keys: Vec<_> = dump.keys().cloned().collect();
        dump.remove(&key)
            .unwrap_or_else(|| panic!("no {key:?} among {keys:#?}"))
    }
}

/// A manifest of the world's namespace: `yaml` is everything below `namespace:`.
pub fn manifest(yaml: &str) -> Manifest {
    let text = format!("namespace: tenant-alpha\n{yaml}");
    parse_yaml("test.limits.yaml", text.as_bytes()).unwrap_or_else(|problems| panic!("{problems}"))
}

pub fn bucket_id(entity: &str, resource: &str, shard: u32) -> BucketId {
    BucketId {
        entity: entity.parse().expect("an entity id"),
        resource: resource.parse().expect("a resource name"),
        shard,
    }
}

pub fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub fn n(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}
