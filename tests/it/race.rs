//! Applies that race each other and clients, one request at a time, in orders drawn from seeds.
//!
//! Whatever the order, each level ends as one of those who wrote it says, every bucket is as config
//! says, nothing waits for somebody who is gone, and the record has lost no level. A seed that
//! fails is named, and is run again alone with `ZAE_LIMITS_RACE_SEED`; `ZAE_LIMITS_RACE_SEEDS`
//! says how many are run.

mod actors;
mod check;
mod draw;
mod gate;
mod oracle;
mod run;
mod setting;

use crate::world::{NOW, n, s};
use actors::{Did, Ended};
use aws_sdk_dynamodb::types::AttributeValue;
use check::Look;
use draw::Scenario;
use run::{LONG_MS, Raced, Track};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use zae_limits::clock::Clock;

/// How many races are run, unless the environment says otherwise.
const SEEDS: u64 = 2_000;

/// What happened in all races, by name.
type Happened = BTreeMap<&'static str, u64>;

/// Runs one race and what follows it. What went wrong, and everybody's steps.
async fn race(track: &Track, scenario: &Scenario, happened: &mut Happened) -> (Vec<String>, Raced) {
    let clock = Clock::fixed(NOW);
    track.put_all(setting::items(scenario).into_values()).await;
    let raced = track.race(scenario, &clock).await;
    count(&raced, happened);
    let look = Look::at(track, scenario, &raced).await;
    let mut wrong = look.after_the_race(&clock);
    // Whoever was not content applies again; the last one decides.
    let mut again: Vec<usize> = (0..raced.applies.len())
        .filter(|index| !raced.applies[*index].is_success())
        .collect();
    if scenario.seed % 2 == 1 {
        again.reverse();
    }
    if again.is_empty() {
        again.extend(scenario.again);
    }
    if raced
        .applies
        .iter()
        .any(|ended| matches!(ended, Ended::Died))
    {
        clock.advance(LONG_MS);
        // What a dead apply left needs neither it nor its manifest to be finished.
        if scenario.seed.is_multiple_of(2) {
            track.resume(&clock, &scenario.ns, scenario.settle).await;
            wrong.extend(Look::at(track, scenario, &raced).await.after_a_resume());
            *happened.entry("resumed").or_default() += 1;
        }
    }
    for index in &again {
        track
            .insist(&clock, &scenario.ns, &scenario.applies[*index])
            .await;
        *happened.entry("applied again").or_default() += 1;
    }
    if let Some(last) = again.last() {
        let look = Look::at(track, scenario, &raced).await;
        wrong.extend(look.after(&scenario.applies[*last]));
    }
    (wrong, raced)
}

fn count(raced: &Raced, happened: &mut Happened) {
    let mut add = |what, many| *happened.entry(what).or_default() += many;
    add("steps", raced.trace.len() as u64);
    for ended in &raced.applies {
        match ended {
            Ended::Reported(report) if ended.is_success() => {
                add("applied", 1);
                add("stamped", report.stamped);
            }
            Ended::Reported(report) => {
                add("partial", 1);
                add("left pending", u64::from(report.pending > 0));
                add("levels not written", report.unwritten.len() as u64);
            }
            Ended::Refused => add("refused", 1),
            Ended::Conflict => add("conflict", 1),
            Ended::Failed => add("failed before any write", 1),
            Ended::Died => add("died", 1),
        }
        if let Ended::Reported(report) = ended {
            add("taken over", report.resumed as u64);
        }
    }
    for did in &raced.clients {
        match did {
            Did::Wrote { flipped: true, .. } => add("switches flipped", 1),
            Did::Wrote { .. } => add("limits set", 1),
            Did::Created(_, true) => add("buckets created from old config", 1),
            Did::Created(_, false) => add("buckets created", 1),
            Did::Nothing => {}
        }
    }
}

fn run<T>(race: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(race)
}

/// Names the seed of a race that panics.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}: see ZAE_LIMITS_RACE_SEED", self.0);
        }
    }
}

fn from_environment(name: &str) -> Option<u64> {
    let given = std::env::var(name).ok()?;
    Some(
        given
            .parse()
            .unwrap_or_else(|_| panic!("{name} is {given:?}, not a number")),
    )
}

/// What must have happened at least once in as many races as are run by default, or they show
/// nothing.
const EXPECTED: [&str; 14] = [
    "steps",
    "applied",
    "applied again",
    "partial",
    "left pending",
    "refused",
    "conflict",
    "died",
    "resumed",
    "taken over",
    "switches flipped",
    "limits set",
    "buckets created",
    "buckets created from old config",
];

