//! Processes of their own: a server, and clients that throw a switch against it.
//!
//! The bench runs itself again: `serve ...`, and `throw URL ROUNDS` for whole applies, `stamp N URL ROUNDS` for the
//! fan-out alone or `plan URL LEVELS ROUNDS` for the plan alone. The peer is run with the same arguments as `throw`
//! and answers in the same form, so that both
//! are measured alike: a whole apply, from the call to the answer, without the start of the process.

use crate::front::{self, Behind};
use crate::levels::Levels;
use crate::meter::{Requests, Stopwatch, mean, median, peak_memory_kib};
use crate::stamped::Stamped;
use crate::{Failure, world};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::env;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::net::TcpListener;
use zae_limits::model::NamespaceId;
use zae_limits::store::{Connection, Embedded, Store};

/// What a client says about its applies.
#[derive(Debug, Serialize, Deserialize)]
pub struct Thrown {
    rounds: Vec<Round>,
    peak_kib: u64,
    /// What one write batch takes when no other request is under way; the peer does not measure it.
    #[serde(default)]
    round_trip_seconds: f64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Round {
    seconds: f64,
    processor_seconds: f64,
    requests: usize,
}

impl Thrown {
    /// Seconds of one apply.
    pub fn seconds(&self) -> f64 {
        median(self.each(|round| round.seconds))
    }

    /// Seconds of processor time of one apply.
    pub fn processor_seconds(&self) -> f64 {
        mean(&self.each(|round| round.processor_seconds))
    }

    /// Requests of one apply.
    pub fn requests(&self) -> f64 {
        median(self.each(|round| round.requests as f64))
    }

    /// The most memory the client had resident.
    pub fn peak_mib(&self) -> f64 {
        self.peak_kib as f64 / 1024.0
    }

    /// Seconds of one write batch with no other request under way.
    pub fn round_trip_seconds(&self) -> f64 {
        self.round_trip_seconds
    }

    fn each(&self, of: impl Fn(&Round) -> f64) -> Vec<f64> {
        self.rounds.iter().map(of).collect()
    }
}

/// What a server serves.
#[derive(Debug, Clone, Copy)]
pub enum Serves {
    /// A database in its memory.
    Engine,
    /// The answers of one fan-out and nothing else.
    StandIn,
    /// The answers of a plan that finds everything as declared.
    Levels,
}

impl Serves {
    fn word(self) -> &'static str {
        match self {
            Serves::Engine => "engine",
            Serves::StandIn => "stand-in",
            Serves::Levels => "levels",
        }
    }
}

/// A server, stopped when dropped.
pub struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts one that holds so many buckets, or levels, and answers so much later than it could.
    pub fn start(serves: Serves, count: usize, later_ms: u64) -> Result<Server, Failure> {
        let mut child = Command::new(env::current_exe()?)
            .args(["serve", serves.word()])
            .args([count.to_string(), later_ms.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("the server has no output")?;
        let mut url = String::new();
        BufReader::new(stdout).read_line(&mut url)?;
        let url = url.trim().to_owned();
        Ok(Server { child, url })
    }

    /// Runs a client of ours against it, the fan-out alone.
    pub fn stamped_by_us(&self, rounds: usize, concurrency: usize) -> Result<Thrown, Failure> {
        let mut command = Command::new(env::current_exe()?);
        self.thrown_by(command.args(["stamp", &concurrency.to_string()]), rounds)
    }

    /// Runs a client of ours against it.
    pub fn thrown_by_us(&self, rounds: usize) -> Result<Thrown, Failure> {
        let mut command = Command::new(env::current_exe()?);
        self.thrown_by(command.arg("throw"), rounds)
    }

    /// Runs the peer against it.
    pub fn thrown_by_peer(&self, python: &str, rounds: usize) -> Result<Thrown, Failure> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peer.py");
        self.thrown_by(Command::new(python).arg(script), rounds)
    }

    fn thrown_by(&self, command: &mut Command, rounds: usize) -> Result<Thrown, Failure> {
        said(command.args([&self.url, &rounds.to_string()]))
    }

    /// Runs a client of ours against it, and gives what it says.
    pub fn client<T: DeserializeOwned>(&self, what: &str, numbers: &[usize]) -> Result<T, Failure> {
        let mut command = Command::new(env::current_exe()?);
        let numbers = numbers.iter().map(ToString::to_string);
        said(command.args([what, &self.url]).args(numbers))
    }
}

