//! The version record: what is deployed beside the table, and who may still read it.

use super::attr::{Item, ItemError, Reader, text};
use super::{audit, keys};
use crate::model::{EpochMs, Versions};

/// The schema of the items in this format.
pub const SCHEMA_VERSION: &str = "0.10.0";

/// The version record of a table that this build creates.
pub fn encode_new(at: EpochMs) -> Item {
    let key = keys::version();
    let spoken = Versions::SPOKEN.map(|number| number.to_string()).join(".");
    Item::from([
        ("PK".to_owned(), text(&key.pk)),
        ("SK".to_owned(), text(&key.sk)),
        ("GSI4PK".to_owned(), text(keys::RESERVED)),
        ("GSI4SK".to_owned(), text(&key.pk)),
        ("schema_version".to_owned(), text(SCHEMA_VERSION)),
        ("lambda_version".to_owned(), text(spoken)),
        ("client_min_version".to_owned(), text("0.0.0")),
        ("updated_at".to_owned(), text(audit::rfc3339_seconds(at))),
        ("updated_by".to_owned(), text("zae-limits")),
    ])
}

/// The versions a record names. Absent ones prove nothing and stay `None`, and so does what is deployed
/// when it does not read: it can only allow something.
///
/// # Errors
/// [`ItemError`] when another attribute is not a text: it may forbid everything.
pub fn decode(item: &Item) -> Result<Versions, ItemError> {
    let reader = Reader::new(item);
    let version = |name| -> Result<Option<String>, ItemError> {
        // The Python library writes NULL for a version it does not know.
        match reader.value(name) {
            Some(value) if value.is_null() => Ok(None),
            _ => Ok(reader.text(name)?.map(str::to_owned)),
        }
    };
    Ok(Versions {
        schema: version("schema_version")?,
        lambda: version("lambda_version").unwrap_or_default(),
        client_min: version("client_min_version")?,
    })
}
