//! Columns of integers that add, for the mean of a value and its error: the sum, in two limbs where
//! a value may be large, then limbs of the square, the highest first.

const LIMB_BITS: u32 = 31;
const SUM_BITS: u32 = 30;

/// How one value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moments {
    is_single: bool,
    has_long_square: bool,
}

impl Moments {
    /// `is_single`: sums have one column; `square_limbs`: 2, or 4 where a value may pass 2^31.
    pub fn new(is_single: bool, square_limbs: usize) -> Result<Self, String> {
        match square_limbs {
            2 | 4 => Ok(Self {
                is_single,
                has_long_square: square_limbs == 4,
            }),
            _ => Err(format!("squares have 2 or 4 limbs, not {square_limbs}")),
        }
    }

    /// Number of columns.
    pub fn width(self) -> usize {
        (if self.is_single { 1 } else { 2 }) + (if self.has_long_square { 4 } else { 2 })
    }

    /// Write what is added for a value of up to 2^53 units.
    pub fn write(self, value: i64, out: &mut [i64]) {
        let sums = split(value, SUM_BITS);
        let square = split(value.wrapping_mul(value), LIMB_BITS);
        let limbs = squared(value);
        let sums = if self.is_single {
            &[value][..]
        } else {
            &sums[..]
        };
        let squares = if self.has_long_square {
            &limbs[..]
        } else {
            &square[..]
        };
        for (column, amount) in out.iter_mut().zip(sums.iter().chain(squares)) {
            *column = *amount;
        }
    }
}

/// High and low limb, of which the low one is not below 0.
fn split(value: i64, bits: u32) -> [i64; 2] {
    [value >> bits, value & ((1 << bits) - 1)]
}

/// The square of a value up to 2^53 in four limbs of 31 bits, the highest first.
fn squared(value: i64) -> [i64; 4] {
    let [high, low] = split(value.wrapping_abs(), LIMB_BITS);
    let [carry, first] = split(low * low, LIMB_BITS);
    let [carry, second] = split((2 * high).wrapping_mul(low).wrapping_add(carry), LIMB_BITS);
    let [fourth, third] = split(high.wrapping_mul(high).wrapping_add(carry), LIMB_BITS);
    [fourth, third, second, first]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limbs_add_up_to_sum_and_square() {
        for value in [0, 1, -1, 12_345, -(1 << 31), (1 << 52) + 1, 1 << 53] {
            let mut out = [0; 6];
            Moments {
                is_single: false,
                has_long_square: true,
            }
            .write(value, &mut out);
            assert_eq!((out[0] << SUM_BITS) + out[1], value);
            let square = out[2..]
                .iter()
                .fold(0i128, |all, x| (all << LIMB_BITS) + i128::from(*x));
            assert_eq!(square, i128::from(value) * i128::from(value));
        }
    }

    #[test]
    fn small_values_have_three_columns() {
        let kept = Moments::new(true, 2).unwrap();
        let mut out = vec![0; kept.width()];
        kept.write(-1_000_000_000, &mut out);
        assert_eq!(out, [-1_000_000_000, 465_661_287, 660_865_024]);
        assert!(Moments::new(true, 3).is_err());
    }
}
