//! What `explain` says about the limits in force, at an instant that a test chooses.

use crate::world::World;
use zae_limits::explain::{Explanation, explain};
use zae_limits::model::{EntityId, ResourceName};

/// The world begins on 2027-01-15, a Friday, at 09:00 in Berlin.
const SCHEDULED: &str = "
resources:
  gpt-4:
    limits:
      rpm:
        capacity: 100
        refill_amount: 50
        schedule:
          - { cron: '0-29 12 * * *', tz: Europe/Berlin, capacity: 7, refill_period_seconds: 10 }
          - { cron: '* 9-17 * * MON-FRI', tz: Europe/Berlin, scale: 0.125 }
      daily: { capacity: 10000, reset_schedule: [{ cron: '0 0 * * *', tz: Europe/Berlin }, { cron: '0 12 * * SUN', tz: Europe/Berlin }] }
      session: { capacity: 20, reset_after_seconds: 18000 }
      plain: { capacity: 5 }
";

async fn explained(world: &World) -> Explanation {
    let entity = EntityId::parse("alice").expect("an id");
    let resource = ResourceName::parse("gpt-4").expect("a name");
    explain(&world.store, &world.clock, &world.ns, &entity, &resource)
        .await
        .expect("an explanation")
}

#[tokio::test]
async fn what_is_in_force_until_when_and_the_next_reset() {
    let world = World::new().await;
    world
        .apply_once(&crate::world::manifest(SCHEDULED), Default::default())
        .await;
    let limits = explained(&world).await.limits;
    insta::assert_json_snapshot!((limits.at, limits.zone, limits.now));
}

#[tokio::test]
async fn what_is_in_force_follows_the_clock() {
    let world = World::new().await;
    world
        .apply_once(&crate::world::manifest(SCHEDULED), Default::default())
        .await;
    let mut said = Vec::new();
    // From one boundary to the next, as explain itself names them.
    for _ in 0..6 {
        let limits = explained(&world).await.limits;
        let calendar = zae_limits::model::Calendar::new(&limits.zone);
        let rpm = limits
            .now
            .iter()
            .find(|limit| limit.name.as_str() == "rpm")
            .expect("rpm");
        let until = rpm.until.expect("it changes");
        let rate = rpm.in_force;
        let (now, then) = (calendar.show(limits.at), calendar.show(until));
        said.push(format!(
            "{now} to {then}: {}, +{}/{}s",
            rate.capacity, rate.refill_amount, rate.refill_period
        ));
        world.clock.advance(until.0 - limits.at.0);
    }
    insta::assert_snapshot!(said.join("\n"), @r"
    2027-01-15T09:00+01:00 to 2027-01-15T12:00+01:00: 12.5, +6.25/60s
    2027-01-15T12:00+01:00 to 2027-01-15T12:30+01:00: 7, +50/10s
    2027-01-15T12:30+01:00 to 2027-01-15T18:00+01:00: 12.5, +6.25/60s
    2027-01-15T18:00+01:00 to 2027-01-16T12:00+01:00: 100, +50/60s
    2027-01-16T12:00+01:00 to 2027-01-16T12:30+01:00: 7, +50/10s
    2027-01-16T12:30+01:00 to 2027-01-17T12:00+01:00: 100, +50/60s
    ");
}

#[tokio::test]
async fn no_limits_are_nothing_in_force() {
    let world = World::new().await;
    let limits = explained(&world).await.limits;
    assert_eq!((limits.now, limits.winner), (Vec::new(), None));
}
