//! The first page of a pass, which is as large as what is written in one round trip: the writes begin while
//! the next page is on its way.

use crate::at_once::{database, stop};
use crate::pages::{is_discovery, writes};
use crate::transport::{Latency, Layer, Recorder, Request, over, service_error};
use crate::world::{World, bucket_id};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use serde_json::Value;
use std::time::Duration;
use zae_limits::report::Status;
use zae_limits::store::STAMPS_PER_BATCH;

/// Buckets of a first page, with one write batch in flight.
const FIRST: usize = STAMPS_PER_BATCH;

/// What the queries of an index ask for at most: those that begin a pass, and those that go on.
fn limits(recorder: &Recorder) -> (Vec<Option<u64>>, Vec<Option<u64>>) {
    let all = recorder.requests();
    let queries = all.iter().filter(|request| is_discovery(request));
    let (go_on, begin): (Vec<_>, Vec<_>) =
        queries.partition(|request| request.body.get("ExclusiveStartKey").is_some());
    let limit = |request: &Request| request.body.get("Limit").and_then(Value::as_u64);
    (
        begin.into_iter().map(limit).collect(),
        go_on.into_iter().map(limit).collect(),
    )
}

#[tokio::test]
async fn a_pass_begins_with_a_page_that_one_round_trip_writes_and_the_second_with_whatever_comes() {
    let first = Some(FIRST as u64);
    for many in [FIRST, FIRST + 1] {
        for (settle, passes) in [
            (Duration::ZERO, &[first, None][..]),
            (Duration::from_millis(1), &[first, None, first][..]),
        ] {
            let what = format!("{many} buckets, settle {settle:?}");
            let embedded = database(many).await;
            let recorder = Recorder::default();
            let transport = over(embedded.http_client(), recorder.clone());
            let report = stop(transport, 1, settle).await;
            assert_eq!(report.errors, Vec::<String>::new(), "{what}");
            let ran = &report.fanouts[0];
            let expected = (many as u64, many as u64, true);
            assert_eq!((ran.found, ran.stamped, ran.landed), expected, "{what}");

            let (begin, go_on) = limits(&recorder);
            assert_eq!(begin, passes, "{what}");
            assert!(go_on.iter().all(Option::is_none), "{what}: {go_on:?}");
            if many > FIRST {
                assert!(go_on.len() >= passes.len(), "{what}: {go_on:?}");
            }
            let writes = writes(&recorder);
            assert_eq!(writes.len(), many, "{what}: {writes:#?}");
            assert!(
                writes.values().all(|times| *times == 1),
                "{what}: {writes:#?}"
            );
        }
    }
}

#[tokio::test]
async fn an_index_is_asked_for_stamps_by_the_pass_that_looks_at_them_alone() {
    let embedded = database(FIRST).await;
    let recorder = Recorder::default();
    let transport = over(embedded.http_client(), recorder.clone());
    stop(transport, 1, Duration::from_millis(1)).await;
    let all = recorder.requests();
    let begin = all
        .iter()
        .filter(|request| is_discovery(request) && request.body.get("ExclusiveStartKey").is_none());
    let asked: Vec<bool> = begin
        .map(|request| {
            let names = request.body["ExpressionAttributeNames"].to_string();
            names.contains("\"disabled\"") && names.contains("\"bypass\"")
        })
        .collect();
    assert_eq!(asked, [false, false, true]);
}

/// Refuses every page of an index but the first, and takes its time with what decides.
#[derive(Debug, Clone, Copy)]
struct OnePage;

impl Layer for OnePage {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let read = Request::read(&request);
        if is_discovery(&read) && read.body.get("ExclusiveStartKey").is_some() {
            return service_error("com.amazon.coral.validate#ValidationException", "no");
        }
        if read.operation == "BatchGetItem" {
            return Latency(Duration::from_millis(50)).pass(request, next);
        }
        next.call(request)
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_cannot_be_read_keeps_no_bucket_found_before_it_from_being_stamped() {
    let embedded = database(60).await;
    let report = stop(over(embedded.http_client(), OnePage), 1, Duration::ZERO).await;
    assert_eq!((report.status, report.pending), (Status::Partial, 1));
    let ran = &report.fanouts[0];
    assert!(
        !ran.landed && ran.ended.contains("find the buckets"),
        "{ran:#?}"
    );
    assert_eq!((ran.stamped, ran.failed), (FIRST as u64, 0), "{ran:#?}");

    let world = World::before_first_use(embedded.client());
    let dump = world.dump().await;
    for number in 0..60 {
        let id = bucket_id(&format!("e{number:03}"), "gpt-4", 0);
        let bucket = &dump[&(id.pk(&world.ns), "#STATE".to_owned())];
        let stamped = bucket.contains_key("disabled");
        assert_eq!(stamped, number < FIRST, "bucket {number}");
    }
    let owed = dump.keys().filter(|(_, sk)| sk.contains("#PENDING#"));
    assert_eq!(owed.count(), 1, "{:#?}", dump.keys());
}
