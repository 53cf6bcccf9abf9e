//! Buckets: finding a level's, page by page, and stamping them.

use super::read::{Projection, key_item};
use super::{Store, StoreError, error};
use crate::model::{AccessMode, EpochMs, NamespaceId};
use crate::spread::spread;
use crate::table::stamp::{self, Stamp, StampUpdate};
use crate::table::{BucketId, Discovery, Item, Key, attr, keys};
use aws_sdk_dynamodb::types::{BatchStatementRequest, BatchStatementResponse};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// Stamps that one PartiQL batch takes.
pub const STAMPS_PER_BATCH: usize = 25;

/// Where the next page starts.
#[derive(Debug, Clone, PartialEq)]
pub struct PageStart(Item);

/// One bucket as an index shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundBucket {
    /// Its partition key.
    pub pk: String,
    /// The mode it shows; `None` where that was not asked for, or an index projects keys only.
    pub shown: Option<AccessMode>,
}

/// One page of a discovery.
#[derive(Debug, Clone, PartialEq)]
pub struct BucketPage {
    /// The buckets found.
    pub buckets: Vec<FoundBucket>,
    /// Where the next page starts; `None` after the last.
    pub next: Option<PageStart>,
}

/// What became of one stamp.
#[derive(Debug)]
pub enum Stamped {
    /// It landed.
    Landed,
    /// The bucket already carried it, or something newer; nothing was written.
    Unchanged,
    /// The bucket is no longer there. That is no error.
    Vanished,
    /// It failed; [`StoreError::is_transient`] says whether sending it again may help.
    Failed(StoreError),
}

/// The stamps of one stored bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketStamps {
    /// The mode it shows.
    pub mode: AccessMode,
    /// When a bypass runs out.
    pub bypass_until: Option<EpochMs>,
}

impl Store {
    /// One page of a level's buckets.
    ///
    /// # Errors
    /// [`StoreError`] when the index cannot be read.
    pub async fn bucket_page(
        &self,
        discovery: &Discovery,
        start: Option<PageStart>,
    ) -> Result<BucketPage, StoreError> {
        self.buckets(discovery, start, None, None).await
    }

    /// The first page of a level's buckets, with at most so many.
    ///
    /// # Errors
    /// [`StoreError`] when the index cannot be read.
    pub async fn first_buckets(
        &self,
        discovery: &Discovery,
        most: usize,
    ) -> Result<BucketPage, StoreError> {
        self.buckets(discovery, None, None, Some(most)).await
    }

    /// One page of those up to where another page starts, without which it is up to the last.
    ///
    /// # Errors
    /// [`StoreError`] when the index cannot be read.
    pub async fn bucket_range(
        &self,
        discovery: &Discovery,
        start: Option<PageStart>,
        end: Option<&PageStart>,
    ) -> Result<BucketPage, StoreError> {
        self.buckets(discovery, start, end, None).await
    }

    async fn buckets(
        &self,
        discovery: &Discovery,
        start: Option<PageStart>,
        end: Option<&PageStart>,
        most: Option<usize>,
    ) -> Result<BucketPage, StoreError> {
        let shows_stamps = discovery.stamps;
        let projection = Projection(if shows_stamps {
            &stamp::SHOWN
        } else {
            &stamp::NAMED
        });
        let sort_key = format!("{}SK", discovery.index);
        let end = end.and_then(|end| end.0.get(&sort_key).cloned());
        let condition = match end {
            // A page starts after the last one's end, which is the range's.
            Some(_) => "#ipk = :pk AND #isk BETWEEN :prefix AND :end",
            None => "#ipk = :pk AND begins_with(#isk, :prefix)",
        };
        let mut names = projection.names();
        names.insert("#ipk".to_owned(), format!("{}PK", discovery.index));
        names.insert("#isk".to_owned(), sort_key);
        let mut values = HashMap::from([
            (":pk".to_owned(), attr::text(&discovery.pk)),
            (":prefix".to_owned(), attr::text(&discovery.prefix)),
        ]);
        values.extend(end.map(|end| (":end".to_owned(), end)));
        let request = self
            .client
            .query()
            .table_name(self.table())
            .index_name(discovery.index)
            .key_condition_expression(condition)
            .projection_expression(projection.expression())
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .set_exclusive_start_key(start.map(|start| start.0))
            .set_limit(most.and_then(|most| i32::try_from(most).ok()));
        let store = self.clone();
        let found = move |item: &Item| FoundBucket {
            pk: attr::Reader::new(item).pk().to_owned(),
            shown: shows_stamps.then(|| stamp::shown_mode(item)),
        };
        spread(async move {
            let page = request.send().await;
            let page = page.map_err(|e| store.failed("find the buckets", e))?;
            Ok(BucketPage {
                buckets: page.items().iter().map(found).collect(),
                next: page.last_evaluated_key.map(PageStart),
            })
        })
        .await
    }

