//! Config items: one level's limits and switch (docs/format.md).

use super::attr::{Item, ItemError, Reader, boolean, number, same_value, text};
use super::keys;
use super::schedule;
use crate::model::{
    Level, LevelConfig, Limit, LimitName, NamespaceId, OnUnavailable, Recovery, Seconds,
    StoredLevel, Switch, Tokens, Zone,
};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, BTreeSet};

const DISABLED: &str = "disabled";
const CASCADE: &str = "cascade";
const ON_UNAVAILABLE: &str = "on_unavailable";
const ZONE: &str = "sched_tz";
const BYPASS: &str = "bypass";

/// The prefix of a plain limit's attributes.
const PLAIN: &str = "l_";
/// The prefix of a limit with a duration window: readers that do not know windows do not see it.
const WINDOWED: &str = "w_";
const FIELDS: [&str; 7] = ["cp", "ra", "rp", "sched", "rsched", "rsa", "soft"];

/// Attributes, each once, in no particular order: an item that nobody looks anything up in.
type Attributes = Vec<(String, AttributeValue)>;

/// The whole item that a level's config is stored as.
pub fn encode(ns: &NamespaceId, level: &Level, config: &LevelConfig) -> Item {
    attributes(ns, level, config).into_iter().collect()
}

fn attributes(ns: &NamespaceId, level: &Level, config: &LevelConfig) -> Attributes {
    let key = keys::config(ns, level);
    let mut item = fields(config);
    let mut put = |name: &str, value: AttributeValue| item.push((name.to_owned(), value));
    put("GSI4PK", text(ns.as_str()));
    put("GSI4SK", text(&key.pk));
    put("PK", text(key.pk));
    put("SK", text(key.sk));
    match level {
        Level::System => {}
        Level::Resource(resource) => put("resource", text(resource.as_str())),
        Level::Entity(entity, scope) => {
            let (pk, sk) = keys::entity_config_index(ns, entity, scope);
            put("entity_id", text(entity.as_str()));
            put("resource", text(scope.as_str()));
            put("GSI3PK", text(pk));
            put("GSI3SK", text(sk));
        }
    }
    item
}

/// The attributes that say what a level declares, without its keys.
pub fn encode_fields(config: &LevelConfig) -> Item {
    fields(config).into_iter().collect()
}

fn fields(config: &LevelConfig) -> Attributes {
    let mut item = Attributes::new();
    let mut put = |name: &str, value| item.push((name.to_owned(), value));
    if let Some(on_unavailable) = config.on_unavailable {
        put(ON_UNAVAILABLE, text(on_unavailable.as_str()));
    }
    if let Some(switch) = config.disabled {
        put(DISABLED, encode_switch(switch));
    }
    if let Some(cascade) = config.cascade {
        put(CASCADE, boolean(cascade));
    }
    if let Some(zone) = &config.zone {
        put(ZONE, text(zone.as_str()));
    }
    for (name, limit) in &config.limits {
        encode_limit(name, limit, &mut item);
    }
    item
}

/// How a switch is stored on a config item.
pub fn encode_switch(switch: Switch) -> AttributeValue {
    match switch {
        Switch::Disabled => boolean(true),
        Switch::Enabled => boolean(false),
        Switch::Bypass => text(BYPASS),
    }
}

fn prefix(limit: &Limit) -> &'static str {
    match limit.recovery {
        Recovery::Window(_) => WINDOWED,
        Recovery::Drip { .. } | Recovery::Calendar(_) => PLAIN,
    }
}

fn encode_limit(name: &LimitName, limit: &Limit, item: &mut Attributes) {
    let prefix = prefix(limit);
    let mut put = |field: &str, value| item.push((format!("{prefix}{name}_{field}"), value));
    put("cp", number(limit.capacity));
    put("ra", number(limit.refill_amount()));
    put("rp", number(limit.refill_period));
    match &limit.recovery {
        Recovery::Drip { .. } => {}
        Recovery::Calendar(entries) => {
            put("rsched", text(schedule::encode_reset(entries)));
        }
        Recovery::Window(after) => {
            put("rsa", number(after));
        }
    }
    if !limit.schedule.is_empty() {
        put("sched", text(schedule::encode(&limit.schedule)));
    }
    if limit.soft {
        put("soft", boolean(true));
    }
}

