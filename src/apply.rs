//! Config writes: a guarded plan's levels, in order, each only while it is what was planned against.
//!
//! A level that someone wrote in between is never written over unseen: what the new difference
//! makes necessary is recorded ahead first, and a switch set by hand meanwhile is kept as the plan
//! would have kept it.

use crate::clock::Clock;
use crate::fanout::Settings;
use crate::model::{EpochMs, Level, LevelConfig, NamespaceId, Owed, StoredLevel, Switch};
use crate::plan::{Action, Change, GuardedPlan, Plan, fanouts_of};
use crate::store::StoreError;
use crate::store::{Author, Claim, LEVELS_PER_TRANSACTION, LevelOutcome, LevelWrite, Store};
use std::collections::{BTreeMap, BTreeSet};

/// How often a level is written anew while others write it too.
const ROUNDS: usize = 4;

/// What the config writes came to.
#[derive(Debug, Default)]
pub struct ConfigWrites {
    /// Levels that are as planned now.
    pub written: BTreeMap<Level, Action>,
    /// Levels that are not, with the reason.
    pub failed: BTreeMap<Level, String>,
    /// Those among the failed whose write may have landed all the same.
    pub uncertain: BTreeSet<Level>,
    /// Fan-outs that only became necessary by what others wrote in between. Recorded ahead.
    pub also_owed: BTreeSet<Owed>,
    /// When the last write landed; `None` when nothing was written.
    pub last_at: Option<EpochMs>,
}

impl ConfigWrites {
    /// Those of a chunk of which nothing was heard are neither written nor unwritten.
    fn give_up(&mut self, chunk: &[&Change]) {
        for change in chunk {
            let level = &change.level;
            if !self.written.contains_key(level) && !self.failed.contains_key(level) {
                let reason = "the time ran out while it was being written".to_owned();
                self.failed.insert(level.clone(), reason);
                self.uncertain.insert(level.clone());
            }
        }
    }
}

/// What config writes need besides the plan.
pub struct Writer<'a> {
    /// The table.
    pub store: &'a Store,
    /// The namespace.
    pub ns: &'a NamespaceId,
    /// The time.
    pub clock: &'a Clock,
    /// Under what claim fan-outs are recorded ahead.
    pub claim: &'a Claim,
    /// Who writes.
    pub author: Author<'a>,
    /// When to stop.
    pub settings: &'a Settings,
    /// The fan-outs that are recorded ahead already.
    pub recorded: &'a BTreeSet<Owed>,
}

/// One level on its way.
struct Item<'p> {
    change: &'p Change,
    before: Option<StoredLevel>,
    after: Option<LevelConfig>,
    whatever: bool,
}