fn said<T: DeserializeOwned>(command: &mut Command) -> Result<T, Failure> {
    let output = command
        .env("AWS_ACCESS_KEY_ID", "any")
        .env("AWS_SECRET_ACCESS_KEY", "any")
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("{command:?} ended with {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

impl Drop for Server {
    fn drop(&mut self) {
        // It serves for as long as its input is open.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// `serve engine|stand-in|levels COUNT MS`: prints where it listens, and ends with its input.
pub async fn run_server(serves: &str, count: usize, later: Duration) -> Result<(), Failure> {
    let behind = match serves {
        "stand-in" => Behind::StandIn(Stamped::with(&stand_in_namespace()?, count)?),
        "levels" => Behind::Levels(Levels::applied(
            &stand_in_namespace()?,
            &world::levels(count)?,
        )?),
        _ => {
            let embedded = Embedded::memory()?;
            let client = embedded.client();
            let ns = world::create(&world::store(client.clone())).await?;
            world::seed_buckets(&client, &ns, count).await?;
            Behind::Engine(embedded)
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    front::serve(behind, later, listener, async {
        // However the input ended, nobody needs the server any more.
        let _ = ended.await;
    })
    .await
}

/// The namespace of what is no engine.
pub fn stand_in_namespace() -> Result<NamespaceId, Failure> {
    Ok("bench-space".parse()?)
}

/// `throw URL ROUNDS`: disables and enables the resource in turns, and prints what that took.
pub async fn run_applies(url: &str, rounds: usize) -> Result<(), Failure> {
    let (store, requests) = connect(url).await?;
    let mut thrown = Vec::new();
    for round in 0..rounds {
        requests.take();
        let manifest = world::switch(round % 2 == 0)?;
        let stopwatch = Stopwatch::start()?;
        let report = world::apply(&store, &manifest).await?;
        thrown.push(Round::measured(&stopwatch, &requests)?);
        if report.stamped == 0 {
            return Err("nothing was stamped".into());
        }
    }
    print(thrown, 0.0)
}

/// `stamp N URL ROUNDS`: fans out one switch, whatever the buckets carry, with N batches in flight, and prints
/// what that took.
pub async fn run_fan_outs(url: &str, rounds: usize, concurrency: usize) -> Result<(), Failure> {
    let (store, requests) = connect(url).await?;
    let ns = stand_in_namespace()?;
    let round_trip_seconds = world::round_trip(&store, &ns).await?;
    let mut stamped = Vec::new();
    for _ in 0..rounds {
        requests.take();
        let stopwatch = Stopwatch::start()?;
        let (store, ns) = (store.clone(), ns.clone());
        // On a task, as the function works: what waits on a thread of its own is woken by the kernel each time.
        let fan_out = async move { world::fan_out(&store, &ns, concurrency).await };
        tokio::spawn(fan_out).await??;
        stamped.push(Round::measured(&stopwatch, &requests)?);
    }
    print(stamped, round_trip_seconds)
}

/// A store behind a URL, its requests counted.
pub async fn connect(url: &str) -> Result<(Store, Requests), Failure> {
    let connection = Connection {
        region: Some("us-east-1".to_owned()),
        endpoint_url: Some(url.to_owned()),
        ..Connection::default()
    };
    let requests = Requests::default();
    let client = connection.open().await?.client;
    Ok((world::store(requests.of(&client)), requests))
}

impl Round {
    fn measured(stopwatch: &Stopwatch, requests: &Requests) -> Result<Round, Failure> {
        let cost = stopwatch.stop()?;
        Ok(Round {
            seconds: cost.wall.as_secs_f64(),
            processor_seconds: cost.processor.as_secs_f64(),
            requests: requests.take(),
        })
    }
}

fn print(rounds: Vec<Round>, round_trip_seconds: f64) -> Result<(), Failure> {
    let thrown = Thrown {
        rounds,
        peak_kib: peak_memory_kib()?,
        round_trip_seconds,
    };
    println!("{}", serde_json::to_string(&thrown)?);
    Ok(())
}
