//! The wire format: exact strings, round trips, and what is refused.

use crate::cron::any_cron;
use crate::schedule::any_entry;
use crate::world::{NOW, bucket_id, n, s};
use aws_sdk_dynamodb::types::AttributeValue;
use litemap::LiteMap;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use zae_limits::model::{
    AccessMode, EpochMs, FanoutKind, Level, LevelConfig, Limit, LimitName, ManifestOwner,
    NamespaceId, OnUnavailable, Owed, Owner, Pending, ProvisionerRecord, Recovery, Seconds, Switch,
    Tokens, Zone,
};
use zae_limits::table::stamp::{Stamp, bypass_deadline, shown_mode};
use zae_limits::table::{BucketId, Item, config, keys, namespace, pending, record, registry};

fn ns() -> NamespaceId {
    NamespaceId::parse("a7x3kq").expect("an id")
}

fn level(kind: &str, target: &str) -> Level {
    Level::from_parts(kind, target).expect("a level")
}

fn item(attributes: &[(&str, AttributeValue)]) -> Item {
    attributes
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect()
}

#[test]
fn every_key_is_spelled_as_the_format_says() {
    let ns = &ns();
    let owed = |kind, level| keys::pending(ns, &Owed { level, kind }).to_string();
    let name = "tenant-alpha".parse().expect("a name");
    let entity = level("entity", "user-1/gpt-4");
    let default = level("entity", "user-1/_default_");
    let resource = level("resource", "openai/gpt-4");
    let spelled = [
        keys::version().to_string(),
        keys::namespace_by_name(&name).to_string(),
        keys::namespace_by_id(ns).to_string(),
        keys::config(ns, &Level::System).to_string(),
        keys::config(ns, &resource).to_string(),
        keys::config(ns, &entity).to_string(),
        keys::config(ns, &default).to_string(),
        keys::meta(ns, &"user-1".parse().expect("an id")).to_string(),
        keys::resource_registry(ns).to_string(),
        keys::entity_config_registry(ns).to_string(),
        keys::provisioner(ns).to_string(),
        keys::managed_overflow(ns, "w", 7).to_string(),
        keys::audit(ns, &Level::System, "01").to_string(),
        keys::audit(ns, &resource, "01").to_string(),
        keys::audit(ns, &default, "01").to_string(),
        owed(FanoutKind::Access, resource.clone()),
        owed(FanoutKind::Cascade, entity.clone()),
        owed(FanoutKind::Soft, Level::System),
        owed(FanoutKind::Params, default),
    ];
    assert_eq!(
        spelled,
        [
            "_/SYSTEM# / #VERSION",
            "_/SYSTEM# / #NAMESPACE#tenant-alpha",
            "_/SYSTEM# / #NSID#a7x3kq",
            "a7x3kq/SYSTEM# / #CONFIG",
            "a7x3kq/RESOURCE#openai/gpt-4 / #CONFIG",
            "a7x3kq/ENTITY#user-1 / #CONFIG#gpt-4",
            "a7x3kq/ENTITY#user-1 / #CONFIG#_default_",
            "a7x3kq/ENTITY#user-1 / #META",
            "a7x3kq/SYSTEM# / #RESOURCES",
            "a7x3kq/SYSTEM# / #ENTITY_CONFIG_RESOURCES",
            "a7x3kq/SYSTEM# / #PROVISIONER",
            "a7x3kq/SYSTEM# / #PROVISIONER#MANAGED#w#007",
            "a7x3kq/AUDIT#$SYSTEM / #AUDIT#01",
            "a7x3kq/AUDIT#$RESOURCE:openai/gpt-4 / #AUDIT#01",
            "a7x3kq/AUDIT#user-1 / #AUDIT#01",
            "a7x3kq/SYSTEM# / #PROVISIONER#PENDING#disabled#resource#openai/gpt-4",
            "a7x3kq/SYSTEM# / #PROVISIONER#PENDING#cascade#entity#user-1/gpt-4",
            "a7x3kq/SYSTEM# / #PROVISIONER#PENDING#soft#system#",
            "a7x3kq/SYSTEM# / #PROVISIONER#PENDING#sync#entity#user-1/_default_",
        ]
    );
}

