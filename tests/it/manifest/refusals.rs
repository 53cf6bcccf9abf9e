//! What is refused, and the exact words. Every snapshot shows a text and what is said about it.

use super::{refused, said};
use insta::assert_snapshot;
use zae_limits::manifest::{parse_json, parse_set, parse_yaml};

#[test]
fn keys() {
    assert_snapshot!(said(&[
        ("a misspelt key at the root", "namespace: a\nresource: {}"),
        ("a key that is nothing like any", "namespace: a\nversion: 1"),
        (
            "another spelling of a key",
            "namespace: a\nsystem: { onUnavailable: allow }"
        ),
        ("a key of the other spelling", "namespace: a\nSystem: {}"),
        ("limits at the root", "namespace: a\nlimits: {}"),
        ("limits at the root, misspelt", "namespace: a\nlimts: {}"),
        (
            "a misspelt key of a resource",
            "namespace: a\nresources: { r: { disable: true } }"
        ),
        (
            "on_unavailable for a resource",
            "namespace: a\nresources: { r: { on_unavailable: allow } }"
        ),
        (
            "limits for a whole entity",
            "namespace: a\nentities: { e: { limits: {} } }"
        ),
        (
            "a switch for a whole entity",
            "namespace: a\nentities: { e: { disabled: true } }"
        ),
        (
            "a misspelt key of an entity",
            "namespace: a\nentities: { e: { resource: {} } }"
        ),
        (
            "a misspelt key of a limit",
            "namespace: a\nsystem: { limits: { rpm: { capacity: 1, refil_amount: 1 } } }"
        ),
        (
            "a key of a schedule entry in a limit",
            "namespace: a\nsystem: { limits: { rpm: { capacity: 1, refill_period_seconds: 5, cron: \"* * * * *\" } } }"
        ),
        ("no namespace", "resources: {}"),
        (
            "a key that is no text",
            "namespace: a\nresources: { true: {}, ~: {}, [x]: {} }"
        ),
        (
            "a number that is no text as it stands",
            "namespace: a\nentities: { 0x10: {}, 1.50: {} }"
        ),
    ]));
}

#[test]
fn duplicate_keys_name_both_places_and_hide_nothing() {
    assert_snapshot!(said(&[
        (
            "a key of a level",
            "namespace: a\nresources:\n  r:\n    disabled: true\n    disabled: yes"
        ),
        (
            "a section",
            "namespace: a\nresources: {}\nresources:\n  r: { disabled: no }"
        ),
        (
            "a name",
            "namespace: a\nresources:\n  r: {}\n  r: { disabled: on }"
        ),
        (
            "an entity as number and as text",
            "namespace: a\nentities:\n  12: {}\n  \"12\": {}"
        ),
        (
            "a limit and a field",
            "namespace: a\nsystem:\n  limits:\n    rpm: { capacity: 1, capacity: 2 }\n    rpm: { capacity: 3 }"
        ),
    ]));
}

#[test]
fn a_mapping_merges_once() {
    assert_snapshot!(said(&[
        (
            "two merges of which one must win",
            "namespace: a\nresources:\n  <<: { e: { disabled: true } }\n  <<: { e: { disabled: bypass } }"
        ),
        (
            "beside a problem of another kind, and in what an alias repeats",
            "namespace: a\nresources:\n  a: &l { limits: {} }\n  b: &m { <<: *l, <<: *l, disabled: off }\n  c: *m"
        ),
        (
            "in a list, three times",
            "namespace: a\nresources: { r: { limits: { l: { capacity: 1, schedule: [{ <<: {}, <<: {},\n  <<: {} }] } } } }"
        ),
    ]));
    let fine = [
        "namespace: a\nresources:\n  a: &l { disabled: true }\n  b: { <<: [*l, *l] }\n  c: { <<: *l }",
        "namespace: a\nresources:\n  a: { disabled: true } # << and <<",
    ];
    for text in fine {
        assert!(parse_yaml("t.yaml", text.as_bytes()).is_ok(), "{text}");
    }
}

