//! What a version record proves, and what the oldest client is raised to, as the reference decides it.

use super::Part;
use serde_json::{Value, json};
use zae_limits::manifest::parse_yaml;
use zae_limits::model::Versions;
use zae_limits::plan::{Requirement, check_table, ratchet, requirement};

const FOUND: [&str; 38] = [
    "0.14.9",
    "0.15.0",
    "0.15",
    "0.15.0rc1",
    "0.15.0a2",
    "0.15.0b1.dev3",
    "0.15rc1",
    "0.15.0.dev3+g1234",
    "0.15.0-dev",
    "0.15.0-",
    "0.15.0.dev",
    "0.15.0.post1",
    "0.15.0+local",
    "0.15.1",
    "0.16.0",
    "0.16.0rc2",
    "0.16",
    "0.16.9",
    "0.17.0",
    "0.17.0rc1",
    "0.17.0.dev3",
    "0.17",
    "0.17.0.0",
    "0.17.",
    "0.17.x",
    "v0.17.0",
    "vv0.17.0",
    " 0.17.0",
    "0.18.0",
    "1.0.0",
    "1",
    "17",
    "20261130",
    "unknown",
    "",
    "-",
    "0..17",
    "main-0.17.0",
];

/// What the manifest of each gated feature requires.
fn requirements() -> [Requirement; 3] {
    [
        "limits: { a: { capacity: 1, reset_after_seconds: 9 } }",
        "cascade: true",
        "disabled: bypass",
    ]
    .map(|feature| {
        let yaml = format!("namespace: a\nresources: {{ r: {{ {feature} }} }}");
        let manifest = parse_yaml("t.yaml", yaml.as_bytes()).expect("it is valid");
        requirement(&manifest).expect("a requirement")
    })
}

fn versions(lambda: Option<&str>, client_min: Option<&str>) -> Versions {
    Versions {
        schema: Some("0.10.0".to_owned()),
        lambda: lambda.map(str::to_owned),
        client_min: client_min.map(str::to_owned),
    }
}

pub(super) fn versions_prove_the_same() -> Part {
    let (mut questions, mut ours) = (Vec::new(), Vec::new());
    for needed in requirements() {
        for found in FOUND.into_iter().map(Some).chain([None]) {
            let asked = json!({"found": found, "since": needed.since.to_string()});
            let proven = check_table(Some(&versions(found, None)), Some(needed)).is_ok();
            questions.push(("reads", asked.clone()));
            ours.push(json!(proven));
            let raised = ratchet(Some(&versions(None, found)), Some(needed));
            questions.push(("ratchet", asked));
            ours.push(json!(raised.map(|release| release.to_string())));
        }
    }
    let asked = questions.clone();
    let check = move |answers: &[Value]| {
        for ((asked, ours), answer) in asked.iter().zip(ours).zip(answers) {
            assert_eq!(answer["ok"], ours, "{asked:?}: {answer}");
        }
    };
    Part {
        questions,
        check: Box::new(check),
    }
}
