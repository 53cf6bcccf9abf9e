//! The one digest: what hashes of manifests, plans and resources are made with. Which bytes are
//! hashed, and what a hash is compared with, is their owners' business.

use sha2::{Digest, Sha256};

/// The SHA-256 of some bytes, in 64 lower-case hex digits.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
