//! How a user stands after a day: of each measure the moments of what he adds up to so far.

use ethnum::I256;

use crate::limbs::LIMB_BITS;
use crate::spec::experiments::Cap;
use crate::spec::experiments::{MeasureSpec, RatioSpec};

/// How many moments a measure has: numerator and denominator of each of its ratios, the same of the
/// days before if there are covariates; the products of two of them; for each ratio 1 where the
/// numerator is not 0; and where sums are kept by denominators, 1 where that is not 0.
pub fn moments(measure: &MeasureSpec, has_covariates: bool) -> usize {
    let ratios = 1 + measure.others.len();
    let values = if has_covariates { 4 } else { 2 } * ratios;
    let counted = usize::from(measure.cap == Cap::Denominator);
    values + values * (values + 1) / 2 + ratios + counted
}

/// Of each measure the bucket that its numerator is in, and the moments.
#[derive(Debug, Default)]
pub struct Standing {
    pub is_in: bool,
    /// Where the moments of each measure end.
    ends: Vec<usize>,
    buckets: Vec<usize>,
    moments: Vec<I256>,
    /// A buffer.
    values: Vec<i128>,
}

impl Standing {
    /// A user is in, with these totals of each sum for each measure, and of the days before.
    pub fn set<'t>(
        &mut self,
        measures: &[MeasureSpec],
        totals: impl Fn(usize) -> &'t [i128],
        before: Option<&[i128]>,
    ) {
        self.is_in = true;
        self.ends.clear();
        self.buckets.clear();
        self.moments.clear();
        for (number, measure) in measures.iter().enumerate() {
            self.values.clear();
            for totals in [Some(totals(number)), before].into_iter().flatten() {
                for ratio in measure.ratios() {
                    self.values.push(above_of(&ratio, totals));
                    self.values.push(below_of(&ratio, totals));
                }
            }
            let (x, bucket) = measure.cap.capped(self.values[0], self.values[1]);
            self.values[0] = x;
            self.buckets.push(bucket);
            self.push(1 + measure.others.len(), measure.cap);
        }
    }

    /// Append the moments of the values.
    fn push(&mut self, ratios: usize, cap: Cap) {
        let (values, moments) = (&self.values, &mut self.moments);
        moments.extend(values.iter().map(|value| I256::from(*value)));
        for (i, a) in values.iter().enumerate() {
            moments.extend(values[i..].iter().map(|b| product(*a, *b)));
        }
        let above = values.iter().step_by(2).take(ratios);
        moments.extend(above.map(|x| I256::from(*x != 0)));
        if cap == Cap::Denominator {
            moments.push(I256::from(values[1] != 0));
        }
        self.ends.push(moments.len());
    }

    /// Bucket and moments of a measure; none of a user who is not in.
    pub fn of(&self, measure: usize) -> Option<(usize, &[I256])> {
        let bucket = self.buckets.get(measure).filter(|_| self.is_in)?;
        let first = measure.checked_sub(1).map_or(0, |last| self.ends[last]);
        Some((*bucket, &self.moments[first..self.ends[measure]]))
    }
}

fn above_of(ratio: &RatioSpec, totals: &[i128]) -> i128 {
    let high = ratio.high.map_or(0, |high| totals[high]);
    totals[ratio.above] + (high << LIMB_BITS)
}

fn below_of(ratio: &RatioSpec, totals: &[i128]) -> i128 {
    let high = ratio.below_high.map_or(0, |high| totals[high]);
    ratio
        .below
        .map_or(1, |below| totals[below] + (high << LIMB_BITS))
}

/// Exact; short where both fit 64 bits.
fn product(a: i128, b: i128) -> I256 {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => I256::from(i128::from(a) * i128::from(b)),
        _ => I256::from(a) * I256::from(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_composite_has_the_products_of_all_its_parts() {
        let other = RatioSpec {
            above: 2,
            below: Some(1),
            high: None,
            below_high: None,
        };
        let measure = MeasureSpec {
            above: 0,
            below: Some(1),
            high: None,
            below_high: None,
            cap: Cap::None,
            age: None,
            is_mature: false,
            others: vec![other],
        };
        assert_eq!(moments(&measure, false), 16);
        assert_eq!(moments(&measure, true), 8 + 36 + 2);
        let single = MeasureSpec {
            others: vec![],
            ..measure.clone()
        };
        let mut standing = Standing::default();
        standing.set(&[single, measure], |_| &[2, 3, 0], None);
        let of = |number| -> Vec<i64> {
            let (_, found) = standing.of(number).unwrap();
            found.iter().map(|value| value.as_i64()).collect()
        };
        assert_eq!(of(0), [2, 3, 4, 6, 9, 1]);
        let products = [4, 6, 0, 6, 9, 0, 9, 0, 0, 9];
        assert_eq!(of(1), [&[2, 3, 0, 3], &products[..], &[1, 0]].concat());
    }
}
