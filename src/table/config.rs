//! Config items: one level's limits and switch (docs/format.md).

use super::attr::{Item, ItemError, Reader};
use super::keys;
use super::schedule;
use super::written::{FieldNames, Written, as_text};
use crate::model::{
    Level, LevelConfig, Limit, LimitName, NamespaceId, OnUnavailable, Recovery, Seconds,
    StoredLevel, Switch, Tokens, Zone,
};
use aws_sdk_dynamodb::types::AttributeValue;
use litemap::LiteMap;
use std::collections::BTreeMap;

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

/// The whole item that a level's config is stored as.
pub fn encode(ns: &NamespaceId, level: &Level, config: &LevelConfig) -> Item {
    let mut item = Item::new();
    attributes(ns, level, config, |name, value| {
        item.insert(name.to_owned(), value.into());
    });
    item
}

/// Names every attribute of the whole item, each once, in no particular order.
fn attributes(
    ns: &NamespaceId,
    level: &Level,
    config: &LevelConfig,
    mut put: impl FnMut(&str, Written<'_>),
) {
    let key = keys::config(ns, level);
    put("GSI4PK", as_text(ns.as_str()));
    put("GSI4SK", as_text(&key.pk));
    put("PK", as_text(&key.pk));
    put("SK", as_text(&key.sk));
    match level {
        Level::System => {}
        Level::Resource(resource) => put("resource", as_text(resource.as_str())),
        Level::Entity(entity, scope) => {
            let (pk, sk) = keys::entity_config_index(ns, entity, scope);
            put("entity_id", as_text(entity.as_str()));
            put("resource", as_text(scope.as_str()));
            put("GSI3PK", as_text(&pk));
            put("GSI3SK", as_text(&sk));
        }
    }
    fields(config, put);
}

/// The attributes that say what a level declares, without its keys.
pub fn encode_fields(config: &LevelConfig) -> Item {
    let mut item = Item::new();
    fields(config, |name, value| {
        item.insert(name.to_owned(), value.into());
    });
    item
}

fn fields(config: &LevelConfig, mut put: impl FnMut(&str, Written<'_>)) {
    if let Some(on_unavailable) = config.on_unavailable {
        put(ON_UNAVAILABLE, as_text(on_unavailable.as_str()));
    }
    if let Some(switch) = config.disabled {
        put(DISABLED, written_switch(switch));
    }
    if let Some(cascade) = config.cascade {
        put(CASCADE, Written::Boolean(cascade));
    }
    if let Some(zone) = &config.zone {
        put(ZONE, as_text(zone.as_str()));
    }
    for (name, limit) in &config.limits {
        limit_fields(name, limit, &mut put);
    }
}

/// How a switch is stored on a config item.
pub fn encode_switch(switch: Switch) -> AttributeValue {
    written_switch(switch).into()
}

fn written_switch(switch: Switch) -> Written<'static> {
    match switch {
        Switch::Disabled => Written::Boolean(true),
        Switch::Enabled => Written::Boolean(false),
        Switch::Bypass => as_text(BYPASS),
    }
}

fn prefix(limit: &Limit) -> &'static str {
    match limit.recovery {
        Recovery::Window(_) => WINDOWED,
        Recovery::Drip { .. } | Recovery::Calendar(_) => PLAIN,
    }
}

fn limit_fields(name: &LimitName, limit: &Limit, put: &mut impl FnMut(&str, Written<'_>)) {
    let mut names = FieldNames::of(prefix(limit), name);
    put(names.at("cp"), Written::Number(limit.capacity.0));
    put(names.at("ra"), Written::Number(limit.refill_amount().0));
    put(names.at("rp"), Written::Number(limit.refill_period.0));
    match &limit.recovery {
        Recovery::Drip { .. } => {}
        Recovery::Calendar(entries) => {
            let entries = schedule::encode_reset(entries);
            put(names.at("rsched"), Written::Text(entries.into()));
        }
        Recovery::Window(after) => {
            put(names.at("rsa"), Written::Number(after.0));
        }
    }
    if !limit.schedule.is_empty() {
        let entries = schedule::encode(&limit.schedule);
        put(names.at("sched"), Written::Text(entries.into()));
    }
    if limit.soft {
        put(names.at("soft"), Written::Boolean(true));
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
    let mut limits = LiteMap::new();
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
    let (mut all_there, mut ours) = (true, 0);
    attributes(ns, level, config, |name, value| {
        all_there &= stored.get(name).is_some_and(|stored| value.is(stored));
        ours += usize::from(is_ours(name));
    });
    // With all of them there, as many of ours are the same ones.
    all_there && stored.keys().filter(|name| is_ours(name)).count() == ours
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
) -> Result<LiteMap<LimitName, &'static str>, ItemError> {
    let mut found: LiteMap<LimitName, &'static str> = LiteMap::new();
    let mut capacities: Vec<_> = item
        .keys()
        .filter_map(|attribute| match parse_limit_attr(attribute) {
            Some((prefix, name, "cp")) => Some((attribute, prefix, name)),
            _ => None,
        })
        .collect();
    // Sorted, so that the same corrupt item gives the same error each time.
    capacities.sort();
    for (attribute, prefix, name) in capacities {
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
    let mut names = FieldNames::of(prefix, name);
    let capacity = Tokens(reader.required_whole(names.at("cp"))?);
    let amount = Tokens(reader.required_whole(names.at("ra"))?);
    let refill_period = Seconds(reader.required_whole(names.at("rp"))?);
    let window = reader.whole(names.at("rsa"))?;
    let resets = reader.text(names.at("rsched"))?;
    let recovery = match (prefix, window, resets) {
        (WINDOWED, Some(after), _) => Recovery::Window(Seconds(after)),
        (WINDOWED, None, _) => {
            return Err(reader.error(names.at("rsa"), "is missing on a windowed limit"));
        }
        (_, _, Some(entries)) => Recovery::Calendar(
            schedule::decode_reset(entries)
                .map_err(|e| reader.error(names.at("rsched"), format!("does not read: {e}")))?,
        ),
        _ if amount == Tokens(0) => {
            return Err(reader.error(names.at("ra"), "is 0 on a limit that does not reset"));
        }
        _ => Recovery::Drip { amount },
    };
    let schedule = match reader.text(names.at("sched"))? {
        None => Vec::new(),
        Some(entries) => schedule::decode(entries)
            .map_err(|e| reader.error(names.at("sched"), format!("does not read: {e}")))?,
    };
    let soft = reader.boolean(names.at("soft"))?.unwrap_or(false);
    Ok(Limit {
        capacity,
        refill_period,
        recovery,
        schedule,
        soft,
    })
}
