//! Physical ids: `{table}/{namespace id}/{12 hex digits of a hash of stack id and logical id}`.
//!
//! An id says where the resource keeps its levels and nothing about what they are: it stays the same
//! until table or namespace change, since another id makes CloudFormation delete the old resource.

use crate::model::NamespaceId;
pub use crate::model::physical_id::physical_id;
use crate::model::physical_id::{DIGITS, digest};

/// The last part of every id that the Python provisioner gave.
const LEGACY: &str = "limits-provisioner";
/// The first part of an id that names nothing.
const NEVER_CREATED: &str = "never-created";

/// What a physical id names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The table, by name or by ARN.
    pub table: String,
    /// The namespace.
    pub namespace_id: NamespaceId,
    /// Whether the Python provisioner gave the id.
    pub legacy: bool,
}

impl Named {
    /// Reads an id back; `None` when it is not one that a provisioner gives.
    pub fn parse(id: &str) -> Option<Named> {
        let mut parts = id.rsplitn(3, '/');
        let (last, namespace_id, table) = (parts.next()?, parts.next()?, parts.next()?);
        let legacy = last == LEGACY;
        let is_digest = last.len() == DIGITS
            && last
                .bytes()
                .all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
        if table.is_empty() || !(legacy || is_digest) {
            return None;
        }
        Some(Named {
            table: table.to_owned(),
            namespace_id: NamespaceId::parse(namespace_id).ok()?,
            legacy,
        })
    }

    /// Whether levels of this table and namespace are what the id names. A table's name stands for
    /// the table of the stack's own region and account, and so does its ARN: a template that
    /// goes from one to the other must not have the resource replaced, and its levels deleted.
    pub fn is_at(&self, table: &str, namespace_id: &NamespaceId, stack_id: &str) -> bool {
        let is_same = self.table == table
            || located(&self.table, stack_id)
                .is_some_and(|located_at| Some(located_at) == located(table, stack_id));
        is_same && self.namespace_id == *namespace_id
    }
}

/// Region, account and name of a table; `None` when an ARN is none, or not a table's.
fn located<'a>(table: &'a str, stack_id: &'a str) -> Option<(&'a str, &'a str, &'a str)> {
    let is_arn = table.starts_with("arn:");
    let mut parts = if is_arn { table } else { stack_id }.splitn(6, ':').skip(3);
    let (region, account, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let name = if is_arn {
        rest.strip_prefix("table/")?
    } else {
        table
    };
    Some((region, account, name))
}

/// The id of a resource that failed before it had a place. It names nothing, and says so.
pub fn never_created(stack_id: &str, logical_id: &str) -> String {
    format!("{NEVER_CREATED}/{}", digest(stack_id, logical_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK: &str = "arn:aws:cloudformation:eu-central-1:123456789012:stack/tenants/0a1b";

    #[test]
    fn an_id_reads_back_with_a_table_by_name_and_by_arn() {
        let ns = NamespaceId::parse("Ab_-9").expect("an id");
        for table in ["limits", "arn:aws:dynamodb:eu-central-1:1:table/limits"] {
            let id = physical_id(table, &ns, "stack", "Limits");
            let named = Named::parse(&id).expect("an id of ours");
            assert!(named.is_at(table, &ns, STACK) && !named.legacy, "{id}");
        }
        let legacy = Named::parse("limits/Ab_-9/limits-provisioner").expect("a legacy id");
        assert!(legacy.legacy && legacy.is_at("limits", &ns, STACK));
    }

    #[test]
    fn a_tables_name_and_its_arn_are_one_place() {
        let ns = NamespaceId::parse("Ab_-9").expect("an id");
        let here = "arn:aws:dynamodb:eu-central-1:123456789012:table/limits";
        let others = [
            "other",
            "arn:aws:dynamodb:eu-west-1:123456789012:table/limits",
            "arn:aws:dynamodb:eu-central-1:999999999999:table/limits",
            "arn:aws:dynamodb:eu-central-1:123456789012:table/other",
            "arn:limits",
        ];
        for own in ["limits", here] {
            let id = physical_id(own, &ns, STACK, "Limits");
            let named = Named::parse(&id).expect("an id of ours");
            for table in ["limits", here] {
                assert!(named.is_at(table, &ns, STACK), "{own} and {table}");
            }
            for table in others {
                assert!(!named.is_at(table, &ns, STACK), "{own} and {table}");
            }
            assert_eq!(named.is_at(here, &ns, "no ARN"), own == here);
        }
    }

    #[test]
    fn what_no_provisioner_gave_names_nothing() {
        let made = never_created("stack", "Limits");
        for id in [
            made.as_str(),
            "",
            "failed",
            "my-stack-Limits-1ABCDEFGHIJ",
            "2024/01/01/[$LATEST]0123456789ab",
            "limits//0123456789ab",
            "/ns/0123456789ab",
            "limits/ns/0123456789AB",
            "limits/ns/0123456789abc",
            "limits/n s/0123456789ab",
        ] {
            assert_eq!(Named::parse(id), None, "{id:?}");
        }
    }
}
