//! Cascades: a child and its parent each obey their own switch, and the one that stops a request is named.

use super::{Became, Client, Peer, Served};
use crate::python::PEER;
use serde_json::json;

/// What a switch does to a request, and the manifest's spelling of it.
const MODES: [(&str, &str); 3] = [
    ("admitted", "false"),
    ("disabled", "true"),
    ("bypassed", "bypass"),
];

const LIMITS: &str =
    "system: { limits: { rpm: { capacity: 1000, refill_amount: 1, refill_period: 100000000 } } }\n";

/// A child and its parent, by what their switches do.
struct Family {
    child: String,
    parent: String,
    modes: (&'static str, &'static str),
    switches: (&'static str, &'static str),
}

fn families() -> Vec<Family> {
    let pairs = MODES
        .into_iter()
        .flat_map(|child| MODES.map(|parent| (child, parent)));
    pairs
        .map(|((child, child_says), (parent, parent_says))| Family {
            child: format!("child-{child}-of-{parent}"),
            parent: format!("parent-{parent}-of-{child}"),
            modes: (child, parent),
            switches: (child_says, parent_says),
        })
        .collect()
}

/// Makes the two entities; the child's own record says that it cascades, or not.
fn create(client: &Client<'_>, child: &str, parent: &str, cascade: bool) {
    client.call("create_entity", &json!({"entity_id": parent}));
    let child = json!({"entity_id": child, "parent_id": parent, "cascade": cascade});
    client.call("create_entity", &child);
}

/// How much of what was consumed left a balance, and how much was counted, under a switch.
fn cost(mode: &str, consumed: i64) -> (i64, i64) {
    match mode {
        "bypassed" => (0, consumed),
        _ => (-consumed, consumed),
    }
}

async fn check(served: &Served, client: &Client<'_>, family: &Family) {
    let Family {
        child,
        parent,
        modes,
        ..
    } = family;
    let before = (
        served.rpm(child, "gpt-4").await,
        served.rpm(parent, "gpt-4").await,
    );
    let became = client.acquire_and_adjust(child, "gpt-4", 2, 1);
    let (of_child, of_parent) = (
        served.rpm(child, "gpt-4").await.since(before.0),
        served.rpm(parent, "gpt-4").await.since(before.1),
    );
    let stopped_by = match *modes {
        ("disabled", _) => Some(child),
        (_, "disabled") => Some(parent),
        _ => None,
    };
    if let Some(stopped_by) = stopped_by {
        let Became::Disabled { entity, .. } = &became else {
            panic!("{child}: {became:?}");
        };
        assert_eq!(entity, stopped_by);
        // What the child's bucket was debited of is given back.
        assert_eq!((of_child, of_parent), ((0, 0), (0, 0)), "{child}");
    } else {
        assert_eq!(became.word(), modes.0, "{child}: {became:?}");
        assert_eq!(of_child, cost(modes.0, 3), "{child}");
        assert_eq!(of_parent, cost(modes.1, 3), "{child}");
    }
}

async fn start() -> Option<(Served, Peer)> {
    let served = Served::start().await;
    let peer = served.peer(&PEER)?;
    Some((served, peer))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_and_its_parent_obey_their_own_switches_and_the_one_that_stops_is_named() {
    let Some((served, peer)) = start().await else {
        return;
    };
    let families = families();
    let warm = peer.connect();
    served.world.apply(LIMITS).await;
    for Family { child, parent, .. } in &families {
        create(&warm, child, parent, true);
        assert_eq!(warm.acquire(child, "gpt-4", 1), Became::Admitted);
    }
    let mut yaml = format!("{LIMITS}entities:\n");
    for Family {
        child,
        parent,
        switches,
        ..
    } in &families
    {
        for (entity, says) in [(child, switches.0), (parent, switches.1)] {
            yaml.push_str(&format!(
                "  {entity}: {{ resources: {{ gpt-4: {{ disabled: {says} }} }} }}\n"
            ));
        }
    }
    served.world.apply(&yaml).await;
    let cold = peer.connect();
    for family in &families {
        check(&served, &warm, family).await;
        check(&served, &warm, family).await;
        check(&served, &cold, family).await;
    }
    // Without switches, every family is served, and both are debited.
    served.world.apply(LIMITS).await;
    for mut family in families {
        family.modes = ("admitted", "admitted");
        check(&served, &warm, &family).await;
        check(&served, &cold, &family).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cascade_policy_decides_whether_the_parent_is_debited() {
    let Some((served, peer)) = start().await else {
        return;
    };
    let warm = peer.connect();
    served.world.apply(LIMITS).await;
    for (child, parent, cascades) in [("c1", "p1", true), ("c2", "p2", false)] {
        create(&warm, child, parent, cascades);
        // Every bucket is there before a policy is.
        assert_eq!(warm.acquire(child, "gpt-4", 1), Became::Admitted);
        assert_eq!(warm.acquire(parent, "gpt-4", 1), Became::Admitted);
    }
    // What a manifest says, and whether c1, whose record says so, and c2, whose record does not, cascade then.
    let resource = |says: &str| format!("resources: {{ gpt-4: {{ cascade: {says} }} }}\n");
    let entities = |level: &str, c1: &str, c2: &str| {
        format!(
            "entities: {{ c1: {{ resources: {{ {level}: {{ cascade: {c1} }} }} }}, \
             c2: {{ resources: {{ {level}: {{ cascade: {c2} }} }} }} }}\n"
        )
    };
    let steps = [
        (String::new(), true, false),
        (resource("true"), true, true),
        (resource("false"), false, false),
        (
            resource("false") + &entities("gpt-4", "true", "true"),
            true,
            true,
        ),
        (
            resource("true") + &entities("_default_", "false", "false"),
            false,
            false,
        ),
        (
            resource("true") + &entities("gpt-4", "false", "true"),
            false,
            true,
        ),
        (String::new(), true, false),
    ];
    for (yaml, c1, c2) in steps {
        served.world.apply(&format!("{LIMITS}{yaml}")).await;
        let cold = peer.connect();
        for client in [&warm, &cold] {
            for (child, parent, cascades) in [("c1", "p1", c1), ("c2", "p2", c2)] {
                let before = served.rpm(parent, "gpt-4").await;
                assert_eq!(client.acquire(child, "gpt-4", 1), Became::Admitted);
                let debited = served.rpm(parent, "gpt-4").await.since(before);
                let expected = if cascades { (-1, 1) } else { (0, 0) };
                assert_eq!(debited, expected, "{child} under {yaml}");
            }
        }
    }
}
