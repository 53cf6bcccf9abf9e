//! Applies while eight threads of a real client acquire without a pause: once an apply has returned, what it says
//! holds for every request that begins. What was in flight then may end either way.

use super::{Peer, Served};
use crate::python::PEER;
use serde_json::{Value, json};
use std::time::Duration;

/// Who the threads acquire for. Behind a `*` is another entity every time, whose bucket is made by the request.
const ENTITIES: [&str; 8] = [
    "alice",
    "alice",
    "bob",
    "bob",
    "carol",
    "carved",
    "newcomer-a*",
    "newcomer-b*",
];

/// What the resource says in turn, and what becomes of a request then: of `carved`, who is carved out, and of others.
const STEPS: [(&str, &str, &str); 7] = [
    ("disabled: true", "admitted", "ResourceDisabled"),
    ("disabled: false", "admitted", "admitted"),
    ("disabled: true", "admitted", "ResourceDisabled"),
    ("disabled: bypass", "admitted", "bypassed"),
    ("disabled: true", "admitted", "ResourceDisabled"),
    ("disabled: bypass", "admitted", "bypassed"),
    ("cascade: false", "admitted", "admitted"),
];

/// How many requests every thread makes after an apply has returned, before the next.
const AFTER: u64 = 6;

#[derive(Debug)]
struct Request {
    began: f64,
    ended: f64,
    who: String,
    became: String,
}

/// Between the return of one apply and the start of the next, in epoch seconds.
struct Calm {
    /// When the apply began that returned at `from`.
    applied: f64,
    from: f64,
    to: f64,
}

fn manifest(says: &str) -> String {
    let limits = "limits: { rpm: { capacity: 1000000 } }";
    format!(
        "resources: {{ gpt-4: {{ {says}, {limits} }} }}\n\
         entities: {{ carved: {{ resources: {{ gpt-4: {{ disabled: false }} }} }} }}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_apply_says_holds_for_every_request_that_begins_after_it() {
    let served = Served::start().await;
    let Some(peer) = served.peer(&PEER) else {
        return;
    };
    served.apply(&manifest("cascade: true")).await;
    let clients: Vec<_> = ENTITIES.iter().map(|_| peer.connect()).collect();
    let names: Vec<_> = clients.iter().map(|client| &client.name).collect();
    let hammer = json!({
        "do": "hammer", "clients_of_threads": names, "entities": ENTITIES, "resource": "gpt-4", "consume": {"rpm": 1},
    });
    peer.ask(&hammer).expect("threads");
    let now = || served.world.clock.now().0 as f64 / 1000.0;
    let mut calms = Vec::new();
    make_more(&peer).await;
    for (says, ..) in STEPS {
        let applied = now();
        served.apply(&manifest(says)).await;
        // The clock counts whole milliseconds: the one it is in may have begun before the apply returned.
        let from = now() + 0.001;
        make_more(&peer).await;
        let to = now();
        calms.push(Calm { applied, from, to });
    }
    let records = peer.ask(&json!({"do": "rest"})).expect("records");
    let requests = read(&records);
    let (mut held, mut in_flight, mut latest) = (0, 0, 0.0_f64);
    for (step, calm) in calms.iter().enumerate() {
        let says = STEPS[step].0;
        let as_said = |request: &Request, step: usize| {
            STEPS
                .get(step)
                .is_some_and(|(_, of_carved, of_others)| match request.who.as_str() {
                    "carved" => request.became == *of_carved,
                    _ => request.became == *of_others,
                })
        };
        let began = |r: &&Request| r.began >= calm.from && r.began < calm.to;
        let began: Vec<_> = requests.iter().filter(began).collect();
        let wrong = began.iter().filter(|request| {
            // One that the next apply overtakes may obey that already.
            let overtaken = request.ended >= calm.to;
            !(as_said(request, step) || overtaken && as_said(request, step + 1))
        });
        let wrong: Vec<_> = wrong.collect();
        assert_eq!(
            wrong.len(),
            0,
            "{says}: of {} requests {wrong:#?}",
            began.len()
        );
        // One of each thread's may have begun before the apply returned.
        let least = ENTITIES.len() * (AFTER as usize - 1);
        assert!(
            began.len() >= least,
            "{says}: only {} requests",
            began.len()
        );
        for part in ["alice", "carved", "newcomer"] {
            assert!(
                began.iter().any(|request| request.who.starts_with(part)),
                "{says}: {part}"
            );
        }
        let across = requests
            .iter()
            .filter(|r| r.began < calm.from && r.ended >= calm.from);
        let across = across.filter(|request| !as_said(request, step)).count();
        assert!(
            across <= ENTITIES.len(),
            "{says}: {across} requests in flight"
        );
        let before = requests
            .iter()
            .filter(|r| r.began >= calm.applied && r.began < calm.from);
        let before = before.filter(|request| !as_said(request, step));
        latest = before.fold(latest, |latest, r| latest.max(r.began - calm.applied));
        held += began.len();
        in_flight += across;
    }
    println!(
        "{} requests; {held} began after one of {} applies had returned, all as it says; {in_flight} in flight ended \
         otherwise; the last to obey the manifest before began {latest:.3} s into an apply",
        requests.len(),
        STEPS.len(),
    );
}

/// Waits until every thread has made some more requests.
async fn make_more(peer: &Peer) {
    let made = || -> Vec<u64> {
        let made = peer.ask(&json!({"do": "made"})).expect("counts");
        serde_json::from_value(made).expect("numbers")
    };
    let before = made();
    while made()
        .iter()
        .zip(&before)
        .any(|(now, before)| *now < before + AFTER)
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn read(records: &Value) -> Vec<Request> {
    let records = records.as_array().expect("a list").iter();
    let request = |record: &Value| Request {
        began: record[0].as_f64().expect("an instant"),
        ended: record[1].as_f64().expect("an instant"),
        who: record[2].as_str().expect("an entity").to_owned(),
        became: record[3].as_str().expect("an end").to_owned(),
    };
    records.map(request).collect()
}