/// Runs races until there are none left, and says what happened and what failed.
async fn run_all(next: &AtomicU64, end: u64, is_alone: bool) -> (Happened, Vec<String>) {
    let track = Track::new().await;
    let (mut happened, mut failures) = (Happened::new(), Vec::new());
    loop {
        let seed = next.fetch_add(1, Ordering::SeqCst);
        if seed >= end {
            return (happened, failures);
        }
        let _named = Named(seed);
        let scenario = Scenario::draw(seed);
        let (wrong, raced) = race(&track, &scenario, &mut happened).await;
        if is_alone {
            println!("{scenario:#?}\n{raced:#?}");
        }
        if !wrong.is_empty() {
            failures.push(format!("seed {seed}: {}", wrong.join("; ")));
        }
    }
}

#[test]
fn whatever_the_order_config_is_somebodys_and_buckets_are_as_config_says() {
    let alone = from_environment("ZAE_LIMITS_RACE_SEED");
    let given = from_environment("ZAE_LIMITS_RACE_SEEDS");
    let seeds = match alone {
        Some(seed) => seed..seed + 1,
        None => 0..given.unwrap_or(SEEDS),
    };
    let next = AtomicU64::new(seeds.start);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let (mut happened, mut failures) = (Happened::new(), Vec::new());
    std::thread::scope(|scope| {
        let begin = |_| scope.spawn(|| run(run_all(&next, seeds.end, alone.is_some())));
        let running: Vec<_> = (0..threads).map(begin).collect();
        for thread in running {
            let (mine, failed) = thread.join().expect("a seed is named above");
            failures.extend(failed);
            for (what, many) in mine {
                *happened.entry(what).or_default() += many;
            }
        }
    });
    println!("{} races: {happened:#?}", seeds.end - seeds.start);
    let count = failures.len();
    failures.truncate(10);
    assert!(count == 0, "{count} seeds fail: {failures:#?}");
    if seeds == (0..SEEDS) {
        let never = |what: &&&str| happened.get(**what).is_none_or(|many| *many == 0);
        let missing = EXPECTED.iter().filter(never);
        assert_eq!(
            missing.collect::<Vec<_>>(),
            Vec::<&&str>::new(),
            "never happened"
        );
    }
}

#[test]
fn a_seed_is_the_same_race_each_time() {
    let steps = |seed| {
        run(async move {
            let track = Track::new().await;
            let (_, raced) = race(&track, &Scenario::draw(seed), &mut Happened::new()).await;
            raced.trace
        })
    };
    for seed in 0..12 {
        assert_eq!(steps(seed), steps(seed), "seed {seed}");
    }
}

/// The invariant is worth something: each kind of damage is seen.
#[test]
fn damage_is_seen() {
    run(async {
        let track = Track::new().await;
        let mut scenario = Scenario::draw(0);
        scenario.applies.truncate(1);
        (scenario.births, scenario.edits, scenario.incident) = (Vec::new(), Vec::new(), None);
        scenario.again = None;
        let (wrong, raced) = race(&track, &scenario, &mut Happened::new()).await;
        assert_eq!(wrong, Vec::<String>::new());
        let stored = track.dump(&scenario.ns).await;
        let item = |sk: &str| {
            let mut found = stored.iter().filter(|((_, at), _)| at == sk);
            found
                .next()
                .unwrap_or_else(|| panic!("{sk} is stored"))
                .1
                .clone()
        };
        let mut changed = Vec::new();
        let mut change = |sk: &str, name: &str, value| {
            let mut item = item(sk);
            item.insert(name.to_owned(), value);
            changed.push((sk.to_owned(), item));
        };
        change("#STATE", "bypass", s("long"));
        change("#STATE", "b_other_soft", n(1));
        change("#STATE", "parent_id", s("nobody"));
        change(
            "#PROVISIONER",
            "managed_system",
            AttributeValue::Bool(false),
        );
        change("#CONFIG", "disabled", AttributeValue::Bool(true));
        change("#ENTITY_CONFIG_RESOURCES", "gpt-5", n(3));
        for (sk, damaged) in changed {
            track.put_all([damaged].into_iter()).await;
            let look = Look::at(&track, &scenario, &raced).await;
            let wrong = look.after(&scenario.applies[0]);
            assert!(!wrong.is_empty(), "damage of {sk} is not seen");
            track.put_all([item(&sk)].into_iter()).await;
        }
        let look = Look::at(&track, &scenario, &raced).await;
        assert_eq!(look.after(&scenario.applies[0]), Vec::<String>::new());
    });
}
