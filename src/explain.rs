//! Why an entity is admitted or refused at a resource: the walk, who wins, and what the buckets
//! carry. Reads only; the resolution is the one that fan-outs use.

mod now;

use crate::clock::Clock;
use crate::model::resolve::{self, Step, Walk};
use crate::model::{
    AccessMode, Damage, EntityId, EpochMs, Level, LevelConfig, NamespaceId, ResourceName,
    StoredLevel, Zone,
};
use crate::report::{LevelName, PendingReport};
use crate::store::{BucketStamps, Store, StoreError};
pub use now::{LimitNow, WindowNow};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that decides about one entity at one resource.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The entity.
    pub entity: EntityId,
    /// The resource.
    pub resource: ResourceName,
    /// Whether, and by whom, it is admitted.
    pub access: AccessWalk,
    /// Which limits apply.
    pub limits: LimitsWalk,
    /// Whether a parent is debited too.
    pub cascade: CascadeWalk,
    /// What each bucket carries, by shard. Empty when the entity never used the resource.
    pub shards: Vec<Shard>,
    /// Fan-outs of deciding levels that earlier applies left unfinished: until they land, a bucket may
    /// show something else.
    pub pending: Vec<PendingReport>,
}

/// The walk for access.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AccessWalk {
    /// What buckets must enforce.
    pub mode: AccessMode,
    /// The step that decided; null when none did and the default, enforce, holds.
    pub winner: Option<Step>,
    /// Every level that may decide, most specific first.
    pub steps: Vec<StepReport>,
}

/// The walk for limits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitsWalk {
    /// The step whose limits apply; null when there are none at all, or nobody can tell.
    pub winner: Option<Step>,
    /// The item because of which nobody can tell, and what is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// Every level that may decide, most specific first.
    pub steps: Vec<StepReport>,
    /// The instant of `now`, in milliseconds since 1970.
    pub at: EpochMs,
    /// The zone in which windows and resets are counted.
    pub zone: Zone,
    /// Every limit that applies, with what is in force at that instant.
    pub now: Vec<LimitNow>,
}

/// Whether using the entity debits its parent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CascadeWalk {
    /// Whether it does.
    pub cascades: bool,
    /// The policy, whether or not there is a parent for it.
    pub policy: bool,
    /// The level that set the policy; null when the entity's own record did, or nobody.
    pub winner: Option<Step>,
    /// The parent.
    pub parent: Option<String>,
    /// Whether the entity has a record of its own.
    pub has_record: bool,
}

/// One level of a walk.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepReport {
    /// Which step of the walk.
    pub step: Step,
    /// The level.
    #[serde(flatten)]
    pub name: LevelName,
    /// Whether the level is stored at all.
    pub stored: bool,
    /// What it says about the question; null when it is silent, or cannot be read.
    pub value: Value,
    /// Its part in the answer.
    pub part: Part,
}

/// What part a level has in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// It says nothing, so the walk goes on.
    Silent,
    /// It decides.
    Decides,
    /// It says something, and a more specific level has decided already.
    Overruled,
    /// It does not read, and may decide.
    Unreadable,
    /// It says something, and a more specific level that does not read may decide.
    Unknown,
}

/// One bucket.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shard {
    /// Its number, from 0.
    pub shard: u32,
    /// What it shows.
    pub shows: AccessMode,
    /// Until when a bypass is honoured, in milliseconds since 1970.
    pub bypass_until: Option<EpochMs>,
    /// How that stands to the walk.
    pub verdict: Verdict,
}

/// How a bucket's stamp stands to what the walk demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It carries what it must.
    Match,
    /// It carries something else.
    Mismatch,
    /// It carries a bypass that has run out: the next client that meets it asks the config.
    Expired,
}

