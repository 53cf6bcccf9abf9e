//! What races with what: a small namespace, two manifests, and clients, all drawn from a seed.

use super::gate::Style;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use zae_limits::model::{
    Level, LevelConfig, Limit, LimitName, ManifestOwner, NamespaceId, Recovery, Seconds, Switch,
    Tokens,
};

/// Levels with what they declare.
pub type Levels = BTreeMap<Level, LevelConfig>;

/// An entity and a resource.
pub type Pair = (&'static str, &'static str);

const PAIRS: [Pair; 5] = [
    ("alice", "gpt-4"),
    ("bob", "gpt-4"),
    ("alice", "claude-3"),
    ("bob", "claude-3"),
    ("carol", "gpt-4"),
];

/// Entities with a META: the name, whether it cascades by itself, and its parent.
pub const OWNERS: [(&str, bool, Option<&str>); 2] =
    [("alice", true, Some("org")), ("bob", false, Some("org"))];

const LEVELS: [(&str, &str); 6] = [
    ("resource", "gpt-4"),
    ("resource", "claude-3"),
    ("entity", "alice/_default_"),
    ("entity", "alice/gpt-4"),
    ("entity", "bob/gpt-4"),
    ("entity", "carol/_default_"),
];

/// One apply.
#[derive(Debug, Clone)]
pub struct Applying {
    pub levels: Levels,
    pub owner: Option<ManifestOwner>,
    pub full: bool,
}

/// What a client does to a level that is there.
#[derive(Debug, Clone)]
pub enum Edit {
    /// Turns its switch by hand.
    Flip(Option<Switch>),
    /// Gives it another limit.
    Limit(u64),
}

/// Something that happens to the race at a step.
#[derive(Debug, Clone, Copy)]
pub enum Incident {
    /// An apply dies.
    Death { apply: usize, step: u64 },
    /// Time passes, more than any lease.
    Jump { step: u64 },
}

/// One race.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub seed: u64,
    pub ns: NamespaceId,
    pub initial: Applying,
    /// Two that race each other, or one that races clients.
    pub applies: Vec<Applying>,
    /// Stored buckets, with their number of shards.
    pub buckets: Vec<(Pair, u32)>,
    /// Buckets that a client creates meanwhile.
    pub births: Vec<Pair>,
    /// What clients do to levels meanwhile.
    pub edits: Vec<(Level, Edit)>,
    /// How long after its writes an apply looks at them again.
    pub settle: Duration,
    pub incident: Option<Incident>,
    pub style: Style,
    /// Who applies again at last, when both were content.
    pub again: Option<usize>,
}

impl Scenario {
    pub fn draw(seed: u64) -> Scenario {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let rng = &mut rng;
        let soft = rng.random_bool(0.5);
        let initial = any_levels(rng, soft);
        let one = changed(rng, &initial, soft);
        let from = if rng.random_bool(0.3) { &one } else { &initial };
        let two = changed(rng, from, soft);
        let [before, first, second] = any_owners(rng);
        let apply = |levels, owner, full| Applying {
            levels,
            owner,
            full,
        };
        let mut applies = vec![
            apply(one, first, rng.random_bool(0.05)),
            apply(two, second, rng.random_bool(0.05)),
        ];
        let alone = rng.random_bool(0.4);
        if alone {
            applies.truncate(1);
        }
        let mut pairs = PAIRS.to_vec();
        let births = if rng.random_bool(if alone { 0.6 } else { 0.2 }) {
            vec![pairs.remove(rng.random_range(0..pairs.len()))]
        } else {
            Vec::new()
        };
        let mut shards = |pair| (pair, 1 + u32::from(rng.random_bool(0.2)));
        let buckets = pairs.into_iter().map(&mut shards).collect();
        Scenario {
            seed,
            ns: NamespaceId::parse(&format!("race{seed}")).expect("an id"),
            initial: apply(initial, before, false),
            buckets,
            births,
            edits: any_edits(rng, if alone { 1..3 } else { 0..2 }),
            settle: Duration::from_millis(25),
            incident: any_incident(rng, applies.len()),
            style: match rng.random_range(0..6) {
                0 => Style::Fair,
                1 => Style::Bursts,
                2 => Style::Priorities,
                3 => Style::Stalls,
                _ => Style::LateStamps,
            },
            again: (rng.random_bool(0.3)).then(|| rng.random_range(0..applies.len())),
            applies,
        }
    }
}

type Rng = Xoshiro256PlusPlus;

pub fn level(kind: &str, target: &str) -> Level {
    Level::from_parts(kind, target).expect("a level")
}

/// Whether resources may have soft limits. They then have limits always: a soft limit that is added
/// to a resource's level unseen, and goes with it, leaves stamps that run out by themselves.
type Soft = bool;

