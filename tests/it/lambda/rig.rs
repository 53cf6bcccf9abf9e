//! A function over an embedded table, with a sink for its answers and eyes on all that it logs.

use super::sink::{Put, Sink};
use crate::world::{Dump, World};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use zae_limits::fanout::Settings;
use zae_limits::lambda::{
    Event, Function, FunctionError, Invocation, MOST_BYTES, Options, Tables, log,
};
use zae_limits::store::{Place, Store};

pub const STACK: &str = "arn:aws:cloudformation:eu-central-1:123456789012:stack/tenants/0a1b2c3d-0000-1111-2222-333344445555";
pub const TABLE: &str = "rate-limits";

/// The keys of `Data`, whatever happened.
const DATA: [&str; 9] = [
    "Created",
    "Deleted",
    "Fingerprint",
    "Pending",
    "Stamped",
    "Status",
    "Unchanged",
    "Updated",
    "Warnings",
];

/// What is written to one place by many.
#[derive(Debug, Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("the lines").clone()).expect("text")
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("the lines").extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub struct Rig {
    pub world: World,
    pub sink: Sink,
    pub function: Function,
    pub logs: Lines,
    pub metrics: Lines,
    logging: Option<DefaultGuard>,
}

impl Rig {
    pub async fn new() -> Rig {
        Rig::over(World::new().await).await
    }

    /// A rig for many requests: logs at the level that a deployed function has.
    pub async fn quiet() -> Rig {
        Rig::new().await.quietly()
    }

    /// This rig, logging at the level that a deployed function has.
    pub fn quietly(mut self) -> Rig {
        let written = self.logs.clone();
        self.logging = None;
        let subscriber = log::subscriber(Level::INFO, move || written.clone());
        self.logging = Some(tracing::subscriber::set_default(subscriber));
        self
    }

    pub async fn over(world: World) -> Rig {
        Rig::with_options(world, Rig::options()).await
    }

    pub async fn with_options(world: World, options: Options) -> Rig {
        let client = world.client.clone();
        let tables = Tables::given(move |table| {
            let place = Place {
                table: table.to_owned(),
                host: "memory".to_owned(),
            };
            Store::new(client.clone(), place)
        });
        Rig::with(world, tables, options).await
    }

    pub fn options() -> Options {
        Options {
            table: Some(TABLE.to_owned()),
            root: Some(PathBuf::from(env!("CARGO_MANIFEST_DIR"))),
            fanout: Settings {
                settle: Duration::ZERO,
                ..Settings::default()
            },
            ..Options::default()
        }
    }

    pub async fn with(world: World, tables: Tables, options: Options) -> Rig {
        let (logs, metrics) = (Lines::default(), Lines::default());
        // Everything that anyone says at any level, not only what the function lets through. The SDK
        // never sees an event, and at its finest level writes more than all others together.
        let (written, emitted) = (logs.clone(), metrics.clone());
        let layer = tracing_subscriber::fmt::layer()
            .json()
            .with_writer(move || written.clone());
        let everything = tracing_subscriber::registry()
            .with(
                Targets::new()
                    .with_default(LevelFilter::TRACE)
                    .with_target("aws", LevelFilter::OFF),
            )
            .with(layer);
        let logging = tracing::subscriber::set_default(everything);
        let emit = move |line: &str| writeln!(emitted.clone(), "{line}").expect("a line");
        let clock = world.clock.clone();
        Rig {
            function: Function::new(options, tables, clock, emit).expect("a function"),
            sink: Sink::start().await,
            world,
            logs,
            metrics,
            logging: Some(logging),
        }
    }

    /// An event with everything that CloudFormation sends.
    pub fn event(&self, request_type: &str, properties: Value) -> Value {
        event(&self.sink.url(), request_type, properties)
    }

    /// Sends one event as the text it is, and gives what the runtime was told.
    pub async fn send(&self, event: Value) -> Result<Value, FunctionError> {
        let text = RawValue::from_string(event.to_string()).expect("JSON");
        self.function
            .handle(Event::read(&text), Invocation::default())
            .await
    }

    /// Sends one event that must be answered by exactly one well-formed PUT, and gives its body.
    pub async fn answered(&self, event: Value) -> Value {
        let told = self
            .send(event.clone())
            .await
            .expect("the runtime is told that all is well");
        let puts = self.sink.take();
        assert_eq!(puts.len(), 1, "one PUT: {puts:#?}");
        let body = well_formed(&event, &puts[0]);
        assert_eq!(told, body, "the runtime is told what CloudFormation is");
        self.assert_nothing_leaked();
        body
    }

