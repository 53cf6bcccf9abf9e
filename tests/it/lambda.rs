//! The function, called in this process with raw events over the embedded table, its answers caught by a
//! local HTTP sink.

mod damaged;
mod events;
mod fuzz;
mod invoke;
mod mutants;
mod respond;
mod resume;
mod rig;
mod role;
mod rollback;
mod runtime;
mod sink;
mod story;
mod timing;
