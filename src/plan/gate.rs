//! The version gate: features that old readers of the table would get wrong (docs/format.md).

use crate::manifest::Manifest;
use crate::model::{Recovery, Switch, Versions};
use std::fmt;
use thiserror::Error;

/// The release of the format that this build speaks.
const SPOKEN: Release = Release(Versions::SPOKEN);
/// The major version of the schema that this build speaks.
const SCHEMA_MAJOR: u64 = 0;

/// The release part of a version: three numbers, whatever follows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release([u64; 3]);

impl Release {
    /// Reads the release part: two or three numbers. `None` when the text is no version, as the
    /// reference reads one.
    pub fn parse(version: &str) -> Option<Release> {
        split(version).map(|(release, _)| release)
    }
}

/// A version's release part, and what follows it: `rc1`, `.dev3`, `-dev`, or nothing. A local label
/// (`+g1234`) says nothing about the order of versions.
fn split(version: &str) -> Option<(Release, &str)> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let (mut rest, _local) = version.split_once('+').unwrap_or((version, ""));
    let mut parts = [0; 3];
    let mut count = 0;
    for part in &mut parts {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        *part = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        count += 1;
        let more = rest
            .strip_prefix('.')
            .filter(|next| count < 3 && next.starts_with(|c: char| c.is_ascii_digit()));
        match more {
            Some(next) => rest = next,
            None => break,
        }
    }
    (count >= 2 && is_suffix(rest, count)).then_some((Release(parts), rest))
}

/// Whether a text may follow a release: `-anything`, `.dev4`, and after three numbers `a1`, `b2`, `rc3`.
fn is_suffix(text: &str, numbers: usize) -> bool {
    if let Some(label) = text.strip_prefix('-') {
        return !label.is_empty();
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (before, dev) = text.split_once(".dev").unwrap_or((text, "0"));
    let early = ["rc", "a", "b"]
        .iter()
        .find_map(|kind| before.strip_prefix(kind));
    is_number(dev) && (before.is_empty() || (numbers == 3 && early.is_some_and(is_number)))
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// A feature that needs a reader of a certain release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// `reset_after_seconds`.
    Window,
    /// `cascade`.
    Cascade,
    /// `soft`.
    Soft,
    /// `disabled: bypass`.
    Bypass,
}

impl Feature {
    fn since(self) -> Release {
        match self {
            Feature::Window => Release([0, 15, 0]),
            Feature::Cascade => Release([0, 16, 0]),
            Feature::Soft | Feature::Bypass => Release([0, 17, 0]),
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Feature::Window => "reset_after_seconds",
            Feature::Cascade => "cascade",
            Feature::Soft => "soft",
            Feature::Bypass => "disabled: bypass",
        })
    }
}

/// What a manifest needs of the table's readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requirement {
    /// The feature that needs the newest reader.
    pub feature: Feature,
    /// The oldest reader that gets it right.
    pub since: Release,
}

/// Why a table may not be written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GateError {
    /// The table's readers do not know a feature of the manifest.
    #[error(
        "the manifest uses {feature}, which needs zae-limiter {since} deployed beside the table; \
         its version record names {}: upgrade the deployment, then apply again",
        .found.as_deref().unwrap_or("no version")
    )]
    TooOld {
        /// The feature.
        feature: Feature,
        /// What it needs.
        since: Release,
        /// What the version record names.
        found: Option<String>,
    },
    /// The table asks for newer clients than this build is.
    #[error(
        "the table asks for clients of at least {client_min}, and this build speaks {SPOKEN}: \
         upgrade zae-limits"
    )]
    TableTooNew {
        /// What the table asks for.
        client_min: String,
    },
    /// The table's items have another schema.
    #[error(
        "the table's schema version is {found}, and this build knows {SCHEMA_MAJOR}.x: \
         use a release of zae-limits that knows it"
    )]
    OtherSchema {
        /// The schema that the version record names.
        found: String,
    },
}

/// What the manifest needs; `None` when every reader gets it right.
pub fn requirement(manifest: &Manifest) -> Option<Requirement> {
    let features = manifest.levels().values().flat_map(|config| {
        let limits = config.limits.values().flat_map(|limit| {
            let window = matches!(limit.recovery, Recovery::Window(_)).then_some(Feature::Window);
            window
                .into_iter()
                .chain(limit.soft.then_some(Feature::Soft))
        });
        let bypass = (config.disabled == Some(Switch::Bypass)).then_some(Feature::Bypass);
        limits
            .chain(bypass)
            .chain(config.cascade.map(|_| Feature::Cascade))
    });
    features
        .max_by_key(|feature| (feature.since(), *feature))
        .map(|feature| Requirement {
            feature,
            since: feature.since(),
        })
}

/// Checks a table's version record against this build and against what a manifest needs.
///
/// # Errors
/// [`GateError`] names the feature, the version found and what to do.
pub fn check_table(
    versions: Option<&Versions>,
    requirement: Option<Requirement>,
) -> Result<(), GateError> {
    let client_min = versions.and_then(|versions| versions.client_min.as_deref());
    if let Some(client_min) =
        client_min.filter(|v| Release::parse(v).is_some_and(|release| release > SPOKEN))
    {
        return Err(GateError::TableTooNew {
            client_min: client_min.to_owned(),
        });
    }
    let schema = versions.and_then(|versions| versions.schema.as_deref());
    if let Some(found) =
        schema.filter(|v| Release::parse(v).is_none_or(|release| release.0[0] != SCHEMA_MAJOR))
    {
        return Err(GateError::OtherSchema {
            found: found.to_owned(),
        });
    }
    let Some(Requirement { feature, since }) = requirement else {
        return Ok(());
    };
    let found = versions.and_then(|versions| versions.lambda.as_deref());
    if found
        .and_then(Release::parse)
        .is_some_and(|release| release >= since)
    {
        return Ok(());
    }
    Err(GateError::TooOld {
        feature,
        since,
        found: found.map(str::to_owned),
    })
}

/// The `client_min_version` to raise a table to; `None` when it is there already. What precedes a
/// release, such as its candidates, is below it.
pub fn ratchet(versions: Option<&Versions>, requirement: Option<Requirement>) -> Option<Release> {
    let since = requirement?.since;
    let current = versions
        .and_then(|versions| versions.client_min.as_deref())
        .and_then(split);
    let is_there = current.is_some_and(|(release, suffix)| {
        release > since || (release == since && suffix.is_empty())
    });
    (!is_there).then_some(since)
}