/// Explains one entity at one resource.
///
/// # Errors
/// [`StoreError`] when something cannot be read.
pub async fn explain(
    store: &Store,
    clock: &Clock,
    ns: &NamespaceId,
    entity: &EntityId,
    resource: &ResourceName,
) -> Result<Explanation, StoreError> {
    let levels = resolve::levels(entity, resource);
    let only = BTreeSet::from([entity.clone()]);
    let (stored, mut owners, stamps, pending) = tokio::try_join!(
        store.levels(ns, levels.iter().map(|(_, level)| level)),
        store.owners(ns, &only),
        store.shard_stamps(ns, entity, resource),
        store.pending(ns),
    )?;
    let now = clock.now();
    let owner = owners.remove(entity).transpose()?;
    let record = owner.map(|owner| (owner.cascade, owner.parent));
    let config = |level: &Level| stored.get(level).map(|stored| &stored.config);
    let walk = Walk::over(&levels, config);
    let access = walk.access();
    let damage = first_damage(&levels, &stored);
    let limits = walk.limits().filter(|_| damage.is_none());
    let zone = limits.and_then(|(_, config)| config.zone.clone());
    Ok(Explanation {
        entity: entity.clone(),
        resource: resource.clone(),
        access: AccessWalk {
            mode: access.mode,
            winner: access.winner.map(|(step, _)| step),
            steps: access_steps(&levels[..3], &stored),
        },
        limits: LimitsWalk {
            winner: limits.map(|(step, _)| step),
            unreadable: damage.map(ToString::to_string),
            steps: limits_steps(&levels, &stored),
            at: now,
            zone: zone.unwrap_or_default(),
            now: limits.map_or_else(Vec::new, |(_, config)| now::limits_now(config, now)),
        },
        cascade: cascade(walk, record),
        shards: stamps
            .iter()
            .map(|(shard, stamps)| shard_report(*shard, *stamps, access.mode, now))
            .collect(),
        pending: pending
            .iter()
            .filter(|pending| levels.iter().any(|(_, level)| *level == pending.owed.level))
            .map(|pending| PendingReport::at(pending, now))
            .collect(),
    })
}

/// Why the limits cannot be told: a level that does not read comes before any that defines some.
fn first_damage<'a>(
    levels: &[(Step, Level)],
    stored: &'a BTreeMap<Level, StoredLevel>,
) -> Option<&'a Damage> {
    let mut stored = levels.iter().filter_map(|(_, level)| stored.get(level));
    let first = stored.find(|stored| stored.damage.is_some() || !stored.config.limits.is_empty());
    first?.damage.as_ref()
}

/// The switch of a level reads whatever else is wrong with it.
fn access_steps(
    levels: &[(Step, Level)],
    stored: &BTreeMap<Level, StoredLevel>,
) -> Vec<StepReport> {
    steps(levels, stored, |stored| {
        Some(level_value(&stored.config, "disabled"))
    })
}

fn limits_steps(
    levels: &[(Step, Level)],
    stored: &BTreeMap<Level, StoredLevel>,
) -> Vec<StepReport> {
    steps(levels, stored, |stored| match stored.damage {
        None => Some(limits_value(&stored.config)),
        Some(_) => None,
    })
}

/// `value` is what a level says; `None` when that cannot be read.
fn steps(
    levels: &[(Step, Level)],
    stored: &BTreeMap<Level, StoredLevel>,
    value: impl Fn(&StoredLevel) -> Option<Value>,
) -> Vec<StepReport> {
    let (mut decided, mut unknown) = (false, false);
    let mut report = |(step, level): &(Step, Level)| {
        let stored = stored.get(level);
        let value = stored.map_or(Some(Value::Null), &value);
        let part = match &value {
            None => Part::Unreadable,
            Some(value) if value.is_null() => Part::Silent,
            Some(_) if decided => Part::Overruled,
            Some(_) if unknown => Part::Unknown,
            Some(_) => Part::Decides,
        };
        decided |= part == Part::Decides;
        unknown |= part == Part::Unreadable;
        let value = value.unwrap_or_default();
        StepReport {
            step: *step,
            name: LevelName::from(level),
            stored: stored.is_some(),
            value,
            part,
        }
    };
    levels.iter().map(&mut report).collect()
}

fn level_value(config: &LevelConfig, key: &str) -> Value {
    let level = config.to_json();
    level.get(key).cloned().unwrap_or_default()
}

/// The limits of a level; null for a level without any.
fn limits_value(config: &LevelConfig) -> Value {
    if config.limits.is_empty() {
        Value::Null
    } else {
        level_value(config, "limits")
    }
}

/// `record` is the entity's own: its policy and its parent.
fn cascade(walk: Walk<'_>, record: Option<(bool, Option<String>)>) -> CascadeWalk {
    let winner = walk.cascade();
    let has_record = record.is_some();
    let (own, parent) = record.unwrap_or_default();
    let policy = winner.map_or(own, |(_, policy)| policy);
    CascadeWalk {
        cascades: policy && parent.is_some(),
        policy,
        winner: winner.map(|(step, _)| step),
        parent,
        has_record,
    }
}

fn shard_report(shard: u32, stamps: BucketStamps, demanded: AccessMode, now: EpochMs) -> Shard {
    let BucketStamps { mode, bypass_until } = stamps;
    let is_over = bypass_until.is_none_or(|until| until <= now);
    let verdict = if mode == AccessMode::Bypass && is_over {
        Verdict::Expired
    } else if mode == demanded {
        Verdict::Match
    } else {
        Verdict::Mismatch
    };
    Shard {
        shard,
        shows: mode,
        bypass_until,
        verdict,
    }
}
