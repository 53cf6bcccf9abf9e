//! What earlier applies still owe: taking it over, finishing it, giving it up.
//!
//! Only what an apply that is certainly gone has left is taken over. Nothing here writes a level: a
//! fan-out reads what it brings from the table.

use super::ApplyOptions;
use crate::clock::Clock;
use crate::fanout::{Fanouts, Outcome, Progress, Shares};
use crate::model::{EpochMs, Level, NamespaceId, Owed, Pending};
use crate::report::{FanoutReport, PendingReport, ResumeReport};
use crate::store::{Claim, Store, StoreError};
use futures::{StreamExt, stream};
use std::collections::BTreeSet;

/// How long an apply that cannot tell its own deadline may run, in milliseconds: the longest any
/// Lambda function can.
pub const LONGEST_RUN_MS: u64 = 15 * 60_000;
/// Added to every lease, for clocks that differ, in milliseconds.
const LEASE_MARGIN_MS: u64 = 60_000;
/// Shares taken over at once.
const CLAIMS: usize = 8;

/// Takes over the fan-outs of applies that are gone, and runs them; with [`ApplyOptions::join`] those
/// that another apply holds too. Writes no level and no record.
///
/// # Errors
/// [`StoreError`] when what is pending cannot be read or taken over. Later failures are in the report.
pub async fn resume(
    store: &Store,
    clock: &Clock,
    ns: &NamespaceId,
    options: &ApplyOptions,
    progress: &dyn Progress,
) -> Result<ResumeReport, StoreError> {
    let began = clock.now();
    let share = new_claim(options, began);
    let found = store.pending(ns).await?;
    let taken = claim(store, ns, &found, &share).await?;
    let held = found.iter().map(|pending| &pending.owed);
    let joined: BTreeSet<Owed> = held
        .filter(|owed| options.join && !taken.owed.contains(owed))
        .cloned()
        .collect();
    let due: BTreeSet<Owed> = taken.owed.union(&joined).cloned().collect();
    let shares = Shares {
        token: &share.token,
        of: &taken.owed,
    };
    let fanouts = Fanouts::new(store, ns, clock, &options.fanout, progress).releasing(shares);
    let outcomes = fanouts.run(&due, began).await;
    let ours = outcomes
        .iter()
        .filter(|outcome| !joined.contains(&outcome.owed));
    let mut errors: Vec<String> = unfinished(&outcomes).collect();
    errors.extend(
        settle(
            store,
            ns,
            &share,
            &taken,
            &BTreeSet::new(),
            ours,
            clock.now(),
        )
        .await,
    );
    let left = store.pending(ns).await.unwrap_or_else(|error| {
        errors.push(error.to_string());
        found
    });
    let now = clock.now();
    let left = still_owed(&left, options, &outcomes).into_iter();
    Ok(ResumeReport {
        resumed: taken.owed.len(),
        joined: joined.len(),
        stamped: outcomes.iter().map(|outcome| outcome.tally.stamped).sum(),
        pending: left.map(|left| PendingReport::at(left, now)).collect(),
        fanouts: outcomes.iter().map(FanoutReport::from).collect(),
        errors,
        duration_ms: now.0.saturating_sub(began.0),
    })
}

/// What of the pending fan-outs is still owed. Of what another apply holds, those that were joined and
/// landed here are not: whatever that apply has yet to write, it fans out itself.
pub(super) fn still_owed<'p>(
    pending: &'p [Pending],
    options: &ApplyOptions,
    outcomes: &[Outcome],
) -> Vec<&'p Pending> {
    let landed = outcomes
        .iter()
        .filter(|outcome| options.join && outcome.has_landed());
    let landed: BTreeSet<&Owed> = landed.map(|outcome| &outcome.owed).collect();
    let left = pending
        .iter()
        .filter(|pending| !landed.contains(&pending.owed));
    left.collect()
}

/// The share of a run that begins now, in whatever it owes.
pub(super) fn new_claim(options: &ApplyOptions, now: EpochMs) -> Claim {
    let token: u128 = rand::random();
    let until = options
        .fanout
        .deadline
        .unwrap_or(now.plus_ms(LONGEST_RUN_MS));
    Claim {
        token: format!("{token:032x}"),
        lease: until.plus_ms(LEASE_MARGIN_MS),
        full: options.full,
        now,
    }
}

