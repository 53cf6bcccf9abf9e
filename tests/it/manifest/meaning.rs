//! What a manifest means: the levels it makes, its canonical form, and what is worth a warning.

use insta::assert_snapshot;
use litemap::LiteMap;
use std::collections::BTreeMap;
use zae_limits::manifest::{Manifest, parse_json, parse_yaml};
use zae_limits::model::{
    Cron, EntityId, Level, LevelConfig, Limit, LimitName, Modifier, NamespaceName, OnUnavailable,
    Recovery, ResourceName, ScaleMillis, ScheduleEntry, Scope, Seconds, Switch, Tokens, Zone,
};

fn manifest(text: &str) -> Manifest {
    parse_yaml("t.yaml", text.as_bytes()).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

fn drip(capacity: u64, amount: u64, period: u64) -> Limit {
    Limit::drip(Tokens(capacity), Tokens(amount), Seconds(period))
}

fn limits<const N: usize>(limits: [(&str, Limit); N]) -> LiteMap<LimitName, Limit> {
    limits
        .into_iter()
        .map(|(name, limit)| (LimitName::parse(name).unwrap(), limit))
        .collect()
}

fn resource(name: &str) -> Level {
    Level::Resource(ResourceName::parse(name).unwrap())
}

fn entity(id: &str, scope: &str) -> Level {
    Level::Entity(EntityId::parse(id).unwrap(), Scope::parse(scope).unwrap())
}

/// The one limit of a text's system level.
fn limit(fields: &str) -> Limit {
    let text = format!("namespace: a\nsystem: {{ limits: {{ rpm: {{ {fields} }} }} }}\n");
    let manifest = manifest(&text);
    manifest.levels()[&Level::System].limits[&LimitName::parse("rpm").unwrap()].clone()
}

#[test]
fn one_of_everything() {
    let text = include_str!("../../data/manifests/everything.limits.yaml");
    let standard = || {
        limits([
            ("rpm", drip(1000, 1000, 60)),
            ("tpm", drip(75000, 50000, 30)),
        ])
    };
    let cron = |text| Cron::parse(text).unwrap();
    let levels = BTreeMap::from([
        (
            Level::System,
            LevelConfig {
                limits: limits([("rpm", drip(10000, 10000, 60))]),
                on_unavailable: Some(OnUnavailable::Block),
                ..LevelConfig::default()
            },
        ),
        (
            resource("gpt-4"),
            LevelConfig {
                limits: standard(),
                disabled: Some(Switch::Enabled),
                cascade: Some(true),
                ..LevelConfig::default()
            },
        ),
        (
            resource("gpt-3.5"),
            LevelConfig {
                limits: limits([
                    ("rpm", drip(150, 150, 60)),
                    (
                        "tpm",
                        Limit {
                            soft: true,
                            ..drip(9000, 9000, 60)
                        },
                    ),
                ]),
                ..LevelConfig::default()
            },
        ),
        (
            resource("claude-3"),
            LevelConfig {
                limits: limits([
                    (
                        "rpm",
                        Limit {
                            schedule: vec![
                                ScheduleEntry {
                                    cron: cron("* 22-23 * * *"),
                                    modifier: Modifier::Scale(
                                        ScaleMillis::from_millis(500).unwrap(),
                                    ),
                                },
                                ScheduleEntry {
                                    cron: cron("* * * * 6,7"),
                                    modifier: Modifier::Absolute {
                                        capacity: Some(Tokens(900)),
                                        refill_amount: Some(Tokens(800)),
                                        refill_period: Some(Seconds(30)),
                                    },
                                },
                            ],
                            ..drip(600, 600, 60)
                        },
                    ),
                    (
                        "daily",
                        Limit {
                            recovery: Recovery::Calendar(vec![cron("0 0 * * *")]),
                            ..drip(10000, 0, 60)
                        },
                    ),
                ]),
                zone: Some(Zone::parse("Europe/Berlin").unwrap()),
                ..LevelConfig::default()
            },
        ),
        (
            resource("batch"),
            LevelConfig {
                limits: limits([(
                    "burst",
                    Limit {
                        recovery: Recovery::Window(Seconds(18000)),
                        ..drip(50, 0, 60)
                    },
                )]),
                ..LevelConfig::default()
            },
        ),
        (
            resource("legacy-model"),
            LevelConfig {
                disabled: Some(Switch::Disabled),
                ..LevelConfig::default()
            },
        ),
        (resource("quiet"), LevelConfig::default()),
        (
            entity("user-123", "gpt-4"),
            LevelConfig {
                limits: limits([("rpm", drip(500, 500, 60)), ("tpm", drip(75000, 50000, 30))]),
                disabled: Some(Switch::Bypass),
                cascade: Some(false),
                ..LevelConfig::default()
            },
        ),
        (
            entity("user-123", "_default_"),
            LevelConfig {
                limits: standard(),
                ..LevelConfig::default()
            },
        ),
        (
            entity("42", "legacy-model"),
            LevelConfig {
                disabled: Some(Switch::Enabled),
                ..LevelConfig::default()
            },
        ),
    ]);
    let parsed = manifest(text);
    assert_eq!(parsed.levels(), &levels);
    assert_eq!(parsed.namespace().as_str(), "tenant-alpha");
    let made = Manifest::new(parsed.namespace().clone(), levels).unwrap();
    assert_eq!(made, parsed);
    assert_eq!(made.sha256(), parsed.sha256());
}

#[test]
fn the_canonical_form() {
    let text = include_str!("../../data/manifests/everything.limits.yaml");
    let parsed = manifest(text);
    assert_snapshot!(serde_json::to_string_pretty(&parsed.canonical_json()).unwrap());
    assert_snapshot!(parsed.sha256(), @r"
    sha256:bbfd0a5ed2384fd547b2e358f11c5e9d24a6e4ff57073637ee87c26d30b0b418
    ");
    assert_eq!(parse_json(&parsed.canonical_json()).unwrap(), parsed);
}

#[test]
fn the_bundled_example_is_valid_and_needs_no_warning() {
    let text = include_str!("../../data/manifests/tenant-alpha.limits.yaml");
    let parsed = manifest(text);
    assert_eq!(parsed.warnings(), []);
    let levels: Vec<String> = parsed.levels().keys().map(Level::to_string).collect();
    assert_snapshot!(levels.join("\n"), @r"
    system
    resource claude-3
    resource gpt-4
    resource legacy-model
    entity user-123/_default_
    entity user-123/gpt-4
    entity user-456/legacy-model
    ");
}

#[test]
fn the_defaults_of_a_limit() {
    assert_eq!(limit("capacity: 100"), drip(100, 100, 60));
    assert_eq!(limit("capacity: 100, refill_amount: 5"), drip(100, 5, 60));
    assert_eq!(
        limit("capacity: 100, refill_period: 3600"),
        drip(100, 100, 3600)
    );
    // `burst` replaces `capacity`, whichever is larger, and so it is the default refill.
    assert_eq!(limit("capacity: 100, burst: 150"), drip(150, 150, 60));
    assert_eq!(limit("burst: 50, capacity: 100"), drip(50, 50, 60));
    assert_eq!(
        limit("capacity: 100, burst: 150, refill_amount: 7"),
        drip(150, 7, 60)
    );
    assert_eq!(
        limit("capacity: 1, soft: false, schedule: , reset_schedule: []"),
        drip(1, 1, 60)
    );
    let window = Limit {
        recovery: Recovery::Window(Seconds(5)),
        ..drip(9, 0, 60)
    };
    assert_eq!(limit("capacity: 9, reset_after_seconds: 5"), window);
    assert_eq!(
        limit("capacity: 9, refill_amount: 0, reset_after_seconds: 5"),
        window
    );
    assert_eq!(
        limit("capacity: 1000000000000000, refill_period: 1000000000"),
        drip(Tokens::MAX.0, Tokens::MAX.0, Seconds::MAX.0)
    );
}

#[test]
fn a_key_without_a_value_is_an_empty_mapping() {
    let text = "namespace: a\nsystem:\nresources:\n  r:\n  s:\n    limits:\nentities:\n  e:\n    resources:\n      r:\n  f:\n    resources:\n";
    let parsed = manifest(text);
    let empty = LevelConfig::default();
    let levels = [
        Level::System,
        resource("r"),
        resource("s"),
        entity("e", "r"),
    ];
    assert_eq!(
        *parsed.levels(),
        levels.map(|level| (level, empty.clone())).into()
    );
    assert!(
        manifest("namespace: a\nresources:\nentities:\n")
            .levels()
            .is_empty()
    );
}

#[test]
fn booleans_as_yaml_1_2_spells_them() {
    for (text, switch) in [
        ("true", Switch::Disabled),
        ("True", Switch::Disabled),
        ("TRUE", Switch::Disabled),
        ("false", Switch::Enabled),
        ("False", Switch::Enabled),
        ("bypass", Switch::Bypass),
        ("\"bypass\"", Switch::Bypass),
    ] {
        let parsed = manifest(&format!(
            "namespace: a\nresources: {{ r: {{ disabled: {text} }} }}"
        ));
        assert_eq!(
            parsed.levels()[&resource("r")].disabled,
            Some(switch),
            "{text}"
        );
    }
}

#[test]
fn anchors_aliases_and_merge_keys() {
    let mut text = "namespace: a\nresources:\n  r: &tier { limits: { rpm: { capacity: 7 } }, cascade: true }\n  s: { <<: *tier, cascade: false }\nentities:\n".to_owned();
    // A thousand uses of one anchor are an ordinary manifest, not an attack.
    for n in 0..1000 {
        text += &format!("  user-{n}: {{ resources: {{ r: *tier }} }}\n");
    }
    let parsed = manifest(&text);
    assert_eq!(parsed.levels().len(), 1002);
    let tier = &parsed.levels()[&resource("r")];
    assert_eq!(&parsed.levels()[&entity("user-999", "r")], tier);
    assert_eq!(
        parsed.levels()[&resource("s")],
        LevelConfig {
            cascade: Some(false),
            ..tier.clone()
        }
    );
}

#[test]
fn a_byte_order_mark_and_windows_lines_are_read() {
    let parsed = manifest("\u{feff}namespace: a\r\nresources:\r\n  r:\r\n    disabled: true\r\n");
    assert_eq!(
        parsed.levels()[&resource("r")].disabled,
        Some(Switch::Disabled)
    );
}

#[test]
fn what_the_python_command_line_sends_is_read() {
    // Its `LimitsManifest.to_dict()`: every default written out.
    let written_out = serde_json::json!({
        "namespace": "tenant-alpha",
        "system": { "limits": { "rpm": { "capacity": 10, "refill_amount": 10, "refill_period": 60 } }, "on_unavailable": "allow" },
        "resources": {
            "gpt-4": { "limits": {}, "disabled": "bypass", "cascade": true },
            "quota": { "limits": { "a": { "capacity": 5, "refill_amount": 0, "refill_period": 60, "reset_after_seconds": 60, "soft": true },
                                   "b": { "capacity": 5, "refill_amount": 0, "refill_period": 60, "reset_schedule": [{ "cron": "0 0 * * *", "tz": "UTC" }] } } },
        },
        "entities": { "user-1": { "resources": { "gpt-4": { "limits": {}, "disabled": false } } }, "user-2": { "resources": {} } },
    });
    let parsed = parse_json(&written_out).unwrap();
    assert_eq!(parsed.levels().len(), 4);
    // The file as its YAML parser loaded it: nulls for keys without a value.
    let loaded = serde_json::json!({
        "namespace": "tenant-alpha",
        "system": { "limits": { "rpm": { "capacity": 10, "schedule": null, "reset_after_seconds": null } }, "on_unavailable": null },
        "resources": { "gpt-4": { "disabled": null, "cascade": null, "limits": null }, "quota": null },
        "entities": null,
    });
    let parsed = parse_json(&loaded).unwrap();
    assert_eq!(parsed.levels()[&resource("gpt-4")], LevelConfig::default());
    assert_eq!(parsed.levels()[&resource("quota")], LevelConfig::default());
    assert_eq!(parsed.levels()[&Level::System].limits.len(), 1);
}

#[test]
fn the_digest_follows_the_meaning() {
    let one = manifest(
        "namespace: a\nresources:\n  r: { limits: { b: { capacity: 5 }, a: { capacity: 6 } } }\n  q: {}\n",
    );
    let same = manifest(
        "# another order, another spelling\nnamespace: \"a\"\nresources:\n  q:\n  r:\n    limits:\n      a: { refill_amount: 6, capacity: 6, refill_period: 60, soft: false }\n      b: { capacity: 1, burst: 5 }\n",
    );
    let other = manifest(
        "namespace: a\nresources:\n  r: { limits: { b: { capacity: 5 }, a: { capacity: 7 } } }\n  q: {}\n",
    );
    assert_eq!(one.sha256(), same.sha256());
    assert_ne!(one.sha256(), other.sha256());
}

fn warned(text: &str) -> String {
    let lines: Vec<String> = manifest(text)
        .warnings()
        .iter()
        .map(ToString::to_string)
        .collect();
    lines.join("\n")
}

#[test]
fn a_cascade_without_limits_for_parents_is_warned_about() {
    let base = "namespace: a\nresources:\n  gpt-3.5: { cascade: true }\n  r: { cascade: false }\n";
    assert_snapshot!(warned(base), @r#"
    t.yaml:3:3: resources."gpt-3.5".cascade: no entity has limits of its own for this resource, so a parent is held to the limits of a single entity
    "#);
    let limits = "limits: { rpm: { capacity: 1 } }";
    for covered in [
        format!("{base}entities: {{ org: {{ resources: {{ gpt-3.5: {{ {limits} }} }} }} }}"),
        format!("{base}entities: {{ org: {{ resources: {{ _default_: {{ {limits} }} }} }} }}"),
    ] {
        assert_eq!(warned(&covered), "");
    }
    // A switch is no limit: the parent still falls through to the resource's.
    let switch =
        format!("{base}entities: {{ org: {{ resources: {{ gpt-3.5: {{ disabled: false }} }} }} }}");
    assert_eq!(warned(&switch), warned(base));
}

#[test]
fn a_bypass_of_a_resource_is_warned_about() {
    assert_snapshot!(warned("namespace: a\nresources:\n  r: { disabled: bypass }\n  s: { disabled: true }\n"), @r"
    t.yaml:3:3: resources.r.disabled: every entity without a switch of its own is admitted without limits
    ");
    assert_eq!(
        warned("namespace: a\nentities: { e: { resources: { r: { disabled: bypass } } } }"),
        ""
    );
}

#[test]
fn a_switch_that_nothing_reaches_is_warned_about() {
    let text = "namespace: a\nresources: { r: {} }\nentities:\n  e:\n    resources:\n      _default_: { disabled: true }\n      r: { disabled: false }\n";
    assert_snapshot!(warned(text), @r"
    t.yaml:6:7: entities.e.resources._default_.disabled: nothing here is reached by this switch: for every resource of the manifest the entity has a switch that is more specific
    ");
    let reached = text.replace("{ r: {} }", "{ r: {}, s: {} }");
    assert_eq!(warned(&reached), "");
    let silent = text.replace("r: { disabled: false }", "r: {}");
    assert_eq!(warned(&silent), "");
}

#[test]
fn a_manifest_made_of_levels_keeps_the_rules() {
    let namespace = NamespaceName::parse("a").unwrap();
    let switched = LevelConfig {
        disabled: Some(Switch::Disabled),
        cascade: Some(true),
        ..LevelConfig::default()
    };
    let available = LevelConfig {
        on_unavailable: Some(OnUnavailable::Allow),
        limits: limits([("rpm", drip(0, 1, 60))]),
        ..LevelConfig::default()
    };
    let levels = BTreeMap::from([
        (Level::System, switched),
        (entity("e", "gpt-3.5"), available),
    ]);
    assert_snapshot!(Manifest::new(namespace, levels).unwrap_err().to_string(), @r#"
    system.disabled: the system level has no switch
    system.cascade: the system level has no cascade
    entities.e.resources."gpt-3.5".on_unavailable: only the system level has it
    entities.e.resources."gpt-3.5".limits: rpm: capacity must be at least 1
    "#);
}

#[test]
fn every_manifest_of_the_guide_is_valid() {
    let guide = include_str!("../../../docs/guide/manifest.md");
    let blocks = guide.split("```yaml\n").skip(1);
    let blocks = blocks.filter_map(|block| block.split("```").next());
    let mut names = Vec::new();
    for block in blocks {
        let manifest = zae_limits::manifest::parse_yaml("guide", block.as_bytes());
        let manifest = manifest.unwrap_or_else(|problems| panic!("{problems}\n{block}"));
        names.push(manifest.namespace().to_string());
    }
    assert_eq!(names, ["tenant-alpha", "tenant-beta"]);
}
