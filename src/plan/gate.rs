//! The version gate: features that old readers of the table would get wrong (TABLE "Version gate").

use crate::manifest::Manifest;
use crate::model::{Recovery, Switch, Versions};
use std::fmt;
use thiserror::Error;

/// The release of the format that this build speaks.
const SPOKEN: Release = Release([0, 17, 0]);
/// The major version of the schema that this build speaks.
const SCHEMA_MAJOR: u64 = 0;

/// The release part of a version: three numbers, whatever follows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release([u64; 3]);

impl Release {
    /// Reads the release part; `None` when the text has none.
    pub fn parse(version: &str) -> Option<Release> {
        let mut parts = [0; 3];
        let mut rest = version.trim().trim_start_matches('v');
        for (index, part) in parts.iter_mut().enumerate() {
            let digits = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            *part = rest[..digits].parse().ok()?;
            rest = &rest[digits..];
            match rest.strip_prefix('.') {
                Some(next) if index < 2 && next.starts_with(|c: char| c.is_ascii_digit()) => {
                    rest = next;
                }
                _ => break,
            }
        }
        Some(Release(parts))
    }
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

/// The `client_min_version` to raise a table to; `None` when it is there already.
pub fn ratchet(versions: Option<&Versions>, requirement: Option<Requirement>) -> Option<Release> {
    let since = requirement?.since;
    let current = versions
        .and_then(|versions| versions.client_min.as_deref())
        .and_then(Release::parse);
    current
        .is_none_or(|current| current < since)
        .then_some(since)
}