    /// The stamps of a bucket as stored, strongly consistent; `None` when it is not there.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    pub async fn bucket_stamps(
        &self,
        ns: &NamespaceId,
        bucket: &BucketId,
    ) -> Result<Option<BucketStamps>, StoreError> {
        let item = self
            .get("read a bucket", &bucket_key(&bucket.pk(ns)))
            .await?;
        Ok(item.map(|item| BucketStamps {
            mode: stamp::shown_mode(&item),
            bypass_until: stamp::bypass_deadline(&item),
        }))
    }

    /// The modes that stored buckets show, by partition key, strongly consistent. Buckets that are
    /// gone are left out.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    pub async fn shown_modes<'a>(
        &self,
        pks: impl Iterator<Item = &'a str>,
    ) -> Result<HashMap<String, AccessMode>, StoreError> {
        let pks = pks.map(str::to_owned).collect();
        let key = |pk: &String| bucket_key(pk);
        let projection = Some(Projection(&stamp::STORED));
        let read = |_: &String, item| stamp::shown_mode(&item);
        let shown = self.get_many("read the buckets", pks, key, projection, read);
        Ok(shown.await?.into_iter().collect())
    }

    /// Stamps at most [`STAMPS_PER_BATCH`] buckets, named by their partition keys, and says for
    /// each what became of it, in the same order.
    pub async fn stamp_buckets(&self, stamps: &[(String, Stamp)]) -> Vec<Stamped> {
        if stamps.len() > 1 && self.batches_stamps.load(Ordering::Relaxed) {
            match self.stamp_batch(stamps).await {
                Ok(outcomes) => return outcomes,
                Err(error) if refuses_batches(&error) => {
                    tracing::info!(%error, "stamping one bucket at a time from here on");
                    self.batches_stamps.store(false, Ordering::Relaxed);
                }
                Err(error) => return error.repeated(stamps.len()).map(Stamped::Failed).collect(),
            }
        }
        futures::future::join_all(stamps.iter().map(|(pk, stamp)| self.stamp_one(pk, *stamp))).await
    }

    async fn stamp_batch(&self, stamps: &[(String, Stamp)]) -> Result<Vec<Stamped>, StoreError> {
        let act = "stamp buckets";
        let statement = |(pk, stamp): &(String, Stamp)| {
            let (statement, value) = stamp.statement(self.table());
            BatchStatementRequest::builder()
                .statement(statement)
                .set_parameters(Some(value.into_iter().chain([attr::text(pk)]).collect()))
                .build()
        };
        let statements: Vec<BatchStatementRequest> = stamps
            .iter()
            .map(statement)
            .collect::<Result<_, _>>()
            .map_err(|e| StoreError::unbuilt(act, &e))?;
        let request = self
            .client
            .batch_execute_statement()
            .set_statements(Some(statements));
        let answer = request.send().await.map_err(|e| self.failed(act, e))?;
        let answers = answer.responses.unwrap_or_default();
        if let Some(message) = denied(&answers) {
            return Err(StoreError::AccessDenied {
                act: act.into(),
                message,
            });
        }
        let missing = || {
            Stamped::Failed(StoreError::Service {
                act: act.into(),
                code: "NoAnswer".to_owned(),
                message: "the batch was answered without this statement".to_owned(),
            })
        };
        let mut outcomes: Vec<Stamped> = answers.iter().map(statement_outcome).collect();
        outcomes.resize_with(stamps.len(), missing);
        Ok(outcomes)
    }

    async fn stamp_one(&self, pk: &str, stamp: Stamp) -> Stamped {
        let StampUpdate { expression, value } = stamp.update();
        let mut request = self
            .client
            .update_item()
            .table_name(self.table())
            .set_key(Some(key_item(&bucket_key(pk))))
            .update_expression(expression)
            .condition_expression(StampUpdate::CONDITION);
        for (alias, name) in StampUpdate::NAMES {
            request = request.expression_attribute_names(alias, name);
        }
        if let Some(value) = value {
            request = request.expression_attribute_values(":stamp", value);
        }
        match request.send().await {
            Ok(_) => Stamped::Landed,
            Err(e) if error::is_conditional_check_failed(&e) => Stamped::Vanished,
            Err(e) => Stamped::Failed(self.failed("stamp a bucket", e)),
        }
    }
}

pub(super) fn bucket_key(pk: &str) -> Key {
    Key {
        pk: pk.to_owned(),
        sk: keys::BUCKET_SK.to_owned(),
    }
}

/// Why the caller may run no statement, where each of them was denied.
fn denied(answers: &[BatchStatementResponse]) -> Option<String> {
    let denied = |answer: &BatchStatementResponse| {
        let error = answer.error()?;
        let is_denied = error.code()?.as_str() == "AccessDenied";
        is_denied.then(|| error.message().unwrap_or_default().to_owned())
    };
    let mut messages = answers.iter().map(denied);
    let first = messages.next()??;
    messages.all(|message| message.is_some()).then_some(first)
}

fn statement_outcome(answer: &BatchStatementResponse) -> Stamped {
    let Some(error) = answer.error() else {
        return Stamped::Landed;
    };
    let code = error.code().map_or("", |code| code.as_str());
    let act = "stamp a bucket".into();
    match code {
        "ConditionalCheckFailed" => Stamped::Vanished,
        "ThrottlingError"
        | "ProvisionedThroughputExceeded"
        | "RequestLimitExceeded"
        | "TransactionConflict"
        | "InternalServerError" => Stamped::Failed(StoreError::Throttled {
            act,
            code: code.to_owned(),
        }),
        _ => Stamped::Failed(StoreError::Service {
            act,
            code: code.to_owned(),
            message: error.message().unwrap_or_default().to_owned(),
        }),
    }
}

/// An engine without PartiQL, or a role that may update items and not run statements.
fn refuses_batches(error: &StoreError) -> bool {
    match error {
        StoreError::AccessDenied { .. } => true,
        StoreError::Service { code, .. } => {
            matches!(
                code.as_str(),
                "UnknownOperationException" | "ValidationException"
            )
        }
        _ => false,
    }
}
