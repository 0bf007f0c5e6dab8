//! Writing JSON into a buffer of bounded size.

use std::io;

use crate::decode::reason::Reason;

/// Bytes that grow up to a bound.
pub struct Bounded {
    bytes: Vec<u8>,
    max_bytes: usize,
    is_full: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, some: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + some.len() > self.max_bytes {
            self.is_full = true;
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(some);
        Ok(some.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Fills an empty buffer; it stays empty where nothing came of it.
///
/// # Errors
/// `TooLarge` where the text is longer than the bound, `Schema` where the writer fails.
pub fn write(
    to: &mut String,
    max_bytes: usize,
    writer: impl FnOnce(&mut Bounded) -> Result<(), ()>,
) -> Result<(), Reason> {
    let mut bytes = std::mem::take(to).into_bytes();
    bytes.clear();
    let mut bounded = Bounded {
        bytes,
        max_bytes,
        is_full: false,
    };
    match (writer(&mut bounded), bounded.is_full) {
        (_, true) => Err(Reason::TooLarge),
        (Err(()), _) => Err(Reason::Schema),
        (Ok(()), _) => {
            *to = String::from_utf8(bounded.bytes).map_err(|_| Reason::Schema)?;
            Ok(())
        }
    }
}
