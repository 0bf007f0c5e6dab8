//! Limbs: integers in parts that are added up apart. Of amounts of money there are two.
//!
//! Integers beyond 64 bits are columns of limbs of 40 bits, of which the highest has the sign: they
//! can be added up by the million before they are joined.

use ethnum::I256;

use crate::columns::Columns;

/// Bits of the low limb of amounts of money.
pub const LIMB_BITS: u32 = 32;
const COLUMN_BITS: u32 = 40;
const MASK: i128 = (1 << COLUMN_BITS) - 1;

/// High and low limb of millionths of currency; the low one is not below 0.
pub fn limbs(micros: i64) -> (i64, i64) {
    (micros >> LIMB_BITS, micros & ((1 << LIMB_BITS) - 1))
}

/// Columns `key` (ascending), `limb_0`, `limb_1`, … of sums.
pub fn columns(sums: Vec<(i64, I256)>) -> Columns {
    let (keys, mut rest): (Vec<i64>, Vec<I256>) = sums.into_iter().unzip();
    let mut found = Columns::default();
    found.add("key", keys);
    for number in 0.. {
        let is_last = rest.iter().all(|value| {
            (-MASK..=MASK).contains(value.low()) && *value.high() == value.low() >> 127
        });
        let limb = rest.iter().map(|value| match is_last {
            true => value.as_i64(),
            false => (*value.low() & MASK) as i64,
        });
        found.add(&format!("limb_{number}"), limb.collect::<Vec<i64>>());
        if is_last {
            break;
        }
        for value in &mut rest {
            *value >>= COLUMN_BITS;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limbs_add_up_to_the_sums() {
        let large = I256::new(3) << 200_u32;
        let sums = [I256::new(7), -large, large + I256::new(1), I256::new(-1)];
        let found = columns((0..).zip(sums).collect());
        assert_eq!(found.get::<i64>("key").unwrap(), [0, 1, 2, 3]);
        assert_eq!(found.0.len(), 1 + 6);
        for (row, expected) in sums.iter().enumerate() {
            let mut total = I256::new(0);
            for number in (0..6).rev() {
                let limb: &[i64] = found.get(&format!("limb_{number}")).unwrap();
                total = (total << COLUMN_BITS) + I256::from(limb[row]);
            }
            assert_eq!(total, *expected);
        }
        assert_eq!(columns(Vec::new()).0.len(), 2);
    }
}
