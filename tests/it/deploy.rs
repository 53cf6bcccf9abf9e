//! The templates and the function's binary on an emulated account, with the Python client as the judge: the steps
//! are in tests/deploy/scenario.py.
//!
//! Needs a python3 and, the first time, a package index: the emulator and the client are installed side by side, each
//! in an environment of its own. `ZAE_LIMITS_PYTHON_MINISTACK` and `ZAE_LIMITS_PYTHON` name interpreters that have them
//! already, `ZAE_LIMITS_BOOTSTRAP` another binary, such as the one that is deployed. Without a python3 the test says
//! so and passes, except where `CI` is set.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An environment of Python: its folder's name, the variable that names one, and what is installed.
struct Python {
    name: &'static str,
    variable: &'static str,
    packages: &'static [&'static str],
}

const MINISTACK: Python = Python {
    name: "ministack-1.5.33",
    variable: "ZAE_LIMITS_PYTHON_MINISTACK",
    packages: &[
        "ministack==1.5.33",
        "aws-sam-translator==1.115.0",
        "boto3==1.43.106",
    ],
};
const CLIENT: Python = Python {
    name: "peer-0.17.0",
    variable: "ZAE_LIMITS_PYTHON",
    packages: &["zae-limiter==0.17.0"],
};

impl Python {
    /// Its interpreter, made when nobody names one.
    fn interpreter(&self) -> Result<PathBuf, String> {
        if let Some(named) = env::var_os(self.variable).filter(|named| !named.is_empty()) {
            return Ok(named.into());
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(self.name);
        let interpreter = folder.join("bin/python");
        // Written last: an environment without it was interrupted.
        let done = folder.join("installed");
        if !done.exists() {
            let _ = fs::remove_dir_all(&folder);
            let folder = folder.as_os_str();
            run("python3", ["-m".as_ref(), "venv".as_ref(), folder])?;
            let install = [
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ];
            let arguments = install.iter().chain(self.packages).map(OsStr::new);
            run(&interpreter, arguments)?;
            fs::write(&done, "").map_err(|error| error.to_string())?;
        }
        Ok(interpreter)
    }
}

fn run<'a>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = &'a OsStr>,
) -> Result<String, String> {
    let program = program.as_ref();
    let output = Command::new(program)
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(said(&output.stdout)),
        false => Err(said(&output.stdout) + &said(&output.stderr)),
    }
}

#[test]
fn stacks_are_created_updated_rolled_back_and_removed() {
    let pythons = MINISTACK
        .interpreter()
        .and_then(|ministack| Ok((ministack, CLIENT.interpreter()?)));
    let (ministack, client) = match pythons {
        Ok(pythons) => pythons,
        Err(reason) => {
            let reason = reason.trim().lines().last().unwrap_or_default();
            assert!(env::var_os("CI").is_none(), "no emulated account: {reason}");
            println!("SKIPPED: no emulated account to deploy to ({reason})");
            return;
        }
    };
    let bootstrap = env::var_os("ZAE_LIMITS_BOOTSTRAP")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_limits-provisioner").into());
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/deploy/scenario.py");
    let ministack = ministack.with_file_name("ministack");
    let told = run(
        client,
        [
            scenario.as_os_str(),
            "--ministack".as_ref(),
            ministack.as_os_str(),
            "--bootstrap".as_ref(),
            &bootstrap,
        ],
    );
    match told {
        Ok(steps) => println!("{steps}"),
        Err(said) => panic!("{said}"),
    }
}
