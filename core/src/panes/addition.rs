//! Sums that are added up, as long as they are not too large.

/// No sum passes this: beyond it is an error, never a wrap.
pub const MAX_SUM: i64 = 1 << 62;

/// A sum would pass `MAX_SUM`.
#[derive(Debug, PartialEq, Eq)]
pub struct Overflow;

/// Adds amounts to sums.
pub fn add_up(sums: &mut [i64], amounts: &[i64]) -> Result<(), Overflow> {
    for (sum, amount) in sums.iter_mut().zip(amounts) {
        *sum = sum.checked_add(*amount).ok_or(Overflow)?;
        if sum.unsigned_abs() > MAX_SUM.unsigned_abs() {
            return Err(Overflow);
        }
    }
    Ok(())
}
