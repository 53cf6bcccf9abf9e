//! Indexes of more than one page: the embedded database answers whatever a test stores in one, so
//! here every page ends after two buckets. What happens to a page between two passes is told too.

use crate::stage::{Stored, assert_same, comparable};
use crate::transport::{Layer, Recorder, Request, over};
use crate::world::{Item, World, bucket_id, manifest, n, s};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use futures::future::BoxFuture;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use zae_limits::model::{FanoutKind, ManifestOwner};
use zae_limits::plan::Policy;
use zae_limits::reconcile;
use zae_limits::report::{ApplyReport, Status};
use zae_limits::store::Embedded;

/// Buckets of a page.
const PAGE: usize = 2;

/// Ends every page of an index after [`PAGE`] buckets.
#[derive(Debug, Clone, Copy)]
struct ShortPages;

/// Whether a request looks for buckets in an index.
pub fn is_discovery(request: &Request) -> bool {
    request.operation == "Query" && request.body.get("IndexName").is_some()
}

impl Layer for ShortPages {
    fn pass(&self, mut request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let mut read = Request::read(&request);
        if is_discovery(&read) {
            read.body["Limit"] = PAGE.into();
            let body = read.body.to_string();
            let length = body.len().to_string();
            *request.body_mut() = SdkBody::from(body);
            request.headers_mut().insert("content-length", length);
        }
        next.call(request)
    }
}

/// A fan-out over [`NUMBERS`], each the number of a bucket, and how such a bucket is called.
struct Case {
    kind: FanoutKind,
    yaml: &'static str,
    bucket: fn(u32) -> (String, String, u32),
}

/// What the buckets of a case are numbered with: they come in this order in every index, and there
/// is room before, between and after them. Their pages are `20 30`, `40 50`, `60 70` and `80`.
const NUMBERS: [u32; 7] = [20, 30, 40, 50, 60, 70, 80];

fn of_resource(number: u32) -> (String, String, u32) {
    (format!("e{number}"), "gpt-4".to_owned(), 0)
}

fn of_entity(number: u32) -> (String, String, u32) {
    ("alice".to_owned(), format!("m{number}"), 0)
}

fn shard(number: u32) -> (String, String, u32) {
    ("alice".to_owned(), "gpt-4".to_owned(), number)
}

/// Every kind of fan-out, over every index that it reads.
static CASES: [Case; 9] = [
    Case {
        kind: FanoutKind::Access,
        yaml: "resources: { gpt-4: { disabled: true } }",
        bucket: of_resource,
    },
    Case {
        kind: FanoutKind::Access,
        yaml: "entities: { alice: { resources: { _default_: { disabled: bypass } } } }",
        bucket: of_entity,
    },
    Case {
        kind: FanoutKind::Params,
        yaml: "entities: { alice: { resources: { _default_: { limits: { rpm: { capacity: 5 } } } } } }",
        bucket: of_entity,
    },
    Case {
        kind: FanoutKind::Params,
        yaml: "entities: { alice: { resources: { gpt-4: { limits: { rpm: { capacity: 5 } } } } } }",
        bucket: shard,
    },
    Case {
        kind: FanoutKind::Cascade,
        yaml: "resources: { gpt-4: { cascade: true } }",
        bucket: of_resource,
    },
    Case {
        kind: FanoutKind::Cascade,
        yaml: "entities: { alice: { resources: { _default_: { cascade: true } } } }",
        bucket: of_entity,
    },
    Case {
        kind: FanoutKind::Soft,
        yaml: "resources: { gpt-4: { limits: { rpm: { capacity: 5, soft: true } } } }",
        bucket: of_resource,
    },
    Case {
        kind: FanoutKind::Soft,
        yaml: "system: { limits: { rpm: { capacity: 5, soft: true } } }",
        bucket: of_resource,
    },
    Case {
        kind: FanoutKind::Soft,
        yaml: "system: { limits: { rpm: { capacity: 5, soft: true } } }",
        bucket: of_entity,
    },
];