/// The switch of a stored level. A string other than `bypass` reads as explicitly enabled, as
/// clients read it; nothing else about the item is looked at.
pub fn decode_switch(item: &Item) -> Option<Switch> {
    item.get(DISABLED).map(|value| match value {
        AttributeValue::Bool(true) => Switch::Disabled,
        AttributeValue::S(mode) if mode == BYPASS => Switch::Bypass,
        _ => Switch::Enabled,
    })
}

/// The cascade policy of a stored level. Anything but a true boolean reads as "no", as clients read
/// it; nothing else about the item is looked at.
pub fn decode_cascade(item: &Item) -> Option<bool> {
    item.get(CASCADE)
        .map(|value| matches!(value, AttributeValue::Bool(true)))
}

/// What a stored level declares.
///
/// # Errors
/// [`ItemError`] when an attribute does not follow the format; the whole item is then unreadable,
/// since leaving one limit out would let the others win alone.
pub fn decode(item: &Item) -> Result<LevelConfig, ItemError> {
    let reader = Reader::new(item);
    let mut limits = BTreeMap::new();
    for (name, prefix) in limit_names(reader, item)? {
        let limit = decode_limit(reader, &name, prefix)?;
        limits.insert(name, limit);
    }
    let zone = match reader.text(ZONE)? {
        None => None,
        Some(zone) => {
            Some(Zone::parse(zone).map_err(|e| reader.error(ZONE, format!("does not read: {e}")))?)
        }
    };
    let on_unavailable = match reader.text(ON_UNAVAILABLE)? {
        None => None,
        Some("allow") => Some(OnUnavailable::Allow),
        Some("block") => Some(OnUnavailable::Block),
        Some(other) => {
            return Err(reader.error(
                ON_UNAVAILABLE,
                format!("is {other:?}, neither allow nor block"),
            ));
        }
    };
    Ok(LevelConfig {
        limits,
        zone,
        disabled: decode_switch(item),
        cascade: decode_cascade(item),
        on_unavailable,
    })
}

/// What reads of a stored level whatever else is wrong with it: what clients, too, read without
/// looking at the rest.
pub fn decode_sound_parts(item: &Item) -> LevelConfig {
    LevelConfig {
        disabled: decode_switch(item),
        cascade: decode_cascade(item),
        ..LevelConfig::default()
    }
}

/// Whether the stored item is exactly what this build would write for what it declares, keys of
/// the indexes included. Attributes outside the format are another writer's and do not count.
pub fn is_as_written(ns: &NamespaceId, level: &Level, config: &LevelConfig, stored: &Item) -> bool {
    let written = attributes(ns, level, config);
    let is_there = |(name, value): &(String, AttributeValue)| {
        let found = stored.get(name);
        found.is_some_and(|found| same_value(found, value))
    };
    // With all of them there, as many of ours are the same ones.
    let ours = written.iter().filter(|(name, _)| is_ours(name)).count();
    written.iter().all(is_there) && stored.keys().filter(|name| is_ours(name)).count() == ours
}

/// Whether the entity index shows the stored item, and so the registry counts it.
pub fn is_registered(stored: &Item) -> bool {
    stored.contains_key("GSI3PK") && stored.contains_key("GSI3SK")
}

/// The condition that a stored level is still what was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The condition expression.
    pub expression: String,
    /// Attribute names by alias.
    pub names: BTreeMap<String, String>,
    /// Attribute values by alias.
    pub values: BTreeMap<String, AttributeValue>,
}

/// Comparisons that one expression may hold: each is two operators of the 300 that the service allows.
const MAX_COMPARISONS: usize = 140;
/// Bytes of an expression, with room to spare below the service's 4,096.
const MAX_EXPRESSION: usize = 3_900;

