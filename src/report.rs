//! What a plan would do and what an apply did, as one value each. Rendered by the edges: as text,
//! JSON or Markdown by the command line, as counts by the CloudFormation answer.

mod resume;

pub use resume::{PendingReport, ResumeReport};

use crate::affected::Affected;
use crate::fanout::{Ended, Outcome};
use crate::model::{AccessMode, FanoutKind, Level, LevelConfig, Owed};
use crate::plan::{Action, Danger, Difference, Fate, Plan, Refusal, Unreadable, differences};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// The version of the JSON that reports serialise to.
pub const SCHEMA_VERSION: u32 = 1;

/// A level, as reports name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LevelName {
    /// `system`, `resource` or `entity`.
    pub level: &'static str,
    /// The resource, `entity/resource`, or nothing.
    pub target: Option<String>,
}

impl From<&Level> for LevelName {
    fn from(level: &Level) -> Self {
        LevelName {
            level: level.kind(),
            target: level.target(),
        }
    }
}

/// One level that changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangeReport {
    /// `create`, `update` or `delete`.
    pub action: &'static str,
    /// Where.
    #[serde(flatten)]
    pub name: LevelName,
    /// What a reader must not overlook.
    pub dangers: Vec<Danger>,
    /// The fields that differ. Empty when only index keys or spelling are brought in line. A field that
    /// could not be read counts as absent.
    pub differences: Vec<Difference>,
    /// The stored level, as a manifest would declare it; null for a create, and for one that does not
    /// read.
    pub before: Value,
    /// The level to come; null for a delete.
    pub after: Value,
    /// Whom it reaches, for each fan-out it owes. Empty when that was not counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub affected: Vec<AffectedReport>,
}

/// Whom one fan-out of a change reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AffectedReport {
    /// What it brings.
    pub kind: FanoutKind,
    /// How many.
    #[serde(flatten)]
    pub count: Affected,
}

/// One fan-out that is owed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OwedReport {
    /// What it brings.
    pub kind: FanoutKind,
    /// Over which level.
    #[serde(flatten)]
    pub name: LevelName,
}

impl From<&Owed> for OwedReport {
    fn from(owed: &Owed) -> Self {
        OwedReport {
            kind: owed.kind,
            name: LevelName::from(&owed.level),
        }
    }
}

/// A stored item that does not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadableReport {
    /// The level that it is of; left out for one that should say what is pending.
    #[serde(flatten)]
    pub name: Option<LevelName>,
    /// Its key.
    pub item: String,
    /// Which attribute, and what is wrong with it.
    pub problem: String,
    /// What becomes of it.
    pub fate: Fate,
    /// What becomes of it, and what to do.
    pub remedy: &'static str,
}

impl From<&Unreadable> for UnreadableReport {
    fn from(unreadable: &Unreadable) -> Self {
        UnreadableReport {
            name: unreadable.level.as_ref().map(LevelName::from),
            item: unreadable.damage.item.clone(),
            problem: unreadable.damage.problem.clone(),
            fate: unreadable.fate,
            remedy: unreadable.remedy(),
        }
    }
}

impl fmt::Display for UnreadableReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(LevelName {
                level,
                target: Some(target),
            }) => write!(f, "{level} {target}")?,
            Some(LevelName { level, .. }) => f.write_str(level)?,
            None => f.write_str("a pending fan-out")?,
        }
        let (item, problem, remedy) = (&self.item, &self.problem, self.remedy);
        write!(f, " cannot be read (item {item}: {problem}): {remedy}")
    }
}

/// A switch set outside the manifest, and kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptReport {
    /// Where.
    #[serde(flatten)]
    pub name: LevelName,
    /// The value, as a manifest spells it.
    pub disabled: String,
}

/// What an apply would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanReport {
    /// The namespace by name.
    pub namespace: String,
    /// Its id; null when it is yet to be registered.
    pub namespace_id: Option<String>,
    /// The table.
    pub table: String,
    /// Levels to create.
    pub created: usize,
    /// Levels to update.
    pub updated: usize,
    /// Levels to delete.
    pub deleted: usize,
    /// Levels that are as declared.
    pub unchanged: usize,
    /// The levels that change, the dangerous ones first.
    pub changes: Vec<ChangeReport>,
    /// Switches that stay although the manifest does not name them.
    pub kept: Vec<KeptReport>,
    /// Stored items that do not read, and what becomes of each.
    pub unreadable: Vec<UnreadableReport>,
    /// The fan-outs that the changes owe.
    pub fanouts: Vec<OwedReport>,
    /// Fan-outs that earlier applies left unfinished.
    pub pending: Vec<OwedReport>,
    /// What the manifest is warned about.
    pub warnings: Vec<String>,
    /// Why it may not be applied as things are. Empty when it may.
    pub refusals: Vec<String>,
    /// Identifies the plan.
    pub fingerprint: String,
}

impl PlanReport {
    /// Describes a plan.
    pub fn new(plan: &Plan, table: &str, warnings: Vec<String>, refusals: &[Refusal]) -> Self {
        let mut changes: Vec<ChangeReport> = plan.changes.iter().map(change_report).collect();
        changes.sort_by_key(|change| change.dangers.is_empty());
        let kept = plan.kept.iter().map(|kept| KeptReport {
            name: LevelName::from(&kept.level),
            disabled: kept.switch.to_string(),
        });
        PlanReport {
            namespace: plan.namespace.to_string(),
            namespace_id: plan.namespace_id.as_ref().map(ToString::to_string),
            table: table.to_owned(),
            created: plan.count(Action::Create),
            updated: plan.count(Action::Update),
            deleted: plan.count(Action::Delete),
            unchanged: plan.unchanged,
            changes,
            kept: kept.collect(),
            unreadable: plan.unreadable.iter().map(UnreadableReport::from).collect(),
            fanouts: plan.owed.iter().map(OwedReport::from).collect(),
            pending: plan.pending.iter().map(OwedReport::from).collect(),
            warnings,
            refusals: refusals.iter().map(ToString::to_string).collect(),
            fingerprint: plan.fingerprint(),
        }
    }

