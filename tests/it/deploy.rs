//! The templates and the function's binary on an emulated account, with the Python client as the judge: the steps
//! are in tests/deploy/scenario.py.
//!
//! Needs Python, as `python` says. `ZAE_LIMITS_BOOTSTRAP` names another binary than the one built for the tests, such
//! as the one that is deployed.

use crate::python::{MINISTACK, PEER};
use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn stacks_are_created_updated_rolled_back_and_removed() {
    let (Some(ministack), Some(client)) = (MINISTACK.interpreter(), PEER.interpreter()) else {
        return;
    };
    let bootstrap = env::var_os("ZAE_LIMITS_BOOTSTRAP")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_limits-provisioner").into());
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/deploy/scenario.py");
    let told = Command::new(client)
        .arg(scenario)
        .arg("--ministack")
        .arg(ministack.with_file_name("ministack"))
        .arg("--bootstrap")
        .arg(bootstrap)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (steps, wrong) = (said(&told.stdout), said(&told.stderr));
    assert!(told.status.success(), "{steps}{wrong}");
    println!("{steps}");
}
