//! First use: the version record of a table this build creates, namespaces, and the ratchet of the
//! oldest client that may still read the table. Nothing that exists is replaced here, and no
//! version is lowered.

use super::read::key_item;
use super::{Store, StoreError, create_table};
use crate::model::{EpochMs, NamespaceId, NamespaceName};
use crate::table::{attr, keys, namespace, version};

/// How often a namespace is registered anew while others register it too.
const ROUNDS: usize = 5;

impl Store {
    /// Creates the table and its version record where they are missing. For tables of this
    /// build's own: the embedded store, tests. A deployed table comes from its stack.
    ///
    /// # Errors
    /// [`StoreError`] when either cannot be created.
    pub async fn create(&self, now: EpochMs) -> Result<(), StoreError> {
        create_table(&self.client, self.table(), false).await?;
        self.put_new("write the version record", version::encode_new(now))
            .await?;
        Ok(())
    }

    /// The id of a namespace, registered now if it was not. Losing a race means reading the
    /// winner's id.
    ///
    /// # Errors
    /// [`StoreError`] when it can be neither read nor registered.
    pub async fn register_namespace(
        &self,
        name: &NamespaceName,
        now: EpochMs,
    ) -> Result<NamespaceId, StoreError> {
        let act = "register the namespace";
        for _ in 0..ROUNDS {
            if let Some(id) = self.namespace_id(name).await? {
                return Ok(id);
            }
            let Some(id) = namespace::new_id(rand::random()) else {
                continue;
            };
            let items = namespace::encode(name, &id, now).into_iter();
            if self
                .transact(act, items.map(|item| self.putting_new(item)))
                .await?
            {
                return Ok(id);
            }
        }
        Err(StoreError::ConditionFailed { act: act.into() })
    }

    /// Raises `client_min_version` to a release, unless it was raised meanwhile. `false`: it was.
    ///
    /// # Errors
    /// [`StoreError`] when the version record cannot be written.
    pub async fn raise_client_min(&self, from: Option<&str>, to: &str) -> Result<bool, StoreError> {
        let request = self
            .client
            .update_item()
            .table_name(self.table())
            .set_key(Some(key_item(&keys::version())))
            .update_expression("SET client_min_version = :to")
            .expression_attribute_values(":to", attr::text(to));
        let request = match from {
            Some(from) => request
                .condition_expression("client_min_version = :from")
                .expression_attribute_values(":from", attr::text(from)),
            None => request
                .condition_expression(
                    "attribute_exists(PK) AND (attribute_not_exists(client_min_version) \
                     OR attribute_type(client_min_version, :null))",
                )
                .expression_attribute_values(":null", attr::text("NULL")),
        };
        self.landed("raise the oldest client version", request.send().await)
    }
}
