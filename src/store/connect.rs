//! A client of DynamoDB, for AWS or for any other endpoint.
//!
//! [`Connection`] is what the caller chose; what it left open comes from the SDK's own chain (environment,
//! profile, attached role), which is the only reader of the environment here. There is no default region, and
//! the region is never asked of the machine's metadata service, so a wrong machine cannot choose an account's
//! table. Credentials are fetched while connecting, within [`CREDENTIALS`], so that their absence is one clear
//! error before the first request and not a hang in it.
//!
//! Every timeout and every retry is set here, in [`Patience`], and nowhere else.

use super::endpoint;
use super::error::{Place, StoreError};
use aws_config::environment::EnvironmentVariableRegionProvider;
use aws_config::meta::region::ProvideRegion;
use aws_config::profile::{ProfileFileCredentialsProvider, ProfileFileRegionProvider};
use aws_config::provider_config::ProviderConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::{
    ClientRateLimiter, RetryConfig, RetryPartition, TokenBucket,
};
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{Builder, ProvideCredentials, StalledStreamProtectionConfig};
use aws_sdk_dynamodb::error::DisplayErrorContext;
use std::time::Duration;

/// How long the whole credentials chain may take, an unanswering metadata service included.
pub const CREDENTIALS: Duration = Duration::from_secs(8);

/// What the caller chose. What is `None` or empty comes from the SDK's default chain.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    /// The AWS region; it also signs the requests to an endpoint that is not AWS.
    pub region: Option<String>,
    /// A profile of the AWS configuration files. Its credentials and no others are used, even where the
    /// environment holds keys.
    pub profile: Option<String>,
    /// A URL to speak to in place of the region's own endpoint.
    pub endpoint_url: Option<String>,
    /// How long to wait and how often to try.
    pub patience: Patience,
}

/// An open connection.
#[derive(Debug, Clone)]
pub struct Connected {
    /// Speaks to DynamoDB.
    pub client: Client,
    /// The region, for the record; with an endpoint URL it says nothing about where the table is.
    pub region: String,
    /// The endpoint URL where one is set, without user and password, else the region.
    pub host: String,
    /// The resolved configuration, for a client of another service.
    pub sdk: SdkConfig,
}

impl Connected {
    /// Where a table of this connection is, for [`StoreError::at`].
    pub fn place(&self, table: &str) -> Place {
        Place {
            table: table.to_owned(),
            host: self.host.clone(),
        }
    }
}

impl Connection {
    /// Resolves region and credentials and makes the client. No request to DynamoDB is made.
    ///
    /// # Errors
    /// [`StoreError::RegionMissing`], [`StoreError::EndpointInvalid`], [`StoreError::CredentialsMissing`] or
    /// [`StoreError::CredentialsFailed`], within [`CREDENTIALS`] and a moment.
    pub async fn open(&self) -> Result<Connected, StoreError> {
        let region = self.region().await.ok_or(StoreError::RegionMissing)?;
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .region(region.clone())
            .timeout_config(self.patience.timeouts())
            .retry_config(self.patience.retries());
        if let Some(profile) = given(&self.profile) {
            // The default chain would take keys of the environment before the profile asked for by name, and
            // with them perhaps another account.
            let provider = ProfileFileCredentialsProvider::builder()
                .configure(&ProviderConfig::without_region().with_region(Some(region.clone())))
                .profile_name(profile);
            loader = loader
                .profile_name(profile)
                .credentials_provider(provider.build());
        }
        if let Some(url) = given(&self.endpoint_url) {
            loader = loader.endpoint_url(url);
        }
        let sdk = loader.load().await;
        let url = endpoint::of(&sdk, "DynamoDB")?;
        self.check_credentials(&sdk).await?;
        Ok(Connected {
            client: Client::from_conf(self.patience.set(Builder::from(&sdk)).build()),
            host: url.map_or_else(|| region.to_string(), |url| endpoint::without_user(&url)),
            region: region.to_string(),
            sdk,
        })
    }

