//! The PUT, when the other side misbehaves, and what the runtime is told then.

use super::rig::{Lines, Rig, well_formed};
use super::sink::{Act, Sink};
use crate::singly::Refusal;
use crate::transport::over;
use crate::world::World;
use serde_json::{Value, json};
use std::time::Duration;
use tracing::Level;
use zae_limits::clock::Clock;
use zae_limits::lambda::{FunctionError, Invocation, RespondError, log};
use zae_limits::model::EpochMs;
use zae_limits::store::Embedded;

fn create() -> Value {
    json!({"Namespace": "tenant-alpha", "Resources": {"gpt-4": {"Disabled": "true"}}})
}

/// Sends a Create with some seconds left, and gives what the runtime was told and the number of PUTs.
async fn send(rig: &Rig, acts: &[Act], seconds: u64) -> (Result<Value, FunctionError>, usize) {
    rig.sink.acts(acts);
    let event = rig.event("Create", create());
    let invocation = Invocation {
        request_id: "i".to_owned(),
        deadline: Some(EpochMs(rig.world.clock.now().0 + seconds * 1000)),
    };
    let told = rig.function.handle(event.clone(), invocation).await;
    let puts = rig.sink.take();
    for put in &puts {
        well_formed(&event, put);
        assert_eq!(put.body, puts[0].body, "every attempt says the same");
    }
    rig.assert_nothing_leaked();
    (told, puts.len())
}

#[tokio::test]
async fn a_server_error_a_closed_connection_and_a_slow_answer_are_tried_again() {
    for acts in [
        &[Act::Status(500)][..],
        &[Act::Status(503), Act::Close, Act::Status(500)],
        &[Act::Close],
        &[Act::Slowly(Duration::from_millis(300))],
    ] {
        let rig = Rig::new().await;
        let (told, puts) = send(&rig, acts, 60).await;
        let slow = matches!(acts, [Act::Slowly(_)]);
        assert_eq!(puts, if slow { 1 } else { acts.len() + 1 }, "{acts:?}");
        assert_eq!(told.expect("delivered")["Status"], "SUCCESS", "{acts:?}");
    }
}

