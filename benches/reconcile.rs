//! Speed and size of the main path, manifest to stamped buckets, with targets and the Python peer beside.
//!
//! `cargo bench --bench reconcile` prints two tables; `-- plan fan-out` runs only the groups named so. Groups
//! are `parse`, `plan`, `fan-out`, `latency`, `peer`, `memory`, `cold-start`, `embedded` and, where `ZAE_LIMITS_SOAK`
//! names a number of levels, `soak`. Wall times are the median of [`ROUNDS`]. The peer needs an interpreter that has
//! `zae-limiter`, named by `ZAE_LIMITS_PYTHON`; without it its column stays empty. `cold-start` needs the function as it
//! is deployed, named by `ZAE_LIMITS_BOOTSTRAP`; without it the group is left out. Nothing is asserted but that the work
//! was done.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints what it measured"
)]

mod cold;
mod embedded;
mod figures;
mod front;
mod later;
mod levels;
mod meter;
mod plan;
mod process;
mod soak;
mod stamped;
mod world;

use figures::{Figure, HEAD, count};
use meter::{Requests, Stopwatch, mean, median};
use process::{Server, Serves, Thrown};
use std::env;
use std::time::Duration;
use tempfile::TempDir;
use zae_limits::manifest::parse_yaml;
use zae_limits::report::Status;
use zae_limits::store::{Embedded, STAMPS_PER_BATCH};

/// What is measured allocates as the bins do.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Why a bench could not measure.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How often each thing is measured. Odd, so that the median is one of them.
const ROUNDS: usize = 5;
/// The same for the peer, which takes its time.
const PEER_ROUNDS: usize = 3;
/// Declared levels.
const LEVELS: usize = 10_000;
/// Buckets of a fan-out.
const BUCKETS: usize = 2_000;
/// Buckets of a large one.
const MANY_BUCKETS: usize = 20_000;
/// Buckets of a very large one.
const MOST_BUCKETS: usize = 1_000_000;
/// Buckets of a fan-out of which the three round trips before its first write and after its last are a small part.
const MORE_BUCKETS: usize = 200_000;
/// Buckets, how much later than it could a stand-in answers, in milliseconds, and write batches in flight: the
/// default, and as many as write 40,000 buckets in a second, which is a table's default quota.
const NETWORKS: [(usize, u64, usize); 6] = [
    (MANY_BUCKETS, 0, 16),
    (MANY_BUCKETS, 5, 8),
    (MANY_BUCKETS, 5, 16),
    (MORE_BUCKETS, 5, 16),
    (MANY_BUCKETS, 20, 16),
    (MANY_BUCKETS, 20, 32),
];
/// The latency, in milliseconds, at which so much of what concurrency allows is to be used, in percent.
const USED_AT: (u64, f64) = (5, 90.0);
/// The same for the engine that we and the peer are both measured against, and how many times less than the
/// peer we are to take.
const PEER_LATER_MS: [(u64, f64); 2] = [(0, 20.0), (5, 80.0)];

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", what, buckets, later_ms] => {
            let later = Duration::from_millis(later_ms.parse()?);
            process::run_server(what, buckets.parse()?, later).await
        }
        ["throw", url, rounds] => process::run_applies(url, rounds.parse()?).await,
        ["plan", url, levels, rounds] => plan::run(url, levels.parse()?, rounds.parse()?).await,
        ["stamp", concurrency, url, rounds] => {
            process::run_fan_outs(url, rounds.parse()?, concurrency.parse()?).await
        }
        _ => measure(&words).await,
    }
}

async fn measure(words: &[&str]) -> Result<(), Failure> {
    // Cargo passes options of its own.
    let all = words.iter().all(|word| word.starts_with('-'));
    let wants = |group: &str| all || words.contains(&group);
    println!("{HEAD}");
    if wants("parse") {
        parse()?;
    }
    for kept in [Kept::InMemory, Kept::InAFile] {
        if wants("plan") {
            plan_in_process(kept).await?;
        }
        if wants("fan-out") {
            fan_out(kept).await?;
        }
    }
    if wants("plan") {
        plan::measure()?;
    }
    if wants("latency") {
        for (buckets, later_ms, concurrency) in NETWORKS {
            behind_a_network(buckets, later_ms, concurrency)?;
        }
    }
    if wants("peer") {
        for (later_ms, times) in PEER_LATER_MS {
            against_the_peer(later_ms, times)?;
        }
    }
    if wants("memory") {
        memory()?;
    }
    if wants("cold-start") {
        cold::measure().await?;
    }
    if wants("embedded") {
        embedded::measure().await?;
    }
    if let Some(levels) = soak::asked_for()?
        && wants("soak")
    {
        soak::measure(levels).await?;
    }
    Ok(())
}

