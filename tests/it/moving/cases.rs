//! What moves under which fan-out, before which reads, and after how many of them it is given up.

use super::Read;
use crate::world::{Item, n, s};
use aws_sdk_dynamodb::types::AttributeValue;
use std::time::Duration;
use zae_limits::model::FanoutKind;

fn turn_switch(item: &mut Item, nth: usize) {
    let turned = match nth % 3 {
        0 => s("bypass"),
        1 => AttributeValue::Bool(false),
        _ => AttributeValue::Bool(true),
    };
    item.insert("disabled".to_owned(), turned);
}

fn turn_policy(item: &mut Item, nth: usize) {
    match nth % 3 {
        0 => item.insert("cascade".to_owned(), AttributeValue::Bool(false)),
        1 => item.remove("cascade"),
        _ => item.insert("cascade".to_owned(), AttributeValue::Bool(true)),
    };
}

fn toggle_policy(item: &mut Item, nth: usize) {
    item.insert("cascade".to_owned(), AttributeValue::Bool(nth % 2 == 1));
}

fn change_limit(item: &mut Item, nth: usize) {
    item.insert("l_rpm_cp".to_owned(), n(100 + nth));
}

fn toggle_softness(item: &mut Item, nth: usize) {
    match nth % 2 {
        0 => item.remove("l_rpm_soft"),
        _ => item.insert("l_rpm_soft".to_owned(), AttributeValue::Bool(true)),
    };
}

/// What is applied, the fan-out that it owes, and what moves under that.
pub struct Case {
    pub before: &'static str,
    pub after: &'static str,
    pub kind: FanoutKind,
    pub level: (&'static str, &'static str),
    pub moves: (&'static str, &'static str),
    pub change: fn(&mut Item, usize),
    pub reads: Read,
    /// Queries of an index that pass before anything moves.
    pub after_queries: usize,
    /// How long the reading pass waits; zero: there is none.
    pub settle: Duration,
    /// Moves, and queries of an index, until the fan-out gives up.
    pub gives_up: (usize, usize),
}

/// The level itself moves under two passes of each of three rounds.
const UNDER_ROUNDS: Case = Case {
    before: "",
    after: "",
    kind: FanoutKind::Access,
    level: ("", ""),
    moves: ("", ""),
    change: turn_switch,
    reads: Read::Alone,
    after_queries: 0,
    settle: Duration::ZERO,
    gives_up: (6, 6),
};

pub fn levels_that_move() -> Vec<Case> {
    let case = |kind, level, change, after| Case {
        kind,
        level,
        moves: level,
        change,
        after,
        ..UNDER_ROUNDS
    };
    vec![
        case(
            FanoutKind::Access,
            ("resource", "gpt-4"),
            turn_switch,
            "resources: { gpt-4: { disabled: true } }",
        ),
        case(
            FanoutKind::Access,
            ("entity", "bob/_default_"),
            turn_switch,
            "entities: { bob: { resources: { _default_: { disabled: true } } } }",
        ),
        case(
            FanoutKind::Params,
            ("entity", "carol/gpt-4"),
            change_limit,
            "entities: { carol: { resources: { gpt-4: { limits: { rpm: { capacity: 5 } } } } } }",
        ),
        case(
            FanoutKind::Cascade,
            ("resource", "gpt-4"),
            turn_policy,
            "resources: { gpt-4: { cascade: true } }",
        ),
        case(
            FanoutKind::Soft,
            ("resource", "gpt-4"),
            change_limit,
            "resources: { gpt-4: { limits: { rpm: { capacity: 5, soft: true } } } }",
        ),
        case(
            FanoutKind::Soft,
            ("system", ""),
            change_limit,
            "system: { limits: { rpm: { capacity: 5, soft: true } } }",
        ),
    ]
}

/// Something that decides moves between each write and the look after it.
pub fn writes_that_are_overtaken() -> Vec<Case> {
    let first_pass = |kind, level, moves, change, after| Case {
        kind,
        level,
        moves,
        change,
        after,
        reads: Read::Deciding,
        // Before the first decision, and before each of three looks.
        gives_up: (4, 1),
        ..UNDER_ROUNDS
    };
    let of_bob = "
entities: { bob: { resources: { gpt-4: { limits: { rpm: { capacity: 3 } } } } } }";
    let of_alice = "
entities: { alice: { resources: { gpt-4: { cascade: true } } } }";
    vec![
        first_pass(
            FanoutKind::Params,
            ("entity", "carol/gpt-4"),
            ("entity", "carol/gpt-4"),
            change_limit,
            "entities: { carol: { resources: { gpt-4: { limits: { rpm: { capacity: 5 } } } } } }",
        ),
        // A more specific level, which no round looks at.
        Case {
            before: of_bob,
            ..first_pass(
                FanoutKind::Params,
                ("entity", "bob/_default_"),
                ("entity", "bob/gpt-4"),
                change_limit,
                "
entities:
  bob: { resources: { gpt-4: { limits: { rpm: { capacity: 3 } } }, _default_: { limits: { rpm: { capacity: 7 } } } } }",
            )
        },
        first_pass(
            FanoutKind::Soft,
            ("resource", "gpt-4"),
            ("resource", "gpt-4"),
            toggle_softness,
            "resources: { gpt-4: { limits: { rpm: { capacity: 5, soft: true } } } }",
        ),
        first_pass(
            FanoutKind::Cascade,
            ("resource", "gpt-4"),
            ("resource", "gpt-4"),
            toggle_policy,
            "resources: { gpt-4: { cascade: true } }",
        ),
        Case {
            before: of_alice,
            ..first_pass(
                FanoutKind::Cascade,
                ("resource", "gpt-4"),
                ("entity", "alice/gpt-4"),
                toggle_policy,
                "
resources: { gpt-4: { cascade: false } }
entities: { alice: { resources: { gpt-4: { cascade: true } } } }",
            )
        },
        // Of access the reading pass looks: what it decides for, and what it wrote.
        Case {
            after_queries: 3,
            settle: Duration::from_millis(1),
            gives_up: (4, 3),
            ..first_pass(
                FanoutKind::Access,
                ("resource", "gpt-4"),
                ("resource", "gpt-4"),
                turn_switch,
                "resources: { gpt-4: { disabled: true } }",
            )
        },
        Case {
            after_queries: 3,
            settle: Duration::from_millis(1),
            gives_up: (4, 3),
            ..first_pass(
                FanoutKind::Access,
                ("entity", "bob/_default_"),
                ("entity", "bob/_default_"),
                turn_switch,
                "entities: { bob: { resources: { _default_: { disabled: true } } } }",
            )
        },
    ]
}