impl Writer<'_> {
    /// Writes every level of the plan: system, then resources, then entities.
    pub async fn write(&self, plan: &GuardedPlan) -> ConfigWrites {
        let plan = plan.plan();
        let mut writes = ConfigWrites::default();
        for group in groups(plan) {
            for chunk in group.chunks(LEVELS_PER_TRANSACTION) {
                if self.settings.is_over(self.clock.now()) {
                    let late = if self.settings.stop.is_set() {
                        "the apply was interrupted before it was written: apply again".to_owned()
                    } else {
                        "the time ran out before it was written: apply again".to_owned()
                    };
                    let late = chunk
                        .iter()
                        .map(|change| (change.level.clone(), late.clone()));
                    writes.failed.extend(late);
                    continue;
                }
                let write = self.write_chunk(plan, chunk, &mut writes);
                let now = self.clock.now();
                if self.settings.in_time(now, write).await.is_none() {
                    writes.give_up(chunk);
                    writes.last_at = Some(self.clock.now());
                }
            }
        }
        writes
    }

    async fn write_chunk(&self, plan: &Plan, chunk: &[&Change], writes: &mut ConfigWrites) {
        let mut items: Vec<Item<'_>> = chunk.iter().map(|change| Item::new(change)).collect();
        for _ in 0..ROUNDS {
            let asked: Vec<LevelWrite<'_>> = items.iter().map(Item::write).collect();
            let outcomes = self.store.write_levels(self.ns, &asked, self.author).await;
            let mut moved = Vec::new();
            for (item, outcome) in items.into_iter().zip(outcomes) {
                match outcome {
                    LevelOutcome::Written => self.landed(&item, writes),
                    LevelOutcome::Unseen(error) => self.failed(&item, &error, true, writes),
                    LevelOutcome::Failed(error) => {
                        self.failed(&item, &error, error.may_have_landed(), writes);
                    }
                    LevelOutcome::Moved(current) if item.is_satisfied_by(current.as_deref()) => {
                        self.landed(&item, writes);
                    }
                    LevelOutcome::Moved(current) => moved.push((item, current)),
                }
            }
            if moved.is_empty() {
                return;
            }
            let levels: Vec<Level> = moved
                .iter()
                .map(|(item, _)| item.change.level.clone())
                .collect();
            items = match self.rebase(plan, moved, writes).await {
                Ok(rebased) => rebased,
                Err(error) => {
                    let failed = levels.into_iter().map(|level| (level, error.to_string()));
                    return writes.failed.extend(failed);
                }
            };
        }
        for item in items {
            let reason = "others keep writing it: run this again".to_owned();
            writes.failed.insert(item.change.level.clone(), reason);
        }
    }

    fn failed(
        &self,
        item: &Item<'_>,
        error: &StoreError,
        may_have_landed: bool,
        writes: &mut ConfigWrites,
    ) {
        let level = &item.change.level;
        if may_have_landed {
            writes.uncertain.insert(level.clone());
            writes.last_at = Some(self.clock.now());
        }
        writes.failed.insert(level.clone(), error.to_string());
    }

    fn landed(&self, item: &Item<'_>, writes: &mut ConfigWrites) {
        writes
            .written
            .insert(item.change.level.clone(), item.change.action);
        writes.last_at = Some(self.clock.now());
    }

    /// Makes the writes of levels that moved anew, from what is stored of them now.
    async fn rebase<'p>(
        &self,
        plan: &Plan,
        moved: Vec<(Item<'p>, Option<Box<StoredLevel>>)>,
        writes: &mut ConfigWrites,
    ) -> Result<Vec<Item<'p>>, StoreError> {
        let is_doubtful = |(item, current): &(Item<'_>, Option<Box<StoredLevel>>)| {
            let switch = current.as_ref().and_then(|current| current.config.disabled);
            switch.is_some() && plan.may_keep_switch(item.change, switch)
        };
        // Only the record tells another apply's switch from one that was set by hand.
        let memory = if moved.iter().any(is_doubtful) {
            let record = self.store.record(self.ns).await?;
            record.and_then(|record| record.switches)
        } else {
            None
        };
        let rebased = |(item, current): (Item<'p>, _)| item.rebased(plan, current, memory.as_ref());
        let rebased: Vec<Item<'p>> = moved.into_iter().map(rebased).collect();
        self.owe(&rebased, writes).await?;
        Ok(rebased)
    }

    /// Records ahead what rebased levels owe beyond the plan.
    async fn owe(&self, moved: &[Item<'_>], writes: &mut ConfigWrites) -> Result<(), StoreError> {
        let owed = moved.iter().flat_map(|item| {
            let level = &item.change.level;
            fanouts_of(level, item.before.as_ref(), item.after.as_ref())
                .into_iter()
                .map(|kind| Owed {
                    level: level.clone(),
                    kind,
                })
        });
        let new: Vec<Owed> = owed
            .filter(|owed| !self.recorded.contains(owed) && !writes.also_owed.contains(owed))
            .collect();
        self.store.write_ahead(self.ns, &new, self.claim).await?;
        writes.also_owed.extend(new);
        Ok(())
    }
}

impl<'p> Item<'p> {
    fn new(change: &'p Change) -> Self {
        Item {
            change,
            before: change.before.clone(),
            after: change.after.clone(),
            whatever: false,
        }
    }

    fn write(&self) -> LevelWrite<'_> {
        LevelWrite {
            level: &self.change.level,
            before: self.before.as_ref(),
            after: self.after.as_ref(),
            whatever: self.whatever,
        }
    }

    /// Whether what is stored is already what was to be written: an answer was lost, or another
    /// apply wrote the same.
    fn is_satisfied_by(&self, current: Option<&StoredLevel>) -> bool {
        match (current, &self.after) {
            (None, None) => true,
            (Some(current), Some(after)) => current.as_written && current.config == *after,
            _ => false,
        }
    }

    fn rebased(
        mut self,
        plan: &Plan,
        current: Option<Box<StoredLevel>>,
        memory: Option<&BTreeMap<Level, Switch>>,
    ) -> Self {
        let current = current.map(|current| *current);
        // What reads the same and still fails its condition is spelled in a way of its own.
        self.whatever = current.is_some() && current == self.before;
        self.after = plan.resettled(self.change, current.as_ref(), memory);
        self.before = current;
        self
    }
}

/// The levels in the order of writes. A registry cannot gain and lose resources in one update, so
/// resources that go come after those that come.
fn groups(plan: &Plan) -> [Vec<&Change>; 4] {
    let mut groups: [Vec<&Change>; 4] = Default::default();
    for change in &plan.changes {
        let group = match (&change.level, change.action) {
            (Level::System, _) => 0,
            (Level::Resource(_), Action::Create | Action::Update) => 1,
            (Level::Resource(_), Action::Delete) => 2,
            (Level::Entity(..), _) => 3,
        };
        groups[group].push(change);
    }
    groups
}
