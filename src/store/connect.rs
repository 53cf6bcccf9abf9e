//! x
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use std::time::Duration;

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
    fn default() -> Patience {
        Patience {
            connect: Duration::from_secs(2),
            attempt: Duration::from_secs(5),
            operation: Duration::from_secs(30),
            attempts: 5,
        }
    }
}

impl Patience {
    pub(super) fn timeouts(&self) -> TimeoutConfig {
        TimeoutConfig::builder()
            .connect_timeout(self.connect)
            .operation_attempt_timeout(self.attempt)
            .operation_timeout(self.operation)
            .build()
    }

    pub(super) fn retries(&self) -> RetryConfig {
        RetryConfig::adaptive().with_max_attempts(self.attempts)
    }
}
