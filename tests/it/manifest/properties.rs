//! The CloudFormation resource's properties: coercion, sources, options.

use insta::assert_snapshot;
use serde_json::{Value, json};
use zae_limits::manifest::{
    OnFanoutError, OutOfBand, Properties, Source, parse_properties, parse_yaml, to_properties,
};
use zae_limits::model::{Level, Limit, LimitName, ResourceName};

fn accepted(json: &Value) -> Properties {
    parse_properties(json).unwrap_or_else(|problems| panic!("{problems}\n{json:#}"))
}

fn refused(json: &Value) -> String {
    match parse_properties(json) {
        Ok(properties) => panic!("must be refused: {properties:?}"),
        Err(problems) => {
            assert!(
                problems
                    .as_slice()
                    .iter()
                    .all(|problem| !problem.path.is_empty())
            );
            problems.to_string()
        }
    }
}

fn with_limit(limit: &Value) -> Value {
    json!({ "Resources": { "r": { "Limits": { "rpm": limit } } } })
}

/// The limit that properties make, as its canonical JSON.
fn limit(json: &Value) -> Limit {
    let Source::Structured(levels) = accepted(&with_limit(json)).source else {
        panic!("a structured source");
    };
    let level = Level::Resource(ResourceName::parse("r").unwrap());
    levels[&level].limits[&LimitName::parse("rpm").unwrap()].clone()
}

/// What one property of a limit becomes: the limit's debug text, or the refusal.
fn coerced(key: &str, value: &Value) -> String {
    let mut fields =
        json!({ "Capacity": "7", "Schedule": [{ "Cron": "* 1 * * *", "Scale": "1" }] });
    let entry_keys = ["Cron", "Tz", "Scale", "RefillPeriodSeconds"];
    if entry_keys.contains(&key) {
        fields["Schedule"][0][key] = value.clone();
        if key == "RefillPeriodSeconds" {
            fields["Schedule"][0]
                .as_object_mut()
                .unwrap()
                .remove("Scale");
        }
    } else {
        fields[key] = value.clone();
    }
    let made = match parse_properties(&with_limit(&fields)) {
        Err(problems) => return problems.to_string(),
        Ok(_) => limit(&fields),
    };
    let entry = made.schedule.first().map(|entry| &entry.modifier);
    match key {
        "Capacity" => made.capacity.to_string(),
        "RefillAmount" => made.refill_amount().to_string(),
        "RefillPeriod" => made.refill_period.to_string(),
        "ResetAfterSeconds" => format!("{:?}", made.recovery),
        "Soft" => made.soft.to_string(),
        "Burst" => made.capacity.to_string(),
        _ => format!("{entry:?}"),
    }
}

#[test]
fn scalars_become_what_their_property_wants() {
    let values = [
        json!("5"),
        json!(5),
        json!(""),
        json!("true"),
        json!("True"),
        json!("FALSE"),
        json!(true),
        json!("bypass"),
        json!("ByPass"),
        json!("yes"),
        json!("1e3"),
        json!("10.0"),
        json!(10.0),
        json!(" 7"),
        json!("7 "),
        json!("+7"),
        json!("-7"),
        json!("0"),
        json!("007"),
        json!("1_000"),
        json!("0x10"),
        json!("99999999999999999999999999999999999999999"),
        json!("0.5"),
        json!(0.5),
        json!("5e-1"),
        json!("NaN"),
        json!("inf"),
        json!(null),
        json!([]),
        json!({}),
        json!("UTC"),
        json!("* 9 * * *"),
    ];
    // Every property of a kind is read by the same rule: one in full, the others in short.
    let numbers = &[
        json!("5"),
        json!(5),
        json!(""),
        json!("0"),
        json!("1e3"),
        json!(" 7"),
        json!(true),
        json!(null),
    ][..];
    let texts = &[
        json!("UTC"),
        json!("* 9 * * *"),
        json!(""),
        json!("5"),
        json!(5),
        json!(true),
        json!(null),
    ][..];
    let mut table = String::new();
    for (key, values) in [
        ("Capacity", &values[..]),
        ("Burst", numbers),
        ("RefillAmount", numbers),
        ("RefillPeriod", numbers),
        ("ResetAfterSeconds", numbers),
        ("RefillPeriodSeconds", numbers),
        ("Scale", &values),
        ("Soft", &values),
        ("Cron", texts),
        ("Tz", texts),
    ] {
        table += &format!("=== {key}\n");
        for value in values {
            let made = coerced(key, value).replace("Resources.r.Limits.rpm.", "");
            table += &format!("{value}\n    {made}\n");
        }
    }
    table += "=== Disabled\n";
    for value in &values {
        let properties = json!({ "Resources": { "r": { "Disabled": value } } });
        let made = match parse_properties(&properties) {
            Ok(Properties {
                source: Source::Structured(levels),
                ..
            }) => {
                format!("{:?}", levels.values().next().unwrap().disabled)
            }
            Ok(other) => panic!("{other:?}"),
            Err(problems) => problems.to_string(),
        };
        table += &format!("{value}\n    {made}\n");
    }
    assert_snapshot!(table);
}

