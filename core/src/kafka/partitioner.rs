//! The partition of a key, as Kafka's Java clients choose it.

const MULTIPLIER: u32 = 0x5BD1_E995;

/// The partition of a key.
pub fn partition_of(key: &[u8], partitions: u32) -> u32 {
    (murmur2(key) & 0x7FFF_FFFF) % partitions.max(1)
}

fn murmur2(data: &[u8]) -> u32 {
    let mut hash = 0x9747_B28C ^ data.len() as u32;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let word = u32::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        let word = (word ^ word >> 24).wrapping_mul(MULTIPLIER);
        hash = hash.wrapping_mul(MULTIPLIER) ^ word;
    }
    if !rest.is_empty() {
        let bytes = rest.iter().rev();
        hash ^= bytes.fold(0, |word, byte| word << 8 | u32::from(*byte));
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(MULTIPLIER);
    hash ^ hash >> 15
}
