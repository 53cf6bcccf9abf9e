//! Plans: pure comparisons, their dangers, their guards, and the version gate.

use crate::world::manifest;
use std::collections::BTreeMap;
use zae_limits::manifest::{Manifest, OutOfBand};
use zae_limits::model::{
    Level, ManifestOwner, NamespaceId, ProvisionerRecord, State, StoredLevel, Switch, Versions,
};
use zae_limits::plan::{Guard, Plan, PlanOptions, Policy, plan};
use zae_limits::report::PlanReport;

fn level(kind: &str, target: &str) -> Level {
    Level::from_parts(kind, target).expect("a level")
}

/// A state in which exactly a manifest has been applied.
fn applied(manifest: &Manifest) -> State {
    let stored = |config: &_| StoredLevel {
        config: Clone::clone(config),
        as_written: true,
        registered: true,
        damage: None,
    };
    let switches = manifest.levels().iter();
    let switches = switches.filter_map(|(level, config)| Some((level.clone(), config.disabled?)));
    State {
        namespace_id: Some(NamespaceId::parse("a7x3kq").expect("an id")),
        versions: Some(versions("0.17.0")),
        record: Some(ProvisionerRecord {
            managed: manifest.levels().keys().cloned().collect(),
            switches: Some(switches.collect()),
            owner: Some(ManifestOwner::Cli),
            applied_hash: Some(manifest.sha256()),
            rev: 1,
            ..ProvisionerRecord::default()
        }),
        levels: manifest
            .levels()
            .iter()
            .map(|(l, config)| (l.clone(), stored(config)))
            .collect(),
        ..State::default()
    }
}

fn versions(lambda: &str) -> Versions {
    Versions {
        schema: Some("0.10.0".to_owned()),
        lambda: Some(lambda.to_owned()),
        client_min: Some("0.0.0".to_owned()),
    }
}

fn planned(before: &str, after: &str) -> Plan {
    plan(
        &manifest(after),
        &applied(&manifest(before)),
        PlanOptions::default(),
    )
}

/// A plan as one line a change, then what it owes.
fn lines(plan: &Plan) -> String {
    let report = PlanReport::new(plan, "rate-limits", Vec::new(), &[]);
    let mut lines = Vec::new();
    for change in &report.changes {
        let dangers: Vec<String> = change.dangers.iter().map(ToString::to_string).collect();
        let target = change.name.target.clone().unwrap_or_default();
        lines.push(format!(
            "{} {} {target} [{}]",
            change.action,
            change.name.level,
            dangers.join(", ")
        ));
        for difference in &change.differences {
            let side = |value: &Option<String>| value.clone().unwrap_or("-".to_owned());
            let (before, after) = (side(&difference.before), side(&difference.after));
            lines.push(format!("    {}: {before} -> {after}", difference.path));
        }
    }
    lines.extend(plan.owed.iter().map(|owed| format!("owes the {owed}")));
    lines.push(format!("{} unchanged", plan.unchanged));
    lines.join("\n")
}

#[test]
fn an_applied_manifest_plans_nothing() {
    let everything = include_str!("../../manifests/tenant-alpha.limits.yaml");
    let manifest =
        zae_limits::manifest::parse_yaml("m", everything.as_bytes()).expect("it is valid");
    let plan = plan(&manifest, &applied(&manifest), PlanOptions::default());
    assert!(plan.is_empty() && !plan.record_changes(), "{plan:#?}");
    assert_eq!(plan.unchanged, manifest.levels().len());
}

