//! Reading what decides about buckets: the levels' config, item by item, and the entities' META.
//! Strongly consistent, in batches. Which level wins is not decided here.

use super::read::{Projection, key_of};
use super::{Store, StoreError};
use crate::model::{EntityId, Level, LevelConfig, NamespaceId, Switch};
use crate::table::cascade::{self, BucketOwner};
use crate::table::{Item, ItemError, Key, config, keys};
use std::collections::{BTreeSet, HashMap};

impl Store {
    /// The explicit switches of some levels; a level without one is left out. Nothing else of the
    /// items is read, so that a limit that does not decode never keeps a kill switch from working.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    pub async fn switches(
        &self,
        ns: &NamespaceId,
        levels: &BTreeSet<Level>,
    ) -> Result<HashMap<Level, Switch>, StoreError> {
        let projection = Projection(&["PK", "SK", "disabled"]);
        let act = "resolve the switches";
        let items = self.level_items(act, ns, levels, Some(projection)).await?;
        let found = items
            .into_iter()
            .filter_map(|(level, item)| Some((level, config::decode_switch(&item)?)));
        Ok(found.collect())
    }

    /// The stored ones among some levels, each with its explicit switch. Nothing else of the items
    /// is read.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    pub(super) async fn standing(
        &self,
        ns: &NamespaceId,
        levels: &BTreeSet<Level>,
    ) -> Result<HashMap<Level, Option<Switch>>, StoreError> {
        let projection = Projection(&["PK", "SK", "disabled"]);
        let act = "read the switches";
        let items = self.level_items(act, ns, levels, Some(projection)).await?;
        let found = items
            .into_iter()
            .map(|(level, item)| (level, config::decode_switch(&item)));
        Ok(found.collect())
    }

    /// The explicit cascade policies of some levels; a level without one is left out. Nothing else
    /// of the items is read.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    pub async fn cascade_policies(
        &self,
        ns: &NamespaceId,
        levels: &BTreeSet<Level>,
    ) -> Result<HashMap<Level, bool>, StoreError> {
        let projection = Projection(&["PK", "SK", "cascade"]);
        let act = "resolve the cascade policies";
        let items = self.level_items(act, ns, levels, Some(projection)).await?;
        let found = items
            .into_iter()
            .filter_map(|(level, item)| Some((level, config::decode_cascade(&item)?)));
        Ok(found.collect())
    }

    /// The stored ones among some levels, each with what it declares or why it does not read.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    pub async fn configs(
        &self,
        ns: &NamespaceId,
        levels: &BTreeSet<Level>,
    ) -> Result<HashMap<Level, Result<LevelConfig, ItemError>>, StoreError> {
        let items = self
            .level_items("resolve the limits", ns, levels, None)
            .await?;
        let decoded = items
            .into_iter()
            .map(|(level, item)| (level, config::decode(&item)));
        Ok(decoded.collect())
    }

    /// The META of some entities, each as read or why it does not read; an entity without one is
    /// left out.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    pub async fn owners(
        &self,
        ns: &NamespaceId,
        entities: &BTreeSet<EntityId>,
    ) -> Result<HashMap<EntityId, Result<BucketOwner, ItemError>>, StoreError> {
        let by_key: HashMap<Key, &EntityId> = entities
            .iter()
            .map(|entity| (keys::meta(ns, entity), entity))
            .collect();
        let wanted: Vec<Key> = by_key.keys().cloned().collect();
        let items = self.get_many("read the entities", &wanted, None).await?;
        let found = items.iter().filter_map(|item| {
            let entity = by_key.get(&key_of(item))?;
            Some(((*entity).clone(), cascade::decode_owner(item)))
        });
        Ok(found.collect())
    }

    /// The stored ones among some levels, as items.
    pub(super) async fn level_items(
        &self,
        act: &'static str,
        ns: &NamespaceId,
        levels: &BTreeSet<Level>,
        projection: Option<Projection>,
    ) -> Result<Vec<(Level, Item)>, StoreError> {
        let by_key: HashMap<Key, &Level> = levels
            .iter()
            .map(|level| (keys::config(ns, level), level))
            .collect();
        let wanted: Vec<Key> = by_key.keys().cloned().collect();
        let items = self.get_many(act, &wanted, projection).await?;
        let found = items
            .into_iter()
            .filter_map(|item| Some(((*by_key.get(&key_of(&item))?).clone(), item)));
        Ok(found.collect())
    }
}
