//! What formats write alike: texts that may be none, and integers.

use std::borrow::Cow;

/// Bytes as the text that they hold, or where that is none, or has control characters, as
/// hexadecimal digits: ids are often 16 bytes.
pub(super) fn bytes_as_text(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) if !text.contains(char::is_control) => Cow::Borrowed(text),
        _ => Cow::Owned(value.iter().map(|byte| format!("{byte:02x}")).collect()),
    }
}

/// The next integer: seven bits a byte, the least first, the sign in the lowest.
pub(super) fn zigzag(rest: &mut &[u8]) -> Option<i64> {
    let value = varint(rest)?;
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

/// The next integer without a sign.
pub(super) fn varint(rest: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0_u64, 0);
    loop {
        let (byte, more) = rest.split_first()?;
        *rest = more;
        value |= u64::from(byte & 127) << shift;
        if byte & 128 == 0 {
            let fits = shift < 63 || *byte < 2;
            return fits.then_some(value);
        }
        shift += 7;
        if shift > 63 {
            return None;
        }
    }
}
