//! What the limits that apply to a bucket make of it: parameters, windows, schedules, expiry
//! (docs/format.md).
//!
//! Pure: the limits are resolved, the clock is read and the bucket is loaded elsewhere. Balances are
//! never set here; a limit that stays keeps its `tk` and `tc`.

use super::attr::{Item, number, same_value, text};
use super::bucket::{BucketChange, RESERVED_LIMIT, Update, limit_attr, parse_limit_attr};
use super::schedule;
use crate::model::resolve::Step;
use crate::model::{
    EpochMs, EpochSeconds, LevelConfig, Limit, LimitName, Recovery, TtlError, Zone, bucket_ttl,
};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The item's default windows, and each limit's own.
const SCHED: &str = "sched";
/// The item's default resets, and each limit's own.
const RSCHED: &str = "rsched";
/// A limit that has no schedule of its own on an item that has a default. Absent means the default.
const NONE_OF_ITS_OWN: &str = "-";

/// Whether a bucket expires when it is not used: zae-limiter's ADR-136.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// An entity's own level gives its limits: it stays.
    Never,
    /// Shared defaults give its limits: it goes then.
    At(EpochSeconds),
}

impl Expiry {
    /// The expiry of a bucket that the limits of `step` apply to from `at` on.
    ///
    /// # Errors
    /// [`TtlError`] names a limit that never recovers.
    pub fn of(step: Step, config: &LevelConfig, at: EpochMs) -> Result<Expiry, TtlError> {
        if matches!(step, Step::Entity | Step::EntityDefault) {
            return Ok(Expiry::Never);
        }
        // Rounded up: a bucket that goes early comes back full.
        let at = EpochSeconds(at.0.div_ceil(1000));
        let expires = bucket_ttl(at, &config.limits)?;
        Ok(expires.map_or(Expiry::Never, Expiry::At))
    }
}

/// What every bucket with the same limits carries, the deadlines of soft stamps aside.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    update: Update,
    expiry: Expiry,
    limits: BTreeSet<LimitName>,
    soft: BTreeSet<LimitName>,
    /// Of `sched` and `rsched`, those for which the item has a default.
    defaults: [(&'static str, bool); 2],
}

impl Params {
    /// What the limits of the level that won make of a bucket.
    pub fn new(config: &LevelConfig, expiry: Expiry) -> Params {
        let mut update = Update::default();
        for (name, limit) in &config.limits {
            put_parameters(&mut update, name, limit);
        }
        let defaults = [
            (SCHED, put_schedules(&mut update, SCHED, windows(config))),
            (RSCHED, put_schedules(&mut update, RSCHED, resets(config))),
        ];
        let zone = config.zone.as_ref().map_or(Zone::DEFAULT, Zone::as_str);
        let is_scheduled = defaults.iter().any(|(_, has_default)| *has_default);
        update.put("sched_tz", is_scheduled.then(|| text(zone)));
        // The next acquire goes the slow way once, which clamps a balance above a lowered capacity.
        update.set("vu", number(0));
        let is_soft = |(name, limit): (&LimitName, &Limit)| limit.soft.then(|| name.clone());
        Params {
            update,
            expiry,
            limits: config.limits.keys().cloned().collect(),
            soft: config.limits.iter().filter_map(is_soft).collect(),
            defaults,
        }
    }

    /// Whether both come of the same limits: they may differ in when a bucket expires, for that
    /// depends on the hour.
    pub fn agrees(&self, other: &Params) -> bool {
        let never = |params: &Params| params.expiry == Expiry::Never;
        self.update == other.update && self.soft == other.soft && never(self) == never(other)
    }
}

fn put_parameters(update: &mut Update, name: &LimitName, limit: &Limit) {
    let attribute = |field| limit_attr(name.as_str(), field);
    update.set(attribute("cp"), number(limit.capacity.millis()));
    update.set(attribute("ra"), number(limit.refill_amount().millis()));
    update.set(attribute("rp"), number(limit.refill_period.millis()));
    let window = match limit.recovery {
        Recovery::Window(after) => Some(number(after)),
        Recovery::Drip { .. } | Recovery::Calendar(_) => None,
    };
    // Only its length: where the window began is the clients' to say.
    update.put(attribute("rsa"), window);
    update.remove(attribute("soft"));
}

type Encoded<'a> = Vec<(&'a LimitName, String)>;

