//! Reading what a plan needs: namespace, versions, record, levels, pending fan-outs. Strongly
//! consistent; nothing is written, and nothing is compared with a manifest.

use super::{Store, StoreError};
use crate::model::{
    Level, NamespaceId, NamespaceName, Pending, ProvisionerRecord, State, StoredLevel, Versions,
};
use crate::table::{self, Item, Key, config, keys, record};
use std::collections::{BTreeMap, BTreeSet};

impl Store {
    /// The id of a namespace; `None` when the registry does not know it.
    ///
    /// # Errors
    /// [`StoreError`] when the registry cannot be read.
    pub async fn namespace_id(
        &self,
        name: &NamespaceName,
    ) -> Result<Option<NamespaceId>, StoreError> {
        let key = keys::namespace_by_name(name);
        match self.get("look the namespace up", &key).await? {
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
        let key = keys::namespace_by_id(ns);
        let item = self.get("look the namespace id up", &key).await?;
        Ok(item
            .as_ref()
            .map(table::namespace::decode_name)
            .transpose()?)
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

    /// Every namespace in use, by name.
    ///
    /// # Errors
    /// [`StoreError`] when the registry cannot be read.
    pub async fn namespaces(&self) -> Result<BTreeMap<NamespaceName, NamespaceId>, StoreError> {
        let items = self
            .query_all("list the namespaces", &keys::reserved_pk(), "#NAMESPACE#")
            .await?;
        let mut namespaces = BTreeMap::new();
        for item in &items {
            if let Some(id) = table::namespace::decode_id(item)? {
                namespaces.insert(table::namespace::decode_name(item)?, id);
            }
        }
        Ok(namespaces)
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
        let wanted: BTreeSet<Level> = wanted.cloned().collect();
        let items = self
            .level_items("read the levels", ns, &wanted, None)
            .await?;
        let stored = items.into_iter().map(|(level, item)| {
            let stored = stored_level(ns, &level, &item)?;
            Ok((level, stored))
        });
        stored.collect()
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
