//! A Python process that holds real clients, asked over JSON lines.

use crate::python::Release;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// One process. It ends with this.
pub struct Peer {
    process: RefCell<Process>,
    connected: Cell<u32>,
}

struct Process {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What an exception of the library says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raised {
    pub kind: String,
    pub message: String,
    pub entity: Option<String>,
    pub resource: Option<String>,
    pub level: Option<String>,
}

/// What became of one acquire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Became {
    Admitted,
    /// Admitted whatever the limits say.
    Bypassed,
    /// `RateLimitExceeded`.
    Limited,
    /// `ResourceDisabled`, which names an entity, and the level that decided.
    Disabled {
        entity: String,
        level: String,
    },
}

impl Became {
    /// In one word.
    pub fn word(&self) -> &'static str {
        match self {
            Became::Admitted => "admitted",
            Became::Bypassed => "bypassed",
            Became::Limited => "limited",
            Became::Disabled { .. } => "disabled",
        }
    }
}

impl Peer {
    /// Starts a process of a release; `None` when there is no such Python, and the test is skipped.
    pub fn start(release: &'static Release, url: &str, table: &str) -> Option<Peer> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/client.py");
        let mut child = Command::new(release.interpreter()?)
            .args([script, url, table])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a Python process");
        let asks = child.stdin.take().expect("its input");
        let answers = BufReader::new(child.stdout.take().expect("its output"));
        let process = RefCell::new(Process {
            child,
            asks,
            answers,
        });
        let connected = Cell::new(0);
        Some(Peer { process, connected })
    }

    /// Asks, and waits for what it answers.
    pub fn ask(&self, request: &Value) -> Result<Value, Raised> {
        let mut process = self.process.borrow_mut();
        writeln!(process.asks, "{request}").expect("it listens");
        let mut line = String::new();
        process.answers.read_line(&mut line).expect("an answer");
        let mut answer: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("{request}: {error} in {line:?}"));
        if let Some(ok) = answer.get_mut("ok") {
            return Ok(ok.take());
        }
        let said = |name: &str| answer["raised"][name].as_str().map(str::to_owned);
        Err(Raised {
            kind: said("type").expect("an exception's type"),
            message: said("message").unwrap_or_default(),
            entity: said("entity_id"),
            resource: said("resource"),
            level: said("level"),
        })
    }

    /// A client that has just connected and knows nothing.
    pub fn connect(&self) -> Client<'_> {
        self.connect_with(&json!({}))
    }

    /// The same, with options of `SyncRepository.connect`.
    pub fn connect_with(&self, options: &Value) -> Client<'_> {
        self.try_connect(options)
            .unwrap_or_else(|raised| panic!("{raised:?}"))
    }

    /// The same, where the library may refuse.
    pub fn try_connect(&self, options: &Value) -> Result<Client<'_>, Raised> {
        let name = format!("client-{}", self.connected.get());
        self.connected.set(self.connected.get() + 1);
        self.ask(&json!({
            "do": "connect", "client": name, "namespace": "tenant-alpha", "options": options,
        }))?;
        Ok(Client { peer: self, name })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let process = self.process.get_mut();
        // It may be amid something that a failed test will not wait for.
        let _ = process.child.kill();
        let _ = process.child.wait();
    }
}

/// One client in a process.
pub struct Client<'p> {
    peer: &'p Peer,
    pub name: String,
}

impl Client<'_> {
    /// Acquires some `rpm` of a resource.
    pub fn acquire(&self, entity: &str, resource: &str, amount: u64) -> Became {
        self.acquire_and_adjust(entity, resource, amount, 0)
    }

    /// Acquires some `rpm`, and adjusts the lease by some more.
    pub fn acquire_and_adjust(
        &self,
        entity: &str,
        resource: &str,
        amount: u64,
        adjust: i64,
    ) -> Became {
        let adjust = (adjust != 0).then(|| json!({"rpm": adjust}));
        let answer = self.peer.ask(&json!({
            "do": "acquire", "client": self.name, "entity": entity, "resource": resource,
            "consume": {"rpm": amount}, "adjust": adjust,
        }));
        match answer {
            Ok(lease) if lease["bypassed"] == true => Became::Bypassed,
            Ok(_) => Became::Admitted,
            Err(raised) if raised.kind == "RateLimitExceeded" => Became::Limited,
            Err(raised) if raised.kind == "ResourceDisabled" => {
                assert_eq!(raised.resource.as_deref(), Some(resource), "{raised:?}");
                Became::Disabled {
                    entity: raised.entity.expect("it names an entity"),
                    level: raised.level.expect("it names a level"),
                }
            }
            Err(raised) => panic!("{entity} on {resource}: {raised:?}"),
        }
    }

    /// Calls a method of the repository.
    pub fn call(&self, method: &str, arguments: &Value) -> Value {
        self.try_call(method, arguments)
            .unwrap_or_else(|raised| panic!("{method}({arguments}): {raised:?}"))
    }

    /// The same, where it may raise.
    pub fn try_call(&self, method: &str, arguments: &Value) -> Result<Value, Raised> {
        self.peer.ask(&json!({
            "do": "call", "client": self.name, "method": method, "arguments": arguments,
        }))
    }

    /// The requests it has sent since it was asked last.
    pub fn requests(&self) -> Vec<String> {
        let sent = self
            .peer
            .ask(&json!({"do": "requests", "client": self.name}));
        let sent = sent.expect("requests");
        serde_json::from_value(sent).expect("a list of names")
    }

    /// Doubles the shards of a bucket until there are eight.
    ///
    /// An eighth of the capacity is what a shard holds: what the only one has above that goes first, or it would be
    /// cut off at some later time.
    pub fn double_to_eight(&self, entity: &str, resource: &str, capacity: u64) {
        let above = capacity - capacity / 16;
        assert_eq!(self.acquire(entity, resource, above), Became::Admitted);
        for count in [1, 2, 4] {
            let arguments =
                json!({"entity_id": entity, "resource": resource, "current_count": count});
            assert_eq!(self.call("bump_shard_count", &arguments), 2 * count);
        }
    }
}
