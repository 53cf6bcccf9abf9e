//! One request at a time: every request of every actor waits at a gate, and a seeded picker says
//! which goes next.
//!
//! The runtime's clock is paused, so that a sleep ends only when nobody can move without being let
//! through: a schedule is a function of its seed alone.

use crate::transport::Layer;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// How many steps the second and later requests of a quick actor wait at most.
const QUICK_STEPS: u64 = 8;

/// The requests that wait. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Queue(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waiting>,
    arrived: BTreeMap<usize, u64>,
    quick: Vec<usize>,
    step: u64,
}

#[derive(Debug)]
struct Waiting {
    actor: usize,
    operation: String,
    /// Whether it writes buckets.
    stamps: bool,
    /// The step at which it must go.
    due: Option<u64>,
    /// How many requests its actor had sent before.
    number: u64,
    go: oneshot::Sender<()>,
}

/// The gate that one actor's requests wait at.
#[derive(Debug, Clone)]
pub struct Gate {
    actor: usize,
    queue: Queue,
}

impl Queue {
    /// The gate of an actor.
    pub fn gate(&self, actor: usize) -> Gate {
        let queue = self.clone();
        Gate { actor, queue }
    }

    /// Begins a race. What these actors began, they end within a few steps.
    pub fn begin(&self, quick: Vec<usize>) {
        *self.state() = State {
            quick,
            ..State::default()
        };
    }

    /// Lets the request through that the picker chooses, and says whose it was and what it asks
    /// for. `None`: nobody waits.
    pub fn step(&self, picker: &mut Picker) -> Option<(usize, String)> {
        let mut state = self.state();
        // Those of an actor that died are nobody's.
        state.waiting.retain(|waiting| !waiting.go.is_closed());
        if state.waiting.is_empty() {
            return None;
        }
        state.step += 1;
        let due = |waiting: &Waiting| waiting.due.is_some_and(|due| due <= state.step);
        let chosen = match state.waiting.iter().position(due) {
            Some(index) => index,
            None => picker.pick(&state.waiting),
        };
        let chosen = state.waiting.remove(chosen);
        let _ = chosen.go.send(());
        Some((chosen.actor, chosen.operation))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrive(&self, actor: usize, operation: String, stamps: bool) -> oneshot::Receiver<()> {
        let mut state = self.state();
        let arrived = state.arrived.entry(actor).or_default();
        let number = *arrived;
        *arrived += 1;
        let due = (number > 0 && state.quick.contains(&actor)).then(|| state.step + QUICK_STEPS);
        let (go, released) = oneshot::channel();
        state.waiting.push(Waiting {
            actor,
            operation,
            stamps,
            due,
            number,
            go,
        });
        released
    }
}

impl Layer for Gate {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or(target).to_owned();
        let body = request.body().bytes().unwrap_or_default();
        let stamps = match operation.as_str() {
            "BatchExecuteStatement" => true,
            "UpdateItem" => String::from_utf8_lossy(body).contains("/BUCKET#"),
            _ => false,
        };
        let released = self.queue.arrive(self.actor, operation, stamps);
        let next = next.clone();
        HttpConnectorFuture::new(async move {
            let ended = |_| ConnectorError::other("the race is over".into(), None);
            released.await.map_err(ended)?;
            next.call(request).await
        })
    }
}

/// In which order requests go.
#[derive(Debug, Clone, Copy)]
pub enum Style {
    /// Any of those that wait.
    Fair,
    /// Mostly the actor that went last.
    Bursts,
    /// The actor that is most important, until that changes.
    Priorities,
    /// Some requests are very slow.
    Stalls,
    /// An actor's writes of buckets are very slow: what was decided long ago lands late.
    LateStamps,
}

/// Chooses among waiting requests.
pub struct Picker {
    rng: Xoshiro256PlusPlus,
    style: Style,
    last: usize,
    salt: u64,
}

impl Picker {
    pub fn new(seed: u64, style: Style) -> Picker {
        Picker {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            style,
            last: 0,
            salt: seed,
        }
    }

    fn pick(&mut self, waiting: &[Waiting]) -> usize {
        let chosen = match self.style {
            Style::Fair => self.any(waiting, |_| true),
            Style::Bursts if self.rng.random_bool(0.9) => {
                let last = self.last;
                self.any(waiting, |waiting| waiting.actor == last)
            }
            Style::Bursts => self.any(waiting, |_| true),
            Style::Priorities => {
                if self.rng.random_bool(0.05) {
                    self.salt = self.rng.random();
                }
                let rank = |waiting: &Waiting| scramble(self.salt, waiting.actor as u64, 0);
                let first = waiting.iter().map(rank).max();
                let first = waiting
                    .iter()
                    .map(|w| Some(rank(w)) == first)
                    .collect::<Vec<_>>();
                self.among(&first)
            }
            Style::Stalls => {
                let salt = self.salt;
                self.all_but(waiting, 0.02, |waiting| {
                    scramble(salt, waiting.actor as u64, waiting.number).is_multiple_of(8)
                })
            }
            Style::LateStamps => {
                let late = (self.salt % 3) as usize;
                self.all_but(waiting, 0.01, |waiting| {
                    waiting.stamps && waiting.actor == late
                })
            }
        };
        self.last = waiting[chosen].actor;
        chosen
    }

    /// One that is not stalled, unless patience ends with it or there is no other.
    fn all_but(
        &mut self,
        waiting: &[Waiting],
        ends: f64,
        is_stalled: impl Fn(&Waiting) -> bool,
    ) -> usize {
        if self.rng.random_bool(ends) {
            return self.any(waiting, |_| true);
        }
        self.any(waiting, |waiting| !is_stalled(waiting))
    }

    fn any(&mut self, waiting: &[Waiting], which: impl Fn(&Waiting) -> bool) -> usize {
        let these: Vec<bool> = waiting.iter().map(which).collect();
        self.among(&these)
    }

    /// One of the marked ones, or of all where none is.
    fn among(&mut self, marked: &[bool]) -> usize {
        let mut these: Vec<usize> = (0..marked.len()).filter(|index| marked[*index]).collect();
        if these.is_empty() {
            these = (0..marked.len()).collect();
        }
        these[self.rng.random_range(0..these.len())]
    }
}

/// A number that is another one for every salt, actor and request.
fn scramble(salt: u64, actor: u64, number: u64) -> u64 {
    let mut x = salt ^ (actor + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number << 32);
    for _ in 0..2 {
        x = (x ^ (x >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    x ^ (x >> 29)
}