    pub fn assert_nothing_leaked(&self) {
        for text in [self.logs.text(), self.metrics.text()] {
            assert!(
                !text.contains(Sink::SECRET),
                "a log holds a signature: {text}"
            );
            assert!(
                !text.contains("AWSAccessKeyId"),
                "a log holds a query: {text}"
            );
        }
    }

    /// The stored levels, one line each: namespace, key, switch.
    pub async fn levels(&self) -> Vec<String> {
        levels(&self.world.dump().await)
    }
}

/// An event with everything that CloudFormation sends.
pub fn event(url: &str, request_type: &str, properties: Value) -> Value {
    json!({
        "RequestType": request_type,
        "ResponseURL": url,
        "StackId": STACK,
        "RequestId": "7c5b1a2e-1111-2222-3333-444455556666",
        "LogicalResourceId": "Limits",
        "ResourceType": "Custom::ZaeLimiterLimits",
        "ServiceToken": "arn:aws:lambda:eu-central-1:123456789012:function:limits",
        "ResourceProperties": properties,
    })
}

/// The levels among stored items, one line each: namespace, key, switch.
pub fn levels(dump: &Dump) -> Vec<String> {
    let mut names = BTreeMap::new();
    for ((_, sk), item) in dump {
        if let Some(id) = sk.strip_prefix("#NSID#") {
            let name = item["namespace_name"].as_s().expect("a name");
            names.insert(id.to_owned(), name.clone());
        }
    }
    let configs = dump.iter().filter(|((_, sk), _)| sk.starts_with("#CONFIG"));
    let lines = configs.map(|((pk, sk), item)| {
        let (ns, level) = pk.split_once('/').expect("a namespaced key");
        let name = names.get(ns).map_or(ns, String::as_str);
        let scope = sk.strip_prefix("#CONFIG#").map(|r| format!("/{r}"));
        let switch = match item.get("disabled") {
            None => String::new(),
            Some(value) => match (value.as_bool(), value.as_s()) {
                (Ok(flag), _) => format!(" {flag}"),
                (_, Ok(text)) => format!(" {text}"),
                _ => " ?".to_owned(),
            },
        };
        format!("{name} {level}{}{switch}", scope.unwrap_or_default())
    });
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines
}

/// Holds a PUT against every rule that does not depend on what was asked.
pub fn well_formed(event: &Value, put: &Put) -> Value {
    assert_eq!(
        put.line,
        format!("PUT {} HTTP/1.1", Sink::TARGET),
        "verb and path, byte for byte"
    );
    let length = put.body.len().to_string();
    assert_eq!(put.header("content-length"), Some(length.as_str()));
    assert_eq!(put.header("content-type"), Some(""));
    assert_eq!(put.header("transfer-encoding"), None);
    well_formed_body(event, &put.body)
}

/// Holds a body against every rule that does not depend on what was asked.
pub fn well_formed_body(event: &Value, body: &[u8]) -> Value {
    assert!(body.len() <= MOST_BYTES, "{} bytes", body.len());
    let body: Value = serde_json::from_slice(body).expect("JSON");
    let fields = body.as_object().expect("an object");
    assert!(
        fields.values().all(|value| !value.is_null()),
        "a null: {body}"
    );
    for id in ["StackId", "RequestId", "LogicalResourceId"] {
        if usable(&event[id], 256).is_some() {
            assert_eq!(body[id], event[id], "{id} as it came");
        }
    }
    let id = body["PhysicalResourceId"].as_str().expect("an id");
    let own = usable(&event["PhysicalResourceId"], 2048);
    assert!(!id.is_empty(), "an id");
    assert!(id.len() <= 1024 || own == Some(id), "{id:?}");
    match body["Status"].as_str() {
        Some("SUCCESS") => {
            assert_eq!(fields.get("Reason"), None);
            data(fields).expect("a success has Data");
        }
        Some("FAILED") => {
            let reason = body["Reason"].as_str().expect("a reason");
            assert!(!reason.trim().is_empty());
            data(fields);
            assert_eq!(id, own.unwrap_or(id), "a failure keeps the id");
        }
        other => panic!("a status that is none: {other:?}"),
    }
    if event["RequestType"] == "Delete" {
        assert_eq!(id, own.unwrap_or(id), "a Delete keeps the id");
    }
    body
}

/// A text that is there and, as JSON, no longer than `longest` bytes.
fn usable(value: &Value, longest: usize) -> Option<&str> {
    let text = value.as_str()?;
    let escaped = value.to_string().len() - 2;
    (!text.is_empty() && escaped <= longest).then_some(text)
}

fn data(fields: &Map<String, Value>) -> Option<()> {
    let data = fields.get("Data")?.as_object().expect("Data is an object");
    let mut keys: Vec<&str> = data.keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, DATA);
    assert!(
        data.values().all(Value::is_string),
        "flat strings: {data:?}"
    );
    Some(())
}
