//! The declarative control plane for rate limits and kill switches on DynamoDB.
//!
//! Operators write a manifest for a namespace: limits for the system, for resources, for entities,
//! and a switch, `disabled: true | false | bypass`. This crate makes the table say what the manifest
//! says, and makes it take effect at once, on every token bucket that clients of the Python library
//! `zae-limiter` decide on.
//!
//! ```text
//! YAML file | CFN properties | JSON                  what an operator wrote
//!         │  manifest    every problem with its place, or a Manifest that cannot be invalid
//!         ▼
//!      Manifest ───────────┐
//!                          ▼
//! table ── store ──► State ──► plan ──► Plan ──► GuardedPlan         pure: data in, data out
//!                                                     │
//!                                                     ▼
//!                            apply      recorded ahead, then config: system, resources, entities
//!                                                     │  what the changes owe, level by level
//!                                                     ▼
//!                            fanout     discover buckets -> resolve -> stamp
//!                                                     │
//!                                                     ▼
//!                            report     one value: text, JSON, Markdown, or CloudFormation's answer
//! ```
//!
//! The library neither prints nor reads the environment; the clock is read in [`clock`] alone. The
//! two binaries are [`cli`] and [`lambda`], over the same pipeline.
//!
//! # Example
//!
//! ```
//! # #[cfg(feature = "local")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use zae_limits::clock::Clock;
//! use zae_limits::manifest::parse_yaml;
//! use zae_limits::model::ManifestOwner;
//! use zae_limits::plan::{PlanOptions, Policy};
//! use zae_limits::reconcile::{self, ApplyOptions};
//! use zae_limits::store::{Embedded, Place, Store};
//!
//! let manifest = parse_yaml(
//!     "tenant-alpha.limits.yaml",
//!     b"namespace: tenant-alpha\nresources: { gpt-4: { disabled: true } }",
//! )?;
//!
//! let embedded = Embedded::memory()?;
//! let place = Place { table: "rate-limits".to_owned(), host: embedded.host() };
//! let store = Store::new(embedded.client(), place);
//! let clock = Clock::system();
//! store.create(clock.now()).await?;
//!
//! let plan = reconcile::prepare(&store, &manifest, None, PlanOptions::default()).await?;
//! assert_eq!(plan.changes.len(), 1);
//! let guarded = plan.guard(&Policy::strict(ManifestOwner::Cli)).map_err(|all| format!("{all:?}"))?;
//! let report = reconcile::apply(&store, &clock, &guarded, &ApplyOptions::default(), &()).await?;
//! assert_eq!((report.created, report.pending), (1, 0));
//! # Ok(())
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # #[cfg(feature = "local")]
//! # tokio::runtime::Runtime::new()?.block_on(example())?;
//! # Ok(())
//! # }
//! ```

// What exists, and what an operator wrote.
pub mod manifest;
pub mod model;

// What is stored, and what that means.
pub mod clock;
mod spread;
pub mod store;
pub mod table;

// What to do about the difference.
pub mod apply;
pub mod fanout;
pub mod plan;
pub mod reconcile;

// What to tell people.
pub mod affected;
pub mod explain;
pub mod report;

// The edges.
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "lambda")]
pub mod lambda;
