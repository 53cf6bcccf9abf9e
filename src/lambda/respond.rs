//! The one PUT that tells CloudFormation: known length, empty content type, its own retries.
//!
//! The URL is signed for exactly this request: a content type, a redirect or another spelling of the
//! path and S3 refuses it. It is a secret too, so no error and no log line here holds it.

use super::answer::Answer;
use super::envelope::ResponseUrl;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use std::error::Error;
use std::time::Duration;
use thiserror::Error;

/// To open a connection.
const CONNECT: Duration = Duration::from_secs(3);
/// For one attempt, whatever the time that is left.
const ATTEMPT: Duration = Duration::from_secs(5);
/// Attempts, the first one counted.
const ATTEMPTS: u32 = 10;
/// The first and the longest bound of the pause between two attempts.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Why an answer did not arrive.
#[derive(Debug, Error)]
pub enum RespondError {
    /// The client cannot be set up.
    #[error("the HTTP client could not be set up")]
    Client(#[source] reqwest::Error),
    /// The event's URL is none.
    #[error("the ResponseURL is not an http or https URL")]
    NotAUrl,
    /// The other side will not take it, now or later.
    #[error("the answer was refused with HTTP status {status}: the ResponseURL may have expired")]
    Refused {
        /// Its status.
        status: u16,
    },
    /// The other side could not take it, or was not reached, as often as it was tried.
    #[error(
        "the answer could not be delivered in {attempts} attempts, the last one ended with {reason}"
    )]
    Undelivered {
        /// How often it was tried.
        attempts: u32,
        /// How the last attempt ended.
        reason: String,
    },
    /// The time ran out first.
    #[error("the time ran out before the answer was delivered")]
    OutOfTime,
}

/// Sends answers.
#[derive(Debug, Clone)]
pub struct Responder {
    client: Client,
}

impl Responder {
    /// A responder that goes straight to the URL: no proxy of the environment, no redirect, and no
    /// connection kept while the function is frozen.
    ///
    /// # Errors
    /// [`RespondError::Client`] when TLS cannot be set up.
    pub fn new() -> Result<Responder, RespondError> {
        let client = Client::builder()
            .no_proxy()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .pool_max_idle_per_host(0)
            .connect_timeout(CONNECT)
            .build()
            .map_err(|error| RespondError::Client(error.without_url()))?;
        Ok(Responder { client })
    }

    /// Delivers an answer within a time. Gives the number of attempts.
    ///
    /// # Errors
    /// [`RespondError`] when it was not delivered, as far as can be known.
    pub async fn deliver(
        &self,
        url: &ResponseUrl,
        answer: &Answer,
        within: Duration,
    ) -> Result<u32, RespondError> {
        let url = Url::parse(url.reveal()).map_err(|_| RespondError::NotAUrl)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(RespondError::NotAUrl);
        }
        let body = answer.body();
        match tokio::time::timeout(within, self.attempts(&url, &body, within)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(RespondError::OutOfTime),
        }
    }

    async fn attempts(
        &self,
        url: &Url,
        body: &[u8],
        within: Duration,
    ) -> Result<u32, RespondError> {
        let timeout = ATTEMPT.min(within / 3).max(Duration::from_millis(100));
        let mut backoff = BACKOFF.0;
        let mut attempt = 1;
        loop {
            let reason = match self.put(url, body, timeout).await {
                Ok(status) if status.is_success() => return Ok(attempt),
                Ok(status) if status.is_server_error() => {
                    format!("HTTP status {}", status.as_u16())
                }
                Ok(status) => {
                    return Err(RespondError::Refused {
                        status: status.as_u16(),
                    });
                }
                Err(reason) => reason,
            };
            tracing::warn!(attempt, reason, "the answer was not taken");
            if attempt == ATTEMPTS {
                return Err(RespondError::Undelivered {
                    attempts: attempt,
                    reason,
                });
            }
            attempt += 1;
            tokio::time::sleep(backoff.mul_f64(rand::random_range(0.5..=1.0))).await;
            backoff = BACKOFF.1.min(backoff * 2);
        }
    }

    async fn put(&self, url: &Url, body: &[u8], timeout: Duration) -> Result<StatusCode, String> {
        let request = self
            .client
            .put(url.clone())
            .timeout(timeout)
            .header(CONTENT_TYPE, HeaderValue::from_static(""))
            .body(body.to_vec());
        match request.send().await {
            Ok(answer) => Ok(answer.status()),
            Err(error) => Err(innermost(&error.without_url())),
        }
    }
}

fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
