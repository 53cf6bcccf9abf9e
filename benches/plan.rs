//! Parsing, checking and planning many levels in a process of its own, against a stand-in for DynamoDB in another:
//! what a plan costs whoever makes it, the SDK and HTTP included and the table not.

use crate::figures::{Figure, count};
use crate::meter::{Stopwatch, mean, median, peak_memory_kib};
use crate::process::{self, Server, Serves};
use crate::{Failure, ROUNDS, world};
use serde::{Deserialize, Serialize};
use zae_limits::manifest::parse_yaml;
use zae_limits::report::Status;

/// Levels of a large manifest, and of a very large one.
const LEVELS: [usize; 2] = [10_000, 100_000];
/// How much later than it could the stand-in answers when what is measured is how many requests wait at once.
const LATER_MS: u64 = 20;

/// What a client says about its plans.
#[derive(Debug, Serialize, Deserialize)]
pub struct Planned {
    rounds: Vec<Round>,
    /// Requests of one plan.
    requests: usize,
    /// Those of them that read a hundred items at once.
    batches: usize,
    /// The most that were under way at once.
    at_once: usize,
    peak_kib: u64,
    /// Write requests of an apply of what is applied already.
    writes: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct Round {
    seconds: f64,
    processor_seconds: f64,
}

impl Planned {
    fn processor_seconds(&self) -> f64 {
        let rounds = self.rounds.iter();
        mean(&rounds.map(|r| r.processor_seconds).collect::<Vec<_>>())
    }
}

/// Few levels against many.
pub fn measure() -> Result<(), Failure> {
    let [few, many] = LEVELS;
    let few = cost(few)?;
    let many = cost(many)?;
    let growth = many / few;
    let name = "processor time, ten times as many levels";
    println!("{}", Figure::new(name, "times", growth).at_most(12.0));
    Ok(())
}

/// Prints the figures of so many levels. Gives the processor time, in seconds.
fn cost(levels: usize) -> Result<f64, Failure> {
    let row = |what: &str, unit, value: f64| {
        Figure::new(format!("{what} {} levels", count(levels)), unit, value)
    };
    let server = Server::start(Serves::Levels, levels, 0)?;
    let planned: Planned = server.client("plan", &[levels, ROUNDS])?;
    let seconds = median(planned.rounds.iter().map(|r| r.seconds).collect());
    println!("{}", row("parse, check and plan", "s", seconds));
    let processor = planned.processor_seconds();
    let figure = row("processor time, parse, check and plan", "s", processor);
    println!("{}", figure.at_most(2.0));
    let requests = planned.requests as f64;
    println!("{}", row("requests, plan of", "requests", requests));
    let batches = planned.batches as f64;
    // Every level once, and the rest of the record, which is one more.
    let needed = levels.div_ceil(100) as f64 + 1.0;
    let figure = row("batches of reads among them,", "requests", batches);
    println!("{}", figure.at_most(needed));
    let writes = planned.writes as f64;
    let figure = row("write requests, apply of unchanged", "requests", writes);
    println!("{}", figure.at_most(0.0));
    let once: Planned = server.client("plan", &[levels, 1])?;
    let peak = once.peak_kib as f64 / 1024.0;
    println!(
        "{}",
        row("peak memory, one plan of", "MiB", peak).at_most(400.0)
    );
    let server = Server::start(Serves::Levels, levels, LATER_MS)?;
    let later: Planned = server.client("plan", &[levels, 1])?;
    let at_once = later.at_once as f64;
    let what = format!("requests under way at once, {LATER_MS} ms, plan of");
    println!("{}", row(&what, "requests", at_once));
    Ok(processor)
}

/// `plan URL LEVELS ROUNDS`: plans what is applied already, then applies it, and prints what that took.
pub async fn run(url: &str, levels: usize, rounds: usize) -> Result<(), Failure> {
    let (store, requests) = process::connect(url).await?;
    let text = world::yaml(levels);
    let mut planned = Planned {
        rounds: Vec::new(),
        requests: 0,
        batches: 0,
        at_once: 0,
        peak_kib: 0,
        writes: 0,
    };
    for _ in 0..rounds {
        requests.take();
        let stopwatch = Stopwatch::start()?;
        let manifest = parse_yaml("bench.limits.yaml", text.as_bytes())?;
        let plan = world::plan(&store, &manifest).await?;
        let cost = stopwatch.stop()?;
        if plan.unchanged != levels || !plan.is_empty() || plan.record_changes() {
            return Err("the stand-in does not hold what the manifest declares".into());
        }
        planned.rounds.push(Round {
            seconds: cost.wall.as_secs_f64(),
            processor_seconds: cost.processor.as_secs_f64(),
        });
        planned.batches = requests.batches();
        planned.at_once = requests.most_at_once();
        planned.requests = requests.take();
    }
    planned.peak_kib = peak_memory_kib()?;
    let manifest = world::levels(levels)?;
    let report = world::apply(&store, &manifest).await?;
    if report.status != Status::Unchanged {
        return Err(format!("the apply was {:?}", report.status).into());
    }
    planned.writes = requests.writes();
    println!("{}", serde_json::to_string(&planned)?);
    Ok(())
}
