//! The one place that reads an error of the SDK.
//!
//! [`StoreError::from_sdk`] turns the failure of any operation into a variant that names the act and says what
//! to do. The SDK's own chain of causes is long and repeats itself, so it goes to the debug log and not into the
//! message. The predicates answer what a caller asks *before* it gives up, such as whether a condition failed.
//! Nothing here retries and nothing here prints.

use super::endpoint::without_users;
use super::error::StoreError;
use crate::table::Item;
use aws_config::imds::client::error::ImdsError;
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::error::{BuildError, DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::CancellationReason;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use std::any::Any;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;

impl StoreError {
    /// The failure of one SDK operation, `act` being an infinitive such as `read the provisioner record`.
    ///
    /// ```text
    /// client.get_item().send().await.map_err(|e| StoreError::from_sdk("read the provisioner record", e))?
    /// ```
    pub fn from_sdk<E, R>(act: impl Into<Cow<'static, str>>, error: SdkError<E, R>) -> StoreError
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
        R: fmt::Debug + Send + Sync + 'static,
    {
        let act = act.into();
        let causes = without_users(&DisplayErrorContext(&error).to_string());
        tracing::debug!(%act, error = causes, "a DynamoDB request failed");
        if let Some(cause) = find::<CredentialsError>(&error) {
            return StoreError::from_credentials(cause);
        }
        if let Some(StoreError::EmbeddedLocked { path }) = find::<StoreError>(&error) {
            return StoreError::EmbeddedLocked { path: path.clone() };
        }
        if is_connection_refused(&error) {
            return StoreError::Refused { act, place: None };
        }
        let answer = error.raw_response().and_then(Answer::of);
        match &error {
            SdkError::ServiceError(context) => from_service(act, context.err(), answer),
            SdkError::ResponseError(_) if answer.is_some() => from_answer(act, answer, &error),
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

    /// The failure of a credentials provider. A metadata service that gives no token is one that
    /// has no credentials to give, and so is one that a profile names and that is turned off.
    pub(crate) fn from_credentials(cause: &CredentialsError) -> StoreError {
        let is_missing = |cause: &(dyn Error + 'static)| {
            let credentials = cause.downcast_ref();
            let metadata = cause.downcast_ref();
            matches!(credentials, Some(CredentialsError::CredentialsNotLoaded(_)))
                || matches!(metadata, Some(ImdsError::FailedToLoadToken(_)))
        };
        match causes(cause).any(is_missing) {
            true => StoreError::CredentialsMissing,
            false => StoreError::CredentialsFailed {
                reason: innermost(cause),
            },
        }
    }
}

/// What an answer looks like, whatever it says.
struct Answer {
    status: u16,
    /// Whether DynamoDB gave it, rather than something on the way or in its place.
    is_dynamodb: bool,
    content: String,
}

impl Answer {
    /// `None` for an answer that did not come over HTTP.
    fn of<R: 'static>(raw: &R) -> Option<Answer> {
        let response = (raw as &dyn Any).downcast_ref::<HttpResponse>()?;
        let headers = response.headers();
        let content = headers.get("content-type");
        Some(Answer {
            status: response.status().as_u16(),
            is_dynamodb: headers.contains_key("x-amzn-requestid")
                || content.is_some_and(|content| content.starts_with("application/x-amz-json")),
            content: content.map_or("no content type".to_owned(), excerpt),
        })
    }
}

/// The variant for an answer without a code of the service.
fn from_answer(act: Cow<'static, str>, answer: Option<Answer>, error: &dyn Error) -> StoreError {
    match answer {
        Some(Answer {
            status,
            is_dynamodb: false,
            content,
        }) => StoreError::NotDynamoDb {
            act,
            place: None,
            status,
            content,
        },
        Some(Answer {
            status: status @ 500..,
            ..
        }) => StoreError::ServerFailed {
            act,
            status,
            code: None,
        },
        _ => StoreError::Malformed {
            act,
            reason: innermost(error),
        },
    }
}

/// A header's text, short and without anything that acts on a terminal.
fn excerpt(text: &str) -> String {
    let kept = text.chars().filter(|c| !c.is_control());
    kept.take(60).collect()
}

/// The variant for an answer of the service. One arm a remedy; the codes are DynamoDB's common and own ones.
fn from_service<E>(act: Cow<'static, str>, error: &E, answer: Option<Answer>) -> StoreError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let Some(code) = error.code() else {
        return from_answer(act, answer, error);
    };
    let status = answer.map_or(0, |answer| answer.status);
    let message = || error.message().unwrap_or("no message").to_owned();
    match code {
        _ if THROTTLING.contains(&code) => StoreError::Throttled {
            act,
            code: code.to_owned(),
        },
        "ResourceNotFoundException" => StoreError::TableMissing { act, place: None },
        "ConditionalCheckFailedException" => StoreError::ConditionFailed { act },
        "TransactionCanceledException" => match refusal(error) {
            Some(message) => StoreError::TransactionRefused { act, message },
            None => StoreError::TransactionCancelled {
                act,
                reasons: cancellation(error),
            },
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
        _ if status >= 500 => StoreError::ServerFailed {
            act,
            status,
            code: Some(code.to_owned()),
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
    let Some(reasons) = reasons_of(error) else {
        return vec!["no reasons given".to_owned()];
    };
    let codes = reasons.iter().map(|reason| reason.code().unwrap_or("None"));
    codes.map(str::to_owned).collect()
}

/// The words about a write that would be refused however often it is sent.
fn refusal<E: 'static>(error: &E) -> Option<String> {
    let mut reasons = reasons_of(error)?.iter();
    reasons.find(|reason| is_refusal(reason)).map(refusal_words)
}

fn reasons_of<E: 'static>(error: &E) -> Option<&[CancellationReason]> {
    match (error as &dyn Any).downcast_ref()? {
        TransactWriteItemsError::TransactionCanceledException(cancelled) => {
            Some(cancelled.cancellation_reasons())
        }
        _ => None,
    }
}

/// Whether a write of a transaction is one that the table never takes.
pub(super) fn is_refusal(reason: &CancellationReason) -> bool {
    reason.code() == Some("ValidationError")
}

/// The service's words about such a write.
pub(super) fn refusal_words(reason: &CancellationReason) -> String {
    reason.message().unwrap_or("ValidationError").to_owned()
}

/// Whether the write was refused because its condition did not hold.
pub fn is_conditional_check_failed<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    has_code(error, |code| code == "ConditionalCheckFailedException")
}

/// The item that an update refused for its condition has found, where the update asked for it.
pub(super) fn refused_item<R>(error: &SdkError<UpdateItemError, R>) -> Option<&Item> {
    match error.as_service_error()? {
        UpdateItemError::ConditionalCheckFailedException(refused) => refused.item(),
        _ => None,
    }
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
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// An error and what caused it, outermost first.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| {
        (*error).source()
    })
}

/// The text of the last cause in the chain: the outer ones only say "dispatch failure".
fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    without_users(&cause.to_string())
}