/// Where an embedded database is kept.
#[derive(Debug, Clone, Copy)]
enum Kept {
    InMemory,
    InAFile,
}

impl Kept {
    fn name(self) -> &'static str {
        match self {
            Kept::InMemory => "memory",
            Kept::InAFile => "file",
        }
    }

    /// An empty database. Its folder goes with the second value.
    fn open(self) -> Result<(Embedded, Option<TempDir>), Failure> {
        match self {
            Kept::InMemory => Ok((Embedded::memory()?, None)),
            Kept::InAFile => {
                let folder = TempDir::new()?;
                let embedded = Embedded::file(&folder.path().join("bench.db"))?;
                Ok((embedded, Some(folder)))
            }
        }
    }
}

/// A manifest of many levels, parsed and checked.
fn parse() -> Result<(), Failure> {
    let text = world::yaml(LEVELS);
    let mut seconds = Vec::new();
    for _ in 0..ROUNDS {
        let stopwatch = Stopwatch::start()?;
        let manifest = parse_yaml("bench.limits.yaml", text.as_bytes())?;
        seconds.push(stopwatch.stop()?.wall.as_secs_f64());
        assert_eq!(manifest.levels().len(), LEVELS);
    }
    let name = format!("parse and check {} levels of YAML", count(LEVELS));
    println!("{}", Figure::new(name, "s", median(seconds)).at_most(0.5));
    Ok(())
}

/// The first apply of many levels, a plan when none of them changed, and an apply of that plan.
async fn plan_in_process(kept: Kept) -> Result<(), Failure> {
    let (embedded, _folder) = kept.open()?;
    let requests = Requests::default();
    let store = world::store(requests.of(&embedded.client()));
    world::create(&store).await?;
    let manifest = parse_yaml("bench.limits.yaml", world::yaml(LEVELS).as_bytes())?;
    let row = |what: &str, unit, value: f64| {
        let name = format!("{what} {} levels, {}", count(LEVELS), kept.name());
        Figure::new(name, unit, value)
    };

    requests.take();
    let stopwatch = Stopwatch::start()?;
    world::apply(&store, &manifest).await?;
    let seconds = stopwatch.stop()?.wall.as_secs_f64();
    println!("{}", row("first apply of", "s", seconds));
    let per_level = requests.take() as f64 / LEVELS as f64;
    println!(
        "{}",
        row("requests a level, first apply of", "requests", per_level)
    );

    let mut seconds = Vec::new();
    for _ in 0..ROUNDS {
        let stopwatch = Stopwatch::start()?;
        let plan = world::plan(&store, &manifest).await?;
        seconds.push(stopwatch.stop()?.wall.as_secs_f64());
        assert_eq!(plan.unchanged, LEVELS);
    }
    println!(
        "{}",
        row("plan of unchanged", "s", median(seconds)).at_most(3.0)
    );

    requests.take();
    let report = world::apply(&store, &manifest).await?;
    assert_eq!(report.status, Status::Unchanged);
    let writes = requests.writes() as f64;
    println!(
        "{}",
        row("write requests, apply of unchanged", "requests", writes).at_most(0.0)
    );
    Ok(())
}

/// A resource disabled and enabled in turns, the engine in this process.
async fn fan_out(kept: Kept) -> Result<(), Failure> {
    let (embedded, _folder) = kept.open()?;
    let requests = Requests::default();
    let client = embedded.client();
    let store = world::store(requests.of(&client));
    let ns = world::create(&store).await?;
    world::seed_buckets(&client, &ns, BUCKETS).await?;
    let (mut seconds, mut processor, mut sent) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        requests.take();
        let manifest = world::switch(round % 2 == 0)?;
        let stopwatch = Stopwatch::start()?;
        let report = world::apply(&store, &manifest).await?;
        let cost = stopwatch.stop()?;
        assert_eq!(report.stamped, BUCKETS as u64);
        seconds.push(cost.wall.as_secs_f64());
        processor.push(cost.processor.as_secs_f64());
        sent.push(requests.take() as f64);
    }
    let row = |what: &str, unit, value: f64| {
        let name = format!("{what} {} buckets, {}", count(BUCKETS), kept.name());
        Figure::new(name, unit, value)
    };
    println!(
        "{}",
        row("access fan-out over", "s", median(seconds)).at_most(2.0)
    );
    let per_bucket = mean(&processor) * 1e6 / BUCKETS as f64;
    println!(
        "{}",
        row(
            "processor time a bucket, engine included,",
            "µs",
            per_bucket
        )
    );
    let per_bucket = median(sent) / BUCKETS as f64;
    println!("{}", row("requests a bucket,", "requests", per_bucket));
    Ok(())
}