#[test]
fn the_system_level_has_neither_switch_nor_cascade() {
    assert_snapshot!(said(&[
        ("disabled", "namespace: a\nsystem: { disabled: true }"),
        ("cascade", "namespace: a\nsystem: { cascade: false }"),
    ]));
}

#[test]
fn a_switch_is_spelled_one_way() {
    let spellings = [
        "",
        "~",
        "yes",
        "no",
        "on",
        "off",
        "Yes",
        "OFF",
        "y",
        "n",
        "\"true\"",
        "'false'",
        "Bypass",
        "BYPASS",
        "bypas",
        "enabled",
        "disabled",
        "0",
        "1",
        "1.0",
        "sometimes",
        "\"\"",
        "[true]",
        "{ mode: bypass }",
        "\" true\"",
    ];
    let mut said = String::new();
    for spelling in spellings {
        let text = format!("namespace: a\nresources:\n  r:\n    disabled: {spelling}\n");
        let problems = refused(&text);
        assert_eq!(problems.as_slice().len(), 1, "{problems}");
        assert_eq!(problems.as_slice()[0].path, "resources.r.disabled");
        said += &format!("disabled: {spelling}\n    {problems}\n");
    }
    assert_snapshot!(said);
}

#[test]
fn other_booleans_and_words() {
    assert_snapshot!(said(&[
        (
            "cascade",
            "namespace: a\nresources: { a: { cascade: yes }, b: { cascade: \"false\" }, c: { cascade: maybe }, d: { cascade: }, e: { cascade: bypass } }"
        ),
        (
            "soft",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, soft: on }, b: { capacity: 1, soft: 1 } } }"
        ),
        (
            "on_unavailable",
            "namespace: a\nsystem: { on_unavailable: Allow }"
        ),
        (
            "on_unavailable, another word",
            "namespace: a\nsystem: { on_unavailable: deny }"
        ),
        (
            "on_unavailable, a boolean",
            "namespace: a\nsystem: { on_unavailable: true }"
        ),
        (
            "on_unavailable without a value",
            "namespace: a\nsystem: { on_unavailable: }"
        ),
    ]));
}

#[test]
fn names() {
    let long = format!("namespace: a\nentities: {{ {}: {{}} }}", "e".repeat(257));
    assert_snapshot!(said(&[
        ("a namespace that is a number", "namespace: 12"),
        ("a namespace without a value", "namespace:"),
        ("an empty namespace", "namespace: \"\""),
        ("the reserved namespace", "namespace: _"),
        (
            "a namespace with a control character",
            "namespace: \"a\\tb\""
        ),
        (
            "a resource that starts with a digit",
            "namespace: a\nresources: { 4gpt: {} }"
        ),
        (
            "a resource with a hash",
            "namespace: a\nresources: { \"gpt#4\": {} }"
        ),
        (
            "_default_ as a resource",
            "namespace: a\nresources: { _default_: {} }"
        ),
        (
            "an entity with a hash",
            "namespace: a\nentities: { \"user#1\": {} }"
        ),
        (
            "an entity with a slash",
            "namespace: a\nentities: { org/1: {} }"
        ),
        ("an empty entity", "namespace: a\nentities: { \"\": {} }"),
        ("an entity that is too long", &long),
        (
            "a resource of an entity",
            "namespace: a\nentities: { e: { resources: { \"a b\": {} } } }"
        ),
        (
            "the reserved limit",
            "namespace: a\nsystem: { limits: { wcu: { capacity: 1 } } }"
        ),
        (
            "a limit with a slash",
            "namespace: a\nsystem: { limits: { a/b: { capacity: 1 } } }"
        ),
        (
            "a name that would act on a terminal or turn text around",
            "namespace: a\nentities: { \"a\\e[31m\\u202Eb\\nc\": { resources: { \"gpt-3.5\": { disabled: off } } } }"
        ),
    ]));
}