#[test]
fn a_bucket_is_found_by_every_index() {
    let (ns, bucket) = (&ns(), bucket_id("user@example.com", "openai/gpt-4", 31));
    assert_eq!(
        bucket.pk(ns),
        "a7x3kq/BUCKET#user@example.com#openai/gpt-4#31"
    );
    assert_eq!(
        bucket.resource_index(ns),
        (
            "a7x3kq/RESOURCE#openai/gpt-4".into(),
            "BUCKET#user@example.com#31".into()
        )
    );
    assert_eq!(
        bucket.entity_index(ns),
        (
            "a7x3kq/ENTITY#user@example.com".into(),
            "BUCKET#openai/gpt-4#31".into()
        )
    );
    assert_eq!(bucket.suffix(), "BUCKET#user@example.com#openai/gpt-4#31");
}

#[test]
fn a_key_that_is_not_a_buckets_is_refused() {
    for (pk, problem) in [
        ("other/BUCKET#u#r#0", "it does not start with a7x3kq/"),
        ("a7x3kq/ENTITY#u", "it does not continue with BUCKET#"),
        ("a7x3kq/BUCKET#u", "it has no shard"),
        ("a7x3kq/BUCKET#u#0", "it has no resource"),
        ("a7x3kq/BUCKET#u#r#x", "\"x\" is not a shard number"),
        ("a7x3kq/BUCKET##r#0", "an entity id is empty"),
        (
            "a7x3kq/BUCKET#u#_default_#0",
            "\"_default_\" is reserved, choose another name for a resource name",
        ),
    ] {
        let error = BucketId::parse(&ns(), pk).expect_err(pk);
        assert_eq!(error.problem, problem, "{pk}");
    }
}

#[test]
fn a_level_is_stored_attribute_by_attribute() {
    let zone = Some(Zone::parse("Europe/Berlin").expect("a zone"));
    let limits = LiteMap::from_iter([
        (
            limit_name("rpm"),
            Limit::drip(Tokens(500), Tokens(400), Seconds(30)),
        ),
        (
            limit_name("burst"),
            Limit {
                soft: true,
                ..Limit::drip(Tokens(9), Tokens(9), Seconds(60))
            },
        ),
        (
            limit_name("five.hour"),
            Limit {
                recovery: Recovery::Window(Seconds(18_000)),
                ..Limit::drip(Tokens(50), Tokens(1), Seconds(60))
            },
        ),
        (
            limit_name("monthly"),
            Limit {
                recovery: Recovery::Calendar(vec!["0 0 1 * *".parse().expect("a cron")]),
                ..Limit::drip(Tokens(7), Tokens(1), Seconds(60))
            },
        ),
    ]);
    let config = LevelConfig {
        limits,
        zone,
        disabled: Some(Switch::Bypass),
        cascade: Some(true),
        on_unavailable: None,
    };
    let stored = config::encode(&ns(), &level("entity", "user-1/gpt-4"), &config);
    let expected = item(&[
        ("PK", s("a7x3kq/ENTITY#user-1")),
        ("SK", s("#CONFIG#gpt-4")),
        ("GSI3PK", s("a7x3kq/ENTITY_CONFIG#gpt-4")),
        ("GSI3SK", s("user-1")),
        ("GSI4PK", s("a7x3kq")),
        ("GSI4SK", s("a7x3kq/ENTITY#user-1")),
        ("entity_id", s("user-1")),
        ("resource", s("gpt-4")),
        ("disabled", s("bypass")),
        ("cascade", AttributeValue::Bool(true)),
        ("sched_tz", s("Europe/Berlin")),
        ("l_rpm_cp", n(500)),
        ("l_rpm_ra", n(400)),
        ("l_rpm_rp", n(30)),
        ("l_burst_cp", n(9)),
        ("l_burst_ra", n(9)),
        ("l_burst_rp", n(60)),
        ("l_burst_soft", AttributeValue::Bool(true)),
        ("w_five.hour_cp", n(50)),
        ("w_five.hour_ra", n(0)),
        ("w_five.hour_rp", n(60)),
        ("w_five.hour_rsa", n(18_000)),
        ("l_monthly_cp", n(7)),
        ("l_monthly_ra", n(0)),
        ("l_monthly_rp", n(60)),
        ("l_monthly_rsched", s("1m0h0D1")),
    ]);
    assert_eq!(stored, expected);

    let system = LevelConfig {
        on_unavailable: Some(OnUnavailable::Block),
        ..LevelConfig::default()
    };
    assert_eq!(
        config::encode(&ns(), &Level::System, &system),
        item(&[
            ("PK", s("a7x3kq/SYSTEM#")),
            ("SK", s("#CONFIG")),
            ("GSI4PK", s("a7x3kq")),
            ("GSI4SK", s("a7x3kq/SYSTEM#")),
            ("on_unavailable", s("block")),
        ])
    );
}

