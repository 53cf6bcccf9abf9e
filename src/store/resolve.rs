//! Reading what decides about buckets: the levels' config, item by item, and the entities' META.
//! Strongly consistent, in batches. Which level wins is not decided here.

use super::read::Projection;
use super::{Store, StoreError};
use crate::model::{EntityId, Level, LevelConfig, NamespaceId, Switch};
use crate::table::cascade::{self, BucketOwner};
use crate::table::{Item, ItemError, config, keys};
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
        let read = |item: &Item| config::decode_switch(item);
        let switches = self.of_levels(act, ns, levels, Some(projection), read);
        Ok(explicit(switches.await?))
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
        let read = |item: &Item| config::decode_switch(item);
        let standing = self.of_levels(act, ns, levels, Some(projection), read);
        Ok(standing.await?.into_iter().collect())
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
        let read = |item: &Item| config::decode_cascade(item);
        let policies = self.of_levels(act, ns, levels, Some(projection), read);
        Ok(explicit(policies.await?))
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
        let read = |item: &Item| config::decode(item);
        let configs = self.of_levels("resolve the limits", ns, levels, None, read);
        Ok(configs.await?.into_iter().collect())
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
        let of = ns.clone();
        let key = move |entity: &EntityId| keys::meta(&of, entity);
        let read = |_: &EntityId, item| cascade::decode_owner(&item);
        let entities = entities.iter().cloned().collect();
        let owners = self.get_many("read the entities", entities, key, None, read);
        Ok(owners.await?.into_iter().collect())
    }

    /// The stored ones among some levels, each with what is read of its item.
    async fn of_levels<T: Send + 'static>(
        &self,
        act: &'static str,
        ns: &NamespaceId,
        levels: &BTreeSet<Level>,
        projection: Option<Projection>,
        read: fn(&Item) -> T,
    ) -> Result<Vec<(Level, T)>, StoreError> {
        let of = ns.clone();
        let key = move |level: &Level| keys::config(&of, level);
        let read = move |_: &Level, item| read(&item);
        let levels = levels.iter().cloned().collect();
        self.get_many(act, levels, key, projection, read).await
    }
}

/// What is said of some levels, those left out of which nothing is.
fn explicit<T>(found: Vec<(Level, Option<T>)>) -> HashMap<Level, T> {
    let found = found.into_iter();
    found
        .filter_map(|(level, value)| Some((level, value?)))
        .collect()
}
