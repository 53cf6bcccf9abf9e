//! Processes of their own: a server, and clients that throw a switch against it.
//!
//! The bench runs itself again: `serve BUCKETS` or `throw URL ROUNDS`. The peer is run with the same
//! arguments and answers in the same form, so that both are measured alike: a whole apply, from the call to
//! the answer, without the start of the process.

use crate::meter::{Requests, Stopwatch, mean, median, peak_memory_kib};
use crate::{Failure, world};
use serde::{Deserialize, Serialize};
use std::env;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use zae_limits::store::{Connection, Embedded, serve};

/// What a client says about its applies.
#[derive(Debug, Serialize, Deserialize)]
pub struct Thrown {
    rounds: Vec<Round>,
    peak_kib: u64,
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

    fn each(&self, of: impl Fn(&Round) -> f64) -> Vec<f64> {
        self.rounds.iter().map(of).collect()
    }
}

/// A server with a database in its memory, stopped when dropped.
pub struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts one that holds so many buckets.
    pub fn start(buckets: usize) -> Result<Server, Failure> {
        let mut child = Command::new(env::current_exe()?)
            .args(["serve", &buckets.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("the server has no output")?;
        let mut url = String::new();
        BufReader::new(stdout).read_line(&mut url)?;
        let url = url.trim().to_owned();
        Ok(Server { child, url })
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
        let output = command
            .args([&self.url, &rounds.to_string()])
            .env("AWS_ACCESS_KEY_ID", "any")
            .env("AWS_SECRET_ACCESS_KEY", "any")
            .stderr(Stdio::inherit())
            .output()?;
        if !output.status.success() {
            return Err(format!("{command:?} ended with {}", output.status).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It serves for as long as its input is open.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// `serve BUCKETS`: prints where it listens, and ends with its input.
pub async fn run_server(buckets: usize) -> Result<(), Failure> {
    let embedded = Embedded::memory()?;
    let client = embedded.client();
    let ns = world::create(&world::store(client.clone())).await?;
    world::seed_buckets(&client, &ns, buckets).await?;
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let server = serve(&embedded, TcpListener::bind("127.0.0.1:0")?, async {
        // However the input ended, nobody needs the server any more.
        let _ = ended.await;
    })?;
    println!("{}", server.url());
    Ok(server.stopped().await?)
}

/// `throw URL ROUNDS`: disables and enables the resource in turns, and prints what that took.
pub async fn run_client(url: &str, rounds: usize) -> Result<(), Failure> {
    let connection = Connection {
        region: Some("us-east-1".to_owned()),
        endpoint_url: Some(url.to_owned()),
        ..Connection::default()
    };
    let requests = Requests::default();
    let store = world::store(requests.of(&connection.open().await?.client));
    let mut thrown = Vec::new();
    for round in 0..rounds {
        requests.take();
        let manifest = world::switch(round % 2 == 0)?;
        let stopwatch = Stopwatch::start()?;
        let report = world::apply(&store, &manifest).await?;
        let cost = stopwatch.stop()?;
        if report.stamped == 0 {
            return Err("nothing was stamped".into());
        }
        thrown.push(Round {
            seconds: cost.wall.as_secs_f64(),
            processor_seconds: cost.processor.as_secs_f64(),
            requests: requests.take(),
        });
    }
    let thrown = Thrown {
        rounds: thrown,
        peak_kib: peak_memory_kib()?,
    };
    println!("{}", serde_json::to_string(&thrown)?);
    Ok(())
}