#[test]
fn properties_and_yaml_make_the_same_levels() {
    let properties = json!({
        "ServiceToken": "arn:aws:lambda:eu-central-1:123456789012:function:p",
        "ServiceTimeout": "900", "FunctionVersion": "arn:aws:lambda:eu-central-1:123456789012:function:limits:7",
        "TableName": "rate-limits",
        "Namespace": "tenant-alpha",
        "System": { "OnUnavailable": "block", "Limits": { "rpm": { "Capacity": "10000" } } },
        "Resources": {
            "gpt-4": { "Disabled": "false", "Cascade": "true", "Limits": { "rpm": { "Capacity": "1000" }, "tpm": { "Capacity": "75000", "RefillAmount": "50000", "RefillPeriod": "30" } } },
            "gpt-3.5": { "Limits": { "rpm": { "Capacity": "100", "Burst": "150" }, "tpm": { "Capacity": "9000", "Soft": "true" } } },
            "claude-3": { "Limits": {
                "rpm": { "Capacity": "600", "Schedule": [
                    { "Cron": "* 22-23 * * *", "Tz": "Europe/Berlin", "Scale": "0.5" },
                    { "Cron": "* * * * SAT,SUN", "Tz": "Europe/Berlin", "Capacity": "900", "RefillAmount": "800", "RefillPeriodSeconds": "30", "Scale": "" },
                ] },
                "daily": { "Capacity": "10000", "ResetSchedule": [{ "Cron": "0 0 * * *", "Tz": "Europe/Berlin" }] },
            } },
            "batch": { "Limits": { "burst": { "Capacity": "50", "RefillAmount": "0", "ResetAfterSeconds": "18000", "Burst": "" } } },
            "legacy-model": { "Limits": {}, "Disabled": "TRUE" },
            "quiet": {},
        },
        "Entities": {
            "user-123": { "Resources": {
                "gpt-4": { "Disabled": "Bypass", "Cascade": "False", "Limits": { "rpm": { "Capacity": "500" }, "tpm": { "Capacity": "75000", "RefillAmount": "50000", "RefillPeriod": "30" } } },
                "_default_": { "Limits": { "rpm": { "Capacity": "1000" }, "tpm": { "Capacity": "75000", "RefillAmount": "50000", "RefillPeriod": "30" } } },
            } },
            "42": { "Resources": { "legacy-model": { "Disabled": "false" } } },
            "nobody": {},
        },
    });
    let yaml = include_bytes!("../../data/manifests/everything.limits.yaml");
    let manifest = parse_yaml("everything.limits.yaml", yaml).unwrap();
    let properties = accepted(&properties);
    assert_eq!(
        properties.source,
        Source::Structured(manifest.levels().clone())
    );
    assert_eq!(properties.table_name.as_deref(), Some("rate-limits"));
    assert_eq!(properties.namespace.as_ref(), Some(manifest.namespace()));
}

