//! The command line as an operator runs it, `local serve` and `apply` in processes of their own, and a client beside.

use super::{Became, Peer};
use crate::python::PEER;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The example manifest, which the README runs.
const EXAMPLE: &str = include_str!("../../../manifests/tenant-alpha.limits.yaml");

/// A folder with the manifest and the store in it, and the server of that store.
struct Station {
    folder: TempDir,
    server: Child,
    environment: BTreeMap<String, String>,
}

impl Station {
    fn start() -> Station {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("tenant.limits.yaml"), EXAMPLE).expect("the manifest");
        let applied = zae_limits(
            &folder,
            "--local=store.db apply -f tenant.limits.yaml --yes",
        )
        .output();
        assert!(applied.expect("it runs").status.success());
        let mut server = zae_limits(&folder, "--local=store.db local serve --port 0 -o json")
            .stdout(Stdio::piped())
            .spawn()
            .expect("a server");
        let stdout = server.stdout.take().expect("its output");
        let mut documents = serde_json::Deserializer::from_reader(stdout).into_iter();
        let said: Value = documents.next().expect("a document").expect("JSON");
        let environment = serde_json::from_value(said["environment"].clone());
        Station {
            folder,
            server,
            environment: environment.expect("variables"),
        }
    }

    /// Applies the example with one text of it replaced, over HTTP, with what the server says to export.
    fn apply(&self, from: &str, to: &str) {
        assert!(EXAMPLE.contains(from), "{from:?} is in the manifest");
        let manifest = self.folder.path().join("tenant.limits.yaml");
        fs::write(manifest, EXAMPLE.replacen(from, to, 1)).expect("the manifest");
        let arguments = format!(
            "-n {} apply -f tenant.limits.yaml --yes",
            self.environment["ZAEL_STACK"]
        );
        let applied = zae_limits(&self.folder, &arguments)
            .envs(&self.environment)
            .output();
        let applied = applied.expect("it runs");
        assert!(applied.status.success(), "{applied:?}");
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn zae_limits(folder: &TempDir, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zae-limits"));
    command
        .args(arguments.split(' '))
        .current_dir(folder.path())
        .env_clear()
        .env("HOME", folder.path())
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .stdin(Stdio::null());
    command
}

#[test]
fn a_client_obeys_what_the_command_line_applied() {
    if PEER.interpreter().is_none() {
        return;
    }
    let station = Station::start();
    let (url, table) = (
        &station.environment["AWS_ENDPOINT_URL_DYNAMODB"],
        &station.environment["ZAEL_STACK"],
    );
    let peer = Peer::start(&PEER, url, table).expect("a Python process");
    let warm = peer.connect();
    let assert_became = |expected: [(&str, &str, &str); 5]| {
        for client in [&warm, &peer.connect()] {
            for (entity, resource, word) in expected {
                let became = client.acquire(entity, resource, 1);
                assert_eq!(became.word(), word, "{entity} on {resource}: {became:?}");
            }
        }
    };
    let declared = [
        ("user-123", "gpt-4", "bypassed"),
        ("user-123", "claude-3", "admitted"),
        ("user-456", "legacy-model", "admitted"),
        ("user-789", "legacy-model", "disabled"),
        ("user-789", "gpt-4", "admitted"),
    ];
    assert_became(declared);
    assert_eq!(warm.acquire("user-123", "gpt-4", 501), Became::Bypassed);
    assert_eq!(warm.acquire("user-123", "claude-3", 201), Became::Limited);
    station.apply(
        "  gpt-4:\n    limits",
        "  gpt-4:\n    disabled: true\n    limits",
    );
    let mut stopped = declared;
    stopped[4].2 = "disabled";
    assert_became(stopped);
    station.apply("disabled: bypass", "disabled: true");
    let mut stopped = declared;
    stopped[0].2 = "disabled";
    assert_became(stopped);
    // The example again: nothing of what came between is left.
    station.apply("disabled: bypass", "disabled: bypass");
    assert_became(declared);
}
