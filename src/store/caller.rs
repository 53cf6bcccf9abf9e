//! The first question to a table, and who is asking: both answered, or refused, within seconds.

use super::connect::{Connected, Patience};
use super::endpoint;
use super::read::key_item;
use super::{Store, StoreError};
use crate::table::keys;
use std::time::Duration;

/// Whose credentials are in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The account's number.
    pub account: String,
    /// The caller's ARN.
    pub arn: String,
}

impl Store {
    /// Asks the table for something small, with little patience: a wrong endpoint, a table that is
    /// not there and a caller who may not read it show here, and not in the middle of the work.
    ///
    /// # Errors
    /// [`StoreError`] when there is no such answer within ten seconds.
    pub async fn first_contact(&self) -> Result<(), StoreError> {
        let request = self
            .client
            .get_item()
            .table_name(self.table())
            .set_key(Some(key_item(&keys::version())))
            .customize()
            .config_override(Patience::first_contact().overriding());
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failed("look at the table", error)),
        }
    }
}

impl Connected {
    /// Whether the requests go to an endpoint of the caller's choice rather than to AWS.
    pub fn has_custom_endpoint(&self) -> bool {
        self.sdk.endpoint_url().is_some()
    }

    /// Asks STS whose credentials these are.
    ///
    /// # Errors
    /// [`StoreError`] when it does not say so within five seconds.
    pub async fn caller(&self) -> Result<Caller, StoreError> {
        let act = "ask STS who is calling";
        let patience = Patience {
            connect: Duration::from_secs(2),
            attempt: Duration::from_secs(3),
            operation: Duration::from_secs(5),
            attempts: 2,
        };
        endpoint::of(&self.sdk, "STS")?;
        let config = aws_sdk_sts::config::Builder::from(&self.sdk)
            .timeout_config(patience.timeouts())
            .retry_config(patience.retries());
        let client = aws_sdk_sts::Client::from_conf(config.build());
        let answer = client.get_caller_identity().send().await;
        let answer = answer.map_err(|error| StoreError::from_sdk(act, error))?;
        match (answer.account, answer.arn) {
            (Some(account), Some(arn)) => Ok(Caller { account, arn }),
            _ => Err(StoreError::Malformed {
                act: act.into(),
                reason: "it names no account".to_owned(),
            }),
        }
    }
}