impl Case {
    /// A database with buckets of these numbers, none of them disturbed yet.
    async fn set(&self, numbers: impl IntoIterator<Item = u32>) -> Embedded {
        let embedded = Embedded::memory().expect("an embedded database");
        let world = World::over(embedded.client()).await;
        for number in numbers {
            self.put(&world, number).await;
        }
        if self.kind == FanoutKind::Cascade {
            // Whoever has a bucket, or will have one.
            let entities = (10..90).map(|number| (self.bucket)(number).0);
            for entity in entities.collect::<BTreeSet<_>>() {
                world.put(meta(&world, &entity)).await;
            }
        }
        embedded
    }

    async fn put(&self, world: &World, number: u32) {
        let (entity, resource, shard) = (self.bucket)(number);
        world.bucket(&entity, &resource, shard, &[]).await;
    }

    async fn delete(&self, world: &World, number: u32) {
        let (entity, resource, shard) = (self.bucket)(number);
        let pk = bucket_id(&entity, &resource, shard).pk(&world.ns);
        let key = [("PK".to_owned(), s(&pk)), ("SK".to_owned(), s("#STATE"))];
        world.delete(&key.into()).await;
    }

    /// Applies the case over a database, through layers of its own.
    async fn apply(&self, client: aws_sdk_dynamodb::Client, settle: Duration) -> ApplyReport {
        let world = World::before_first_use(client);
        let plan = world.plan(&manifest(self.yaml)).await;
        let guarded = plan.guard(&Policy::strict(ManifestOwner::Cli));
        let guarded = guarded.expect("no guard");
        let mut options = World::options();
        options.fanout.settle = settle;
        let (store, clock) = (&world.store, &world.clock);
        let report = reconcile::apply(store, clock, &guarded, &options, &()).await;
        let report = report.expect("an apply");
        assert_eq!(report.errors, Vec::<String>::new(), "{}", self.yaml);
        assert_eq!(report.status, Status::Applied, "{}", self.yaml);
        let kinds: Vec<_> = report.fanouts.iter().map(|ran| ran.owed.kind).collect();
        assert_eq!(kinds, [self.kind], "{}", self.yaml);
        report
    }

    /// What an apply leaves where these buckets have been there all the time, on one page.
    async fn expected(&self, numbers: impl IntoIterator<Item = u32>) -> Stored {
        let embedded = self.set(numbers).await;
        self.apply(embedded.client(), Duration::ZERO).await;
        stored(&embedded).await
    }
}

async fn stored(embedded: &Embedded) -> Stored {
    let world = World::before_first_use(embedded.client());
    comparable(world.dump().await)
}

