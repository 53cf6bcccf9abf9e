//! What goes wrong between this crate and DynamoDB, in one line each, and the one place that reads an SDK error.
//!
//! [`StoreError::from_sdk`] turns the failure of any SDK operation into a variant that names the act and says
//! what to do. The SDK's own chain of causes is long and repeats itself, so it goes to the debug log and not
//! into the message. The predicates below answer the questions a caller asks *before* it gives up, such as
//! whether a condition failed. Nothing here retries and nothing here prints.

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::error::{BuildError, DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use std::any::Any;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;
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
    #[error("no AWS region is set: pass --region, or set AWS_REGION, or give the profile a region")]
    RegionMissing,

    /// No provider of the SDK's default chain had credentials.
    #[error(
        "no AWS credentials were found: set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, \
         or run where a role is attached"
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

    /// A transaction was cancelled.
    #[error("could not {act}: the transaction was cancelled ({}): run it again", .reasons.join(", "))]
    TransactionCancelled {
        /// What was being done.
        act: Cow<'static, str>,
        /// The code of each item of the transaction, in its order; `None` for an item that would have passed.
        reasons: Vec<String>,
    },

    /// DynamoDB answered with an error that has no variant of its own.
    #[error("could not {act}: DynamoDB answered {code} ({message})")]
    Service {
        /// What was being done.
        act: Cow<'static, str>,
        /// The service's code, such as `ValidationException`.
        code: String,
        /// The service's words.
        message: String,
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
    },

    /// A stored item does not follow the table's format.
    #[error("{0}: correct or delete the item, then run this again")]
    Unreadable(#[from] crate::table::ItemError),

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

    /// Another process kept the embedded database's file locked for the five seconds a write waits.
    #[error(
        "the embedded store {} stayed locked by another process: wait for that one or stop it, then run this again",
        .path.display()
    )]
    EmbeddedLocked {
        /// The file.
        path: PathBuf,
    },

    /// A sample item could not be made.
    #[error("could not make a sample item")]
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
    #[error("could not serve the embedded store")]
    Serve {
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

fn host<'a>(place: &'a Option<Box<Place>>, otherwise: &'a str) -> &'a str {
    place.as_deref().map_or(otherwise, |place| &place.host)
}

fn missing(place: &Option<Box<Place>>) -> String {
    match place {
        Some(place) => format!("table {} does not exist ({})", place.table, place.host),
        None => "the table or its index does not exist".to_owned(),
    }
}

impl StoreError {
    /// The failure of one SDK operation, `act` being an infinitive such as `read the provisioner record`.
    ///
    /// ```ignore
    /// client.get_item().send().await.map_err(|e| StoreError::from_sdk("read the provisioner record", e))?
    /// ```
    pub fn from_sdk<E, R>(act: impl Into<Cow<'static, str>>, error: SdkError<E, R>) -> StoreError
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
        R: fmt::Debug + Send + Sync + 'static,
    {
        let act = act.into();
        tracing::debug!(%act, error = %DisplayErrorContext(&error), "a DynamoDB request failed");
        if let Some(cause) = find::<CredentialsError>(&error) {
            return StoreError::from_credentials(cause);
        }
        if let Some(StoreError::EmbeddedLocked { path }) = find::<StoreError>(&error) {
            return StoreError::EmbeddedLocked { path: path.clone() };
        }
        if is_connection_refused(&error) {
            return StoreError::Refused { act, place: None };
        }
        match &error {
            SdkError::ServiceError(context) => from_service(act, context.err()),
            SdkError::TimeoutError(_) => StoreError::TimedOut { act, place: None },
            SdkError::DispatchFailure(failure) if failure.is_timeout() => {
                StoreError::TimedOut { act, place: None }
            }
            SdkError::DispatchFailure(failure) if failure.is_io() => StoreError::Unreachable {
                act,
                place: None,
                reason: innermost(&error),
            },
            _ => StoreError::Malformed {
                act,
                reason: innermost(&error),
            },
        }
    }

    /// A request that the SDK would not build.
    pub(crate) fn unbuilt(act: &'static str, cause: &BuildError) -> StoreError {
        StoreError::Malformed {
            act: act.into(),
            reason: innermost(cause),
        }
    }

    /// The failure of a credentials provider.
    pub(crate) fn from_credentials(cause: &CredentialsError) -> StoreError {
        match cause {
            CredentialsError::CredentialsNotLoaded(_) => StoreError::CredentialsMissing,
            other => StoreError::CredentialsFailed {
                reason: innermost(other),
            },
        }
    }

    /// The same error, naming the table and the host in its message where that helps.
    #[must_use]
    pub fn at(mut self, here: &Place) -> StoreError {
        if let StoreError::Refused { place, .. }
        | StoreError::Unreachable { place, .. }
        | StoreError::TimedOut { place, .. }
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
                | StoreError::Repeated {
                    transient: true,
                    ..
                }
        )
    }

    /// This error once for each of `count` writes that failed together.
    pub(crate) fn repeated(self, count: usize) -> impl Iterator<Item = StoreError> {
        let (message, transient) = (self.to_string(), self.is_transient());
        let mut first = Some(self);
        let next = move || {
            let again = || StoreError::Repeated {
                message: message.clone(),
                transient,
            };
            first.take().unwrap_or_else(again)
        };
        std::iter::repeat_with(next).take(count)
    }
}

/// The variant for an answer of the service. One arm a remedy; the codes are DynamoDB's common and own ones.
fn from_service<E>(act: Cow<'static, str>, error: &E) -> StoreError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let Some(code) = error.code() else {
        return StoreError::Malformed {
            act,
            reason: innermost(error),
        };
    };
    let message = || error.message().unwrap_or("no message").to_owned();
    match code {
        _ if THROTTLING.contains(&code) => StoreError::Throttled {
            act,
            code: code.to_owned(),
        },
        "ResourceNotFoundException" => StoreError::TableMissing { act, place: None },
        "ConditionalCheckFailedException" => StoreError::ConditionFailed { act },
        "TransactionCanceledException" => StoreError::TransactionCancelled {
            act,
            reasons: cancellation(error),
        },
        "AccessDeniedException" | "AccessDenied" => StoreError::AccessDenied {
            act,
            message: message(),
        },
        "UnrecognizedClientException"
        | "InvalidClientTokenId"
        | "InvalidSignatureException"
        | "IncompleteSignatureException"
        | "IncompleteSignature"
        | "MissingAuthenticationTokenException"
        | "MissingAuthenticationToken"
        | "ExpiredTokenException"
        | "ExpiredToken" => StoreError::CredentialsRejected {
            act,
            message: message(),
        },
        _ => StoreError::Service {
            act,
            code: code.to_owned(),
            message: message(),
        },
    }
}