#[test]
fn the_defaults_and_the_options() {
    let nothing = accepted(&json!({ "ServiceToken": "arn" }));
    let expected = Properties {
        table_name: None,
        namespace: None,
        namespace_id: None,
        source: Source::Structured(Default::default()),
        manifest_sha256: None,
        full_apply: false,
        out_of_band: OutOfBand::Keep,
        on_fanout_error: OnFanoutError::Fail,
        max_delete: None,
        allow_empty: false,
        adopt: false,
    };
    assert_eq!(nothing, expected);
    // What a template's empty parameters send.
    assert_eq!(
        accepted(&json!({ "NamespaceId": "", "MaxDelete": "" })),
        expected
    );
    let all = accepted(&json!({
        "TableName": "arn:aws:dynamodb:eu-central-1:123456789012:table/t", "NamespaceId": "Ab-9_", "ManifestYaml": "namespace: a\n",
        "ManifestSha256": format!("sha256:{}", "AB".repeat(32)), "FullApply": "True", "OutOfBand": "revert",
        "OnFanoutError": "report", "MaxDelete": "0", "AllowEmpty": "true", "Adopt": "true",
    }));
    assert_eq!(
        all.namespace_id.as_ref().map(|id| id.as_str()),
        Some("Ab-9_")
    );
    assert_eq!(
        all.source,
        Source::ManifestYaml("namespace: a\n".to_owned())
    );
    assert_eq!(all.manifest_sha256, Some("ab".repeat(32)));
    assert!(all.full_apply && all.allow_empty && all.adopt);
    assert_eq!(
        (all.out_of_band, all.on_fanout_error, all.max_delete),
        (OutOfBand::Revert, OnFanoutError::Report, Some(0))
    );
}