/// A fan-out behind a stand-in for DynamoDB that costs nothing but its latency.
fn behind_a_network(many: usize, later_ms: u64, concurrency: usize) -> Result<(), Failure> {
    let server = Server::start(Serves::StandIn, many, later_ms)?;
    let stamped = server.stamped_by_us(ROUNDS, concurrency)?;
    let buckets = many as f64;
    let row = |what: &str, unit, value: f64| {
        let name = format!(
            "{what} {} buckets, {later_ms} ms, {concurrency} batches",
            count(many)
        );
        Figure::new(name, unit, value)
    };
    let a_second = buckets / stamped.seconds();
    println!("{}", row("stamped a second,", "buckets", a_second));
    if later_ms > 0 {
        // Every slot always full, every batch too. Without latency nothing but the processor limits.
        let allowed = (concurrency * STAMPS_PER_BATCH) as f64 / stamped.round_trip_seconds();
        let used = 100.0 * a_second / allowed;
        let used = row("of what its concurrency allows,", "%", used);
        let (at_ms, least) = USED_AT;
        println!(
            "{}",
            if later_ms == at_ms {
                used.at_least(least)
            } else {
                used
            }
        );
    }
    let per_bucket = stamped.processor_seconds() * 1e6 / buckets;
    println!(
        "{}",
        row("processor time a bucket,", "µs", per_bucket).at_most(40.0)
    );
    let per_bucket = stamped.requests() / buckets;
    println!(
        "{}",
        row("requests a bucket,", "requests", per_bucket).at_most(0.07)
    );
    println!("{}", row("peak memory,", "MiB", stamped.peak_mib()));
    Ok(())
}

/// The same fan-out by us and by the Python provisioner, each against a server of its own.
fn against_the_peer(later_ms: u64, times: f64) -> Result<(), Failure> {
    let ours = Server::start(Serves::Engine, BUCKETS, later_ms)?.thrown_by_us(ROUNDS)?;
    let peer = thrown_by_peer(later_ms)
        .inspect_err(|reason| eprintln!("the peer is left out: {reason}"))
        .ok();
    let buckets = BUCKETS as f64;
    let row = |what: &str, unit, value: fn(&Thrown) -> f64, scale: f64| {
        let name = format!(
            "{what} {} buckets, over HTTP, {later_ms} ms",
            count(BUCKETS)
        );
        let figure = Figure::new(name, unit, value(&ours) * scale);
        figure.peer(peer.as_ref().map(|peer| value(peer) * scale))
    };
    let taken = row("access fan-out over", "s", Thrown::seconds, 1.0);
    println!(
        "{}",
        if peer.is_some() {
            taken.at_least(times)
        } else {
            taken
        }
    );
    let row = |what: &str, unit, value: fn(&Thrown) -> f64, scale: f64| {
        println!("{}", row(what, unit, value, scale));
    };
    row(
        "processor time a bucket,",
        "µs",
        Thrown::processor_seconds,
        1e6 / buckets,
    );
    row(
        "requests a bucket,",
        "requests",
        Thrown::requests,
        1.0 / buckets,
    );
    row("peak memory,", "MiB", Thrown::peak_mib, 1.0);
    Ok(())
}

fn thrown_by_peer(later_ms: u64) -> Result<Thrown, Failure> {
    let python = env::var("ZAE_LIMITS_PYTHON").map_err(
        |_| "set ZAE_LIMITS_PYTHON to an interpreter that has zae-limiter 0.17.0 to measure it too",
    )?;
    Server::start(Serves::Engine, BUCKETS, later_ms)?.thrown_by_peer(&python, PEER_ROUNDS)
}

/// Peak memory of one fan-out in a fresh process, few buckets against many: whole applies on the engine,
/// and fan-outs alone on the stand-in.
fn memory() -> Result<(), Failure> {
    let apply = |buckets| Server::start(Serves::Engine, buckets, 0)?.thrown_by_us(1);
    growth("one apply over", &apply, BUCKETS, MANY_BUCKETS)?;
    let stamp = |buckets| Server::start(Serves::StandIn, buckets, 0)?.stamped_by_us(1, 16);
    growth("one fan-out over", &stamp, MANY_BUCKETS, MOST_BUCKETS)
}

fn growth(
    what: &str,
    run: &dyn Fn(usize) -> Result<Thrown, Failure>,
    few: usize,
    many: usize,
) -> Result<(), Failure> {
    let peak = |buckets: usize| -> Result<f64, Failure> {
        let peak = run(buckets)?.peak_mib();
        let name = format!("peak memory, {what} {} buckets", count(buckets));
        println!("{}", Figure::new(name, "MiB", peak));
        Ok(peak)
    };
    let (few, many) = (peak(few)?, peak(many)?);
    println!(
        "{}",
        Figure::new("its growth", "MiB", many - few).at_most(10.0)
    );
    Ok(())
}
