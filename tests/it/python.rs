//! Pythons that have what a test needs: a release of the library this crate shares the table with, or a second engine.
//!
//! For a release the interpreter is the one that its variable names, else `python3` where that has exactly this
//! release, else a venv in the cache folder, made on demand from the package index. Without any of them the tests
//! that need it are skipped, after one line on standard error that says why; where `CI` is set they fail.

use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// A release of a package, and what it needs beside it.
#[derive(Debug)]
pub struct Release {
    /// Each with its version; the first gives its name to what is missing.
    packages: &'static [(&'static str, &'static str)],
    /// The name of its venv.
    folder: &'static str,
    /// Names an interpreter that has it.
    variable: &'static str,
    found: OnceLock<Option<PathBuf>>,
}

/// The release whose table format this crate writes.
pub static PEER: Release = Release::new(
    &[("zae-limiter", "0.17.0")],
    "peer-0.17.0",
    "ZAE_LIMITS_PYTHON",
);
/// The first that enforces switches. It knows neither bypass nor windows, and no oldest client.
pub static V0_12: Release = Release::new(
    &[("zae-limiter", "0.12.0")],
    "peer-0.12.0",
    "ZAE_LIMITS_PYTHON_0_12",
);
/// The last before bypass.
pub static V0_16: Release = Release::new(
    &[("zae-limiter", "0.16.0")],
    "peer-0.16.0",
    "ZAE_LIMITS_PYTHON_0_16",
);
/// A local AWS in Python, whose DynamoDB is not the embedded one, with the transform of SAM templates.
pub static MINISTACK: Release = Release::new(
    &[
        ("ministack", "1.5.33"),
        ("aws-sam-translator", "1.115.0"),
        ("boto3", "1.43.106"),
    ],
    "ministack-1.5.33",
    "ZAE_LIMITS_PYTHON_MINISTACK",
);

impl Release {
    const fn new(
        packages: &'static [(&'static str, &'static str)],
        folder: &'static str,
        variable: &'static str,
    ) -> Release {
        let found = OnceLock::new();
        Release {
            packages,
            folder,
            variable,
            found,
        }
    }

    /// The interpreter, or `None` after saying what is missing: the caller's test is then skipped.
    pub fn interpreter(&'static self) -> Option<&'static Path> {
        let found = self.found.get_or_init(|| match self.look() {
            Ok(python) => Some(python),
            Err(reason) => {
                let wanted = self.packages.first().map_or(self.folder, |(name, _)| name);
                let reason = format!("no Python with {wanted} ({}): {reason}", self.folder);
                assert!(env::var_os("CI").is_none(), "{reason}");
                // Printed tests' output is shown of failures alone; a skip must be seen.
                let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
                None
            }
        });
        found.as_deref()
    }

    fn look(&self) -> Result<PathBuf, String> {
        if let Some(named) = env::var_os(self.variable) {
            let named = PathBuf::from(named);
            return match self.is_had_by(&named) {
                Ok(()) => Ok(named),
                Err(reason) => Err(format!("{} names one, but {reason}", self.variable)),
            };
        }
        let system = PathBuf::from("python3");
        if self.is_had_by(&system).is_ok() {
            return Ok(system);
        }
        self.venv(&cache()?)
    }

    fn is_had_by(&self, python: &Path) -> Result<(), String> {
        let script =
            "import importlib.metadata as m, sys; [print(m.version(p)) for p in sys.argv[1:]]";
        let names = self.packages.iter().map(|(name, _)| name);
        let found = run(Command::new(python).args(["-c", script]).args(names))?;
        let differs = |((name, wanted), found): (&(&str, &str), &str)| {
            (found != *wanted).then(|| format!("it has {name} {found}, not {wanted}"))
        };
        match self.packages.iter().zip(found.lines()).find_map(differs) {
            None => Ok(()),
            Some(reason) => Err(reason),
        }
    }

    /// The venv of this release in the cache folder, made if it is not there. Test processes that want it at
    /// once wait for the one that makes it.
    fn venv(&self, cache: &Path) -> Result<PathBuf, String> {
        let folder = cache.join(self.folder);
        let python = folder.join("bin/python");
        fs::create_dir_all(cache).map_err(|error| format!("{}: {error}", cache.display()))?;
        let lock = cache.join(format!("{}.lock", self.folder));
        let lock = File::create(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
        lock.lock().map_err(|error| error.to_string())?;
        if self.is_had_by(&python).is_ok() {
            return Ok(python);
        }
        // Whatever is there is incomplete.
        let _ = fs::remove_dir_all(&folder);
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let wanted = self
            .packages
            .iter()
            .map(|(name, version)| format!("{name}=={version}"));
        let arguments = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ];
        let mut install = Command::new(&python);
        install
            .args(arguments)
            .args(["--retries", "1"])
            .args(wanted);
        run(&mut install)?;
        Ok(python)
    }
}

fn cache() -> Result<PathBuf, String> {
    let named = |name| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(cache) = named("ZAE_LIMITS_CI_CACHE") {
        return Ok(cache.into());
    }
    let base = match named("XDG_CACHE_HOME") {
        Some(cache) => PathBuf::from(cache),
        None => {
            PathBuf::from(named("HOME").ok_or("there is no home to cache it in")?).join(".cache")
        }
    };
    Ok(base.join("zae-limits-ci"))
}

/// Runs a command to its end; a failure is what it said last.
fn run(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&stderr);
    Err(said
        .lines()
        .last()
        .unwrap_or("it failed silently")
        .to_owned())
}
