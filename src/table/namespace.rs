//! The namespace registry: a name and an opaque id, each found by the other.

use super::attr::{Item, ItemError, Reader, text};
use super::{audit, keys};
use crate::model::{EpochMs, NamespaceId, NamespaceName};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A fresh namespace id from 8 random bytes, or `None` when the bytes spell one that starts with
/// `-`, which command lines would take for a flag: draw again.
pub fn new_id(random: [u8; 8]) -> Option<NamespaceId> {
    NamespaceId::parse(&URL_SAFE_NO_PAD.encode(random)).ok()
}

/// The two registry items of a namespace, by name and by id. They are written together.
pub fn encode(name: &NamespaceName, ns: &NamespaceId, at: EpochMs) -> [Item; 2] {
    [keys::namespace_by_name(name), keys::namespace_by_id(ns)].map(|key| {
        Item::from([
            ("PK".to_owned(), text(&key.pk)),
            ("SK".to_owned(), text(&key.sk)),
            ("GSI4PK".to_owned(), text(keys::RESERVED)),
            ("GSI4SK".to_owned(), text(&key.pk)),
            ("namespace_id".to_owned(), text(ns.as_str())),
            ("namespace_name".to_owned(), text(name.as_str())),
            ("status".to_owned(), text("active")),
            ("created_at".to_owned(), text(audit::rfc3339_seconds(at))),
        ])
    })
}

/// A namespace that is on its way out: neither there nor free to be registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departing {
    /// Deleted. Its items are there, and can be recovered.
    Deleted,
    /// Its items are being removed for good.
    Purging,
}

/// Whether a registry item, by name or by id, is of a namespace that goes. Any other status is one of a
/// namespace that stays, as clients read it.
///
/// # Errors
/// [`ItemError`] when the status does not read.
pub fn departing(item: &Item) -> Result<Option<Departing>, ItemError> {
    Ok(match Reader::new(item).text("status")? {
        Some("deleted") => Some(Departing::Deleted),
        Some("purging") => Some(Departing::Purging),
        _ => None,
    })
}

/// The name and the id that a registry item holds; `None` when its namespace is on its way out.
///
/// # Errors
/// [`ItemError`] when the item does not read.
pub fn decode(item: &Item) -> Result<Option<(NamespaceName, NamespaceId)>, ItemError> {
    match departing(item)? {
        Some(_) => Ok(None),
        None => Ok(Some((decode_name(item)?, decode_id(item)?))),
    }
}

/// The id that a registry item holds.
///
/// # Errors
/// [`ItemError`] when the item does not read.
pub fn decode_id(item: &Item) -> Result<NamespaceId, ItemError> {
    let reader = Reader::new(item);
    let id = reader.required_text("namespace_id")?;
    NamespaceId::parse(id).map_err(|e| reader.error("namespace_id", format!("does not read: {e}")))
}

/// The name that a registry item holds.
///
/// # Errors
/// [`ItemError`] when the item does not read.
pub fn decode_name(item: &Item) -> Result<NamespaceName, ItemError> {
    let reader = Reader::new(item);
    let name = reader.required_text("namespace_name")?;
    NamespaceName::parse(name)
        .map_err(|e| reader.error("namespace_name", format!("does not read: {e}")))
}
