//! The parts of an error's line that depend on what is known: where, what is in the way, what to do.
//!
//! Words only. Which error it is was decided before.

use super::error::Place;
use crate::table::namespace::Departing;
use crate::table::{Key, keys};

pub(super) fn host<'a>(place: &'a Option<Box<Place>>, otherwise: &'a str) -> &'a str {
    place.as_deref().map_or(otherwise, |place| &place.host)
}

/// What the Python tool does about such a namespace decides what can be done: it recovers and purges by
/// id, and recovers only where no item stands for the name.
pub(super) fn departure(name: &str, id: Option<&str>, item: &Key, how: Departing) -> String {
    let id = id.unwrap_or("ID");
    let by_name = item.sk.starts_with(keys::NAMESPACE_PREFIX);
    let (pk, sk) = (&item.pk, &item.sk);
    match (how, by_name) {
        (Departing::Deleted, true) => format!(
            "namespace {name:?} is deleted and its name is still taken (item {pk:?} / {sk:?} has status \
             \"deleted\"): delete that item, then run this again to register the namespace anew, or bring the \
             old one back with `zae-limiter namespace recover {id}`"
        ),
        (Departing::Deleted, false) => format!(
            "namespace {name:?} with id {id} is deleted: bring it back with `zae-limiter namespace recover \
             {id}`, or name the namespace instead of its id to register it anew"
        ),
        (Departing::Purging, true) => format!(
            "namespace {name:?} is being purged and its name is still taken (item {pk:?} / {sk:?} has status \
             \"purging\"): finish it with `zae-limiter namespace purge {id}`, delete that item, then run this \
             again to register the namespace anew"
        ),
        (Departing::Purging, false) => format!(
            "namespace {name:?} with id {id} is being purged, which nothing takes back: name the namespace \
             instead of its id to register it anew"
        ),
    }
}

/// What to do when something else answers. A failure of a proxy may pass, another page does not.
pub(super) fn elsewhere(status: u16) -> &'static str {
    if status >= 500 {
        "wait and run it again, or check the endpoint URL and any proxy on the way"
    } else {
        "check the endpoint URL and any proxy on the way"
    }
}

pub(super) fn missing(place: &Option<Box<Place>>) -> String {
    match place {
        Some(place) => format!("table {} does not exist ({})", place.table, place.host),
        None => "the table or its index does not exist".to_owned(),
    }
}