#[test]
fn types() {
    assert_snapshot!(said(&[
        (
            "lists for mappings",
            "namespace: a\nsystem: []\nresources: [r]\nentities: [e]"
        ),
        (
            "texts for mappings",
            "namespace: a\nresources: { r: disabled }\nentities: { e: all, f: { resources: r } }"
        ),
        (
            "a number for a limit",
            "namespace: a\nsystem: { limits: { rpm: 1000, tpm: \"5\" } }"
        ),
        (
            "a list of limits",
            "namespace: a\nsystem: { limits: [{ rpm: { capacity: 1 } }] }"
        ),
        (
            "schedules that are no lists",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, schedule: {} }, b: { capacity: 1, reset_schedule: daily } } }"
        ),
        (
            "entries that are no mappings",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, schedule: [\"* * * * *\"] }, b: { capacity: 1, reset_schedule: [5] } } }"
        ),
        (
            "a cron that is a number, a zone that is one",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, schedule: [{ cron: 5, tz: 1, scale: 1 }] } } }"
        ),
    ]));
}

#[test]
fn numbers_are_whole_positive_finite_and_bounded() {
    let spellings = [
        "0",
        "-1",
        "1.5",
        "10.0",
        "1e3",
        "\"5\"",
        "1_000",
        "\"1,000\"",
        "010",
        "0x10",
        "0o17",
        "+5",
        ".inf",
        ".nan",
        "-.inf",
        "1e999",
        "1000000000000001",
        "99999999999999999999",
        "true",
        "~",
        "[1]",
        "1k",
        "''",
    ];
    let mut said = String::new();
    for spelling in spellings {
        let text = format!(
            "namespace: a\nsystem:\n  limits:\n    rpm:\n      capacity: {spelling}\n      refill_amount: 1\n"
        );
        let problems = refused(&text);
        assert_eq!(problems.as_slice().len(), 1, "{problems}");
        assert_eq!(problems.as_slice()[0].path, "system.limits.rpm.capacity");
        said += &format!("capacity: {spelling}\n    {problems}\n");
    }
    said += "\n";
    said += &super::said(&[
        (
            "each number has its own bounds",
            "namespace: a\nsystem:\n  limits:\n    a: { capacity: 1, burst: 0 }\n    b: { capacity: 1, refill_amount: -1 }\n    \
             c: { capacity: 1, refill_amount: 1000000000000001 }\n    d: { capacity: 1, refill_period: 0 }\n    \
             e: { capacity: 1, refill_period: 1000000001 }\n    f: { capacity: 1, reset_after_seconds: 0 }\n    \
             g: { capacity: 1, reset_after_seconds: 1000000001 }\n    h: { capacity: 1, reset_after_seconds: true }",
        ),
        (
            "numbers of a window",
            "namespace: a\nsystem:\n  limits:\n    a:\n      capacity: 1\n      schedule:\n        \
             - { cron: \"* 1 * * *\", capacity: 0, refill_amount: 0, refill_period_seconds: 0 }\n        \
             - { cron: \"* 1 * * *\", capacity: 1000000000000001 }\n        - { cron: \"* 1 * * *\", scale: 0 }\n        \
             - { cron: \"* 1 * * *\", scale: -0.5 }\n        - { cron: \"* 1 * * *\", scale: 1000000.5 }\n        \
             - { cron: \"* 1 * * *\", scale: .inf }\n        - { cron: \"* 1 * * *\", scale: \"0.5\" }",
        ),
    ]);
    assert_snapshot!(said);
}

