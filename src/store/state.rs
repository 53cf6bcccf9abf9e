//! Reading what a plan needs: namespace, versions, record, levels, pending fan-outs.

use super::{Store, StoreError};
use crate::model::{
    Level, LevelConfig, NamespaceId, NamespaceName, Pending, ProvisionerRecord, State, StoredLevel,
    Versions,
};
use crate::table::{self, Item, Key, attr, config, keys, record};
use std::collections::{BTreeMap, BTreeSet, HashMap};

impl Store {
    /// The id of a namespace; `None` when the registry does not know it.
    ///
    /// # Errors
    /// [`StoreError`] when the registry cannot be read.
    pub async fn namespace_id(
        &self,
        name: &NamespaceName,
    ) -> Result<Option<NamespaceId>, StoreError> {
        match self
            .get("look the namespace up", &keys::namespace_by_name(name))
            .await?
        {
            None => Ok(None),
            Some(item) => Ok(table::namespace::decode_id(&item)?),
        }
    }

    /// The name of a namespace id; `None` when the registry does not know it.
    ///
    /// # Errors
    /// [`StoreError`] when the registry cannot be read.
    pub async fn namespace_name(
        &self,
        ns: &NamespaceId,
    ) -> Result<Option<NamespaceName>, StoreError> {
        match self
            .get("look the namespace id up", &keys::namespace_by_id(ns))
            .await?
        {
            None => Ok(None),
            Some(item) => Ok(Some(table::namespace::decode_name(&item)?)),
        }
    }

    /// The names of all registered namespaces, sorted.
    ///
    /// # Errors
    /// [`StoreError`] when the registry cannot be read.
    pub async fn namespace_names(&self) -> Result<BTreeSet<NamespaceName>, StoreError> {
        let items = self
            .query_all("list the namespaces", &keys::reserved_pk(), "#NAMESPACE#")
            .await?;
        let names = items.iter().map(table::namespace::decode_name);
        Ok(names.collect::<Result<_, _>>()?)
    }

    /// Everything a plan needs to know about a namespace: the levels that are declared and those
    /// that the record manages.
    ///
    /// # Errors
    /// [`StoreError`] when something cannot be read, or does not read as the format says.
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
        let (record, pending) = tokio::try_join!(self.record(&ns), self.pending(&ns))?;
        let mut wanted: BTreeSet<Level> = declared.cloned().collect();
        wanted.extend(
            record
                .iter()
                .flat_map(|record| record.managed.iter().cloned()),
        );
        let levels = self.levels(&ns, wanted.iter()).await?;
        Ok(State {
            namespace_id: Some(ns),
            versions,
            record,
            levels,
            pending,
        })
    }

    /// The version record; `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    pub async fn versions(&self) -> Result<Option<Versions>, StoreError> {
        match self
            .get("read the version record", &keys::version())
            .await?
        {
            None => Ok(None),
            Some(item) => Ok(Some(table::version::decode(&item)?)),
        }
    }

    /// The provisioner record, its overflow items included.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    pub async fn record(&self, ns: &NamespaceId) -> Result<Option<ProvisionerRecord>, StoreError> {
        let act = "read the provisioner record";
        let Some(main) = self.get(act, &keys::provisioner(ns)).await? else {
            return Ok(None);
        };
        let count = record::overflow_count(&main)?;
        let keys: Vec<Key> = (0..count)
            .map(|index| keys::managed_overflow(ns, index))
            .collect();
        let overflow = self.get_many(act, &keys, None).await?;
        Ok(Some(record::decode(&record::RecordItems {
            main,
            overflow,
        })?))
    }

    /// Every pending fan-out of a namespace.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    pub async fn pending(&self, ns: &NamespaceId) -> Result<Vec<Pending>, StoreError> {
        let pk = keys::system_pk(ns);
        let items = self
            .query_all("read pending fan-outs", &pk, keys::PENDING_PREFIX)
            .await?;
        Ok(items
            .iter()
            .map(table::pending::decode)
            .collect::<Result<_, _>>()?)
    }

    /// The stored ones among some levels.
    ///
    /// # Errors
    /// [`StoreError`] when one cannot be read.
    pub async fn levels<'a>(
        &self,
        ns: &NamespaceId,
        wanted: impl Iterator<Item = &'a Level>,
    ) -> Result<BTreeMap<Level, StoredLevel>, StoreError> {
        let by_key: HashMap<Key, &Level> = wanted
            .map(|level| (keys::config(ns, level), level))
            .collect();
        let keys: Vec<Key> = by_key.keys().cloned().collect();
        let mut levels = BTreeMap::new();
        for item in self.get_many("read the levels", &keys, None).await? {
            if let Some(level) = by_key.get(&key_of(&item)) {
                levels.insert((*level).clone(), stored_level(ns, level, &item)?);
            }
        }
        Ok(levels)
    }

    /// The config of one level; `None` when it is not stored.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    pub async fn level(
        &self,
        ns: &NamespaceId,
        level: &Level,
    ) -> Result<Option<LevelConfig>, StoreError> {
        match self.get("read the level", &keys::config(ns, level)).await? {
            None => Ok(None),
            Some(item) => Ok(Some(config::decode(&item)?)),
        }
    }
}

pub(super) fn key_of(item: &Item) -> Key {
    let reader = attr::Reader::new(item);
    Key {
        pk: reader.pk().to_owned(),
        sk: reader.sk().to_owned(),
    }
}

pub(super) fn stored_level(
    ns: &NamespaceId,
    level: &Level,
    item: &Item,
) -> Result<StoredLevel, table::ItemError> {
    let decoded = config::decode(item)?;
    let as_written = config::is_as_written(ns, level, &decoded, item);
    let registered = match level {
        Level::Entity(..) => config::is_registered(item),
        Level::System | Level::Resource(_) => true,
    };
    Ok(StoredLevel {
        config: decoded,
        as_written,
        registered,
    })
}
