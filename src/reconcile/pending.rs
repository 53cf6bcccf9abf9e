//! What earlier applies still owe: taking it over, finishing it, giving it up.
//!
//! Only what an apply that is certainly gone has left is taken over. Nothing here writes a level: a
//! fan-out reads what it brings from the table.

use super::ApplyOptions;
use crate::clock::Clock;
use crate::fanout::{Fanouts, Outcome, Progress};
use crate::model::{EpochMs, NamespaceId, Owed};
use crate::report::{FanoutReport, ResumeReport};
use crate::store::{Claim, Store, StoreError};
use futures::{StreamExt, stream};
use std::collections::BTreeSet;

/// How long an apply that cannot tell its own deadline may run, in milliseconds: the longest any
/// function can.
const LONGEST_RUN_MS: u64 = 15 * 60_000;
/// Added to every lease, for clocks that differ, in milliseconds.
const LEASE_MARGIN_MS: u64 = 60_000;
/// Shares taken over at once.
const CLAIMS: usize = 8;

/// Takes over the fan-outs of applies that are gone, and runs them. Writes no level and no record.
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
    let due: BTreeSet<Owed> = claim(store, ns, &share).await?.into_iter().collect();
    let fanouts = Fanouts::new(store, ns, clock, &options.fanout, progress);
    let outcomes = fanouts.run(&due, began).await;
    let mut errors: Vec<String> = unfinished(&outcomes).collect();
    errors.extend(settle(store, ns, &share, &outcomes, clock.now()).await);
    Ok(ResumeReport {
        resumed: due.len(),
        stamped: outcomes.iter().map(|outcome| outcome.tally.stamped).sum(),
        pending: store.pending(ns).await?.len(),
        fanouts: outcomes.iter().map(FanoutReport::from).collect(),
        errors,
        duration_ms: clock.now().0.saturating_sub(began.0),
    })
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

/// Takes over fan-outs whose applies are certainly gone. When one cannot be taken over, those that
/// were are given back at once.
pub(super) async fn claim(
    store: &Store,
    ns: &NamespaceId,
    share: &Claim,
) -> Result<Vec<Owed>, StoreError> {
    let pending = store.pending(ns).await?;
    // Gathered first: a stream of closures over references is not `Send`.
    let claims: Vec<_> = pending
        .iter()
        .filter(|pending| pending.is_claimable(share.now))
        .map(|pending| async move {
            let taken = store.claim(ns, pending, share).await;
            (pending.owed.clone(), taken)
        })
        .collect();
    let answers: Vec<_> = stream::iter(claims).buffered(CLAIMS).collect().await;
    let mut claimed = Vec::new();
    let mut failure = None;
    for (owed, taken) in answers {
        match taken {
            Ok(true) => claimed.push(owed),
            Ok(false) => {}
            Err(error) => failure = Some(error),
        }
    }
    let Some(error) = failure else {
        return Ok(claimed);
    };
    give_back(store, ns, &claimed, share, share.now).await;
    Err(error)
}

/// Ends the leases of shares that this run cannot work on, so that the next one may.
pub(super) async fn give_back(
    store: &Store,
    ns: &NamespaceId,
    owed: &[Owed],
    share: &Claim,
    now: EpochMs,
) {
    if let Err(error) = store.expire(ns, owed, &share.token, now).await {
        tracing::warn!(%error, "the leases of this run must run out before another goes on");
    }
}

/// Gives up what landed, and ends the lease of what did not, so that the next apply takes it
/// over at once.
pub(super) async fn settle(
    store: &Store,
    ns: &NamespaceId,
    share: &Claim,
    outcomes: &[Outcome],
    now: EpochMs,
) -> Vec<String> {
    let (landed, left): (Vec<&Outcome>, Vec<&Outcome>) =
        outcomes.iter().partition(|outcome| outcome.has_landed());
    let owed = |outcomes: Vec<&Outcome>| -> Vec<Owed> {
        let owed = outcomes.into_iter().map(|outcome| outcome.owed.clone());
        owed.collect()
    };
    let released = store.release(ns, &owed(landed), &share.token).await;
    let expired = store.expire(ns, &owed(left), &share.token, now).await;
    [released, expired]
        .into_iter()
        .filter_map(|answer| Some(answer.err()?.to_string()))
        .collect()
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
        format!("{owed}: {ended}{count}; it stays pending, the next apply retries it")
    })
}
