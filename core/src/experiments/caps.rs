//! Caps: what a user's numerator counts up to.
//!
//! So that a quantile over users can be the cap at any time, sums are kept by buckets of users'
//! numerators, whose upper edges are the integers of at most two significant digits; of ratios by
//! buckets of denominators, ten a decade, where readers also see how much the largest users have.

use crate::spec::experiments::Cap;

/// Up to 9.9e23: a million of the largest values, in millionths.
const EDGE_COUNT: usize = 100 + 22 * 90;

/// Of the buckets: 0, 1, …, 99, 100, 110, …; there is one more for what is larger, and behind it the
/// same of -1, -2, ….
static EDGES: [i128; EDGE_COUNT] = edges();

const fn edges() -> [i128; EDGE_COUNT] {
    let mut edges = [0; EDGE_COUNT];
    let (mut at, mut step, mut next) = (0, 1, 0);
    while at < EDGE_COUNT {
        edges[at] = next;
        at += 1;
        if at > 100 && (at - 100) % 90 == 1 {
            step *= 10;
        }
        next += step;
    }
    edges
}

/// Upper edges of buckets of denominators: 10, 13, 16, …, 79, 100, 130, …; one more is for what is
/// larger.
static DENOMINATOR_EDGES: [i128; DENOMINATOR_EDGE_COUNT] = denominator_edges();
const DECADE: [i128; 10] = [10, 13, 16, 20, 25, 32, 40, 50, 63, 79];
const DENOMINATOR_EDGE_COUNT: usize = 17 * DECADE.len();

const fn denominator_edges() -> [i128; DENOMINATOR_EDGE_COUNT] {
    let mut edges = [0; DENOMINATOR_EDGE_COUNT];
    let (mut at, mut unit) = (0, 1);
    while at < DENOMINATOR_EDGE_COUNT {
        edges[at] = DECADE[at % DECADE.len()] * unit;
        at += 1;
        if at % DECADE.len() == 0 {
            unit *= 10;
        }
    }
    edges
}

impl Cap {
    /// How many buckets sums are kept by.
    pub fn buckets(self) -> usize {
        match self {
            Self::None | Self::Amount(_) | Self::Any => 1,
            Self::Quantile => 2 * EDGE_COUNT + 1,
            Self::Denominator => DENOMINATOR_EDGE_COUNT + 1,
        }
    }

    /// What a numerator counts for, and the bucket that it is summed in.
    pub fn capped(self, above: i128, below: i128) -> (i128, usize) {
        match self {
            Self::None => (above, 0),
            Self::Amount(most) => (above.clamp(-most, most), 0),
            Self::Any => (i128::from(above > 0), 0),
            Self::Quantile => (above, bucket_of(above)),
            Self::Denominator => (above, DENOMINATOR_EDGES.partition_point(|e| *e < below)),
        }
    }
}

/// The bucket of a value.
fn bucket_of(value: i128) -> usize {
    match usize::try_from(value) {
        Err(_) if value < 0 => EDGE_COUNT + bucket_of(value.saturating_neg()),
        Ok(small) if small < 100 => small,
        _ => EDGES.partition_point(|edge| *edge < value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_have_two_digits_and_buckets_reach_up_to_them() {
        assert_eq!(EDGES[99..103], [99, 100, 110, 120]);
        assert_eq!(EDGES[188..192], [980, 990, 1000, 1100].map(i128::from));
        assert_eq!(EDGES[EDGE_COUNT - 1], 99 * 10_i128.pow(22));
        assert!(EDGES.windows(2).all(|pair| pair[0] < pair[1]));
        let edge = |value| EDGES.get(bucket_of(value)).copied();
        for (value, expected) in [(0, 0), (7, 7), (101, 110), (990, 990), (991, 1000)] {
            assert_eq!(edge(value), Some(expected));
        }
        assert_eq!(edge(i128::MAX), None);
        assert_eq!(bucket_of(-101), EDGE_COUNT + bucket_of(101));
        assert_eq!(bucket_of(i128::MIN) + 1, Cap::Quantile.buckets());
        let of = |cap: Cap, above| cap.capped(above, 1).0;
        assert_eq!(
            [-9, -2, 3, 9].map(|x| of(Cap::Amount(3), x)),
            [-3, -2, 3, 3]
        );
        assert_eq!([-9, 0, 9].map(|x| of(Cap::Any, x)), [0, 0, 1]);
    }

    #[test]
    fn edges_of_denominators_are_ten_a_decade() {
        assert!(DENOMINATOR_EDGES.windows(2).all(|pair| pair[0] < pair[1]));
        let bucket = |below| Cap::Denominator.capped(7, below);
        for (below, expected) in [
            (-1, 0),
            (0, 0),
            (10, 0),
            (11, 1),
            (13, 1),
            (79, 9),
            (80, 10),
        ] {
            assert_eq!(bucket(below), (7, expected));
        }
        assert_eq!(bucket(i128::MAX), (7, Cap::Denominator.buckets() - 1));
    }
}
