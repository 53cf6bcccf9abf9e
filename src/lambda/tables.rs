//! Where tables come from: one connection, opened by the first invocation that needs it and kept.
//!
//! Opening is part of an invocation and not of the start of the process, so that missing credentials
//! or a missing region are answered like any other failure.

use crate::store::{Connected, Connection, Place, Store, StoreError};
use std::fmt;
use tokio::sync::OnceCell;

/// Opens tables by name or ARN.
pub struct Tables(Source);

enum Source {
    Lazy {
        connection: Connection,
        connected: Box<OnceCell<Connected>>,
    },
    Given(Box<dyn Fn(&str) -> Store + Send + Sync>),
}

impl Tables {
    /// Tables over a connection that is opened when it is first needed, and again after it failed.
    pub fn connecting(connection: Connection) -> Tables {
        Tables(Source::Lazy {
            connection,
            connected: Box::default(),
        })
    }

    /// Tables that the caller opens.
    pub fn given(open: impl Fn(&str) -> Store + Send + Sync + 'static) -> Tables {
        Tables(Source::Given(Box::new(open)))
    }

    pub(super) async fn open(&self, table: &str) -> Result<Store, StoreError> {
        match &self.0 {
            Source::Given(open) => Ok(open(table)),
            Source::Lazy {
                connection,
                connected,
            } => {
                let connected = connected.get_or_try_init(|| connection.open()).await?;
                let place: Place = connected.place(table);
                Ok(Store::new(connected.client.clone(), place))
            }
        }
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tables")
    }
}