/// The META of an entity with a parent.
fn meta(world: &World, entity: &str) -> Item {
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

/// How often each bucket was written, by partition key.
pub fn writes(recorder: &Recorder) -> BTreeMap<String, usize> {
    let mut writes = BTreeMap::new();
    for request in recorder.requests() {
        let written: Vec<&Value> = match request.operation.as_str() {
            "UpdateItem" => vec![&request.body["Key"]["PK"]["S"]],
            "BatchExecuteStatement" => {
                let statements = request.body["Statements"].as_array().into_iter().flatten();
                // The key is the last parameter.
                statements
                    .map(|statement| statement["Parameters"].as_array().expect("parameters"))
                    .map(|parameters| &parameters.last().expect("a key")["S"])
                    .collect()
            }
            _ => Vec::new(),
        };
        for pk in written.into_iter().map(|pk| pk.as_str().expect("a key")) {
            if pk.contains("/BUCKET#") {
                *writes.entry(pk.to_owned()).or_default() += 1;
            }
        }
    }
    writes
}

/// Queries of an index, and those among them that go on where a page ended.
fn queries(recorder: &Recorder) -> (usize, usize) {
    let all = recorder.requests();
    let all: Vec<_> = all.iter().filter(|request| is_discovery(request)).collect();
    let goes_on = |request: &&&Request| request.body.get("ExclusiveStartKey").is_some();
    (all.len(), all.iter().filter(goes_on).count())
}

#[tokio::test]
async fn a_fan_out_over_many_pages_ends_as_over_one() {
    for case in &CASES {
        // The last page is half full, full, and that of a first pass alone.
        for many in [7, 6, 1] {
            let numbers = || NUMBERS.into_iter().take(many);
            let expected = case.expected(numbers()).await;
            for settle in [Duration::ZERO, Duration::from_millis(1)] {
                let what = format!("{}, {many} buckets, settle {settle:?}", case.yaml);
                let embedded = case.set(numbers()).await;
                let recorder = Recorder::default();
                let short = over(embedded.http_client(), ShortPages);
                let client = Embedded::client_over(over(short, recorder.clone()));
                let report = case.apply(client, settle).await;
                let ran = &report.fanouts[0];
                assert_eq!(
                    (ran.found, ran.stamped),
                    (many as u64, many as u64),
                    "{what}"
                );
                assert_same(&stored(&embedded).await, &expected, &what);
                let passes = match (case.kind, settle) {
                    (FanoutKind::Access, settle) if !settle.is_zero() => 3,
                    _ => 2,
                };
                let (queries, that_go_on) = queries(&recorder);
                let pages = many.div_ceil(PAGE);
                assert!(queries >= passes * pages, "{what}: {queries}");
                assert!(that_go_on >= passes * (pages - 1), "{what}: {that_go_on}");
                assert!(
                    writes(&recorder).into_values().all(|times| times == 1),
                    "{what}"
                );
            }
        }
    }
}

type Act = Arc<dyn Fn(World) -> BoxFuture<'static, ()> + Send + Sync>;

/// Something that happens between two queries of an index.
#[derive(Clone)]
struct Between {
    when: When,
    seen: Arc<AtomicUsize>,
    embedded: Embedded,
    act: Act,
}

/// Right after which answer something happens. Nothing asks for another page until it has.
#[derive(Debug, Clone, Copy)]
enum When {
    /// The first page: of the others nothing is known yet.
    FirstPage,
    /// The first pass's last page.
    FirstPass,
}

impl fmt::Debug for Between {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {:?}", self.when)
    }
}

impl Layer for Between {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let answer = next.call(request.try_clone().expect("a body in memory"));
        if !is_discovery(&Request::read(&request)) {
            return answer;
        }
        let this = self.clone();
        HttpConnectorFuture::new(async move {
            let answer = answer.await?;
            let body = answer.body().bytes().expect("an answer in memory");
            let body: Value = serde_json::from_slice(body).expect("JSON");
            let is_it = match this.when {
                When::FirstPage => true,
                When::FirstPass => body.get("LastEvaluatedKey").is_none(),
            };
            if is_it && this.seen.fetch_add(1, Ordering::SeqCst) == 0 {
                (this.act)(World::before_first_use(this.embedded.client())).await;
            }
            Ok(answer)
        })
    }
}

/// Applies a case over short pages while something happens once.
async fn disturbed(
    case: &Case,
    embedded: &Embedded,
    when: When,
    act: Act,
) -> (ApplyReport, Recorder) {
    let between = Between {
        when,
        seen: Arc::default(),
        embedded: embedded.clone(),
        act,
    };
    let recorder = Recorder::default();
    let short = over(embedded.http_client(), ShortPages);
    let layers = over(over(short, between.clone()), recorder.clone());
    let client = Embedded::client_over(layers);
    let report = case.apply(client, Duration::ZERO).await;
    assert!(between.seen.load(Ordering::SeqCst) > 0, "it happened");
    (report, recorder)
}

/// Buckets that come, by number, each on a page of its own: on the first before, between and after
/// what is there, on a middle one, on the last, and behind everything.
const LATE: [u32; 7] = [15, 25, 35, 45, 65, 75, 85];

