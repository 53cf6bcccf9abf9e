//! The version gate over a real table: each feature over each kind of version record, and the ratchet
//! of `client_min_version`.

use crate::transport::{Layer, Request, over};
use crate::world::{Item, World, manifest, n, s};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use std::sync::{Arc, Mutex};
use zae_limits::model::ManifestOwner;
use zae_limits::plan::{PlanOptions, Policy};
use zae_limits::store::Embedded;

/// Each feature that old readers get wrong, and the release that first gets it right.
pub const FEATURES: [(&str, &str, &str); 5] = [
    (
        "reset_after_seconds",
        "limits: { rpm: { capacity: 1, reset_after_seconds: 60 } }",
        "0.15.0",
    ),
    ("cascade", "cascade: true", "0.16.0"),
    ("cascade", "cascade: false", "0.16.0"),
    (
        "soft",
        "limits: { rpm: { capacity: 1, soft: true } }",
        "0.17.0",
    ),
    ("disabled: bypass", "disabled: bypass", "0.17.0"),
];

/// What every reader gets right.
const PLAIN: &str =
    "{ disabled: true, limits: { rpm: { capacity: 1, reset_schedule: [{ cron: 0 0 * * * }] } } }";

pub fn declaring(feature: &str) -> String {
    format!("resources: {{ gpt-4: {{ {feature} }} }}")
}

/// A world whose version record names a release, and asks for clients of at least another one.
async fn world_of(lambda: Option<AttributeValue>, client_min: Option<AttributeValue>) -> World {
    let world = World::new().await;
    let mut record = version_record(&world).await.expect("a record");
    for (name, value) in [
        ("lambda_version", lambda),
        ("client_min_version", client_min),
    ] {
        match value {
            Some(value) => record.insert(name.to_owned(), value),
            None => record.remove(name),
        };
    }
    world.put(record).await;
    world
}

async fn version_record(world: &World) -> Option<Item> {
    let key = ("_/SYSTEM#".to_owned(), "#VERSION".to_owned());
    world.dump().await.remove(&key)
}

async fn client_min(world: &World) -> Option<AttributeValue> {
    version_record(world).await?.remove("client_min_version")
}

/// What refuses a manifest; empty when nothing does.
pub async fn refusals(world: &World, yaml: &str) -> String {
    let plan = world.plan(&manifest(yaml)).await;
    let policy = Policy::strict(ManifestOwner::Cli);
    let refusals = plan.refusals(&policy);
    let lines: Vec<_> = refusals.iter().map(ToString::to_string).collect();
    assert_eq!(plan.guard(&policy).is_err(), !lines.is_empty());
    lines.join("; ")
}

/// The release before one of these, its candidate, and one after it.
pub fn around(since: &str) -> [String; 3] {
    let minor: u32 = since[2..4].parse().expect("0.NN.0");
    let (before, after) = (minor - 1, minor + 1);
    [
        format!("0.{before}.99"),
        format!("{since}rc1"),
        format!("0.{after}.0"),
    ]
}

#[tokio::test]
async fn each_feature_over_each_version_record() {
    for (name, feature, since) in FEATURES {
        let yaml = declaring(feature);
        let [old, candidate, newer] = around(since);
        for found in ["unknown", "", "17", "main", "0.x.0", "0.99rc1", &old] {
            let world = world_of(Some(s(found)), Some(s("0.0.0"))).await;
            let before = world.dump().await;
            let said = refusals(&world, &yaml).await;
            for part in [name, since, found, "upgrade the deployment"] {
                assert!(said.contains(part), "{feature} over {found:?}: {said}");
            }
            assert_eq!(world.dump().await, before, "nothing was written");
        }
        for nameless in [None, Some(AttributeValue::Null(true))] {
            let world = world_of(nameless, None).await;
            let said = refusals(&world, &yaml).await;
            assert!(said.contains("names no version"), "{feature}: {said}");
        }
        let world = World::new().await;
        world
            .delete(&version_record(&world).await.expect("a record"))
            .await;
        let said = refusals(&world, &yaml).await;
        assert!(
            said.contains("names no version"),
            "{feature} without a record: {said}"
        );
        for found in [
            &candidate,
            since,
            &format!("{since}.dev3+g1234"),
            &newer,
            "1.0.0",
        ] {
            let world = world_of(Some(s(found)), Some(s("0.0.0"))).await;
            world.apply(&yaml).await;
            let raised = client_min(&world).await;
            assert_eq!(raised, Some(s(since)), "{feature} over {found}");
        }
    }
}

#[tokio::test]
async fn what_every_reader_gets_right_needs_and_raises_nothing() {
    for lambda in [None, Some(s("unknown")), Some(s("0.1.0"))] {
        let world = world_of(lambda, Some(s("0.0.0"))).await;
        world
            .apply(&declaring(PLAIN.trim_matches(['{', '}'])))
            .await;
        assert_eq!(client_min(&world).await, Some(s("0.0.0")));
    }
    let world = World::new().await;
    world
        .delete(&version_record(&world).await.expect("a record"))
        .await;
    world.apply(&declaring("disabled: true")).await;
    assert_eq!(version_record(&world).await, None, "no record is made up");
}

