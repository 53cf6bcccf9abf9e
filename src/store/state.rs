//! Reading what a plan needs: namespace, versions, record, levels, pending fan-outs. Strongly
//! consistent; nothing is written, and nothing is compared with a manifest.

use super::read::key_of;
use super::{Store, StoreError};
use crate::model::{
    Damage, Level, NamespaceId, NamespaceName, Pending, ProvisionerRecord, ResourceName, Scope,
    State, StoredLevel, Versions,
};
use crate::table::{self, Item, ItemError, Key, config, keys, record};
use std::collections::{BTreeMap, BTreeSet};

/// How often a record that does not read is read.
const RECORD_ROUNDS: usize = 8;

impl Store {
    /// The id of a namespace; `None` when the registry does not know it.
    ///
    /// # Errors
    /// [`StoreError::NamespaceDeparting`] when it is deleted and its name not free; otherwise when the
    /// registry cannot be read.
    pub async fn namespace_id(
        &self,
        name: &NamespaceName,
    ) -> Result<Option<NamespaceId>, StoreError> {
        let key = keys::namespace_by_name(name);
        let Some(item) = self.get("look the namespace up", &key).await? else {
            return Ok(None);
        };
        let id = table::namespace::decode_id(&item);
        if let Some(departing) = table::namespace::departing(&item)? {
            return Err(StoreError::NamespaceDeparting {
                name: name.to_string(),
                id: id.ok().map(|id| id.to_string()),
                item: key,
                departing,
            });
        }
        Ok(Some(id?))
    }

    /// The name of a namespace id that is to be written to; `None` when the registry does not know it.
    ///
    /// # Errors
    /// [`StoreError::NamespaceDeparting`] when it is deleted; otherwise when the registry cannot be read.
    pub async fn living_namespace_name(
        &self,
        ns: &NamespaceId,
    ) -> Result<Option<NamespaceName>, StoreError> {
        let key = keys::namespace_by_id(ns);
        let Some(item) = self.get("look the namespace id up", &key).await? else {
            return Ok(None);
        };
        let name = table::namespace::decode_name(&item)?;
        match table::namespace::departing(&item)? {
            None => Ok(Some(name)),
            Some(departing) => Err(StoreError::NamespaceDeparting {
                name: name.to_string(),
                id: Some(ns.to_string()),
                item: key,
                departing,
            }),
        }
    }

    /// The name of a namespace id, also of a deleted one; `None` when the registry does not know it.
    ///
    /// # Errors
    /// [`StoreError`] when the registry cannot be read.
    pub async fn namespace_name(
        &self,
        ns: &NamespaceId,
    ) -> Result<Option<NamespaceName>, StoreError> {
        let key = keys::namespace_by_id(ns);
        let item = self.get("look the namespace id up", &key).await?;
        Ok(item
            .as_ref()
            .map(table::namespace::decode_name)
            .transpose()?)
    }

    /// The names of all registered namespaces, sorted, deleted ones left out. They are taken from the
    /// keys: an entry that does not read hides no other.
    ///
    /// # Errors
    /// [`StoreError`] when the registry cannot be read.
    pub async fn namespace_names(&self) -> Result<BTreeSet<NamespaceName>, StoreError> {
        let items = self
            .query_all(
                "list the namespaces",
                &keys::reserved_pk(),
                keys::NAMESPACE_PREFIX,
            )
            .await?;
        let stays = |item: &&Item| !matches!(table::namespace::departing(item), Ok(Some(_)));
        let stored = items.iter().filter(stays);
        let names = stored.filter_map(|item| keys::parse_namespace_sk(&key_of(item).sk));
        Ok(names.collect())
    }

    /// Every namespace that stays, by name, and what is wrong with entries that do not read.
    ///
    /// # Errors
    /// [`StoreError`] when the registry cannot be read.
    pub async fn namespaces(
        &self,
    ) -> Result<(BTreeMap<NamespaceName, NamespaceId>, Vec<ItemError>), StoreError> {
        let items = self
            .query_all(
                "list the namespaces",
                &keys::reserved_pk(),
                keys::NAMESPACE_PREFIX,
            )
            .await?;
        let mut namespaces = BTreeMap::new();
        let mut damaged = Vec::new();
        for item in &items {
            match table::namespace::decode(item) {
                Ok(Some((name, id))) => drop(namespaces.insert(name, id)),
                Ok(None) => {}
                Err(error) => damaged.push(error),
            }
        }
        Ok((namespaces, damaged))
    }