/// The condition that an item still holds what was read of it: each declared attribute is equal,
/// and a switch, policy or zone that was absent is still absent, as is a soft mark of a limit. Of an
/// item that did not read, switch and policy are all that can be compared.
pub fn unmoved(before: Option<&StoredLevel>, level: &Level) -> Condition {
    let mut condition = Condition {
        expression: "attribute_exists(PK)".to_owned(),
        names: BTreeMap::new(),
        values: BTreeMap::new(),
    };
    let Some(before) = before else {
        condition.expression = "attribute_not_exists(PK)".to_owned();
        return condition;
    };
    let mut fields: Vec<(String, Option<AttributeValue>)> = encode_fields(&before.config)
        .into_iter()
        .map(|(n, v)| (n, Some(v)))
        .collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    let known: &[&str] = match before.damage {
        None => &[DISABLED, CASCADE, ZONE, ON_UNAVAILABLE],
        Some(_) => &[DISABLED, CASCADE],
    };
    for name in known {
        if !fields.iter().any(|(field, _)| field == name) {
            fields.insert(0, ((*name).to_owned(), None));
        }
    }
    let hard = before.config.limits.iter().filter(|(_, limit)| !limit.soft);
    fields.extend(hard.map(|(name, limit)| (format!("{}{name}_soft", prefix(limit)), None)));
    for (index, (name, value)) in fields.into_iter().take(MAX_COMPARISONS).enumerate() {
        let comparison = match value {
            None => format!(" AND attribute_not_exists(#c{index})"),
            Some(_) => format!(" AND #c{index} = :c{index}"),
        };
        if condition.expression.len() + comparison.len() > MAX_EXPRESSION {
            break;
        }
        condition.expression += &comparison;
        condition.names.insert(format!("#c{index}"), name);
        condition
            .values
            .extend(value.map(|value| (format!(":c{index}"), value)));
    }
    if matches!(level, Level::Entity(..)) {
        condition.expression += if before.registered {
            " AND attribute_exists(GSI3PK)"
        } else {
            " AND attribute_not_exists(GSI3PK)"
        };
    }
    condition
}

/// Whether an attribute is one that the format gives to config items.
fn is_ours(name: &str) -> bool {
    [DISABLED, CASCADE, ZONE, ON_UNAVAILABLE].contains(&name) || parse_limit_attr(name).is_some()
}

fn parse_limit_attr(attribute: &str) -> Option<(&'static str, &str, &str)> {
    let prefix = [PLAIN, WINDOWED]
        .into_iter()
        .find(|prefix| attribute.starts_with(prefix))?;
    let (name, field) = attribute[prefix.len()..].rsplit_once('_')?;
    (!name.is_empty() && FIELDS.contains(&field)).then_some((prefix, name, field))
}

fn limit_names(
    reader: Reader<'_>,
    item: &Item,
) -> Result<BTreeMap<LimitName, &'static str>, ItemError> {
    let mut found: BTreeMap<LimitName, &'static str> = BTreeMap::new();
    // Sorted, so that the same corrupt item gives the same error each time.
    for attribute in item.keys().collect::<BTreeSet<_>>() {
        let Some((prefix, name, "cp")) = parse_limit_attr(attribute) else {
            continue;
        };
        let name = LimitName::parse(name)
            .map_err(|e| reader.error(attribute, format!("names no limit: {e}")))?;
        if found
            .insert(name, prefix)
            .is_some_and(|other| other != prefix)
        {
            return Err(reader.error(
                attribute,
                "is stored both as a plain and as a windowed limit, so which one holds is unknown",
            ));
        }
    }
    Ok(found)
}

fn decode_limit(
    reader: Reader<'_>,
    name: &LimitName,
    prefix: &'static str,
) -> Result<Limit, ItemError> {
    let attribute = |field: &str| format!("{prefix}{name}_{field}");
    let capacity = Tokens(reader.required_whole(&attribute("cp"))?);
    let amount = Tokens(reader.required_whole(&attribute("ra"))?);
    let refill_period = Seconds(reader.required_whole(&attribute("rp"))?);
    let window = reader.whole(&attribute("rsa"))?;
    let resets = reader.text(&attribute("rsched"))?;
    let recovery = match (prefix, window, resets) {
        (WINDOWED, Some(after), _) => Recovery::Window(Seconds(after)),
        (WINDOWED, None, _) => {
            return Err(reader.error(&attribute("rsa"), "is missing on a windowed limit"));
        }
        (_, _, Some(entries)) => Recovery::Calendar(
            schedule::decode_reset(entries)
                .map_err(|e| reader.error(&attribute("rsched"), format!("does not read: {e}")))?,
        ),
        _ if amount == Tokens(0) => {
            return Err(reader.error(&attribute("ra"), "is 0 on a limit that does not reset"));
        }
        _ => Recovery::Drip { amount },
    };
    let schedule = match reader.text(&attribute("sched"))? {
        None => Vec::new(),
        Some(entries) => schedule::decode(entries)
            .map_err(|e| reader.error(&attribute("sched"), format!("does not read: {e}")))?,
    };
    let soft = reader.boolean(&attribute("soft"))?.unwrap_or(false);
    Ok(Limit {
        capacity,
        refill_period,
        recovery,
        schedule,
        soft,
    })
}
