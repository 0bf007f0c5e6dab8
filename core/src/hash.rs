//! Ids as 64-bit hashes under a secret key, and keys of several ids.
//!
//! The key is random, made once for a prefix of stored state: without it nobody can choose ids that
//! collide, crowd one place of a table, or fall into the sample of users. Two ids of one kind share
//! a hash with a probability of n² / 2⁶⁵ for n ids: 5e-8 for a million.

use std::hash::{BuildHasherDefault, Hasher};

use siphasher::sip::SipHasher13;

/// The hash of a text that is missing or empty; no other text has it.
pub const NONE: u64 = 0;
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
/// MIX · UNMIX = 1, modulo 2⁶⁴.
const UNMIX: u64 = 0xF1DE_83E1_9937_733D;
/// How hashes end that stand for anonymous events: no id has such a one.
const ANONYMOUS: u64 = 0xFFFF_FFFF;

/// The secret under which ids are hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub struct HashKey(pub u64, pub u64);

impl HashKey {
    /// The hash of a text, `NONE` for an empty one.
    #[inline]
    pub fn of(&self, text: &[u8]) -> u64 {
        if text.is_empty() {
            return NONE;
        }
        let hash = SipHasher13::new_with_keys(self.0, self.1).hash(text).max(1);
        hash ^ u64::from(is_anonymous(hash))
    }
}

/// One key of two, never `NONE`; (a, b) and (b, a) differ.
#[inline]
pub fn mix(a: u64, b: u64) -> u64 {
    let mut h = (a ^ b.wrapping_mul(MIX)).wrapping_mul(MIX);
    h ^= h >> 32;
    h.wrapping_mul(MIX).max(1)
}

/// The `b` that `mix` was given with this `a`.
#[inline]
pub fn unmix(a: u64, mixed: u64) -> u64 {
    let mut h = mixed.wrapping_mul(UNMIX);
    h ^= h >> 32;
    (h.wrapping_mul(UNMIX) ^ a).wrapping_mul(UNMIX)
}

/// Who stands for an anonymous event: what tells it apart, marked so that no user has the same.
#[inline]
pub fn anonymous(apart: u64) -> u64 {
    ANONYMOUS | apart
}

/// Whether a user is none.
#[inline]
pub fn is_anonymous(user: u64) -> bool {
    user & ANONYMOUS == ANONYMOUS
}

/// Whether a hash begins with so many zero bits: one in 2^bits does.
#[inline]
pub fn in_sample(hash: u64, bits: u32) -> bool {
    bits == 0 || hash >> (64 - bits) == 0
}

/// Hashes are spread already: tables take them as they are.
#[derive(Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = mix(self.0, u64::from(*byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// A map whose keys are hashes.
pub type HashMap<V> = hashbrown::HashMap<u64, V, BuildHasherDefault<Spread>>;
/// A set of hashes.
pub type HashSet = hashbrown::HashSet<u64, BuildHasherDefault<Spread>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_depend_on_the_key_and_pairs_on_their_order() {
        let (a, b) = (HashKey(1, 2), HashKey(1, 3));
        assert_ne!(a.of(b"user-1"), b.of(b"user-1"));
        assert_eq!(a.of(b""), NONE);
        assert_ne!(mix(1, 2), mix(2, 1));
        assert_eq!(unmix(1 << 63, mix(1 << 63, 2)), 2);
    }

    #[test]
    fn one_in_two_to_the_bits_is_in_the_sample() {
        let key = HashKey(7, 9);
        let kept = (0..16_000u32)
            .filter(|i| in_sample(key.of(&i.to_le_bytes()), 3))
            .count();
        assert!((1800..2200).contains(&kept), "{kept}");
        assert!(in_sample(u64::MAX, 0));
    }
}