    async fn check_credentials(&self, sdk: &SdkConfig) -> Result<(), StoreError> {
        let provider = sdk
            .credentials_provider()
            .ok_or(StoreError::CredentialsMissing)?;
        let Ok(answer) = tokio::time::timeout(CREDENTIALS, provider.provide_credentials()).await
        else {
            let reason = format!("no provider answered within {} s", CREDENTIALS.as_secs());
            return Err(StoreError::CredentialsFailed { reason });
        };
        let Err(error) = answer else { return Ok(()) };
        let causes = endpoint::without_users(&DisplayErrorContext(&error).to_string());
        tracing::debug!(error = causes, "no credentials");
        match (StoreError::from_credentials(&error), given(&self.profile)) {
            (StoreError::CredentialsMissing, Some(profile)) => Err(StoreError::CredentialsFailed {
                reason: format!("profile {profile} does not exist or has none"),
            }),
            (error, _) => Err(error),
        }
    }

    async fn region(&self) -> Option<Region> {
        let mut profile = ProfileFileRegionProvider::builder();
        if let Some(name) = given(&self.profile) {
            profile = profile.profile_name(name);
        }
        if let Some(region) = given(&self.region) {
            return Some(Region::new(region.clone()));
        }
        let is_given = |region: &Region| !region.as_ref().is_empty();
        let environment = EnvironmentVariableRegionProvider::new().region().await;
        match environment.filter(is_given) {
            Some(region) => Some(region),
            None => profile.build().region().await.filter(is_given),
        }
    }
}

/// Empty is not given: a script writes a variable that it does not have.
fn given(option: &Option<String>) -> Option<&String> {
    option.as_ref().filter(|text| !text.is_empty())
}

/// How long to wait for DynamoDB, and how often to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    /// To open a connection.
    pub connect: Duration,
    /// For one attempt, answer included.
    pub attempt: Duration,
    /// For the whole operation, every attempt and every pause between them.
    pub operation: Duration,
    /// Attempts, the first one counted. At least 1.
    pub attempts: u32,
}

impl Default for Patience {
    /// For work under way: a throttled table gets half a minute and more to recover.
    fn default() -> Patience {
        Patience {
            connect: Duration::from_secs(2),
            attempt: Duration::from_secs(5),
            operation: Duration::from_secs(60),
            attempts: 8,
        }
    }
}

impl Patience {
    /// For the first request of a run, when a wrong endpoint is likelier than a busy one: an answer, or an
    /// error, within ten seconds.
    ///
    /// ```text
    /// client.get_item().customize().config_override(Patience::first_contact().overriding()).send().await
    /// ```
    pub fn first_contact() -> Patience {
        Patience {
            connect: Duration::from_secs(2),
            attempt: Duration::from_secs(4),
            operation: Duration::from_secs(9),
            attempts: 3,
        }
    }

    /// These settings as an override for one request.
    pub fn overriding(&self) -> Builder {
        Builder::new()
            .timeout_config(self.timeouts())
            .retry_config(self.retries())
    }

    /// Puts these settings into a client's configuration.
    pub(super) fn set(&self, config: Builder) -> Builder {
        // The SDK's own budget of retries is shared by every client of the process and, at a hundred throttled
        // requests, spent for good; a fan-out meets that many. The adaptive limiter, the attempts and the
        // timeouts bound what we do instead, for this client alone.
        //
        // The limiter takes up the rate it has measured, and before half a second it has measured none: one
        // early refusal would hold the client to one request in two seconds. It is told a rate to assume, of
        // which its first measurement leaves a fifth, 200 requests a second.
        let partition = RetryPartition::custom("zae-limits")
            .token_bucket(TokenBucket::unlimited())
            .client_rate_limiter(
                ClientRateLimiter::builder()
                    .tokens_retrieved_per_second(1000.0)
                    .build(),
            );
        config
            .timeout_config(self.timeouts())
            .retry_config(self.retries())
            // Each attempt has its time, so that nobody needs to watch how fast its body comes.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .retry_partition(partition.build())
    }

    pub(super) fn timeouts(&self) -> TimeoutConfig {
        TimeoutConfig::builder()
            .connect_timeout(self.connect)
            .operation_attempt_timeout(self.attempt)
            .operation_timeout(self.operation)
            .build()
    }

    /// Adaptive: a throttled client slows itself down, and pauses up to 5 s between attempts.
    pub(super) fn retries(&self) -> RetryConfig {
        RetryConfig::adaptive()
            .with_max_attempts(self.attempts.max(1))
            .with_initial_backoff(Duration::from_millis(200))
            .with_max_backoff(Duration::from_secs(5))
    }
}