#[test]
fn stored_switches_read_as_clients_read_them() {
    let read = |value| config::decode_switch(&item(&[("disabled", value)]));
    assert_eq!(config::decode_switch(&Item::new()), None);
    assert_eq!(read(AttributeValue::Bool(true)), Some(Switch::Disabled));
    assert_eq!(read(AttributeValue::Bool(false)), Some(Switch::Enabled));
    assert_eq!(read(s("bypass")), Some(Switch::Bypass));
    assert_eq!(
        read(s("audit")),
        Some(Switch::Enabled),
        "a mode of the future enforces"
    );
    assert_eq!(read(n(1)), Some(Switch::Enabled));
}

#[test]
fn a_corrupt_level_names_its_item_and_attribute() {
    let read = |attributes: &[(&str, AttributeValue)]| {
        let mut corrupt = item(&[("PK", s("a7x3kq/RESOURCE#gpt-4")), ("SK", s("#CONFIG"))]);
        corrupt.extend(item(attributes));
        config::decode(&corrupt).expect_err("corrupt").to_string()
    };
    let rpm = [("l_rpm_cp", n(1)), ("l_rpm_ra", n(1)), ("l_rpm_rp", n(1))];
    let both = [rpm.as_slice(), &[("w_rpm_cp", n(1))]].concat();
    let windowless = [("w_rpm_cp", n(1)), ("w_rpm_ra", n(0)), ("w_rpm_rp", n(1))];
    let schedule = [rpm.as_slice(), &[("l_rpm_sched", s("2h9"))]].concat();
    let still = [("l_rpm_cp", n(1)), ("l_rpm_ra", n(0)), ("l_rpm_rp", n(1))];
    insta::assert_snapshot!(
        [
            read(&rpm[..2]),
            read(&[("l_rpm_cp", s("1"))]),
            read(&[("l_rpm_cp", n("1.5"))]),
            read(&both),
            read(&windowless),
            read(&schedule),
            read(&still),
            read(&[("l_9lives_cp", n(1))]),
            read(&[("sched_tz", s("Mars/Olympus"))]),
        ]
        .join("\n")
    );
}

fn limit_name(name: &str) -> LimitName {
    LimitName::parse(name).expect("a limit name")
}

fn any_level() -> impl Strategy<Value = Level> {
    prop_oneof![
        Just(Level::System),
        "[A-Za-z][A-Za-z0-9_.:/-]{0,20}".prop_map(|r| level("resource", &r)),
        "[A-Za-z0-9][A-Za-z0-9_.:@-]{0,20}/[A-Za-z][A-Za-z0-9_.:/-]{0,20}"
            .prop_map(|target| level("entity", &target)),
        "[A-Za-z0-9][A-Za-z0-9_.:@-]{0,20}/_default_".prop_map(|target| level("entity", &target)),
    ]
}