    /// Adds whom the changes reach.
    pub fn add_affected(&mut self, counts: &BTreeMap<Owed, Affected>) {
        for (owed, count) in counts {
            let name = LevelName::from(&owed.level);
            let change = self.changes.iter_mut().find(|change| change.name == name);
            if let Some(change) = change {
                change.affected.push(AffectedReport {
                    kind: owed.kind,
                    count: *count,
                });
            }
        }
    }

    /// How many fan-outs an apply runs: those that the changes owe, and unfinished ones.
    pub fn fanouts_to_run(&self) -> usize {
        let others = self.pending.iter();
        let others = others.filter(|owed| !self.fanouts.contains(owed));
        self.fanouts.len() + others.count()
    }

    /// Everything that a reader should know and that changes nothing: about the manifest, and about
    /// items that do not read.
    pub fn all_warnings(&self) -> impl Iterator<Item = String> {
        let unreadable = self.unreadable.iter().map(ToString::to_string);
        self.warnings.iter().cloned().chain(unreadable)
    }

    /// Whether an apply would write no level and owe no fan-out.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.fanouts.is_empty() && self.pending.is_empty()
    }
}

fn change_report(change: &crate::plan::Change) -> ChangeReport {
    let side = |config: Option<&_>| config.map_or(Value::Null, LevelConfig::to_json);
    ChangeReport {
        action: change.action.as_str(),
        name: LevelName::from(&change.level),
        dangers: change.dangers.clone(),
        differences: differences(change.before_config(), change.after.as_ref()),
        before: match change.damage() {
            None => side(change.before_config()),
            Some(_) => Value::Null,
        },
        after: side(change.after.as_ref()),
        affected: Vec::new(),
    }
}

/// How an apply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The table was as declared; nothing was written.
    Unchanged,
    /// Everything landed.
    Applied,
    /// Something is not done: levels failed, or fan-outs are pending.
    Partial,
}

/// One fan-out that ran.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FanoutReport {
    /// What it brought, and over which level.
    #[serde(flatten)]
    pub owed: OwedReport,
    /// `landed`, or why it is still owed.
    pub ended: String,
    /// Whether it landed, and is owed no more.
    pub landed: bool,
    /// Buckets found.
    pub found: u64,
    /// Buckets written.
    pub stamped: u64,
    /// Of these, what stamps of access say: `disabled`, `bypass` and `enforce`, each with its number.
    /// Absent for other fan-outs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub modes: BTreeMap<AccessMode, u64>,
    /// Buckets that were gone by then.
    pub vanished: u64,
    /// Buckets that could not be written.
    pub failed: u64,
    /// The first of them, with the reason.
    pub samples: Vec<String>,
    /// Items in the index that cannot be buckets, and were left alone.
    pub foreign: u64,
    /// The first of them, with the reason.
    pub foreign_samples: Vec<String>,
}

impl From<&Outcome> for FanoutReport {
    fn from(outcome: &Outcome) -> Self {
        let ended = match &outcome.ended {
            Ended::Landed => "landed".to_owned(),
            Ended::Incomplete => "some buckets could not be written".to_owned(),
            Ended::OutOfTime => "the time ran out".to_owned(),
            Ended::Stopped => "it was interrupted".to_owned(),
            Ended::Moving => "the level kept changing".to_owned(),
            Ended::Failed(error) => error.to_string(),
        };
        FanoutReport {
            owed: OwedReport::from(&outcome.owed),
            ended,
            landed: outcome.has_landed(),
            found: outcome.tally.found,
            stamped: outcome.tally.stamped,
            modes: outcome.tally.modes.clone(),
            vanished: outcome.tally.vanished,
            failed: outcome.tally.failed,
            samples: outcome.tally.samples.clone(),
            foreign: outcome.tally.foreign,
            foreign_samples: outcome.tally.foreign_samples.clone(),
        }
    }
}

/// What an apply did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ApplyReport {
    /// How it ended.
    pub status: Status,
    /// What was planned. Its counts are the plan's; those below are what happened.
    pub plan: PlanReport,
    /// Levels created.
    pub created: usize,
    /// Levels updated.
    pub updated: usize,
    /// Levels deleted.
    pub deleted: usize,
    /// Levels that already were as declared.
    pub unchanged: usize,
    /// Buckets written by all fan-outs together.
    pub stamped: u64,
    /// Pending fan-outs of earlier applies that this one took over.
    pub resumed: usize,
    /// Whether this full apply only went on with one that was interrupted: what that one had
    /// finished was not run again.
    pub full_resumed: bool,
    /// Fan-outs still owed when the apply ended, by whomever.
    pub pending: usize,
    /// Levels that could not be written, and that buckets therefore do not follow yet.
    pub unwritten: Vec<LevelName>,
    /// The fan-outs that ran.
    pub fanouts: Vec<FanoutReport>,
    /// What failed, one line each, levels first.
    pub errors: Vec<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

impl ApplyReport {
    /// Everything that a reader should know and that is no error: about the plan, and about what the
    /// fan-outs met that cannot be a bucket.
    pub fn all_warnings(&self) -> impl Iterator<Item = String> {
        let foreign = self.fanouts.iter().flat_map(|fanout| {
            let samples = fanout.foreign_samples.iter();
            samples.map(|sample| format!("an index holds what is no bucket, left alone: {sample}"))
        });
        self.plan.all_warnings().chain(foreign)
    }
}
