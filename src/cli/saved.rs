//! A saved plan: what `plan --out` writes and `apply --plan` reads.
//!
//! It holds the manifests, how they were planned, and the fingerprint of each plan. It is never
//! applied as it stands: the plan is made anew, and refused when its fingerprint differs.

use super::error::CliError;
use crate::manifest::{Manifest, OutOfBand, parse_json};
use crate::plan::{Plan, PlanOptions};
use crate::report::SCHEMA_VERSION;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// What a saved plan calls itself.
const KIND: &str = "zae-limits plan";

/// A plan in a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedPlan {
    schema_version: u32,
    kind: String,
    table: String,
    host: String,
    full: bool,
    revert_out_of_band: bool,
    plans: Vec<SavedNamespace>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedNamespace {
    fingerprint: String,
    manifest: Value,
}

/// A manifest, and the fingerprint of the plan that was reviewed.
pub(super) type Reviewed = (Manifest, String);

impl SavedPlan {
    /// What to save of some plans.
    pub(super) fn new(
        plans: &[(Manifest, Plan)],
        options: PlanOptions,
        table: &str,
        host: &str,
    ) -> SavedPlan {
        let saved = |(manifest, plan): &(Manifest, Plan)| SavedNamespace {
            fingerprint: plan.fingerprint(),
            manifest: manifest.canonical_json(),
        };
        SavedPlan {
            schema_version: SCHEMA_VERSION,
            kind: KIND.to_owned(),
            table: table.to_owned(),
            host: host.to_owned(),
            full: options.full,
            revert_out_of_band: options.out_of_band == OutOfBand::Revert,
            plans: plans.iter().map(saved).collect(),
        }
    }

    /// Writes the plan to a file.
    ///
    /// # Errors
    /// [`CliError::File`] when it cannot be written.
    pub(super) fn write(&self, path: &Path) -> Result<(), CliError> {
        let failed = |source| CliError::File {
            act: "write",
            path: path.to_owned(),
            source,
        };
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|error| failed(std::io::Error::other(error)))?;
        text.push(b'\n');
        std::fs::write(path, text).map_err(failed)
    }

    /// Reads a plan from a file.
    ///
    /// # Errors
    /// [`CliError`] when it cannot be read or is not a plan of this version.
    pub(super) fn read(path: &Path) -> Result<SavedPlan, CliError> {
        let bytes = std::fs::read(path).map_err(|source| CliError::File {
            act: "read",
            path: path.to_owned(),
            source,
        })?;
        let saved: SavedPlan =
            serde_json::from_slice(&bytes).map_err(|error| bad(path, error.to_string()))?;
        if saved.kind != KIND || saved.schema_version != SCHEMA_VERSION {
            let reason = format!("it says {:?} {}", saved.kind, saved.schema_version);
            return Err(bad(path, reason));
        }
        Ok(saved)
    }

    /// The manifests, each with its fingerprint.
    ///
    /// # Errors
    /// [`CliError::BadPlanFile`] when a manifest in it does not read.
    pub(super) fn reviewed(&self, path: &Path) -> Result<Vec<Reviewed>, CliError> {
        let read = |saved: &SavedNamespace| {
            let manifest =
                parse_json(&saved.manifest).map_err(|problems| bad(path, problems.to_string()))?;
            Ok((manifest, saved.fingerprint.clone()))
        };
        self.plans.iter().map(read).collect()
    }

    /// How the plan was made.
    pub(super) fn options(&self) -> PlanOptions {
        PlanOptions {
            out_of_band: if self.revert_out_of_band {
                OutOfBand::Revert
            } else {
                OutOfBand::Keep
            },
            full: self.full,
        }
    }

    /// Refuses a plan that was made for another table.
    ///
    /// # Errors
    /// [`CliError::Usage`] names both.
    pub(super) fn check_place(&self, table: &str, host: &str) -> Result<(), CliError> {
        if self.table == table && self.host == host {
            return Ok(());
        }
        Err(CliError::usage(format!(
            "the saved plan is for table {:?} ({:?}), and this is {table:?} ({host:?}): \
             use the options that it was planned with",
            self.table, self.host
        )))
    }
}

fn bad(path: &Path, reason: String) -> CliError {
    CliError::BadPlanFile {
        path: path.to_owned(),
        reason,
    }
}