#[tokio::test]
async fn a_refusal_is_final_and_the_runtime_hears_of_it() {
    for (act, expected) in [
        (Act::Status(403), 403),
        (Act::Status(400), 400),
        (Act::Redirect, 307),
    ] {
        let rig = Rig::new().await;
        let (told, puts) = send(&rig, &[act], 60).await;
        assert_eq!(puts, 1, "{act:?}");
        match told {
            Err(FunctionError::Unanswered(RespondError::Refused { status })) => {
                assert_eq!(status, expected);
            }
            other => panic!("{act:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_sink_that_never_answers_costs_no_more_than_the_time_there_is() {
    let mut world = World::new().await;
    world.clock = Clock::system();
    let rig = Rig::over(world).await;
    let began = tokio::time::Instant::now();
    let (told, puts) = send(&rig, &[Act::Never; 20], 2).await;
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    assert!(puts > 1, "an attempt that hangs is given up and repeated");
    assert!(matches!(
        told,
        Err(FunctionError::Unanswered(RespondError::OutOfTime))
    ));
}

#[tokio::test]
async fn a_sink_that_stays_broken_is_given_up_and_the_retry_finds_all_done() {
    let rig = Rig::new().await;
    let (told, puts) = send(&rig, &[Act::Status(500); 20], 600).await;
    assert!(matches!(
        told,
        Err(FunctionError::Unanswered(RespondError::Undelivered {
            attempts: 10,
            ..
        }))
    ));
    assert_eq!(puts, 10);
    let (told, puts) = send(&rig, &[], 60).await;
    assert_eq!(puts, 1);
    assert_eq!(told.expect("delivered")["Data"]["Status"], "unchanged");
}

#[tokio::test]
async fn nobody_listening_is_an_error_of_the_function() {
    let rig = Rig::new().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let mut event = rig.event("Create", create());
    event["ResponseURL"] = json!(format!("http://{address}{}", Sink::TARGET));
    let invocation = Invocation {
        deadline: Some(EpochMs(rig.world.clock.now().0 + 3000)),
        ..Invocation::default()
    };
    let told = rig.function.handle(event, invocation).await;
    assert!(
        matches!(told, Err(FunctionError::Unanswered(_))),
        "{told:?}"
    );
    rig.assert_nothing_leaked();
    let message = told.expect_err("an error").to_string();
    assert!(!message.contains(Sink::SECRET), "{message}");
}

#[tokio::test]
async fn without_a_url_the_work_is_done_and_nobody_is_sent_anything() {
    for url in [Value::Null, json!(""), json!(17)] {
        let rig = Rig::new().await;
        let mut event = rig.event("Create", create());
        event["ResponseURL"] = url;
        let told = rig.send(event).await.expect("the body");
        assert_eq!(told["Status"], "SUCCESS");
        assert_eq!(told["Data"]["Created"], "1");
        assert_eq!(rig.sink.take().len(), 0);
        assert!(rig.logs.text().contains("nobody is answered"));
    }
}

#[tokio::test]
async fn a_url_that_is_none_is_an_error_and_is_not_quoted() {
    for url in [
        "ftp://host/x?Signature=SECRETsig",
        "SECRETsig",
        "http://",
        "file:///SECRETsig",
    ] {
        let rig = Rig::new().await;
        let mut event = rig.event("Create", create());
        event["ResponseURL"] = json!(url);
        let told = rig.send(event).await;
        assert!(
            matches!(told, Err(FunctionError::Unanswered(RespondError::NotAUrl))),
            "{url}: {told:?}"
        );
        rig.assert_nothing_leaked();
    }
}

#[tokio::test]
async fn logs_and_metrics_say_what_was_done_and_for_whom() {
    let rig = Rig::new().await;
    rig.answered(rig.event("Create", create())).await;
    let logs = rig.logs.text();
    let done = logs
        .lines()
        .find(|line| line.contains("\"message\":\"done\""));
    let done: Value = serde_json::from_str(done.expect("a line about the outcome")).expect("JSON");
    assert_eq!(done["fields"]["namespace"], "tenant-alpha");
    assert_eq!(done["fields"]["created"], 1);
    assert_eq!(done["fields"]["succeeded"], true);
    assert!(done["fields"]["duration_ms"].is_u64());
    for (key, value) in [
        ("request_type", "Create"),
        ("logical_id", "Limits"),
        ("stack_id", super::rig::STACK),
        ("request_id", "7c5b1a2e-1111-2222-3333-444455556666"),
    ] {
        assert_eq!(done["span"][key], value, "{key}");
    }
    let metrics = rig.metrics.text();
    let line: Value = serde_json::from_str(metrics.trim()).expect("one line of JSON");
    let directive = &line["_aws"]["CloudWatchMetrics"][0];
    for metric in directive["Metrics"].as_array().expect("metrics") {
        let name = metric["Name"].as_str().expect("a name");
        assert!(line[name].is_u64(), "{name} has a value");
    }
    for dimension in directive["Dimensions"][0].as_array().expect("dimensions") {
        assert!(line[dimension.as_str().expect("a name")].is_string());
    }
    assert_eq!(line["Applied"], 1);
    assert_eq!(line["Failed"], 0);
    assert_eq!(line["_aws"]["Timestamp"], rig.world.clock.now().0);
}

#[tokio::test]
async fn what_is_logged_on_tasks_of_their_own_names_the_invocation_as_every_line_does() {
    let embedded = Embedded::memory().expect("an embedded database");
    let mut world = World::over(embedded.client()).await;
    for number in 0..60 {
        let entity = format!("user-{number}");
        world.bucket(&entity, "gpt-4", 0, &[]).await;
    }
    let refusal = Refusal::Request("com.amazon.coral.service#AccessDeniedException");
    world.client = Embedded::client_over(over(embedded.http_client(), refusal));
    let rig = Rig::over(world).await.quietly();
    let before = rig.logs.text().len();
    let (told, _) = send(&rig, &[], 60).await;
    assert_eq!(told.expect("answered")["Data"]["Stamped"], "60");

    let logs = rig.logs.text().split_off(before);
    let lines = logs.lines().map(serde_json::from_str::<Value>);
    let lines: Vec<Value> = lines.collect::<Result<_, _>>().expect("JSON");
    let singly = "stamping one bucket at a time from here on";
    assert!(lines.iter().any(|line| line["message"] == singly), "{logs}");
    for line in &lines {
        assert_eq!(line["span"]["invocation_id"], "i", "{line}");
    }
}

#[test]
fn at_the_finest_level_the_crates_below_still_say_nothing() {
    let lines = Lines::default();
    let written = lines.clone();
    let subscriber = log::subscriber(Level::TRACE, move || written.clone());
    tracing::subscriber::with_default(subscriber, || {
        tracing::trace!(target: "lambda_runtime::layers", body = Sink::TARGET, "raw event");
        tracing::error!(target: "lambda_runtime::layers", error = Sink::TARGET, "cannot decode");
        tracing::debug!(target: "hyper::client", uri = Sink::TARGET, "sending");
        tracing::trace!(target: "zae_limits::lambda", "ours");
    });
    let text = lines.text();
    assert!(
        text.contains("ours") && !text.contains(Sink::SECRET),
        "{text}"
    );
}