/// The codes by which DynamoDB says "slower". A transaction conflict is not one of them.
const THROTTLING: &[&str] = &[
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingException",
    "Throttling",
    "ThrottledException",
];

fn cancellation<E: 'static>(error: &E) -> Vec<String> {
    let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) =
        (error as &dyn Any).downcast_ref::<TransactWriteItemsError>()
    else {
        return vec!["no reasons given".to_owned()];
    };
    cancelled
        .cancellation_reasons()
        .iter()
        .map(|reason| reason.code().unwrap_or("None").to_owned())
        .collect()
}

/// Whether the write was refused because its condition did not hold.
pub fn is_conditional_check_failed<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    has_code(error, |code| code == "ConditionalCheckFailedException")
}

/// Whether the service asked for fewer requests. The SDK has already retried when this is seen.
pub fn is_throttling<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    has_code(error, |code| THROTTLING.contains(&code))
}

/// Whether the table, or the index asked for, does not exist.
pub fn is_table_missing<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    has_code(error, |code| code == "ResourceNotFoundException")
}

/// Whether the table exists already, or is being created, changed or deleted.
pub fn is_table_in_use<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    has_code(error, |code| code == "ResourceInUseException")
}

/// Whether a transaction was cancelled; its reasons are on the error.
pub fn is_transaction_cancelled<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    has_code(error, |code| code == "TransactionCanceledException")
}

/// Whether the caller may not do this.
pub fn is_access_denied<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    has_code(error, |code| {
        matches!(code, "AccessDeniedException" | "AccessDenied")
    })
}

/// Whether nothing listens at the endpoint.
pub fn is_connection_refused<E, R>(error: &SdkError<E, R>) -> bool
where
    E: Error + 'static,
    R: fmt::Debug + 'static,
{
    find::<io::Error>(error).is_some_and(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
}

/// Whether no credentials provider had any credentials.
pub fn is_credentials_missing<E, R>(error: &SdkError<E, R>) -> bool
where
    E: Error + 'static,
    R: fmt::Debug + 'static,
{
    matches!(
        find::<CredentialsError>(error),
        Some(CredentialsError::CredentialsNotLoaded(_))
    )
}

fn has_code<E: ProvideErrorMetadata, R>(
    error: &SdkError<E, R>,
    wanted: impl Fn(&str) -> bool,
) -> bool {
    error
        .as_service_error()
        .and_then(ProvideErrorMetadata::code)
        .is_some_and(wanted)
}

/// The first cause of type `T` in the chain.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// The text of the last cause in the chain: the outer ones only say "dispatch failure".
fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
