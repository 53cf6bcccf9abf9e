//! Every key of the table, built and parsed here and nowhere else (docs/format.md).

use crate::model::{
    EntityId, FanoutKind, Level, NamespaceId, NamespaceName, Owed, ResourceName, Scope,
};
use std::fmt;
use thiserror::Error;

/// The namespace that holds the table's own records.
pub const RESERVED: &str = NamespaceId::RESERVED;
/// The index from a resource to its buckets. Projects whole items.
pub const RESOURCE_INDEX: &str = "GSI2";
/// The index from an entity to its buckets. Projects keys only.
pub const ENTITY_INDEX: &str = "GSI3";
/// The index of everything in a namespace. Projects keys only.
pub const NAMESPACE_INDEX: &str = "GSI4";
/// The sort key of every bucket.
pub const BUCKET_SK: &str = "#STATE";
/// What every bucket's index sort key starts with.
pub const BUCKET_PREFIX: &str = "BUCKET#";
/// What the sort keys of the registry entries of namespaces by name start with.
pub const NAMESPACE_PREFIX: &str = "#NAMESPACE#";
/// What the sort keys of pending fan-outs start with.
pub const PENDING_PREFIX: &str = "#PROVISIONER#PENDING#";
/// What the sort keys of the provisioner record's overflow items start with.
pub const MANAGED_PREFIX: &str = "#PROVISIONER#MANAGED#";

/// A primary key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The partition key.
    pub pk: String,
    /// The sort key.
    pub sk: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {}", self.pk, self.sk)
    }
}

/// The partition of the table's own records.
pub fn reserved_pk() -> String {
    format!("{RESERVED}/SYSTEM#")
}

/// The partition of a namespace's own records.
pub fn system_pk(ns: &NamespaceId) -> String {
    format!("{ns}/SYSTEM#")
}

/// The version record.
pub fn version() -> Key {
    Key {
        pk: reserved_pk(),
        sk: "#VERSION".to_owned(),
    }
}

/// The registry entry from a namespace's name to its id.
pub fn namespace_by_name(name: &NamespaceName) -> Key {
    Key {
        pk: reserved_pk(),
        sk: format!("{NAMESPACE_PREFIX}{name}"),
    }
}

/// Reads a namespace's name back from the sort key of its registry entry. `None` for any other key.
pub fn parse_namespace_sk(sk: &str) -> Option<NamespaceName> {
    NamespaceName::parse(sk.strip_prefix(NAMESPACE_PREFIX)?).ok()
}

/// The registry entry from a namespace's id to its name.
pub fn namespace_by_id(ns: &NamespaceId) -> Key {
    Key {
        pk: reserved_pk(),
        sk: format!("#NSID#{ns}"),
    }
}

/// The config item of a level.
pub fn config(ns: &NamespaceId, level: &Level) -> Key {
    match level {
        Level::System => Key {
            pk: system_pk(ns),
            sk: "#CONFIG".to_owned(),
        },
        Level::Resource(resource) => Key {
            pk: format!("{ns}/RESOURCE#{resource}"),
            sk: "#CONFIG".to_owned(),
        },
        Level::Entity(entity, scope) => Key {
            pk: entity_pk(ns, entity),
            sk: format!("#CONFIG#{scope}"),
        },
    }
}

/// An entity's META item.
pub fn meta(ns: &NamespaceId, entity: &EntityId) -> Key {
    Key {
        pk: entity_pk(ns, entity),
        sk: "#META".to_owned(),
    }
}

/// The index keys of a child's META item: partition and sort key of GSI1.
pub fn child_index(ns: &NamespaceId, parent: &EntityId, child: &EntityId) -> (String, String) {
    (format!("{ns}/PARENT#{parent}"), format!("CHILD#{child}"))
}

fn entity_pk(ns: &NamespaceId, entity: &EntityId) -> String {
    format!("{ns}/ENTITY#{entity}")
}

/// The index keys of an entity's config item: partition and sort key of GSI3.
pub fn entity_config_index(ns: &NamespaceId, entity: &EntityId, scope: &Scope) -> (String, String) {
    (format!("{ns}/ENTITY_CONFIG#{scope}"), entity.to_string())
}