fn any_levels(rng: &mut Rng, soft: Soft) -> Levels {
    let mut levels = Levels::new();
    levels.insert(Level::System, limited(&[("rpm", 100, false)]));
    for (kind, target) in LEVELS {
        if rng.random_bool(0.5) {
            levels.insert(level(kind, target), any_config(rng, kind, soft));
        }
    }
    levels
}

/// A manifest that differs from another one at some levels, and at most of them in one respect.
fn changed(rng: &mut Rng, from: &Levels, soft: Soft) -> Levels {
    let mut levels = from.clone();
    for _ in 0..rng.random_range(1..4) {
        let (kind, target) = LEVELS[rng.random_range(0..LEVELS.len())];
        let level = level(kind, target);
        let other = any_config(rng, kind, soft);
        match (rng.random_range(0..6), levels.get_mut(&level)) {
            (0, Some(_)) => drop(levels.remove(&level)),
            (1 | 2, Some(config)) => config.disabled = any_switch(rng),
            (3, Some(config)) => config.limits = other.limits,
            (4, Some(config)) => config.cascade = other.cascade,
            _ => drop(levels.insert(level, other)),
        }
    }
    levels
}

fn any_config(rng: &mut Rng, kind: &str, soft: Soft) -> LevelConfig {
    let mut config = LevelConfig::default();
    let is_entity = kind == "entity";
    if rng.random_bool(0.6) || (soft && !is_entity) {
        let soft = (soft || is_entity) && rng.random_bool(0.4);
        config = limited(&[("rpm", rng.random_range(1..4) * 10, soft)]);
        if rng.random_bool(0.3) {
            let more = limited(&[("tpm", rng.random_range(1..4) * 1000, false)]);
            config.limits.extend(more.limits);
        }
    }
    if is_entity && rng.random_bool(0.1) {
        let mut limit = Limit::drip(Tokens(7), Tokens(7), Seconds(60));
        limit.recovery = Recovery::Window(Seconds(3600));
        config.limits.insert(name("daily"), limit);
    }
    if rng.random_bool(0.6) {
        config.disabled = any_switch(rng);
    }
    if rng.random_bool(0.25) {
        config.cascade = Some(rng.random_bool(0.5));
    }
    config
}

fn any_switch(rng: &mut Rng) -> Option<Switch> {
    match rng.random_range(0..4) {
        0 => None,
        1 => Some(Switch::Disabled),
        2 => Some(Switch::Enabled),
        _ => Some(Switch::Bypass),
    }
}

fn name(text: &str) -> LimitName {
    LimitName::parse(text).expect("a limit's name")
}

/// Dripping limits: the name, the capacity, whether it is soft.
pub fn limited(limits: &[(&str, u64, bool)]) -> LevelConfig {
    let limits = limits.iter().map(|(text, capacity, soft)| {
        let capacity = Tokens(*capacity);
        let mut limit = Limit::drip(capacity, capacity, Seconds(60));
        limit.soft = *soft;
        (name(text), limit)
    });
    LevelConfig {
        limits: limits.collect(),
        ..LevelConfig::default()
    }
}

/// Who owns the namespace before, and who applies.
fn any_owners(rng: &mut Rng) -> [Option<ManifestOwner>; 3] {
    let stack = |logical_id: &str| ManifestOwner::Stack {
        stack_id: "arn:aws:cloudformation:eu-central-1:123456789012:stack/limits/1".to_owned(),
        logical_id: logical_id.to_owned(),
    };
    let cli = Some(ManifestOwner::Cli);
    let [first, second] = ["First", "Second"].map(|logical_id| Some(stack(logical_id)));
    match rng.random_range(0..10) {
        0..8 => [cli.clone(), cli.clone(), cli],
        8 => [first.clone(), first, second],
        _ => [None, first, second],
    }
}

fn any_edits(rng: &mut Rng, many: Range<usize>) -> Vec<(Level, Edit)> {
    let many = rng.random_range(many);
    let edit = |_| {
        let (kind, target) = LEVELS[rng.random_range(0..LEVELS.len())];
        let edit = if kind == "entity" && rng.random_bool(0.4) {
            Edit::Limit(rng.random_range(700..800))
        } else {
            Edit::Flip(any_switch(rng))
        };
        (level(kind, target), edit)
    };
    (0..many).map(edit).collect()
}

fn any_incident(rng: &mut Rng, applies: usize) -> Option<Incident> {
    let step = rng.random_range(5..70);
    match rng.random_range(0..8) {
        0 | 1 => Some(Incident::Death {
            apply: rng.random_range(0..applies),
            step,
        }),
        2 => Some(Incident::Jump { step }),
        _ => None,
    }
}
