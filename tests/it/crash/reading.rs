//! Deaths in the reading pass too: each of its requests is a crash point, those among them that mend what it
//! finds wrong.

use super::*;
use crate::transport::Recorder;

const SETTLE: Duration = Duration::from_millis(1);

/// The case with a reading pass.
fn settling(case: Case) -> Case {
    Case {
        settle: SETTLE,
        ..case
    }
}

#[tokio::test]
async fn everything_at_once_with_a_reading_pass() {
    let without = Case::new("", EVERYTHING).await;
    let with = settling(Case::new("", EVERYTHING).await);
    let more = requests(&with).await - requests(&without).await;
    // Three levels of access: a page of the index for each, and what decides about its buckets.
    assert!(more >= 6, "{more} requests of the reading pass");
    let all = [Access, Cascade, Soft, Params];
    tried(exhaust(&with, &all).await, 174);
}

/// How many requests an uninterrupted apply sends.
async fn requests(case: &Case) -> usize {
    let embedded = case.stage.set().await;
    let recorder = Recorder::default();
    let client = over(case.transport(&embedded), recorder.clone());
    let world = World::before_first_use(Embedded::client_over(client));
    case.apply(&world).await.expect("an apply");
    recorder.requests().len()
}

/// A bucket that no pass before has seen: it is mended, and looked at again.
#[tokio::test]
async fn a_switch_that_the_reading_pass_brings_to_a_late_bucket() {
    let stopped = "resources: { gpt-4: { disabled: true } }";
    let opened = "resources: { gpt-4: { disabled: bypass } }";
    let mut deaths = 0;
    for (before, after, shown) in [("", stopped, "disabled"), (stopped, opened, "bypass")] {
        let case = Case {
            late: Some(2),
            ..settling(Case::new(before, after).await)
        };
        let embedded = case.stage.set().await;
        let client = Embedded::client_over(case.transport(&embedded));
        let report = case.apply(&World::before_first_use(client)).await;
        let report = report.expect("an apply");
        assert_eq!((report.fanouts[0].found, report.stamped), (4, 5));
        let world = World::before_first_use(embedded.client());
        assert_eq!(world.stamp("late", "gpt-4").await, shown);
        deaths += exhaust(&case, &[Access]).await;
    }
    tried(deaths, 100);
}