/// The set of resources that have a config.
pub fn resource_registry(ns: &NamespaceId) -> Key {
    Key {
        pk: system_pk(ns),
        sk: "#RESOURCES".to_owned(),
    }
}

/// The counts of entity configs per resource.
pub fn entity_config_registry(ns: &NamespaceId) -> Key {
    Key {
        pk: system_pk(ns),
        sk: "#ENTITY_CONFIG_RESOURCES".to_owned(),
    }
}

/// The provisioner record.
pub fn provisioner(ns: &NamespaceId) -> Key {
    Key {
        pk: system_pk(ns),
        sk: "#PROVISIONER".to_owned(),
    }
}

/// The n-th overflow item that one write of the provisioner record made.
pub fn managed_overflow(ns: &NamespaceId, write: &str, index: usize) -> Key {
    Key {
        pk: system_pk(ns),
        sk: format!("{MANAGED_PREFIX}{write}#{index:03}"),
    }
}

/// The pending item of one owed fan-out.
pub fn pending(ns: &NamespaceId, owed: &Owed) -> Key {
    let target = owed.level.target().unwrap_or_default();
    let (kind, level) = (owed.kind.stored_name(), owed.level.kind());
    Key {
        pk: system_pk(ns),
        sk: format!("{PENDING_PREFIX}{kind}#{level}#{target}"),
    }
}

/// Reads back what the sort key of a pending item says is owed. `None` for any other key.
pub fn parse_pending_sk(sk: &str) -> Option<Owed> {
    let mut parts = sk.strip_prefix(PENDING_PREFIX)?.splitn(3, '#');
    let kind = FanoutKind::from_stored(parts.next()?)?;
    let level = Level::from_parts(parts.next()?, parts.next()?)?;
    Some(Owed { level, kind })
}

/// Whom an audit event of a level is about, as its partition spells it.
pub fn audit_subject(level: &Level) -> String {
    match level {
        Level::System => "$SYSTEM".to_owned(),
        Level::Resource(resource) => format!("$RESOURCE:{resource}"),
        Level::Entity(entity, _) => entity.to_string(),
    }
}

/// An audit event of a level.
pub fn audit(ns: &NamespaceId, level: &Level, event_id: &str) -> Key {
    Key {
        pk: format!("{ns}/AUDIT#{}", audit_subject(level)),
        sk: format!("#AUDIT#{event_id}"),
    }
}

/// One shard of the bucket of an entity and a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketId {
    /// Whose bucket it is.
    pub entity: EntityId,
    /// What it meters.
    pub resource: ResourceName,
    /// The shard, from 0.
    pub shard: u32,
}

/// A partition key that is not a bucket's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{pk:?} is not the key of a bucket: {problem}")]
pub struct BucketKeyError {
    /// The key.
    pub pk: String,
    /// Where it departs from the format.
    pub problem: String,
    /// Whether it has not even the form of one, so that no client can have made it for a bucket. A key
    /// with a name outside the rules has: other releases may have had other rules.
    pub is_foreign: bool,
}

impl BucketId {
    /// The bucket's partition key.
    pub fn pk(&self, ns: &NamespaceId) -> String {
        format!("{ns}/{}", self.suffix())
    }

    /// The bucket's sort key in GSI4: its partition key without the namespace.
    pub fn suffix(&self) -> String {
        format!(
            "{BUCKET_PREFIX}{}#{}#{}",
            self.entity, self.resource, self.shard
        )
    }

    /// Partition and sort key in the resource index.
    pub fn resource_index(&self, ns: &NamespaceId) -> (String, String) {
        (
            resource_index_pk(ns, &self.resource),
            format!("{BUCKET_PREFIX}{}#{}", self.entity, self.shard),
        )
    }

    /// Partition and sort key in the entity index.
    pub fn entity_index(&self, ns: &NamespaceId) -> (String, String) {
        (
            entity_pk(ns, &self.entity),
            format!("{BUCKET_PREFIX}{}#{}", self.resource, self.shard),
        )
    }