fn any_limit() -> impl Strategy<Value = Limit> {
    let recovery = prop_oneof![
        (1..=Tokens::MAX.0).prop_map(|amount| Recovery::Drip {
            amount: Tokens(amount)
        }),
        prop::collection::vec(any_cron(), 1..3).prop_map(Recovery::Calendar),
        (1..=Seconds::MAX.0).prop_map(|after| Recovery::Window(Seconds(after))),
    ];
    let schedule = prop::collection::vec(any_entry(), 0..3);
    (
        1..=Tokens::MAX.0,
        1..=Seconds::MAX.0,
        recovery,
        schedule,
        any::<bool>(),
    )
        .prop_map(|(capacity, period, recovery, schedule, soft)| Limit {
            capacity: Tokens(capacity),
            refill_period: Seconds(period),
            recovery,
            schedule,
            soft,
        })
        .prop_filter("a limit that its own rules allow", |limit| {
            limit.check().is_ok()
        })
}

fn any_config() -> impl Strategy<Value = LevelConfig> {
    let name = "[A-Za-z][A-Za-z0-9_.-]{0,12}".prop_filter("reserved", |name| name != "wcu");
    let limits = prop::collection::btree_map(name.prop_map(|n| limit_name(&n)), any_limit(), 0..4);
    let switch = prop_oneof![
        Just(Switch::Disabled),
        Just(Switch::Enabled),
        Just(Switch::Bypass)
    ];
    let unavailable = prop_oneof![Just(OnUnavailable::Allow), Just(OnUnavailable::Block)];
    let zone = prop_oneof![Just("UTC"), Just("America/New_York")];
    (
        limits,
        prop::option::of(zone.prop_map(|zone| Zone::parse(zone).expect("a zone"))),
        prop::option::of(switch),
        prop::option::of(any::<bool>()),
        prop::option::of(unavailable),
    )
        .prop_map(
            |(limits, zone, disabled, cascade, on_unavailable)| LevelConfig {
                limits: limits.into_iter().collect(),
                zone,
                disabled,
                cascade,
                on_unavailable,
            },
        )
}

proptest! {
    #[test]
    fn a_level_reads_back_as_it_was_written(level in any_level(), config in any_config()) {
        let stored = config::encode(&ns(), &level, &config);
        prop_assert_eq!(&config::decode(&stored).expect("it reads"), &config);
        prop_assert!(config::is_as_written(&ns(), &level, &config, &stored));
        let mut foreign = stored.clone();
        foreign.insert("config_version".to_owned(), n(1));
        prop_assert!(config::is_as_written(&ns(), &level, &config, &foreign));
        foreign.insert("l_leftover_cp".to_owned(), n(1));
        prop_assert!(!config::is_as_written(&ns(), &level, &config, &foreign));
    }

    #[test]
    fn a_level_is_told_from_its_parts(level in any_level()) {
        let target = level.target().unwrap_or_default();
        prop_assert_eq!(Level::from_parts(level.kind(), &target), Some(level));
    }

    #[test]
    fn a_bucket_key_reads_back_and_no_other_text_panics(
        entity in "[A-Za-z0-9][A-Za-z0-9_.:@-]{0,255}",
        resource in "[A-Za-z][A-Za-z0-9_.:/-]{0,63}",
        shard in any::<u32>(),
        noise in ".{0,40}",
    ) {
        let bucket = bucket_id(&entity, &resource, shard);
        prop_assert_eq!(BucketId::parse(&ns(), &bucket.pk(&ns())), Ok(bucket));
        let _ = BucketId::parse(&ns(), &format!("a7x3kq/BUCKET#{noise}"));
    }
}

#[test]
fn stamps_are_exactly_these() {
    let read_at = EpochMs(1_000_000);
    let bypass = |spread| Stamp::new(AccessMode::Bypass, read_at, spread);
    assert_eq!(bypass(0.0), Stamp::Bypass(EpochMs(1_048_000)));
    assert_eq!(bypass(0.5), Stamp::Bypass(EpochMs(1_054_000)));
    assert_eq!(bypass(1.0), Stamp::Bypass(EpochMs(1_060_000)));
    let stamps = [Stamp::Disabled, bypass(0.0), Stamp::Enforce];
    let updates = stamps.map(|stamp| (stamp.update().expression, stamp.update().value));
    assert_eq!(
        updates,
        [
            (
                "SET #disabled = :stamp REMOVE #bypass",
                Some(AttributeValue::Bool(true))
            ),
            ("SET #bypass = :stamp REMOVE #disabled", Some(n(1_048_000))),
            ("REMOVE #disabled, #bypass", None),
        ]
    );
    let statements = stamps.map(|stamp| stamp.statement("rate-limits").0);
    assert_eq!(
        statements,
        [
            r#"UPDATE "rate-limits" SET "disabled" = ? REMOVE "bypass" WHERE "PK" = ? AND "SK" = '#STATE'"#,
            r#"UPDATE "rate-limits" SET "bypass" = ? REMOVE "disabled" WHERE "PK" = ? AND "SK" = '#STATE'"#,
            r#"UPDATE "rate-limits" REMOVE "disabled" REMOVE "bypass" WHERE "PK" = ? AND "SK" = '#STATE'"#,
        ]
    );
}

