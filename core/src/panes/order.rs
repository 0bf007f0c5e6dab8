//! Order: where statistics stand in rows of panes. Those that most rollups keep come first, so that
//! what a rollup keeps lies together in few cells.

use crate::panes::rings::BLOCK;
use crate::spec;

/// Codes of statistics as the settings number them, and as they stand in rows.
#[derive(Clone, Debug)]
pub struct Order {
    placed: Vec<u32>,
    codes: Vec<u32>,
}

impl Order {
    /// Of what rollups keep.
    pub fn new(rollups: &[spec::RollupSpec]) -> Self {
        let spans = rollups.iter().flat_map(|rollup| &rollup.kept);
        let size = spans.clone().map(|(_, stop)| *stop).max().unwrap_or(0);
        let mut keepers = vec![0u32; size as usize];
        for code in spans.flat_map(|(first, stop)| *first..*stop) {
            keepers[code as usize] += 1;
        }
        let mut codes: Vec<u32> = (0..size).collect();
        codes.sort_by_key(|code| std::cmp::Reverse(keepers[*code as usize]));
        let mut placed = vec![0; codes.len()];
        for (place, code) in (0..).zip(&codes) {
            placed[*code as usize] = place;
        }
        Self { placed, codes }
    }

    /// Where a statistic stands; those beyond all rollups stand at their code.
    #[inline]
    pub fn place(&self, code: u32) -> u32 {
        self.placed.get(code as usize).copied().unwrap_or(code)
    }

    /// The code of what stands at a place.
    pub fn code(&self, place: u32) -> u32 {
        self.codes.get(place as usize).copied().unwrap_or(place)
    }

    /// Where runs of codes stand, by block: a bit for each place.
    pub fn bits(&self, spans: &[(u32, u32)]) -> Vec<u64> {
        let mut bits = Vec::new();
        for code in spans.iter().flat_map(|(first, stop)| *first..*stop) {
            let place = self.place(code) as usize;
            if place / BLOCK >= bits.len() {
                bits.resize(place / BLOCK + 1, 0);
            }
            bits[place / BLOCK] |= 1 << (place % BLOCK);
        }
        bits
    }

    /// Runs of codes as places, each with what stands beside it.
    pub fn places<T: Copy>(&self, spans: &[(u32, u32, T)]) -> Vec<(u32, u32, T)> {
        let codes = spans
            .iter()
            .flat_map(|(first, stop, of)| (*first..*stop).map(|code| (code, *of)));
        let places = codes.map(|(code, of)| (self.place(code), of));
        places.map(|(place, of)| (place, place + 1, of)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_most_rollups_keep_comes_first() {
        let rollup = |kept: &[(u32, u32)]| spec::RollupSpec {
            dimensions: Vec::new(),
            kept: kept.to_vec(),
            has_users: false,
            since: Vec::new(),
        };
        let order = Order::new(&[rollup(&[(0, 6)]), rollup(&[(1, 2), (4, 6)])]);
        assert_eq!(
            (0..7).map(|code| order.place(code)).collect::<Vec<_>>(),
            [3, 0, 4, 5, 1, 2, 6]
        );
        assert!((0..7).all(|code| order.code(order.place(code)) == code));
        let plain = Order::new(&[]).bits(&[(2, 4), (127, 129)]);
        assert_eq!(plain, [0b1100, 1 << 63, 1]);
        assert_eq!(order.places(&[(0, 2, 'x')]), [(3, 4, 'x'), (0, 1, 'x')]);
    }
}
