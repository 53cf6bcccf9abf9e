//! The scenarios of the main suite on MiniStack's DynamoDB: an engine of others, over HTTP, with signed requests.
//!
//! What stays on the embedded engine: worlds behind a transport of their own (faults, crashes, counted requests), the
//! function's, whose events name their table, and the random manifests of the properties, for their time.
//! Nothing else differs: this engine needs no exception.

use crate::python::MINISTACK;
use crate::world::ENGINE;
use std::env;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The tests that are run there: everything that makes worlds and belongs to these modules.
const MODULES: [&str; 9] = [
    "scenario::",
    "fanout_soft::",
    "fanout_cascade::",
    "fanout_params::",
    "explain::",
    "seed::",
    "gate::",
    "moved::",
    "unwritten::",
];

/// The engine's process, in a folder of its own.
struct Engine {
    process: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Engine {
    async fn start() -> Option<Engine> {
        let python = MINISTACK.interpreter()?;
        // It takes no listener, so a port that was free a moment ago has to do.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let folder = tempfile::tempdir().expect("a folder");
        let port = address.port().to_string();
        let mut command = Command::new(python);
        command
            .args(["-m", "ministack"])
            .current_dir(&folder)
            .env("BIND_HOST", "127.0.0.1")
            .env("MINISTACK_HOST", "127.0.0.1")
            .env("GATEWAY_PORT", &port)
            .env("EDGE_PORT", &port)
            .env("AWS_ENDPOINT_URL", format!("http://{address}"))
            .env("AWS_ACCESS_KEY_ID", "any")
            .env("AWS_SECRET_ACCESS_KEY", "any")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = command.spawn().expect("a process");
        let engine = Engine {
            process,
            address,
            _folder: folder,
        };
        for _ in 0..600 {
            if TcpStream::connect(address).is_ok() {
                return Some(engine);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("it does not listen on {address}");
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn the_scenarios_hold_on_another_engine() {
    let Some(engine) = Engine::start().await else {
        return;
    };
    let tests = env::current_exe().expect("this binary");
    let output = Command::new(tests)
        .args(MODULES)
        .args(["--skip", "cli::"])
        .env(ENGINE, format!("http://{}", engine.address))
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let passed = |module: &str| {
        let of_it = format!("test {module}");
        let lines = said.lines();
        lines
            .filter(|line| line.starts_with(&of_it) && line.ends_with(" ok"))
            .count()
    };
    for module in MODULES {
        assert!(passed(module) > 0, "{module}: {said}");
    }
    let client = crate::fixture::client_of(&format!("http://{}", engine.address));
    let tables = client.list_tables().send().await.expect("tables");
    let worlds = tables.table_names().len();
    assert!(worlds >= 40, "only {worlds} worlds were on it: {said}");
}