#[test]
fn a_bucket_shows_what_its_client_would_do() {
    let shows = |attributes: &[_]| shown_mode(&item(attributes));
    assert_eq!(shows(&[]), AccessMode::Enforce);
    assert_eq!(
        shows(&[("disabled", AttributeValue::Bool(true))]),
        AccessMode::Disabled
    );
    assert_eq!(
        shows(&[("disabled", AttributeValue::Bool(true)), ("bypass", n(1))]),
        AccessMode::Disabled
    );
    assert_eq!(shows(&[("bypass", n(1))]), AccessMode::Bypass);
    let of_a_bool = item(&[("bypass", AttributeValue::Bool(true))]);
    assert_eq!(
        (shown_mode(&of_a_bool), bypass_deadline(&of_a_bool)),
        (AccessMode::Bypass, None)
    );
}

#[test]
fn a_namespace_id_never_looks_like_a_flag() {
    assert_eq!(
        namespace::new_id([0xff; 8]).expect("an id").as_str(),
        "__________8"
    );
    assert_eq!(
        namespace::new_id([0xfb, 0xff, 0, 0, 0, 0, 0, 0]),
        None,
        "it would start with '-'"
    );
}

fn a_pending() -> Owed {
    Owed {
        level: level("entity", "user-1/openai/gpt-4"),
        kind: FanoutKind::Access,
    }
}

#[test]
fn a_pending_item_reads_back_in_both_shapes() {
    let stored = pending::encode_new(&ns(), &a_pending(), "token-a", EpochMs(5), true, EpochMs(4));
    assert_eq!(stored["kind"], s("disabled"));
    assert_eq!(stored["level"], s("entity"));
    assert_eq!(stored["target"], s("user-1/openai/gpt-4"));
    assert_eq!(stored["written_ms"], n(4));
    let owner = Owner {
        lease: Some(EpochMs(5)),
        full: true,
        single: false,
    };
    let read = pending::decode(&stored).expect("it reads");
    assert_eq!(
        read,
        Pending {
            owed: a_pending(),
            owners: BTreeMap::from([("token-a".into(), owner)]),
            has_map: true,
            written: Some(EpochMs(4)),
            damaged: false,
        }
    );

    let mut single = stored.clone();
    single.remove("owners");
    single.extend(item(&[
        ("token", s("token-b")),
        ("lease_until_ms", n(9)),
        ("full", AttributeValue::Bool(false)),
    ]));
    let owner = Owner {
        lease: Some(EpochMs(9)),
        full: false,
        single: true,
    };
    let read = pending::decode(&single).expect("it reads");
    assert_eq!(
        read,
        Pending {
            owed: a_pending(),
            owners: BTreeMap::from([("token-b".into(), owner)]),
            has_map: false,
            written: Some(EpochMs(4)),
            damaged: false,
        }
    );
}

