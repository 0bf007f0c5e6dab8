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

#[cfg(test)]
mod tests {
    use super::murmur2;

    #[test]
    fn hashes_are_those_of_the_java_client() {
        for (text, expected) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            (
                "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(text.as_bytes()) as i32, expected, "{text}");
        }
    }
}
