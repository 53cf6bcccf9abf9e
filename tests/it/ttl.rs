//! When a bucket that follows shared defaults expires: the horizons of zae-limiter's ADR-136, row by row.

use litemap::LiteMap;
use zae_limits::model::{
    Cron, EpochSeconds, Limit, LimitError, LimitName, Modifier, Recovery, ScaleMillis,
    ScheduleEntry, Seconds, Tokens, TtlError, bucket_ttl, recovery_horizon,
};

const HOUR: u64 = 3_600;
const DAY: u64 = 86_400;
const WEEK: u64 = 7 * DAY;
const MONTH: u64 = 31 * DAY;
const YEAR: u64 = 366 * DAY;

fn cron(text: &str) -> Cron {
    Cron::parse(text).expect(text)
}

fn drip(capacity: u64, amount: u64, period: u64) -> Limit {
    Limit::drip(Tokens(capacity), Tokens(amount), Seconds(period))
}

fn resetting(recovery: Recovery) -> Limit {
    Limit {
        recovery,
        ..drip(10_000, 1, 60)
    }
}

fn calendar(entries: &[&str]) -> Limit {
    resetting(Recovery::Calendar(
        entries.iter().map(|e| cron(e)).collect(),
    ))
}

fn window(seconds: u64) -> Limit {
    resetting(Recovery::Window(Seconds(seconds)))
}

fn absolute(capacity: Option<u64>, amount: Option<u64>, period: Option<u64>) -> Modifier {
    Modifier::Absolute {
        capacity: capacity.map(Tokens),
        refill_amount: amount.map(Tokens),
        refill_period: period.map(Seconds),
    }
}

fn scale(millis: u64) -> Modifier {
    Modifier::Scale(ScaleMillis::from_millis(millis).expect("in range"))
}

fn scheduled(limit: Limit, modifiers: &[Modifier]) -> Limit {
    let schedule = modifiers.iter().map(|modifier| ScheduleEntry {
        cron: cron("* 0-6 * * *"),
        modifier: modifier.clone(),
    });
    Limit {
        schedule: schedule.collect(),
        ..limit
    }
}

fn named(limits: &[Limit]) -> LiteMap<LimitName, Limit> {
    let names = (0..).map(|i| LimitName::parse(&format!("limit-{i}")).expect("a name"));
    names.zip(limits.iter().cloned()).collect()
}

fn life(limits: &[Limit]) -> Option<u64> {
    let now = EpochSeconds(1_000);
    let ttl = bucket_ttl(now, &named(limits)).expect("every limit recovers");
    ttl.map(|ttl| ttl.0 - now.0)
}

#[test]
fn a_drip_recovers_at_its_slowest() {
    let night = absolute(None, Some(1), None);
    for (case, limit, horizon, lives) in [
        ("a minute's worth a minute", drip(100, 100, 60), 60, 420),
        (
            "more than a period's worth",
            drip(1000, 10, 60),
            6000,
            42_000,
        ),
        ("less than a period's worth", drip(10, 100, 60), 6, 42),
        ("rounded up once", drip(100, 3, 1), 34, 234),
        ("a fraction of a second", drip(1, 1000, 1), 1, 1),
        (
            "a slower window",
            scheduled(drip(60, 60, 60), std::slice::from_ref(&night)),
            HOUR,
            7 * HOUR,
        ),
        (
            "a faster window",
            scheduled(drip(60, 60, 60), &[absolute(None, Some(600), None)]),
            60,
            420,
        ),
        (
            "a larger window",
            scheduled(drip(60, 60, 60), &[absolute(Some(600), None, None)]),
            600,
            4200,
        ),
        (
            "a longer period",
            scheduled(drip(60, 60, 60), &[absolute(None, None, Some(600))]),
            600,
            4200,
        ),
        (
            "a scaled window",
            scheduled(drip(60, 60, 60), &[scale(500)]),
            60,
            420,
        ),
        (
            "a scale that floors",
            scheduled(drip(1, 1, 60), &[scale(1)]),
            60,
            420,
        ),
        // 1000 thousandths times 1.001 is 1000.9999999999999 for a client, and it cuts off.
        (
            "a scale that cuts the rate",
            scheduled(drip(100, 1, 60), &[scale(1001)]),
            6006,
            42_042,
        ),
        (
            "the slowest of several windows",
            scheduled(
                drip(60, 60, 60),
                &[
                    absolute(None, Some(600), None),
                    night,
                    absolute(None, Some(6), None),
                ],
            ),
            HOUR,
            7 * HOUR,
        ),
    ] {
        assert_eq!(recovery_horizon(&limit), Ok(Seconds(horizon)), "{case}");
        assert_eq!(life(&[limit]), Some(lives), "{case}");
    }
}