#[test]
fn only_shares_of_applies_that_are_gone_are_taken_over() {
    let owner = |lease| Owner {
        lease: Some(EpochMs(lease)),
        full: false,
        single: false,
    };
    let owners = BTreeMap::from([
        ("gone".to_owned(), owner(99)),
        ("live".to_owned(), owner(100)),
    ]);
    let shared = Pending {
        owed: a_pending(),
        owners,
        has_map: true,
        written: None,
        damaged: false,
    };
    let update = pending::claim_update(&shared, "mine", EpochMs(200), false, EpochMs(100));
    assert_eq!(update.expression, "SET #o.#me = :entry REMOVE #o.#t0");
    assert_eq!(update.names["#t0"], "gone");
    assert_eq!(
        update.condition,
        "attribute_exists(PK) AND attribute_exists(#o.#t0) AND (attribute_not_exists(#o.#t0.#lease) OR \
         NOT #o.#t0.#lease BETWEEN :now AND :far) AND attribute_exists(#o)"
    );
    assert_eq!(update.values[":now"], n(100));
    assert_eq!(update.values[":far"], n(100 + 24 * 3_600_000));
}

#[test]
fn a_record_reads_back_with_its_memory() {
    let record = ProvisionerRecord {
        managed: [
            Level::System,
            level("resource", "gpt-4"),
            level("entity", "u/gpt-4"),
            level("entity", "u/_default_"),
        ]
        .into(),
        switches: Some(BTreeMap::from([
            (level("resource", "gpt-4"), Switch::Disabled),
            (level("entity", "u/_default_"), Switch::Bypass),
        ])),
        owner: Some(ManifestOwner::Stack {
            stack_id: "arn:aws:cloudformation:x".into(),
            logical_id: "Limits".into(),
        }),
        taken_from: Some(ManifestOwner::Cli),
        applied_hash: Some("sha256:00".into()),
        previous_hash: Some("sha256:01".into()),
        last_applied: Some(NOW),
        full_owed: true,
        cascade_pending: [level("resource", "gpt-4")].into(),
        rev: 3,
    };
    let items = record::encode(&ns(), &record, "w").expect("it fits");
    assert_eq!(items.overflow, Vec::<Item>::new());
    let entities = item(&[("u", AttributeValue::L(vec![s("_default_"), s("gpt-4")]))]);
    assert_eq!(
        items.main["managed_entities"],
        AttributeValue::M(entities),
        "as the Python provisioner writes it"
    );
    assert_eq!(record::decode(&items).expect("it reads"), record);
}

#[test]
fn a_record_of_a_hundred_thousand_entities_fits_its_items() {
    let managed: BTreeSet<Level> = (0..100_000)
        .map(|index| {
            level(
                "entity",
                &format!("a-rather-long-entity-id-{index:06}/gpt-4"),
            )
        })
        .collect();
    let switches = managed
        .iter()
        .map(|level| (level.clone(), Switch::Enabled))
        .collect();
    let record = ProvisionerRecord {
        managed,
        switches: Some(switches),
        rev: 1,
        ..ProvisionerRecord::default()
    };
    let items = record::encode(&ns(), &record, "w").expect("it fits");
    let keys = record::overflow_keys(&ns(), &items.main).expect("they read");
    assert!(keys.len() > 10, "{}", keys.len());
    let stored = items.overflow.iter().map(|item| item["SK"].clone());
    let named = keys.iter().map(|key| s(&key.sk));
    assert!(stored.eq(named), "the record names its overflow items");
    for stored in items.overflow.iter().chain([&items.main]) {
        let size = size_of_item(stored);
        assert!(size < 400 * 1024, "{size} bytes is more than an item holds");
    }
    assert_eq!(record::decode(&items).expect("it reads"), record);
}

#[test]
fn a_record_whose_overflow_is_not_all_there_does_not_read() {
    let managed = (0..4_000).map(|index| level("entity", &format!("{index:0>200}/gpt-4")));
    let record = ProvisionerRecord {
        managed: managed.collect(),
        ..ProvisionerRecord::default()
    };
    let mut items = record::encode(&ns(), &record, "w").expect("it fits");
    assert_eq!(items.overflow.len(), 5);
    items.overflow.pop();
    let error = record::decode(&items).expect_err("one is missing");
    assert!(
        error
            .to_string()
            .contains("counts 5 items, of which 4 are there"),
        "{error}"
    );
}

