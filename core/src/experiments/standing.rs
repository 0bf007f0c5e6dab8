//! How a user stands after a day: of each measure the moments of what he adds up to so far.

use ethnum::I256;

use crate::counting::components::LIMB_BITS;
use crate::experiments::spec::MeasureSpec;

/// How many moments a measure has: numerator, denominator, the same of the days before if there are
/// covariates; the products of two of them; and 1 where the numerator is not 0.
pub fn moments(has_covariates: bool) -> usize {
    if has_covariates {
        4 + 10 + 1
    } else {
        2 + 3 + 1
    }
}

/// Of each measure the bucket that its numerator is in, and the moments.
#[derive(Debug, Default)]
pub struct Standing {
    pub is_in: bool,
    /// Moments of each measure.
    width: usize,
    buckets: Vec<usize>,
    moments: Vec<I256>,
}

impl Standing {
    /// A user with these totals of each component, and of the days before, is in.
    pub fn set(&mut self, measures: &[MeasureSpec], totals: &[i128], before: Option<&[i128]>) {
        self.is_in = true;
        self.width = moments(before.is_some());
        self.buckets.clear();
        self.moments.clear();
        for measure in measures {
            let (x, bucket) = measure.cap.capped(above_of(measure, totals));
            let y = below_of(measure, totals);
            self.buckets.push(bucket);
            match before {
                None => self.push([x, y]),
                Some(before) => {
                    self.push([x, y, above_of(measure, before), below_of(measure, before)]);
                }
            }
        }
    }

    fn push<const N: usize>(&mut self, values: [i128; N]) {
        self.moments.extend(values.map(I256::from));
        for (i, a) in values.iter().enumerate() {
            let products = values[i..].iter().map(|b| product(*a, *b));
            self.moments.extend(products);
        }
        self.moments.push(I256::from(values[0] != 0));
    }

    /// Bucket and moments of a measure; none of a user who is not in.
    pub fn of(&self, measure: usize) -> Option<(usize, &[I256])> {
        let bucket = self.buckets.get(measure).filter(|_| self.is_in)?;
        let moments = &self.moments[measure * self.width..][..self.width];
        Some((*bucket, moments))
    }
}

fn above_of(measure: &MeasureSpec, totals: &[i128]) -> i128 {
    let high = measure.high.map_or(0, |high| totals[high]);
    totals[measure.above] + (high << LIMB_BITS)
}

fn below_of(measure: &MeasureSpec, totals: &[i128]) -> i128 {
    measure.below.map_or(1, |below| totals[below])
}

/// Exact; short where both fit 64 bits.
fn product(a: i128, b: i128) -> I256 {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => I256::from(i128::from(a) * i128::from(b)),
        _ => I256::from(a) * I256::from(b),
    }
}
