//! A namespace as large as one likes, applied and planned again, and the most memory that took.
//!
//! Only run when `ZAE_LIMITS_SOAK` says how many levels: a million take long. The engine is in this process
//! and its database in a file, so its memory is bounded and what grows is ours.

use crate::figures::{Figure, count};
use crate::meter::{Stopwatch, peak_memory_kib};
use crate::{Failure, Kept, world};
use std::env;
use zae_limits::manifest::{Manifest, parse_yaml};
use zae_limits::model::Level;
use zae_limits::report::Status;

/// What asks for a soak, and how many levels it is of.
const LEVELS: &str = "ZAE_LIMITS_SOAK";

/// Levels that the environment asks for.
pub fn asked_for() -> Result<Option<usize>, Failure> {
    match env::var(LEVELS) {
        Ok(levels) => Ok(Some(levels.parse()?)),
        Err(_) => Ok(None),
    }
}

/// The first apply of so many levels, and a plan of the same when it is done.
pub async fn measure(levels: usize) -> Result<(), Failure> {
    let row = |what: &str, unit, value: f64| {
        let name = format!("soak, {what} {} levels", count(levels));
        println!("{}", Figure::new(name, unit, value));
    };
    let (embedded, _folder) = Kept::InAFile.open()?;
    let store = world::store(embedded.client());
    world::create(&store).await?;
    let manifest = manifest(levels)?;
    row("peak memory until made,", "MiB", peak_mib()?);

    let stopwatch = Stopwatch::start()?;
    let report = world::apply(&store, &manifest).await?;
    assert_eq!((report.created, report.pending), (levels, 0));
    row("first apply of", "s", stopwatch.stop()?.wall.as_secs_f64());
    drop(report);
    row("peak memory until applied,", "MiB", peak_mib()?);
    let per_level = peak_memory_kib()? as f64 / levels as f64;
    row("peak memory a level of", "KiB", per_level);

    let stopwatch = Stopwatch::start()?;
    let plan = world::plan(&store, &manifest).await?;
    assert_eq!((plan.unchanged, plan.is_empty()), (levels, true));
    row(
        "plan of unchanged",
        "s",
        stopwatch.stop()?.wall.as_secs_f64(),
    );
    let report = world::apply(&store, &manifest).await?;
    assert_eq!(report.status, Status::Unchanged);
    Ok(())
}

/// A manifest of so many levels. It is made and not read: a file of so many is larger than any that is read.
fn manifest(count: usize) -> Result<Manifest, Failure> {
    let small = parse_yaml("soak.limits.yaml", world::yaml(world::SMALLEST).as_bytes())?;
    let mut levels = small.levels().clone();
    let last = levels.last_key_value().ok_or("the manifest is empty")?;
    let config = last.1.clone();
    for index in 0..count.saturating_sub(levels.len()) {
        let target = format!("customer-{}/model-{}", index / 3, index % 3);
        let level = Level::from_parts("entity", &target).ok_or("no level")?;
        levels.insert(level, config.clone());
    }
    Ok(Manifest::new(small.namespace().clone(), levels)?)
}

fn peak_mib() -> Result<f64, Failure> {
    Ok(peak_memory_kib()? as f64 / 1024.0)
}