#[test]
fn an_owner_of_a_kind_that_nobody_knows_is_said_as_it_is_stored() {
    let ns = ns();
    let mut items = record::encode(&ns, &ProvisionerRecord::default(), "w").expect("it fits");
    let mut owned_by = |kind: Option<&str>| {
        let kind = kind.map(|kind| ("kind".to_owned(), AttributeValue::S(kind.to_owned())));
        let owner = AttributeValue::M(kind.into_iter().collect());
        items.main.insert("owner".to_owned(), owner);
        record::decode(&items).expect_err("no owner").problem
    };
    let unknown = "is of the kind \"martian\", which this build does not know";
    assert_eq!(owned_by(Some("martian")), unknown);
    assert_eq!(owned_by(None), "is of no kind");
}

#[test]
fn entities_that_would_fit_alone_leave_the_item_to_many_resources() {
    let entities = (0..700).map(|index| level("entity", &format!("{index:0>200}/gpt-4")));
    let resources = (0..600).map(|index| level("resource", &format!("r{index:0>60}")));
    let record = ProvisionerRecord {
        managed: entities.chain(resources).collect(),
        ..ProvisionerRecord::default()
    };
    let items = record::encode(&ns(), &record, "w").expect("it fits");
    assert_eq!(items.overflow.len(), 1);
    assert_eq!(record::decode(&items).expect("it reads"), record);
}

#[test]
fn what_an_older_python_provisioner_lists_as_owed_is_read_and_kept() {
    let entry = |kind: &str, target: &str| {
        AttributeValue::M(item(&[("level", s(kind)), ("target", s(target))]))
    };
    let mut items = record::encode(&ns(), &ProvisionerRecord::default(), "w").expect("it fits");
    let listed = vec![entry("entity", "u/gpt-4"), entry("resource", "gpt-4")];
    let listed = AttributeValue::L(listed);
    items
        .main
        .insert("cascade_pending".to_owned(), listed.clone());
    let read = record::decode(&items).expect("it reads");
    let levels = [level("resource", "gpt-4"), level("entity", "u/gpt-4")];
    assert_eq!(read.cascade_pending, levels.into());
    let again = record::encode(&ns(), &read, "w").expect("it fits").main;
    let count = again["cascade_pending"].as_l().expect("a list").len();
    assert_eq!(count, 2);
    items.main.insert(
        "cascade_pending".to_owned(),
        AttributeValue::L(vec![s("?")]),
    );
    assert!(record::decode(&items).is_err());
}

/// An item's size as the service counts it: names and values, 3 bytes for each map or list and 1
/// for each of their elements.
fn size_of_item(item: &Item) -> usize {
    item.iter()
        .map(|(name, value)| name.len() + size_of_value(value))
        .sum()
}

fn size_of_value(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.len(),
        AttributeValue::L(values) => {
            3 + values
                .iter()
                .map(|value| 1 + size_of_value(value))
                .sum::<usize>()
        }
        AttributeValue::M(map) => 3 + map.len() + size_of_item(map),
        _ => 1,
    }
}

#[test]
fn a_registry_changes_in_one_update() {
    let change = registry::RegistryChange {
        resources_added: ["gpt-4".parse().expect("a name")].into(),
        entity_configs: BTreeMap::from([
            (zae_limits::model::Scope::Default, 2),
            (
                zae_limits::model::Scope::parse("gpt-4").expect("a scope"),
                -1,
            ),
            (
                zae_limits::model::Scope::parse("claude-3").expect("a scope"),
                0,
            ),
        ]),
        ..registry::RegistryChange::default()
    };
    let updates = change.updates(&ns());
    let expressions: Vec<&str> = updates
        .iter()
        .map(|update| update.expression.as_str())
        .collect();
    assert_eq!(
        expressions,
        [
            "SET GSI4PK = if_not_exists(GSI4PK, :ns), GSI4SK = if_not_exists(GSI4SK, :pk) ADD resources :resources",
            "SET GSI4PK = if_not_exists(GSI4PK, :ns), GSI4SK = if_not_exists(GSI4SK, :pk) ADD #r0 :r0, #r1 :r1",
        ]
    );
    assert_eq!(
        (&updates[1].values[":r0"], &updates[1].values[":r1"]),
        (&n(2), &n(-1))
    );
}