#[test]
fn a_resource_has_one_manifest() {
    let path = "manifests/tenant-alpha.limits.yaml";
    let bundled = accepted(&json!({ "ManifestPath": path }));
    assert_eq!(bundled.source, Source::ManifestPath(path.to_owned()));
    let said = [
        json!({ "ManifestPath": path, "ManifestYaml": "namespace: a" }),
        json!({ "System": {}, "ManifestPath": path }),
        json!({ "Entities": {}, "ManifestYaml": "namespace: a" }),
        json!({ "Resources": {}, "ManifestPath": path, "ManifestYaml": "" }),
        json!({ "Resources": {}, "ManifestSha256": "0".repeat(64) }),
    ]
    .map(|json| refused(&json));
    assert_snapshot!(said.join("\n"), @r"
    ManifestYaml: excludes `ManifestPath`: a resource has one manifest (keep the structured form, `ManifestPath` or `ManifestYaml`)
    ManifestPath: excludes `System`: a resource has one manifest (keep the structured form, `ManifestPath` or `ManifestYaml`)
    ManifestYaml: excludes `Entities`: a resource has one manifest (keep the structured form, `ManifestPath` or `ManifestYaml`)
    ManifestYaml: excludes `Resources`: a resource has one manifest (keep the structured form, `ManifestPath` or `ManifestYaml`)
    ManifestSha256: checks nothing without `ManifestPath` or `ManifestYaml` (leave it out)
    ");
}

#[test]
fn a_manifest_path_stays_inside_the_function() {
    let paths = [
        "",
        "/etc/passwd",
        "../x.yaml",
        "a/../../x.yaml",
        "a/..",
        "a\\b.yaml",
        "a\0b",
        "..",
        "a\nb",
    ];
    let said = paths.map(|path| refused(&json!({ "ManifestPath": path })));
    assert_snapshot!(said.join("\n"), @r#"
    ManifestPath: the path is empty: "" (write it relative to the function's root, such as manifests/NAME.limits.yaml)
    ManifestPath: the path is absolute: "/etc/passwd" (write it relative to the function's root, such as manifests/NAME.limits.yaml)
    ManifestPath: the path leaves the function's folder: "../x.yaml" (write it relative to the function's root, such as manifests/NAME.limits.yaml)
    ManifestPath: the path leaves the function's folder: "a/../../x.yaml" (write it relative to the function's root, such as manifests/NAME.limits.yaml)
    ManifestPath: the path leaves the function's folder: "a/.." (write it relative to the function's root, such as manifests/NAME.limits.yaml)
    ManifestPath: the path holds a backslash: "a\\b.yaml" (write it relative to the function's root, such as manifests/NAME.limits.yaml)
    ManifestPath: the path holds a control character: "a\0b" (write it relative to the function's root, such as manifests/NAME.limits.yaml)
    ManifestPath: the path leaves the function's folder: ".." (write it relative to the function's root, such as manifests/NAME.limits.yaml)
    ManifestPath: the path holds a control character: "a\nb" (write it relative to the function's root, such as manifests/NAME.limits.yaml)
    "#);
    for path in [
        "x.yaml",
        "a/b/x.yaml",
        "./x.yaml",
        "a/..b/x.yaml",
        "a...yaml",
    ] {
        assert_eq!(
            accepted(&json!({ "ManifestPath": path })).source,
            Source::ManifestPath(path.to_owned())
        );
    }
}

#[test]
fn unknown_properties_and_wrong_options_are_refused() {
    let json = json!({
        "Namespce": "a", "namespace_id": "b", "Foo": "1", "Limits": {}, "TableName": "a table", "NamespaceId": "_",
        "Namespace": "", "FullApply": "1", "OutOfBand": "Keep", "OnFanoutError": "ignore", "MaxDelete": "-1", "AllowEmpty": "",
        "Adopt": "yes", "ManifestSha256": "abc", "ManifestPath": 5,
        "System": { "Disabled": "true", "Cascade": "false", "OnUnavaliable": "allow" },
        "Resources": { "gpt-3.5": { "Limit": {}, "disabled": "true", "OnUnavailable": "allow", "Limits": { "rpm": { "Capacity": "", "Refill": "5" } } } },
        "Entities": { "e": { "Limits": {}, "Resources": { "r": { "Limits": { "a": { "Capacity": "1", "Schedule": [{ "Cron": "* 1 * * *", "RefillPeriod": "5" }], "ResetSchedule": [{ "Cron": "0 0 * * *", "Scale": "2" }] } } } } } },
    });
    assert_snapshot!(refused(&json).replace("\n", "\n\n"));
    assert_snapshot!(parse_properties(&json!([])).unwrap_err().to_string(), @r"
    expected a mapping, found a list
    ");
}

#[test]
fn the_content_is_held_against_its_digest() {
    let content = b"namespace: a\n";
    let digest = "daac8a34ff5d5dcf2ec5d79bc6a130df42e13e7774873124f10384e0d58dc261";
    let with = |digest: &str| {
        accepted(&json!({ "ManifestYaml": "namespace: a\n", "ManifestSha256": digest }))
    };
    let other = with(&"0".repeat(64)).check_content(content).unwrap_err();
    assert_snapshot!(other.to_string(), @r"
    ManifestSha256: the manifest's SHA-256 is daac8a34ff5d5dcf2ec5d79bc6a130df42e13e7774873124f10384e0d58dc261, expected 0000000000000000000000000000000000000000000000000000000000000000 (deploy the function and the template from the same build)
    ");
    for digest in [
        digest.to_owned(),
        digest.to_uppercase(),
        format!("sha256:{digest}"),
    ] {
        assert_eq!(with(&digest).check_content(content), Ok(()));
    }
    assert_eq!(
        accepted(&json!({ "ManifestYaml": "x" })).check_content(b"anything"),
        Ok(())
    );
}

#[test]
fn a_manifest_is_written_as_properties() {
    let yaml = include_bytes!("../../data/manifests/everything.limits.yaml");
    let manifest = parse_yaml("everything.limits.yaml", yaml).unwrap();
    let properties = to_properties(&manifest).unwrap();
    assert_snapshot!(serde_json::to_string_pretty(&properties).unwrap());
    let read = accepted(&properties);
    assert_eq!(read.source, Source::Structured(manifest.levels().clone()));
    let empty = parse_yaml("t.yaml", b"namespace: a").unwrap();
    assert_eq!(to_properties(&empty), Ok(json!({ "Namespace": "a" })));
}

#[test]
fn what_cloudformation_would_take_for_its_own_is_not_written_as_properties() {
    let yaml = "
namespace: 'team {{resolve:secretsmanager:key}}'
system: { limits: { Ref: { capacity: 1 }, Refs: { capacity: 1 } } }
resources:
  Ref: {}
  Fn::Sub: { limits: { Ref: { capacity: 1 } } }
  AFn::Sub: {}
entities:
  Fn::If:
    resources: { Fn::Join: {}, _default_: {}, gpt-4: {} }
  Ref: { resources: { _default_: {} } }
";
    let manifest = parse_yaml("t.yaml", yaml.as_bytes()).unwrap();
    assert_snapshot!(to_properties(&manifest).unwrap_err().to_string());
}