#[test]
fn a_limit_needs_a_capacity() {
    assert_snapshot!(said(&[
        (
            "an empty limit",
            "namespace: a\nsystem: { limits: { rpm: {} } }"
        ),
        ("no value", "namespace: a\nsystem:\n  limits:\n    rpm:\n"),
        (
            "only a refill",
            "namespace: a\nsystem: { limits: { rpm: { refill_amount: 5 } } }"
        ),
        // As the Python provisioner has it: `burst` replaces the number, not the key.
        (
            "only a burst",
            "namespace: a\nsystem: { limits: { rpm: { burst: 5 } } }"
        ),
    ]));
}

#[test]
fn a_limit_drips_or_resets() {
    assert_snapshot!(said(&[
        (
            "neither",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, refill_amount: 0 } } }"
        ),
        (
            "neither, with an empty calendar",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, refill_amount: 0, reset_schedule: [] } } }"
        ),
        (
            "drips and has a window",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, refill_amount: 1, reset_after_seconds: 60 } } }"
        ),
        (
            "drips and has a calendar",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, refill_amount: 1, reset_schedule: [{ cron: \"0 0 * * *\" }] } } }"
        ),
        (
            "two resets",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, reset_after_seconds: 60, reset_schedule: [{ cron: \"0 0 * * *\" }] } } }"
        ),
        (
            "drips in a schedule entry",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, reset_after_seconds: 60, schedule: [{ cron: \"* 1 * * *\", refill_amount: 5 }] } } }"
        ),
    ]));
}

#[test]
fn schedules() {
    assert_snapshot!(said(&[
        (
            "no cron",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, schedule: [{ scale: 1 }], reset_schedule: [{}] } } }"
        ),
        (
            "a cron of six fields",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, schedule: [{ cron: \"* * * * * *\", scale: 1 }] } } }"
        ),
        (
            "a cron out of range",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, schedule: [{ cron: \"61 * * * *\", scale: 1 }] } } }"
        ),
        (
            "a zone that does not exist",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, schedule: [{ cron: \"* 1 * * *\", tz: Mars/Base, scale: 1 }] } } }"
        ),
        (
            "a zone without a value",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, schedule: [{ cron: \"* 1 * * *\", tz: , scale: 1 }] } } }"
        ),
        (
            "an entry that changes nothing",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, schedule: [{ cron: \"* 1 * * *\" }] } } }"
        ),
        (
            "an entry that scales and sets",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, schedule: [{ cron: \"* 1 * * *\", scale: 1, capacity: 5 }] } } }"
        ),
        (
            "a misspelt key of an entry",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, schedule: [{ cron: \"* 1 * * *\", refill_period: 5, scale: 1 }] } } }"
        ),
        (
            "a reset that changes something",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, reset_schedule: [{ cron: \"0 0 * * *\", scale: 2, refill_amount: 5 }] } } }"
        ),
        (
            "a reset that never fires",
            "namespace: a\nsystem: { limits: { a: { capacity: 1, reset_schedule: [{ cron: \"* * * * *\" }] } } }"
        ),
    ]));
}

#[test]
fn the_zones_of_one_level_agree() {
    assert_snapshot!(said(&[
        (
            "two zones in one limit",
            "namespace: a\nsystem:\n  limits:\n    a:\n      capacity: 1\n      schedule:\n        \
             - { cron: \"* 1 * * *\", tz: Europe/Berlin, scale: 1 }\n        - { cron: \"* 2 * * *\", tz: Asia/Tokyo, scale: 1 }"
        ),
        (
            "two limits, one of them without a zone",
            "namespace: a\nresources:\n  r:\n    limits:\n      a: { capacity: 1, reset_schedule: [{ cron: \"0 0 * * *\", tz: Europe/Berlin }] }\n      \
             b: { capacity: 1, reset_schedule: [{ cron: \"0 0 * * *\" }] }"
        ),
    ]));
}

#[test]
fn documents() {
    let cases = [
        ("nothing", ""),
        ("comments only", "# nothing\n"),
        ("an explicit null", "--- ~\n"),
        ("a list", "- namespace: a\n"),
        ("a text", "namespace\n"),
        ("a number", "5\n"),
        ("two documents", "namespace: a\nfoo: 1\n---\nnamespace: b\n"),
        ("a second document that is empty", "namespace: a\n---\n"),
        (
            "a mapping inside a value",
            "namespace: a\nresources: b: c\n",
        ),
        ("a bracket that stays open", "namespace: a\nresources: {\n"),
        (
            "a tab as indentation",
            "namespace: a\nresources:\n\tr: {}\n",
        ),
        ("a quote that stays open", "namespace: \"a\n"),
        (
            "an alias without an anchor",
            "namespace: a\nresources: *r\n",
        ),
        (
            "an alias inside its own value",
            "namespace: a\nresources: &r { r: *r }\n",
        ),
        ("a tag", "namespace: a\nresources: !include r.yaml\n"),
        ("a merge of a text", "namespace: a\nresources: { <<: r }\n"),
        ("a control character", "namespace: \"a\u{1}\"\n"),
    ];
    let mut said = String::new();
    for (what, text) in cases {
        said += &format!(
            "=== {what}\n{}\n---\n{}\n\n",
            text.trim_end(),
            refused(text)
        );
    }
    assert_snapshot!(said.replace('\u{1}', "^A"));
}

#[test]
fn aliases_that_explode_are_refused() {
    let mut text =
        "namespace: a\nresources:\n  r0: &a0 { limits: { a: { capacity: 1 } } }\n".to_owned();
    for n in 1..20 {
        let inner: Vec<String> = (0..10).map(|k| format!("k{k}: *a{}", n - 1)).collect();
        text += &format!("  r{n}: &a{n} {{ {} }}\n", inner.join(", "));
    }
    // Written out, these are 10^19 levels: an answer at all is the proof that they were not.
    let problems = refused(&text);
    assert_snapshot!(problems.to_string(), @r"
    t.yaml:8:80: the aliases expand to more than a manifest may hold (write fewer aliases inside anchors)
    ");
}

#[test]
fn nesting_is_bounded() {
    let flow = format!("namespace: a\nresources: {}", "[".repeat(100_000));
    let block: String = (0..1000)
        .map(|depth| format!("{}k:\n", " ".repeat(depth)))
        .collect();
    let said = format!("{}\n{}", refused(&flow), refused(&block));
    assert_snapshot!(said, @r"
    t.yaml:2:267: not YAML: recursion limit exceeded
    t.yaml:17:17: the document is nested too deeply (no manifest is: look for an indentation that grows, or a bracket that is not closed)
    ");
}

#[test]
fn text_that_is_not_utf8_says_where() {
    let bytes = b"namespace: a\n# \xc3\xa9\nresources: { \xc3\xa9\xff: {} }\n";
    let problems = parse_yaml("t.yaml", bytes).unwrap_err();
    assert_snapshot!(problems.to_string(), @r"
    t.yaml:3:15: byte 33 is not UTF-8 (save the file as UTF-8)
    ");
}

#[test]
fn a_file_above_32_mib_is_not_read() {
    let mut bytes = b"namespace: a\n#".to_vec();
    bytes.resize(32 * 1024 * 1024, b'x');
    assert!(parse_yaml("t.yaml", &bytes).is_ok());
    bytes.push(b'x');
    let problems = parse_yaml("t.yaml", &bytes).unwrap_err();
    assert_snapshot!(problems.to_string(), @r"
    t.yaml:1:1: the file has 33554433 bytes, and at most 33554432 are read (split the namespace, or shorten the file with aliases)
    ");
}

#[test]
fn a_value_that_many_aliases_repeat_is_wrong_once() {
    let text = "namespace: a\nresources:\n  r: &r { disabled: off }\n  s: *r\n  t: { <<: *r }\n";
    assert_snapshot!(refused(text).to_string(), @r#"
    t.yaml:3:21: resources.r.disabled: expected true, false or bypass, found the text "off" (write false if requests are to be admitted, true if they are to be refused)
    "#);
}

#[test]
fn every_problem_of_a_file_in_one_run() {
    let bytes = include_bytes!("../../data/manifests/many-problems.limits.yaml");
    let problems = parse_yaml("many-problems.limits.yaml", bytes).unwrap_err();
    assert_snapshot!(problems.to_string());
    assert_snapshot!(serde_json::to_string_pretty(&problems.as_slice()[..2]).unwrap(), @r#"
    [
      {
        "file": "many-problems.limits.yaml",
        "line": 2,
        "column": 1,
        "path": "sytem",
        "message": "unknown key \"sytem\"",
        "hint": "did you mean `system`?"
      },
      {
        "file": "many-problems.limits.yaml",
        "line": 5,
        "column": 3,
        "path": "system.disabled",
        "message": "`disabled` cannot be set here",
        "hint": "set it under resources.<name> or entities.<id>.resources.<name>"
      }
    ]
    "#);
}

#[test]
fn every_problem_of_every_file_in_one_run() {
    let file = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
    let files = [
        file("a.yaml", "namespace: alpha\n"),
        file("b.yaml", "namespace: beta\nfoo: 1\n"),
        file(
            "c.yaml",
            "# the same again\nnamespace: alpha\nresources: { r: { disabled: off } }\n",
        ),
        file("d.yaml", ""),
        file("e\u{1b}[31m.yaml", "namespace: beta\n"),
    ];
    assert_snapshot!(parse_set(&files).unwrap_err().to_string(), @r#"
    b.yaml:2:1: foo: unknown key "foo" (known here: namespace, system, resources, entities)
    c.yaml:2:12: namespace: the namespace is already declared by a.yaml:1 (one file declares all of a namespace)
    c.yaml:3:29: resources.r.disabled: expected true, false or bypass, found the text "off" (write false if requests are to be admitted, true if they are to be refused)
    d.yaml:1:1: the document is empty (a manifest needs at least `namespace: NAME`)
    e\u{1b}[31m.yaml:1:12: namespace: the namespace is already declared by b.yaml:1 (one file declares all of a namespace)
    "#);
}

#[test]
fn several_files_keep_their_order() {
    let file = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
    let files = [
        file("b.yaml", "namespace: beta\n"),
        file("a.yaml", "namespace: alpha\n"),
    ];
    let manifests = parse_set(&files).unwrap();
    let names: Vec<&str> = manifests.iter().map(|m| m.namespace().as_str()).collect();
    assert_eq!(names, ["beta", "alpha"]);
}

#[test]
fn json_problems_have_paths_and_no_lines() {
    let json = serde_json::json!({
        "namespace": 5,
        "resources": { "gpt-3.5": { "disabled": "off", "limits": { "rpm": { "capacity": 10.0 } } } },
        "entities": { "e": { "resources": { "r": { "limits": { "a": { "capacity": null }, "b": { "capacity": 1e30 } } } } } },
    });
    let problems = parse_json(&json).unwrap_err();
    assert!(
        problems
            .into_iter()
            .all(|p| p.file.is_none() && p.line.is_none())
    );
    assert_snapshot!(parse_json(&json).unwrap_err().to_string(), @r#"
    namespace: expected a text, found 5
    resources."gpt-3.5".disabled: expected true, false or bypass, found the text "off" (write false if requests are to be admitted, true if they are to be refused)
    resources."gpt-3.5".limits.rpm.capacity: expected a whole number, found 10.0 (write 10)
    entities.e.resources.r.limits.a.capacity: required and missing (add it: the most tokens the bucket holds)
    entities.e.resources.r.limits.b.capacity: must be at most 1000000000000000, found 1e30
    "#);
    assert_snapshot!(parse_json(&serde_json::Value::Null).unwrap_err().to_string(), @r"
    the document is empty (a manifest needs at least `namespace: NAME`)
    ");
}