/// What a run took over.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// The fan-outs.
    pub(super) owed: BTreeSet<Owed>,
    /// Those among them that an interrupted full apply still owes.
    pub(super) full: BTreeSet<Owed>,
}

/// Takes over fan-outs whose applies are certainly gone. When one cannot be taken over, those that
/// were are given back at once.
pub(super) async fn claim(
    store: &Store,
    ns: &NamespaceId,
    pending: &[Pending],
    share: &Claim,
) -> Result<Taken, StoreError> {
    // Gathered first: a stream of closures over references is not `Send`.
    let claims: Vec<_> = pending
        .iter()
        .filter(|pending| pending.is_claimable(share.now))
        .map(|pending| async move {
            let full = pending.gone(share.now).any(|(_, owner)| owner.full);
            // The mark is handed on: whoever takes over may be interrupted too.
            let share = Claim {
                full: share.full || full,
                ..share.clone()
            };
            let taken = store.claim(ns, pending, &share).await;
            (pending.owed.clone(), full, taken)
        })
        .collect();
    let answers: Vec<_> = stream::iter(claims).buffered(CLAIMS).collect().await;
    let mut all = Taken::default();
    let mut failure = None;
    for (owed, full, taken) in answers {
        match taken {
            Ok(true) => {
                all.full.extend(full.then(|| owed.clone()));
                all.owed.insert(owed);
            }
            Ok(false) => {}
            Err(error) => failure = Some(error),
        }
    }
    let Some(error) = failure else {
        return Ok(all);
    };
    give_back(store, ns, &[], &all, share, share.now).await;
    Err(error)
}

/// Ends the leases of shares that this run cannot work on, so that the next one may: those it
/// recorded itself, perhaps not all of them, and those it took over.
pub(super) async fn give_back(
    store: &Store,
    ns: &NamespaceId,
    owed: &[Owed],
    taken: &Taken,
    share: &Claim,
    now: EpochMs,
) {
    let rest = taken.owed.difference(&taken.full).chain(owed).cloned();
    let (rest, full): (Vec<_>, Vec<_>) = (rest.collect(), taken.full.iter().cloned().collect());
    for (owed, full) in [(rest, false), (full, true)] {
        if let Err(error) = store.expire(ns, &owed, &share.token, now, full).await {
            tracing::warn!(%error, "the leases of this run must run out before another goes on");
        }
    }
}

/// Gives up what landed, and ends the lease of what did not, so that the next apply takes it
/// over at once. What a full apply was interrupted in stays marked as its own. A level of which it
/// is not known whether it was written may yet change under its buckets: its fan-outs stay owed.
pub(super) async fn settle<'o>(
    store: &Store,
    ns: &NamespaceId,
    share: &Claim,
    taken: &Taken,
    uncertain: &BTreeSet<Level>,
    outcomes: impl IntoIterator<Item = &'o Outcome>,
    now: EpochMs,
) -> Vec<String> {
    let (mut landed, mut full, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for outcome in outcomes.into_iter().filter(|outcome| !outcome.released) {
        let is_full = share.full || taken.full.contains(&outcome.owed);
        let landed_for_good = outcome.has_landed() && !uncertain.contains(&outcome.owed.level);
        let shares = match landed_for_good {
            true => &mut landed,
            false if is_full && outcome.was_interrupted() => &mut full,
            false => &mut left,
        };
        shares.push(outcome.owed.clone());
    }
    let answers = [
        store.release(ns, &landed, &share.token).await,
        store.expire(ns, &full, &share.token, now, true).await,
        store.expire(ns, &left, &share.token, now, false).await,
    ];
    let errors = answers.into_iter().filter_map(Result::err);
    errors.map(|error| error.to_string()).collect()
}

/// One line for every fan-out that is still owed.
pub(super) fn unfinished(outcomes: &[Outcome]) -> impl Iterator<Item = String> {
    let left = outcomes.iter().filter(|outcome| !outcome.has_landed());
    left.map(|outcome| {
        let report = FanoutReport::from(outcome);
        let count = match report.failed {
            0 => String::new(),
            failed => {
                let first = report
                    .samples
                    .first()
                    .map(|first| format!(", such as {first}"));
                let first = first.unwrap_or_default();
                format!(" ({failed} of {}{first})", report.found)
            }
        };
        let (owed, ended) = (&outcome.owed, report.ended);
        format!("{owed}: {ended}{count}; it stays pending, the next run retries it")
    })
}