/// The reference divides first and in floating point, which gives 23, 9998999999999991808 and
/// 2333333333333330944: two expire too soon, one too late.
#[test]
fn a_life_is_exact_where_floating_point_is_not() {
    let most = Tokens::MAX.0 - 1;
    for (limit, lives) in [
        (drip(10, 3, 1), 24),
        (drip(most, 7, 9_999), 9_998_999_999_999_990_001),
        (drip(most, 3, 1_000), 2_333_333_333_333_331_000),
    ] {
        assert_eq!(life(&[limit]), Some(lives));
    }
}

#[test]
fn a_calendar_quota_recovers_within_its_tightest_cycle() {
    for (entries, cycle) in [
        (&["0 0 1 1 *"][..], YEAR),
        (&["0 0 1 */3 *"], YEAR),
        (&["0 0 * 1-11 *"], YEAR),
        (&["0 0 1 * *"], MONTH),
        (&["0 0 */2 * *"], MONTH),
        (&["0 0 1 * MON"], MONTH),
        (&["0 0 * * MON"], WEEK),
        (&["0 0 * * 1-6"], WEEK),
        (&["0 0 * * *"], DAY),
        (&["30 6,18 * * *"], DAY),
        (&["0 0 1-31 1-12 0-6"], DAY),
        (&["0 * * * *"], HOUR),
        (&["*/5 * * * *"], HOUR),
        (&["* * * * *"], 60),
        (&["0 0 1 * *", "0 0 * * *"], DAY),
        (&["0 0 1 1 *", "0 0 * * MON", "0 0 1 * *"], WEEK),
    ] {
        let limit = calendar(entries);
        assert_eq!(recovery_horizon(&limit), Ok(Seconds(cycle)), "{entries:?}");
        assert_eq!(life(&[limit]), Some(7 * cycle), "{entries:?}");
    }
}

#[test]
fn a_quota_ignores_its_capacity_its_period_and_its_windows() {
    let plain = calendar(&["0 0 * * *"]);
    let large = Limit {
        capacity: Tokens(10_000_000),
        refill_period: Seconds(1),
        ..plain.clone()
    };
    assert_eq!(recovery_horizon(&large), Ok(Seconds(DAY)));
    let raised = scheduled(plain, &[scale(500), absolute(Some(500_000), None, None)]);
    assert_eq!(recovery_horizon(&raised), Ok(Seconds(DAY)));
}

#[test]
fn a_window_quota_recovers_within_its_window() {
    assert_eq!(recovery_horizon(&window(5 * HOUR)), Ok(Seconds(5 * HOUR)));
    assert_eq!(life(&[window(5 * HOUR)]), Some(35 * HOUR));
}

#[test]
fn the_slowest_limit_decides_for_the_bucket() {
    let daily = || calendar(&["0 0 * * *"]);
    let hourly = || calendar(&["0 * * * *"]);
    for (limits, lives) in [
        (vec![], None),
        (vec![drip(100, 100, 60), daily()], Some(7 * DAY)),
        (vec![daily(), drip(100, 100, 60)], Some(7 * DAY)),
        (vec![drip(1000, 10, 60), hourly()], Some(42_000)),
        (vec![drip(100, 100, 60), window(5 * HOUR)], Some(35 * HOUR)),
        (vec![daily(), window(HOUR)], Some(7 * DAY)),
        (
            vec![drip(1000, 10, 60), window(5 * HOUR), daily()],
            Some(7 * DAY),
        ),
    ] {
        assert_eq!(life(&limits), lives, "{limits:?}");
    }
}

#[test]
fn a_limit_that_cannot_recover_is_named() {
    let never = [
        calendar(&[]),
        drip(100, 0, 60),
        scheduled(drip(100, 100, 60), &[absolute(None, Some(0), None)]),
    ];
    for limit in never {
        let limits = named(&[drip(100, 100, 60), limit]);
        let problem = bucket_ttl(EpochSeconds(0), &limits).expect_err("no horizon");
        assert_eq!(
            problem,
            TtlError::Horizon {
                limit: LimitName::parse("limit-1").expect("a name"),
                source: LimitError::NoRecovery,
            }
        );
        assert_eq!(
            problem.to_string(),
            "limit limit-1 has no recovery horizon: give it a refill amount or a reset"
        );
    }
}

#[test]
fn the_largest_limits_saturate_instead_of_wrapping() {
    let slowest = drip(Tokens::MAX.0, 1, Seconds::MAX.0);
    assert_eq!(recovery_horizon(&slowest), Ok(Seconds(u64::MAX)));
    let now = EpochSeconds(1_700_000_000);
    let ttl = bucket_ttl(now, &named(&[scheduled(slowest, &[scale(1_000_000_000)])]));
    assert_eq!(ttl, Ok(Some(EpochSeconds(u64::MAX))));
}