    /// Parses a bucket's partition key: the shard from the right, then the first `#` separates
    /// entity from resource.
    ///
    /// # Errors
    /// [`BucketKeyError`] when the key is another namespace's or has another form.
    pub fn parse(ns: &NamespaceId, pk: &str) -> Result<BucketId, BucketKeyError> {
        let foreign = |problem: String| BucketKeyError {
            pk: pk.to_owned(),
            problem,
            is_foreign: true,
        };
        let error = |problem: String| BucketKeyError {
            is_foreign: false,
            ..foreign(problem)
        };
        let rest = pk
            .strip_prefix(ns.as_str())
            .and_then(|rest| rest.strip_prefix('/'))
            .ok_or_else(|| foreign(format!("it does not start with {ns}/")))?
            .strip_prefix(BUCKET_PREFIX)
            .ok_or_else(|| foreign(format!("it does not continue with {BUCKET_PREFIX}")))?;
        let (names, shard) = rest
            .rsplit_once('#')
            .ok_or_else(|| foreign("it has no shard".to_owned()))?;
        let (entity, resource) = names
            .split_once('#')
            .ok_or_else(|| foreign("it has no resource".to_owned()))?;
        if shard.is_empty() || !shard.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(foreign(format!("{shard:?} is not a shard number")));
        }
        Ok(BucketId {
            entity: EntityId::parse(entity).map_err(|e| error(e.to_string()))?,
            resource: ResourceName::parse(resource).map_err(|e| error(e.to_string()))?,
            shard: shard
                .parse()
                .map_err(|_| error(format!("{shard:?} is not a shard number")))?,
        })
    }
}

impl fmt::Display for BucketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} shard {}", self.entity, self.resource, self.shard)
    }
}

/// Where a level's buckets are found: an index, its partition, and what the sort keys start with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovery {
    /// The index.
    pub index: &'static str,
    /// The index partition.
    pub pk: String,
    /// What sort keys start with.
    pub prefix: String,
    /// Whether the stamps that buckets show there are asked for too. Keys say which buckets there are.
    pub stamps: bool,
}

impl Discovery {
    /// The same, with the stamps that the index shows: none, where it projects keys only.
    #[must_use]
    pub fn with_stamps(self) -> Discovery {
        let stamps = self.index == RESOURCE_INDEX;
        Discovery { stamps, ..self }
    }
}

/// Every bucket that a level can be the config of.
pub fn buckets_of_level(ns: &NamespaceId, level: &Level) -> Discovery {
    match level {
        Level::System => buckets_of_namespace(ns),
        Level::Resource(resource) => buckets_of_resource(ns, resource),
        Level::Entity(entity, scope) => buckets_of_entity(ns, entity, scope),
    }
}

/// Every bucket of a resource.
pub fn buckets_of_resource(ns: &NamespaceId, resource: &ResourceName) -> Discovery {
    Discovery {
        index: RESOURCE_INDEX,
        pk: resource_index_pk(ns, resource),
        prefix: BUCKET_PREFIX.to_owned(),
        stamps: false,
    }
}

/// Every bucket of an entity, of one resource or of all.
pub fn buckets_of_entity(ns: &NamespaceId, entity: &EntityId, scope: &Scope) -> Discovery {
    let prefix = match scope {
        Scope::Default => BUCKET_PREFIX.to_owned(),
        Scope::Resource(resource) => format!("{BUCKET_PREFIX}{resource}#"),
    };
    Discovery {
        index: ENTITY_INDEX,
        pk: entity_pk(ns, entity),
        prefix,
        stamps: false,
    }
}

/// Every bucket of a namespace.
pub fn buckets_of_namespace(ns: &NamespaceId) -> Discovery {
    Discovery {
        index: NAMESPACE_INDEX,
        pk: ns.to_string(),
        prefix: BUCKET_PREFIX.to_owned(),
        stamps: false,
    }
}

fn resource_index_pk(ns: &NamespaceId, resource: &ResourceName) -> String {
    format!("{ns}/RESOURCE#{resource}")
}
