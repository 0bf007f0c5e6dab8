//! Rows of one ratio: what its numerator and its denominator got in two periods, each under the
//! values of all dimensions and the person. What moved is looked for among them.
//!
//! Rows are bounded: beyond the bound those people stay whose hashes begin with enough zero bits.

use crate::changes::{Combination, UserAt};
use crate::limbs::LIMB_BITS;
use crate::panes::dimensions::{Dimensions, OTHER};
use crate::spec::RatioRowsSpec;

/// Hashes of people have other bits for groups below these.
const MAX_BITS: u32 = 20;

/// Columns of equal length. `codes`: of each dimension; `bits`: so many leading ones are 0 of the
/// hashes of people who are kept.
#[derive(Debug, Default)]
pub struct RatioRows {
    pub codes: Vec<Vec<u16>>,
    pub person: Vec<u32>,
    pub is_now: Vec<bool>,
    pub numerator: Vec<f64>,
    pub denominator: Vec<f64>,
    pub bits: u32,
}

/// Writes rows down as changes come; of a slate with the same values one.
#[derive(Debug)]
pub struct RatioRecorder {
    spec: RatioRowsSpec,
    rows: RatioRows,
    last: Option<(Combination, u32, bool)>,
}

impl RatioRecorder {
    /// `dimensions`: how many there are.
    pub fn new(spec: &RatioRowsSpec, dimensions: usize) -> Self {
        let codes = vec![Vec::new(); dimensions];
        Self {
            spec: spec.clone(),
            rows: RatioRows {
                codes,
                ..RatioRows::default()
            },
            last: None,
        }
    }

    /// Adds an amount of one sum.
    pub fn add(&mut self, dimensions: &Dimensions, sum: usize, at: UserAt, amount: i64) {
        let is_in = |period: &(i64, i64)| (period.0..period.1).contains(&at.event_ms);
        let Some(period) = self.spec.periods.iter().position(is_in) else {
            return;
        };
        let (person, is_now) = ((at.user >> 32) as u32, period == 1);
        for part in self.spec.ratio.parts(sum) {
            let key = Some((at.combination, person, is_now));
            if self.last != key && !self.push(dimensions.codes(at.combination), person, is_now) {
                return;
            }
            self.last = key;
            let row = self.rows.person.len() - 1;
            let limb = if part < 2 { 1_u64 } else { 1 << LIMB_BITS };
            let sums = [&mut self.rows.numerator, &mut self.rows.denominator];
            sums[usize::from(matches!(part, 1 | 3))][row] += amount as f64 * limb as f64;
        }
    }

    /// Begins a row, and forgets people beyond the bound. Returns whether this one is kept.
    fn push(&mut self, codes: &[u32], person: u32, is_now: bool) -> bool {
        let rows = &mut self.rows;
        while rows.person.len() >= self.spec.limit && rows.bits < MAX_BITS {
            rows.bits += 1;
            let is_kept = |person: &u32| person.leading_zeros() >= rows.bits;
            let kept: Vec<bool> = rows.person.iter().map(is_kept).collect();
            rows.codes.iter_mut().for_each(|column| keep(column, &kept));
            keep(&mut rows.is_now, &kept);
            keep(&mut rows.person, &kept);
            keep(&mut rows.numerator, &kept);
            keep(&mut rows.denominator, &kept);
        }
        if person.leading_zeros() < rows.bits {
            return false;
        }
        for (column, code) in rows.codes.iter_mut().zip(codes) {
            column.push(u16::try_from(*code).unwrap_or(OTHER as u16));
        }
        rows.is_now.push(is_now);
        rows.person.push(person);
        rows.numerator.push(0.0);
        rows.denominator.push(0.0);
        true
    }

    /// The rows so far, which are gone here.
    pub fn take(&mut self) -> RatioRows {
        let empty = Self::new(&self.spec, self.rows.codes.len());
        std::mem::replace(self, empty).rows
    }
}

fn keep<T>(values: &mut Vec<T>, kept: &[bool]) {
    let mut is_kept = kept.iter();
    values.retain(|_| is_kept.next() == Some(&true));
}