#[test]
fn a_plan_shows_what_changes_and_what_that_owes() {
    let before = "
system: { on_unavailable: allow, limits: { rpm: { capacity: 100 } } }
resources:
  gpt-4: { limits: { rpm: { capacity: 10 } } }
  legacy: { disabled: true }
  audio: { disabled: false, limits: { spm: { capacity: 5 } } }
entities:
  alice: { resources: { gpt-4: { disabled: false }, _default_: { limits: { rpm: { capacity: 7 } } } } }
  bob: { resources: { gpt-4: { disabled: true, limits: { rpm: { capacity: 1 } } } } }";
    let after = "
system: { on_unavailable: block, limits: { rpm: { capacity: 200 } } }
resources:
  gpt-4: { disabled: true, limits: { rpm: { capacity: 10 } } }
  legacy: { disabled: bypass }
  audio: { disabled: false, limits: { spm: { capacity: 5 } } }
  video: { limits: { spm: { capacity: 9, refill_amount: 3, refill_period: 30 } } }
entities:
  alice: { resources: { _default_: { limits: { rpm: { capacity: 8 } } } } }";
    insta::assert_snapshot!(lines(&planned(before, after)), @r"
        update resource gpt-4 [stops traffic]
            disabled: - -> true
        update resource legacy [lifts a disable, opens a bypass]
            disabled: true -> bypass
        delete entity alice/gpt-4 [removes a carve-out]
            disabled: false -> -
        delete entity bob/gpt-4 [deletes a disabled level]
            disabled: true -> -
            limits.rpm.capacity: 1 -> -
            limits.rpm.refill_amount: 1 -> -
            limits.rpm.refill_period: 60 -> -
        update system  []
            limits.rpm.capacity: 100 -> 200
            limits.rpm.refill_amount: 100 -> 200
            on_unavailable: allow -> block
        create resource video []
            limits.spm.capacity: - -> 9
            limits.spm.refill_amount: - -> 3
            limits.spm.refill_period: - -> 30
        update entity alice/_default_ []
            limits.rpm.capacity: 7 -> 8
            limits.rpm.refill_amount: 7 -> 8
        owes the access fan-out of resource gpt-4
        owes the access fan-out of resource legacy
        owes the params fan-out of entity alice/_default_
        owes the access fan-out of entity alice/gpt-4
        owes the params fan-out of entity alice/gpt-4
        owes the access fan-out of entity bob/gpt-4
        owes the params fan-out of entity bob/gpt-4
        1 unchanged
        ");
}

#[test]
fn a_level_in_another_writers_spelling_is_brought_in_line_without_any_fan_out() {
    let manifest = manifest("resources: { gpt-4: { disabled: true } }");
    let mut state = applied(&manifest);
    for stored in state.levels.values_mut() {
        stored.as_written = false;
    }
    let plan = plan(&manifest, &state, PlanOptions::default());
    assert_eq!((plan.changes.len(), plan.owed.len()), (1, 0));
}

#[test]
fn a_full_plan_owes_everything_a_level_can() {
    let manifest = manifest(
        "
system: { limits: { rpm: { capacity: 1 } } }
resources: { gpt-4: {} }
entities: { alice: { resources: { gpt-4: {} } } }",
    );
    let options = PlanOptions {
        full: true,
        ..PlanOptions::default()
    };
    insta::assert_snapshot!(lines(&plan(&manifest, &applied(&manifest), options)), @r"
        owes the soft fan-out of system
        owes the access fan-out of resource gpt-4
        owes the cascade fan-out of resource gpt-4
        owes the soft fan-out of resource gpt-4
        owes the access fan-out of entity alice/gpt-4
        owes the cascade fan-out of entity alice/gpt-4
        owes the params fan-out of entity alice/gpt-4
        3 unchanged
        ");
}

#[test]
fn the_manifest_owns_the_switches_that_it_declared_last_time() {
    let silent = manifest("resources: { gpt-4: {} }");
    let gpt4 = level("resource", "gpt-4");
    let with_switch = |record_switches: Option<BTreeMap<Level, Switch>>, out_of_band| {
        let mut state = applied(&silent);
        let stored = state.levels.get_mut(&gpt4).expect("the level");
        stored.config.disabled = Some(Switch::Disabled);
        let record = state.record.as_mut().expect("the record");
        record.switches = record_switches;
        let plan = plan(
            &silent,
            &state,
            PlanOptions {
                out_of_band,
                full: false,
            },
        );
        (plan.changes.len(), plan.kept.len())
    };
    let declared = BTreeMap::from([(gpt4.clone(), Switch::Disabled)]);
    let (keep, revert) = (OutOfBand::Keep, OutOfBand::Revert);
    assert_eq!(
        with_switch(Some(declared), keep),
        (1, 0),
        "declared last time, now silent: removed"
    );
    assert_eq!(
        with_switch(Some(BTreeMap::new()), keep),
        (0, 1),
        "set by hand: kept"
    );
    assert_eq!(
        with_switch(Some(BTreeMap::new()), revert),
        (1, 0),
        "set by hand: reverted on demand"
    );
    assert_eq!(
        with_switch(None, keep),
        (1, 0),
        "the Python provisioner's record: the manifest's"
    );
}

#[test]
fn a_switch_at_a_level_that_nobody_managed_is_someone_elses() {
    let silent = manifest("resources: { gpt-4: {} }");
    let mut state = applied(&silent);
    state.record = None;
    let stored = state
        .levels
        .get_mut(&level("resource", "gpt-4"))
        .expect("the level");
    stored.config.disabled = Some(Switch::Bypass);
    let plan = plan(&silent, &state, PlanOptions::default());
    assert_eq!((plan.changes.len(), plan.kept.len()), (0, 1));
}

fn entities(range: std::ops::Range<usize>) -> String {
    let lines: Vec<String> = range
        .map(|index| format!("  user-{index}: {{ resources: {{ gpt-4: {{}} }} }}"))
        .collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!("entities:\n{}", lines.join("\n"))
    }
}

fn refusals(plan: &Plan, policy: &Policy) -> Vec<String> {
    plan.refusals(policy)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn many_deletes_need_permission() {
    let strict = Policy::strict(ManifestOwner::Cli);
    assert_eq!(
        refusals(&planned(&entities(0..4), &entities(0..1)), &strict),
        [""; 0],
        "three are fine"
    );
    assert_eq!(
        refusals(&planned(&entities(0..20), &entities(0..14)), &strict),
        [""; 0],
        "30 % are fine"
    );
    let plan = planned(&entities(0..20), &entities(0..13));
    assert_eq!(
        refusals(&plan, &strict),
        ["7 of 20 managed levels would be deleted, and at most 6 may be"]
    );
    assert_eq!(plan.refusals(&strict)[0].guard(), Guard::MaxDelete);
    let allowed = Policy {
        max_delete: Some(7),
        ..strict.clone()
    };
    assert_eq!(refusals(&plan, &allowed), [""; 0]);
    let fewer = Policy {
        max_delete: Some(0),
        ..strict
    };
    assert_eq!(
        refusals(&planned(&entities(0..4), &entities(0..3)), &fewer),
        ["1 of 4 managed levels would be deleted, and at most 0 may be"]
    );
}

#[test]
fn an_empty_manifest_needs_permission_where_something_is_managed() {
    let strict = Policy::strict(ManifestOwner::Cli);
    let plan = planned(&entities(0..2), "");
    assert_eq!(
        refusals(&plan, &strict),
        ["the manifest declares nothing, and the namespace manages 2 levels: all would be deleted"]
    );
    assert_eq!(
        refusals(
            &plan,
            &Policy {
                allow_empty: true,
                ..strict.clone()
            }
        ),
        [""; 0]
    );
    assert_eq!(
        refusals(
            &plan,
            &Policy {
                deletes_all: true,
                ..strict.clone()
            }
        ),
        [""; 0]
    );
    assert_eq!(
        refusals(&planned("", ""), &strict),
        [""; 0],
        "nothing managed, nothing lost"
    );
}

#[test]
fn a_stack_may_go_back_to_what_it_applied_last_or_before() {
    let guarded = |before: &str, previous: Option<&str>, after: &str, policy: &Policy| {
        let mut state = applied(&manifest(before));
        let record = state.record.as_mut().expect("a record");
        record.previous_hash = previous.map(|yaml| manifest(yaml).sha256());
        // What an apply left that died before it could say what it had applied.
        let left = manifest(&entities(50..60));
        record.managed.extend(left.levels().keys().cloned());
        state.levels.extend(applied(&left).levels);
        let plan = plan(&manifest(after), &state, PlanOptions::default());
        plan.refusals(policy).len()
    };
    let strict = Policy::strict(ManifestOwner::Cli);
    let stack = Policy {
        goes_back: true,
        ..strict.clone()
    };
    let (many, few) = (entities(0..20), entities(0..1));
    assert_eq!(guarded(&many, Some(&few), &few, &stack), 0);
    assert_eq!(guarded(&many, Some(&few), &few, &strict), 1, "only a stack");
    assert_eq!(guarded(&many, None, &few, &stack), 1, "nothing is known");
    assert_eq!(
        guarded(&many, Some(&few), &entities(1..2), &stack),
        1,
        "another one"
    );
    assert_eq!(guarded(&many, Some(""), "", &stack), 0, "an empty one");
    assert_eq!(guarded(&many, Some(&few), "", &stack), 1);
    assert_eq!(
        guarded(&few, None, &few, &stack),
        0,
        "the last one, and nothing more"
    );
    assert_eq!(guarded(&few, None, &few, &strict), 1);
    let others = Policy {
        owner: ManifestOwner::Stack {
            stack_id: "arn:aws:cloudformation:x".to_owned(),
            logical_id: "Limits".to_owned(),
        },
        adopt: true,
        ..stack
    };
    assert_eq!(
        guarded(&many, Some(&few), &few, &others),
        1,
        "another owner"
    );
}

#[test]
fn another_owners_namespace_is_not_touched() {
    let stack = |logical_id: &str| ManifestOwner::Stack {
        stack_id: "arn:aws:cloudformation:eu-central-1:123456789012:stack/limits/1".to_owned(),
        logical_id: logical_id.to_owned(),
    };
    let manifest = manifest(&entities(0..1));
    let mut state = applied(&manifest);
    let owned_by = |state: &mut State, owner| {
        state.record.as_mut().expect("the record").owner = owner;
        plan(&manifest, state, PlanOptions::default())
    };
    let stacks = owned_by(&mut state, Some(stack("Limits")));
    assert_eq!(
        refusals(&stacks, &Policy::strict(ManifestOwner::Cli)),
        ["the namespace is managed by resource \"Limits\" of stack \
          \"arn:aws:cloudformation:eu-central-1:123456789012:stack/limits/1\""]
    );
    let adopting = Policy {
        adopt: true,
        ..Policy::strict(ManifestOwner::Cli)
    };
    assert_eq!(refusals(&stacks, &adopting), [""; 0]);
    let clis = owned_by(&mut state, Some(ManifestOwner::Cli));
    assert_eq!(
        refusals(&clis, &Policy::strict(stack("Limits"))),
        ["the namespace is managed by the command line"]
    );
    let anyones = owned_by(&mut state, None);
    assert_eq!(
        refusals(&anyones, &Policy::strict(stack("Limits"))),
        [""; 0]
    );
}

#[test]
fn a_plan_is_recognised_by_its_fingerprint() {
    let before = "resources: { gpt-4: {} }";
    let reviewed = planned(before, "resources: { gpt-4: { disabled: true } }");
    let again = planned(before, "resources: { gpt-4: { disabled: true } }");
    let other = planned(before, "resources: { gpt-4: { disabled: bypass } }");
    let policy = Policy {
        reviewed: Some(reviewed.fingerprint()),
        ..Policy::strict(ManifestOwner::Cli)
    };
    assert_eq!(refusals(&again, &policy), [""; 0]);
    assert_eq!(other.refusals(&policy)[0].guard(), Guard::Stale);
}

#[test]
fn a_table_with_old_or_unknown_readers_is_refused_by_name() {
    let uses = |feature: &str| manifest(&format!("resources: {{ gpt-4: {{ {feature} }} }}"));
    let refused = |manifest: &Manifest, versions: Option<Versions>| {
        let state = State {
            versions,
            ..State::default()
        };
        let plan = plan(manifest, &state, PlanOptions::default());
        refusals(&plan, &Policy::strict(ManifestOwner::Cli)).join("; ")
    };
    let of_release = |lambda: &str| Some(versions(lambda));
    let unnamed = Some(Versions {
        lambda: None,
        ..versions("")
    });
    let newer = Some(Versions {
        client_min: Some("0.18.0".to_owned()),
        ..versions("0.18.0")
    });
    let other = Some(Versions {
        schema: Some("1.0.0".to_owned()),
        ..versions("0.17.0")
    });
    let bypass = uses("disabled: bypass");
    for enough in [
        "0.17.0",
        "0.17.0rc1",
        "0.17",
        "0.18.0",
        "1.0.0",
        "0.17.0.dev3+g1234",
    ] {
        let answer = refused(&bypass, of_release(enough)).replace("0.17 ", "0.17.0 ");
        assert_eq!(answer, "", "{enough}");
    }
    let window = "limits: { rpm: { capacity: 1, reset_after_seconds: 60 } }";
    let soft = "limits: { rpm: { capacity: 1, soft: true } }";
    let lines = [
        refused(&bypass, None),
        refused(&bypass, unnamed),
        refused(&bypass, of_release("unknown")),
        refused(&bypass, of_release("0.16.9")),
        refused(&uses(soft), of_release("0.16.9")),
        refused(&uses("cascade: true"), of_release("0.15.9")),
        refused(&uses(window), of_release("0.14.9")),
        refused(&uses("disabled: true"), newer),
        refused(&uses("disabled: true"), other),
        refused(&uses("disabled: true"), None),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
        the manifest uses disabled: bypass, which needs zae-limiter 0.17.0 deployed beside the table; its version record names no version: upgrade the deployment, then apply again
        the manifest uses disabled: bypass, which needs zae-limiter 0.17.0 deployed beside the table; its version record names no version: upgrade the deployment, then apply again
        the manifest uses disabled: bypass, which needs zae-limiter 0.17.0 deployed beside the table; its version record names unknown: upgrade the deployment, then apply again
        the manifest uses disabled: bypass, which needs zae-limiter 0.17.0 deployed beside the table; its version record names 0.16.9: upgrade the deployment, then apply again
        the manifest uses soft, which needs zae-limiter 0.17.0 deployed beside the table; its version record names 0.16.9: upgrade the deployment, then apply again
        the manifest uses cascade, which needs zae-limiter 0.16.0 deployed beside the table; its version record names 0.15.9: upgrade the deployment, then apply again
        the manifest uses reset_after_seconds, which needs zae-limiter 0.15.0 deployed beside the table; its version record names 0.14.9: upgrade the deployment, then apply again
        the table asks for clients of at least 0.18.0, and this build speaks 0.17.0: upgrade zae-limits
        the table's schema version is 1.0.0, and this build knows 0.x: use a release of zae-limits that knows it
        ");
}