fn windows(config: &LevelConfig) -> Encoded<'_> {
    let encode = |(name, limit): (_, &Limit)| (name, schedule::encode(&limit.schedule));
    config.limits.iter().map(encode).collect()
}

fn resets(config: &LevelConfig) -> Encoded<'_> {
    let encode = |(name, limit): (_, &Limit)| match &limit.recovery {
        Recovery::Calendar(entries) => (name, schedule::encode_reset(entries)),
        Recovery::Drip { .. } | Recovery::Window(_) => (name, String::new()),
    };
    config.limits.iter().map(encode).collect()
}

/// The first schedule is the item's default; a limit with another one, or with none, says so
/// itself. Whether there is a default.
fn put_schedules(update: &mut Update, field: &'static str, limits: Encoded<'_>) -> bool {
    let scheduled = limits.iter().find(|(_, own)| !own.is_empty());
    let default = scheduled.map(|(_, own)| own.clone());
    for (name, own) in limits {
        let own = match &default {
            Some(_) if own.is_empty() => Some(text(NONE_OF_ITS_OWN)),
            Some(default) if *default != own => Some(text(own)),
            _ => None,
        };
        update.put(limit_attr(name.as_str(), field), own);
    }
    update.put(field, default.as_ref().map(text));
    default.is_some()
}

/// Brings one bucket's parameters to what applies.
#[derive(Debug, Clone, PartialEq)]
pub struct ParamsChange {
    /// What its limits demand.
    pub params: Arc<Params>,
    /// When its soft stamps run out.
    pub soft_until: EpochMs,
}

impl BucketChange for ParamsChange {
    fn update(&self, bucket: &Item) -> Update {
        let mut update = self.params.update.clone();
        match self.params.expiry {
            Expiry::Never => update.remove("ttl"),
            Expiry::At(at) => update.set("ttl", number(at)),
        }
        for name in &self.params.soft {
            update.set(limit_attr(name.as_str(), "soft"), number(self.soft_until));
        }
        for attribute in bucket.keys() {
            match parse_limit_attr(attribute) {
                Some((RESERVED_LIMIT, field)) => self.put_reserved(&mut update, field),
                // The whole limit, balance included: a balance without parameters breaks older
                // clients, and what is left would come back to life with the limit's name.
                Some((limit, _)) if !self.applies(limit) => update.remove(attribute),
                _ => {}
            }
        }
        if is_carried(&update, bucket) {
            // Nothing for the next acquire to learn: it need not go the slow way.
            update.leave("vu");
        }
        update
    }
}

impl ParamsChange {
    fn applies(&self, limit: &str) -> bool {
        self.params.limits.iter().any(|name| name.as_str() == limit)
    }

    /// The reserved limit is no level's to give, and must not inherit a schedule either.
    fn put_reserved(&self, update: &mut Update, found: &str) {
        for (field, has_default) in self.params.defaults {
            let attribute = limit_attr(RESERVED_LIMIT, field);
            if has_default {
                update.set(attribute, text(NONE_OF_ITS_OWN));
            } else if found == field {
                update.remove(attribute);
            }
        }
    }
}

/// Whether a bucket is as the update would leave it, instants aside.
fn is_carried(update: &Update, bucket: &Item) -> bool {
    let holds = |(attribute, value): (&str, Option<&AttributeValue>)| {
        let is_instant = attribute == "ttl" || attribute.ends_with("_soft");
        match (value, bucket.get(attribute)) {
            _ if attribute == "vu" => true,
            (Some(_), Some(_)) if is_instant => true,
            (Some(value), Some(carried)) => same_value(value, carried),
            (value, carried) => value.is_none() && carried.is_none(),
        }
    };
    update.changes().all(holds)
}