    /// Everything a plan needs to know about a namespace: the levels that are declared and those
    /// that the record manages, and of what those fall back to, the levels that do not read.
    ///
    /// # Errors
    /// [`StoreError`] when something cannot be read, or the record or the version record do not read
    /// as the format says.
    pub async fn load_state(
        &self,
        namespace_id: Option<NamespaceId>,
        declared: impl Iterator<Item = &Level>,
    ) -> Result<State, StoreError> {
        let versions = self.versions().await?;
        let Some(ns) = namespace_id else {
            return Ok(State {
                versions,
                ..State::default()
            });
        };
        let (record, (pending, damaged_pending)) =
            tokio::try_join!(self.record(&ns), self.pending_items(&ns))?;
        let managed = record.iter().flat_map(|record| &record.managed);
        // Declared levels live longer than the record's.
        let declared = declared.map(|level| -> &Level { level });
        let wanted: BTreeSet<&Level> = declared.chain(managed).collect();
        let beside = fallbacks(&wanted);
        let wanted = wanted.into_iter().chain(&beside);
        let mut levels = self.levels(&ns, wanted).await?;
        let damaged_beside = beside
            .iter()
            .filter_map(|level| Some((level.clone(), levels.remove(level)?.damage?)))
            .collect();
        Ok(State {
            namespace_id: Some(ns),
            versions,
            record,
            levels,
            damaged_beside,
            pending,
            damaged_pending,
        })
    }

    /// The version record; `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    pub async fn versions(&self) -> Result<Option<Versions>, StoreError> {
        let item = self
            .get("read the version record", &keys::version())
            .await?;
        Ok(item.as_ref().map(table::version::decode).transpose()?)
    }

    /// The provisioner record, its overflow items included.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    pub async fn record(&self, ns: &NamespaceId) -> Result<Option<ProvisionerRecord>, StoreError> {
        for _ in 1..RECORD_ROUNDS {
            match self.record_once(ns).await {
                // Perhaps another apply has replaced the record in between, and its overflow with it.
                Err(StoreError::RecordUnreadable(_)) => {}
                read => return read,
            }
        }
        self.record_once(ns).await
    }

    async fn record_once(&self, ns: &NamespaceId) -> Result<Option<ProvisionerRecord>, StoreError> {
        let act = "read the provisioner record";
        let Some(main) = self.get(act, &keys::provisioner(ns)).await? else {
            return Ok(None);
        };
        let keys = record::overflow_keys(ns, &main).map_err(StoreError::RecordUnreadable)?;
        let overflow = self.get_many(act, keys, Key::clone, None, |_, item| item);
        let overflow = overflow.await?.into_iter().map(|(_, item)| item);
        let overflow = overflow.collect();
        let items = record::RecordItems { main, overflow };
        let record = record::decode(&items).map_err(StoreError::RecordUnreadable)?;
        Ok(Some(record))
    }

    /// Every pending fan-out of a namespace.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    pub async fn pending(&self, ns: &NamespaceId) -> Result<Vec<Pending>, StoreError> {
        Ok(self.pending_items(ns).await?.0)
    }

    /// Every pending fan-out of a namespace, and the items among them that name none.
    async fn pending_items(
        &self,
        ns: &NamespaceId,
    ) -> Result<(Vec<Pending>, Vec<Damage>), StoreError> {
        let pk = keys::system_pk(ns);
        let items = self
            .query_all("read pending fan-outs", &pk, keys::PENDING_PREFIX)
            .await?;
        let (mut pending, mut damaged) = (Vec::new(), Vec::new());
        for item in &items {
            match table::pending::decode_stored(ns, item) {
                Ok(owed) => pending.push(owed),
                Err(error) => damaged.push(error.into()),
            }
        }
        Ok((pending, damaged))
    }

    /// The stored ones among some levels, those that do not read included.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    pub async fn levels<'a>(
        &self,
        ns: &NamespaceId,
        wanted: impl Iterator<Item = &'a Level>,
    ) -> Result<BTreeMap<Level, StoredLevel>, StoreError> {
        let wanted: BTreeSet<&Level> = wanted.collect();
        let wanted = wanted.into_iter().cloned().collect();
        let (of, by) = (ns.clone(), ns.clone());
        let key = move |level: &Level| keys::config(&of, level);
        // Decoded as it comes: the items of a large namespace take several times the room of what they say.
        let read = move |level: &Level, item| stored_level(&by, level, &item);
        let stored = self.get_many("read the levels", wanted, key, None, read);
        Ok(stored.await?.into_iter().collect())
    }
}

/// The shared levels that the buckets of some levels may follow, those levels aside. What an entity
/// falls back to on its own is left out: that would be one more item for every entity.
fn fallbacks(levels: &BTreeSet<&Level>) -> BTreeSet<Level> {
    let resources: BTreeSet<&ResourceName> = levels
        .iter()
        .filter_map(|level| match level {
            Level::Entity(_, Scope::Resource(resource)) => Some(resource),
            _ => None,
        })
        .collect();
    let resources = resources.into_iter().cloned().map(Level::Resource);
    let system = (!levels.is_empty()).then_some(Level::System);
    let followed = resources.chain(system);
    followed.filter(|level| !levels.contains(level)).collect()
}

pub(super) fn stored_level(ns: &NamespaceId, level: &Level, item: &Item) -> StoredLevel {
    let (config, damage) = match config::decode(item) {
        Ok(config) => (config, None),
        Err(error) => (config::decode_sound_parts(item), Some(error.into())),
    };
    let registered = match level {
        Level::Entity(..) => config::is_registered(item),
        Level::System | Level::Resource(_) => true,
    };
    StoredLevel {
        as_written: damage.is_none() && config::is_as_written(ns, level, &config, item),
        config,
        registered,
        damage,
    }
}
