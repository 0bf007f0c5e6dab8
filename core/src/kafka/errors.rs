//! Why something cannot be read.

/// Why offsets were skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The checksum is another one.
    Crc,
    /// The header contradicts the records, or they cannot be read.
    Damaged,
    /// The batch inflates beyond the bound.
    TooLarge,
    /// A compression that is not known.
    Codec,
}

impl SkipReason {
    /// One word for counters and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crc => "crc",
            Self::Damaged => "damaged",
            Self::TooLarge => "too_large",
            Self::Codec => "codec",
        }
    }
}

/// Why nothing could be read: the caller has to read this blob another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// A message set of Kafka before 0.11 (0 or 1), or a format of the future.
    Format { magic: u8 },
    /// A length that no batch can have: where the next one begins is not known.
    Length { at: usize },
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Format { magic } => {
                write!(
                    f,
                    "records have format {magic}; only format 2 (Kafka 0.11 on) is read"
                )
            }
            Self::Length { at } => write!(f, "the record batch at byte {at} has no valid length"),
        }
    }
}

impl std::error::Error for ReadError {}