#[tokio::test]
async fn the_oldest_client_is_raised_to_the_release_and_never_lowered() {
    let null = Some(AttributeValue::Null(true));
    for (stored, feature, expected) in [
        (None, "cascade: true", "0.16.0"),
        (null, "cascade: true", "0.16.0"),
        (Some(s("0.0.0")), "cascade: true", "0.16.0"),
        (Some(s("unknown")), "cascade: true", "0.16.0"),
        (Some(s("0.15.9")), "cascade: true", "0.16.0"),
        (Some(s("0.16.0rc1")), "cascade: true", "0.16.0"),
        (Some(s("0.16.0")), "cascade: true", "0.16.0"),
        (Some(s("0.16.1")), "cascade: true", "0.16.1"),
        (Some(s("0.17.0")), "cascade: true", "0.17.0"),
        (
            Some(s("0.16.0")),
            "disabled: bypass, cascade: true",
            "0.17.0",
        ),
    ] {
        let world = world_of(Some(s("0.17.0")), stored.clone()).await;
        let mut before = version_record(&world).await.expect("a record");
        world.apply(&declaring(feature)).await;
        before.insert("client_min_version".to_owned(), s(expected));
        let after = version_record(&world).await.expect("a record");
        assert_eq!(after, before, "{feature} over {stored:?}");
    }
}

/// Another writer who raises the oldest client just before each of our attempts.
#[derive(Debug, Clone)]
struct Rival {
    client: Client,
    values: Arc<Mutex<Vec<&'static str>>>,
}

impl Layer for Rival {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let read = Request::read(&request);
        let raises = read.operation == "UpdateItem" && read.body["Key"]["SK"]["S"] == "#VERSION";
        let value = match raises {
            true => self.values.lock().expect("no panic").pop(),
            false => None,
        };
        let Some(value) = value else {
            return next.call(request);
        };
        let (client, next) = (self.client.clone(), next.clone());
        HttpConnectorFuture::new(async move {
            let update = client.update_item().table_name("rate-limits");
            let update = update.key("PK", s("_/SYSTEM#")).key("SK", s("#VERSION"));
            let update = update.update_expression("SET client_min_version = :v");
            let update = update.expression_attribute_values(":v", s(value));
            update.send().await.expect("the rival writes");
            next.call(request).await
        })
    }
}

/// A world in which rivals write these values, one before each attempt of ours.
async fn rivalled(mut values: Vec<&'static str>) -> (World, Arc<Mutex<Vec<&'static str>>>) {
    let embedded = Embedded::memory().expect("an embedded database");
    let quiet = World::over(embedded.client()).await;
    values.reverse();
    let values = Arc::new(Mutex::new(values));
    let rival = Rival {
        client: embedded.client(),
        values: values.clone(),
    };
    let client = Embedded::client_over(over(embedded.http_client(), rival));
    let world = World::before_first_use(client);
    assert_eq!(client_min(&quiet).await, Some(s("0.0.0")));
    (world, values)
}

#[tokio::test]
async fn a_lost_race_for_the_oldest_client_is_run_again() {
    for (rivals, expected, left) in [
        // A lower value came in between: it is raised from there.
        (vec!["0.14.0"], "0.16.0", 0),
        (vec!["0.1.0", "0.14.0", "0.15.0"], "0.16.0", 0),
        // A value that is enough: nothing is left to do, and nothing is lowered.
        (vec!["0.16.0", "0.1.0"], "0.16.0", 1),
        (vec!["0.17.0", "0.1.0"], "0.17.0", 1),
    ] {
        let (world, values) = rivalled(rivals.clone()).await;
        let manifest = manifest(&declaring("cascade: true"));
        let outcome = world.try_apply(&manifest, PlanOptions::default()).await;
        assert_eq!(outcome.expect("an apply").errors, [""; 0], "{rivals:?}");
        assert_eq!(client_min(&world).await, Some(s(expected)), "{rivals:?}");
        assert_eq!(values.lock().expect("no panic").len(), left, "{rivals:?}");
    }
}

#[tokio::test]
async fn a_race_that_is_always_lost_writes_no_level() {
    let (world, _) = rivalled(vec!["0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0"]).await;
    let manifest = manifest(&declaring("disabled: bypass"));
    let outcome = world.try_apply(&manifest, PlanOptions::default()).await;
    let error = outcome.expect_err("the gate stays shut").to_string();
    assert!(error.contains("raise the oldest client version"), "{error}");
    let written = world.dump().await;
    let below = format!("{}/", world.ns);
    assert!(
        !written.keys().any(|(pk, _)| pk.starts_with(&below)),
        "{written:#?}"
    );
}

#[tokio::test]
async fn a_record_that_is_missing_is_not_made_by_the_ratchet() {
    let world = World::new().await;
    world
        .delete(&version_record(&world).await.expect("a record"))
        .await;
    for from in [None, Some("0.0.0")] {
        let raised = world.store.raise_client_min(from, "0.17.0").await;
        assert!(!raised.expect("an answer"), "{from:?}");
    }
    assert_eq!(version_record(&world).await, None);
    world
        .put(
            [("PK", s("_/SYSTEM#")), ("SK", s("#VERSION")), ("n", n(1))]
                .map(|(k, v)| (k.to_owned(), v))
                .into(),
        )
        .await;
    let raised = world.store.raise_client_min(None, "0.17.0").await;
    assert!(raised.expect("an answer"));
    assert_eq!(client_min(&world).await, Some(s("0.17.0")));
    let raised = world.store.raise_client_min(Some("0.16.0"), "0.15.0").await;
    assert!(
        !raised.expect("an answer"),
        "from what is not there any more"
    );
}
