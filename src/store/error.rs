//! What goes wrong between this crate and DynamoDB, each in one line that names the act and says what to do.
//!
//! How an error of the SDK becomes one of these is `sdk_error`'s business. Nothing here prints.

pub use super::sdk_error::{
    is_access_denied, is_conditional_check_failed, is_connection_refused, is_credentials_missing,
    is_table_in_use, is_table_missing, is_throttling, is_transaction_cancelled,
};
pub(super) use super::sdk_error::{is_refusal, refusal_words, refused_item};
use super::words::{departure, elsewhere, host, missing};
use crate::table::namespace::Departing;
use crate::table::{ItemError, Key};
use std::borrow::Cow;
use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where a request went: the table, and the endpoint, region or file that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The table's name.
    pub table: String,
    /// What holds it, as a person would write it: `http://127.0.0.1:8000`, `eu-central-1`, `.zae-limits/local.db`.
    pub host: String,
}

/// A failed act of the store. Every message is one line and ends with what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No region was given and the SDK's chain knows none.
    #[error("no AWS region is set: name one, set AWS_REGION, or give the profile a region")]
    RegionMissing,

    /// The endpoint URL, of whatever origin, is no URL.
    #[error(
        "the endpoint URL {url:?} is none: write one such as http://127.0.0.1:8000, or leave it out"
    )]
    EndpointInvalid {
        /// The URL, without user and password.
        url: String,
    },

    /// No provider of the SDK's default chain had credentials.
    #[error(
        "no AWS credentials were found: run where a role is attached, name a profile, \
         or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    )]
    CredentialsMissing,

    /// A provider was configured but did not deliver: an expired login, a broken profile.
    #[error(
        "the AWS credentials could not be loaded ({reason}): log in again, or correct the profile"
    )]
    CredentialsFailed {
        /// The innermost cause, in the provider's words.
        reason: String,
    },

    /// AWS does not accept the credentials: expired, unknown or wrongly signed.
    #[error(
        "could not {act}: AWS rejected the credentials ({message}): refresh them, or use another profile"
    )]
    CredentialsRejected {
        /// What was being done.
        act: Cow<'static, str>,
        /// The service's words.
        message: String,
    },

    /// The caller is known but not allowed to do this.
    #[error("could not {act}: access denied ({message}): grant the caller that permission")]
    AccessDenied {
        /// What was being done.
        act: Cow<'static, str>,
        /// The service's words: who, which action, which resource.
        message: String,
    },

    /// Nothing listens at the endpoint.
    #[error(
        "could not {act}: {} refuses connections: start what should listen there, or correct the endpoint URL",
        host(.place, "the endpoint")
    )]
    Refused {
        /// What was being done.
        act: Cow<'static, str>,
        /// Where, when the caller said so with [`StoreError::at`].
        place: Option<Box<Place>>,
    },

    /// The endpoint was not reached, or the connection broke: no such host, no route, a failed handshake.
    #[error(
        "could not {act}: {} cannot be reached ({reason}): check the network, the region and the endpoint URL",
        host(.place, "the endpoint")
    )]
    Unreachable {
        /// What was being done.
        act: Cow<'static, str>,
        /// Where, when the caller said so with [`StoreError::at`].
        place: Option<Box<Place>>,
        /// The innermost cause.
        reason: String,
    },

    /// The endpoint did not answer in time, retries included. A write may or may not have landed.
    #[error(
        "could not {act}: {} did not answer in time: check the network and the endpoint, then run it again",
        host(.place, "the endpoint")
    )]
    TimedOut {
        /// What was being done.
        act: Cow<'static, str>,
        /// Where, when the caller said so with [`StoreError::at`].
        place: Option<Box<Place>>,
    },

    /// The table, or an index of it, is not there.
    #[error("could not {act}: {}: check the table's name, the region and the account", missing(.place))]
    TableMissing {
        /// What was being done.
        act: Cow<'static, str>,
        /// Which table, when the caller said so with [`StoreError::at`].
        place: Option<Box<Place>>,
    },

    /// Refused for load, after every retry.
    #[error(
        "could not {act}: still throttled after every retry ({code}): wait and run it again, \
         or raise the capacity of the table"
    )]
    Throttled {
        /// What was being done.
        act: Cow<'static, str>,
        /// The service's code, which tells the table's throughput from the account's.
        code: String,
    },

    /// A condition of the write did not hold: someone else wrote in between.
    #[error("could not {act}: the item changed meanwhile: run it again")]
    ConditionFailed {
        /// What was being done.
        act: Cow<'static, str>,
    },

    /// Another owner took the namespace between plan and apply. Nothing was written.
    #[error("the namespace was taken on by {owner} since it was planned: plan again")]
    OwnerChanged {
        /// Who, as people read it.
        owner: String,
    },

    /// A namespace is deleted, and its registry item is in the way of registering it again.
    #[error("{}", departure(.name, .id.as_deref(), .item, *.departing))]
    NamespaceDeparting {
        /// The namespace by name.
        name: String,
        /// Its id, as far as the item says it.
        id: Option<String>,
        /// The registry item.
        item: Key,
        /// How far it is gone.
        departing: Departing,
    },

    /// A transaction was cancelled.
    #[error("could not {act}: the transaction was cancelled ({}): run it again", .reasons.join(", "))]
    TransactionCancelled {
        /// What was being done.
        act: Cow<'static, str>,
        /// The code of each item of the transaction, in its order; `None` for an item that would have passed.
        reasons: Vec<String>,
    },

    /// A transaction was cancelled because the table does not take one of its writes, now or later.
    #[error("could not {act}: DynamoDB refuses a write of the transaction ({message})")]
    TransactionRefused {
        /// What was being done.
        act: Cow<'static, str>,
        /// The service's words.
        message: String,
    },

    /// A registry item is something else than a registry, so nothing can be added to it or taken from it.
    #[error(
        "could not {act}: item {:?} / {:?} {problem}, and DynamoDB cannot change it ({message}): correct that item",
        .item.pk, .item.sk
    )]
    RegistryUnusable {
        /// What was being done.
        act: Cow<'static, str>,
        /// The registry item.
        item: Key,
        /// What it does not hold.
        problem: &'static str,
        /// The service's words.
        message: String,
    },

    /// DynamoDB answered with an error that has no variant of its own.
    #[error(
        "could not {act}: DynamoDB answered {code} ({message}): correct what it names, then run this again"
    )]
    Service {
        /// What was being done.
        act: Cow<'static, str>,
        /// The service's code, such as `ValidationException`.
        code: String,
        /// The service's words.
        message: String,
    },

    /// DynamoDB failed by itself, after every retry. A write may or may not have landed.
    #[error(
        "could not {act}: DynamoDB failed (HTTP {status}{}) after every retry: wait and run it again",
        .code.as_ref().map(|code| format!(", {code}")).unwrap_or_default()
    )]
    ServerFailed {
        /// What was being done.
        act: Cow<'static, str>,
        /// The status of the answer: 500 or above.
        status: u16,
        /// The service's code, where the answer names one.
        code: Option<String>,
    },

    /// Something answered that is not DynamoDB: another server, or a proxy on the way.
    #[error("could not {act}: {} answered HTTP {status} with {content}, which is no answer of DynamoDB: {}",
        host(.place, "the endpoint"), elsewhere(*.status))]
    NotDynamoDb {
        /// What was being done.
        act: Cow<'static, str>,
        /// Where, when the caller said so with [`StoreError::at`].
        place: Option<Box<Place>>,
        /// The status of the answer.
        status: u16,
        /// What the answer says that it is: a media type, or that it says nothing.
        content: String,
    },

    /// The request could not be built, or the answer could not be read.
    #[error(
        "could not {act}: the request or its answer is not DynamoDB's ({reason}): check the endpoint URL"
    )]
    Malformed {
        /// What was being done.
        act: Cow<'static, str>,
        /// The innermost cause.
        reason: String,
    },

    /// A table was created, or found being created, and did not become usable.
    #[error(
        "table {table} is {status} and did not become ACTIVE in time: look at it, then run this again"
    )]
    TableNotActive {
        /// The table's name.
        table: String,
        /// The last status DynamoDB reported.
        status: String,
    },

    /// A table of that name exists and is something else.
    #[error("table {table} is not a limits table, it lacks {lacking}: name another table")]
    TableForeign {
        /// The table's name.
        table: String,
        /// Which keys or indexes are not there.
        lacking: String,
    },

    /// One failed request carried several writes; this is the error of another one of them.
    #[error("{message}")]
    Repeated {
        /// The message of the first.
        message: String,
        /// Whether the first is transient.
        transient: bool,
        /// Whether the write may have landed.
        may_have_landed: bool,
    },

    /// A stored item does not follow the table's format.
    // No `#[source]` here and below: the message says it already.
    #[error("{0}: correct or delete the item, then run this again")]
    Unreadable(ItemError),

    /// The provisioner record does not follow the table's format.
    #[error(
        "{0}: without the provisioner record nobody knows what is managed, so nothing is written; correct the \
         item, or delete it and apply again (levels that are no longer declared then stay)"
    )]
    RecordUnreadable(ItemError),

    /// The provisioner record outgrew its items.
    #[error(transparent)]
    RecordTooLarge(#[from] crate::table::record::RecordTooLarge),

    /// The embedded database did not open.
    #[error("could not open the embedded store {} ({reason}): {remedy}", .path.display())]
    EmbeddedOpen {
        /// The file, or `:memory:`.
        path: PathBuf,
        /// The engine's words.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },

    /// Another process kept the embedded database's file locked for as long as opening or a write
    /// waits.
    #[error(
        "the embedded store {} stayed locked by another process: wait for that one or stop it, then run this again",
        .path.display()
    )]
    EmbeddedLocked {
        /// The file.
        path: PathBuf,
    },

    /// A sample item could not be made.
    #[error(
        "could not make a sample item: correct the stored limits that apply to it, then seed again"
    )]
    Sample {
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },

    /// The embedded store was asked to listen where others could reach it.
    #[error(
        "the embedded store checks no signatures, so it is served on loopback only, not on {address}: use 127.0.0.1"
    )]
    NotLoopback {
        /// The address of the listener.
        address: SocketAddr,
    },

    /// The embedded store's server could not start or stopped on its own.
    #[error("could not serve the embedded store: try another port")]
    Serve {
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl From<ItemError> for StoreError {
    fn from(error: ItemError) -> StoreError {
        StoreError::Unreadable(error)
    }
}

impl StoreError {
    /// The same error, naming the table and the host in its message where that helps.
    #[must_use]
    pub fn at(mut self, here: &Place) -> StoreError {
        if let StoreError::Refused { place, .. }
        | StoreError::Unreachable { place, .. }
        | StoreError::TimedOut { place, .. }
        | StoreError::NotDynamoDb { place, .. }
        | StoreError::TableMissing { place, .. } = &mut self
        {
            place.get_or_insert_with(|| Box::new(here.clone()));
        }
        self
    }

    /// Whether the same request may well succeed if it is made again later, nothing else changed.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            StoreError::Throttled { .. }
                | StoreError::TimedOut { .. }
                | StoreError::Unreachable { .. }
                | StoreError::ServerFailed { .. }
                | StoreError::NotDynamoDb { status: 500.., .. }
                | StoreError::Repeated {
                    transient: true,
                    ..
                }
        )
    }

    /// Whether a write that failed so may have landed all the same. Only an answer that says otherwise
    /// rules it out: before a throttled attempt there may have been one that nobody answered.
    pub fn may_have_landed(&self) -> bool {
        match self {
            StoreError::Repeated {
                may_have_landed, ..
            } => *may_have_landed,
            StoreError::ConditionFailed { .. }
            | StoreError::TransactionCancelled { .. }
            | StoreError::TransactionRefused { .. }
            | StoreError::RegistryUnusable { .. }
            | StoreError::Service { .. }
            | StoreError::AccessDenied { .. }
            | StoreError::CredentialsMissing
            | StoreError::CredentialsFailed { .. }
            | StoreError::CredentialsRejected { .. }
            | StoreError::TableMissing { .. } => false,
            _ => true,
        }
    }

    /// This error once for each of `count` writes that failed together.
    pub(crate) fn repeated(self, count: usize) -> impl Iterator<Item = StoreError> {
        let (message, transient) = (self.to_string(), self.is_transient());
        let may_have_landed = self.may_have_landed();
        let mut first = Some(self);
        let next = move || {
            let again = || StoreError::Repeated {
                message: message.clone(),
                transient,
                may_have_landed,
            };
            first.take().unwrap_or_else(again)
        };
        std::iter::repeat_with(next).take(count)
    }
}
