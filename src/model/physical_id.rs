//! The physical id that a custom resource has: `{table}/{namespace id}/{12 hex digits}`.
//!
//! It says where the resource keeps its levels and nothing about what they are.

use super::{NamespaceId, sha256_hex};

/// Hex digits of the hash of stack id and logical id.
pub(crate) const DIGITS: usize = 12;

/// The id of a resource; `table` by name or ARN, as the resource names it.
pub fn physical_id(
    table: &str,
    namespace_id: &NamespaceId,
    stack_id: &str,
    logical_id: &str,
) -> String {
    format!("{table}/{namespace_id}/{}", digest(stack_id, logical_id))
}

/// Tells resources apart that keep their levels in the same place.
pub(crate) fn digest(stack_id: &str, logical_id: &str) -> String {
    let mut hex = sha256_hex(format!("{stack_id}\n{logical_id}"));
    hex.truncate(DIGITS);
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_and_logical_id_do_not_run_into_each_other() {
        assert_ne!(digest("ab", "c"), digest("a", "bc"));
    }
}