#[tokio::test]
async fn a_bucket_that_comes_between_the_passes_is_stamped_on_whatever_page() {
    for case in &CASES {
        for late in LATE {
            let what = format!("{}, {late}", case.yaml);
            let expected = case.expected(NUMBERS.into_iter().chain([late])).await;
            let embedded = case.set(NUMBERS).await;
            let comes: Act =
                Arc::new(move |world| Box::pin(async move { case.put(&world, late).await }));
            let (report, recorder) = disturbed(case, &embedded, When::FirstPass, comes).await;
            assert_same(&stored(&embedded).await, &expected, &what);
            assert_eq!((report.fanouts[0].found, report.stamped), (7, 8), "{what}");
            // Of a page that changed, what was known is not written again.
            let writes = writes(&recorder);
            assert_eq!(writes.len(), 8, "{what}: {writes:#?}");
            assert!(
                writes.values().all(|times| *times == 1),
                "{what}: {writes:#?}"
            );
        }
    }
}

#[tokio::test]
async fn many_buckets_that_come_at_once_make_pages_of_their_own_and_are_stamped() {
    for case in &CASES {
        let late = || [15, 25, 35, 45, 46, 47, 48, 49, 65, 75, 85, 86, 87, 88];
        let expected = case.expected(NUMBERS.into_iter().chain(late())).await;
        let embedded = case.set(NUMBERS).await;
        let come: Act = Arc::new(move |world| {
            Box::pin(async move {
                for late in late() {
                    case.put(&world, late).await;
                }
            })
        });
        let (report, recorder) = disturbed(case, &embedded, When::FirstPass, come).await;
        assert_same(&stored(&embedded).await, &expected, case.yaml);
        assert_eq!((report.fanouts[0].found, report.stamped), (7, 21));
        assert!(writes(&recorder).into_values().all(|times| times == 1));
    }
}

#[tokio::test]
async fn a_bucket_that_goes_is_no_failure_and_is_not_made_again() {
    // Alone, the end of a page, a whole page, the first page and the last, all of them.
    let some: [&[u32]; 8] = [
        &[20],
        &[30],
        &[50],
        &[70],
        &[80],
        &[40, 50],
        &[20, 30, 80],
        &NUMBERS,
    ];
    for case in &CASES {
        for gone in some {
            let left = NUMBERS.into_iter().filter(|number| !gone.contains(number));
            let expected = case.expected(left).await;
            for when in [When::FirstPage, When::FirstPass] {
                let what = format!("{}, {gone:?} {when:?}", case.yaml);
                let embedded = case.set(NUMBERS).await;
                let goes: Act = Arc::new(move |world| {
                    Box::pin(async move {
                        for number in gone {
                            case.delete(&world, *number).await;
                        }
                    })
                });
                let (report, recorder) = disturbed(case, &embedded, when, goes).await;
                assert_same(&stored(&embedded).await, &expected, &what);
                let ran = &report.fanouts[0];
                assert_eq!(ran.failed, 0, "{what}");
                assert!(ran.vanished <= gone.len() as u64, "{what}: {ran:#?}");
                assert!(ran.stamped >= 7 - gone.len() as u64, "{what}: {ran:#?}");
                // What stayed was written once, although its page changed.
                let writes = writes(&recorder);
                assert!(
                    writes.values().all(|times| *times == 1),
                    "{what}: {writes:#?}"
                );
            }
        }
    }
}

/// A page on which one bucket goes and another comes holds as many as before.
#[tokio::test]
async fn a_bucket_that_takes_the_place_of_another_is_stamped() {
    for case in &CASES {
        for (gone, late) in [(30, 25), (40, 45), (80, 85), (20, 15), (50, 45)] {
            let what = format!("{}, {late} for {gone}", case.yaml);
            let left = NUMBERS.into_iter().filter(|number| *number != gone);
            let expected = case.expected(left.chain([late])).await;
            let embedded = case.set(NUMBERS).await;
            let change: Act = Arc::new(move |world| {
                Box::pin(async move {
                    case.delete(&world, gone).await;
                    case.put(&world, late).await;
                })
            });
            disturbed(case, &embedded, When::FirstPass, change).await;
            assert_same(&stored(&embedded).await, &expected, &what);
        }
    }
}
