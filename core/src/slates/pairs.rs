//! Pairs of the scored members of a slate: which of both has the higher score, and by how much.

use std::cmp::Ordering;

use crate::logarithms::softplus;
use crate::slates::members::Member;

/// Fractions of losses are added in units of 2^-40.
const PART: f64 = (1u64 << 40) as f64;
const LOSSES: usize = 3;

/// A member with a score.
#[derive(Clone, Copy, Debug)]
pub struct Scored {
    pub score: f64,
    pub is_clicked: bool,
}

/// Twice the pairs (clicked, other) in which the clicked one has the higher score; ties count once.
/// Sorts the members.
pub fn won(scored: &mut [Scored]) -> i64 {
    scored.sort_unstable_by(|a, b| a.score.partial_cmp(&b.score).unwrap_or(Ordering::Equal));
    let (mut won, mut below) = (0, 0);
    for tied in scored.chunk_by(|a, b| a.score == b.score) {
        let clicked = tied.iter().filter(|member| member.is_clicked).count() as i64;
        let others = tied.len() as i64 - clicked;
        won += clicked * (2 * below + others);
        below += others;
    }
    won
}

/// Sums of the three losses over the pairs (relevant, other) of scored members. Each loss is rounded
/// by itself and added in integers, so the order of pairs does not matter and pairs can be retracted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairLosses {
    margin: f64,
    whole: [i64; LOSSES],
    part: [i64; LOSSES],
    pairs: i64,
}

impl PairLosses {
    /// Those of no pairs. `margin`: of the margin loss.
    pub fn new(margin: f64) -> Self {
        Self {
            margin,
            whole: [0; LOSSES],
            part: [0; LOSSES],
            pairs: 0,
        }
    }

    /// Those of a slate; costs the number of its pairs.
    pub fn of(members: &[Member], margin: f64) -> Self {
        let mut found = Self::new(margin);
        for relevant in members.iter().filter(|member| is_relevant(member)) {
            for other in members.iter().filter(|member| !is_relevant(member)) {
                found.add(relevant.score, other.score, 1);
            }
        }
        found
    }

    /// The member at `index` became relevant, or is not any more; its own grade is not looked at,
    /// so `members` may be those before or after. Costs the number of members.
    pub fn flip(&mut self, members: &[Member], index: usize, is_now_relevant: bool) {
        self.pair(members, index, !is_now_relevant, -1);
        self.pair(members, index, is_now_relevant, 1);
    }

    /// The member at `index` is new. Costs the number of members.
    pub fn insert(&mut self, members: &[Member], index: usize) {
        self.pair(
            members,
            index,
            members.get(index).is_some_and(is_relevant),
            1,
        );
    }

    /// Add `sign` times the pairs of one member, as a relevant one or another.
    fn pair(&mut self, members: &[Member], index: usize, as_relevant: bool, sign: i64) {
        let Some(mine) = members.get(index) else {
            return;
        };
        for (at, other) in members.iter().enumerate() {
            if at == index || is_relevant(other) == as_relevant {
                continue;
            }
            if as_relevant {
                self.add(mine.score, other.score, sign);
            } else {
                self.add(other.score, mine.score, sign);
            }
        }
    }

    fn add(&mut self, relevant: f64, other: f64, sign: i64) {
        if relevant.is_nan() || other.is_nan() {
            return;
        }
        let lead = relevant - other;
        let values = [
            softplus(-lead),
            (1.0 - lead).max(0.0),
            (self.margin - lead).max(0.0),
        ];
        for ((whole, part), value) in self.whole.iter_mut().zip(&mut self.part).zip(values) {
            let floor = value as i64; // none is below 0
            *whole += sign * floor;
            *part += sign * ((value - floor as f64) * PART + 0.5) as i64;
        }
        self.pairs += sign;
    }

    /// The mean of a loss over the pairs.
    pub fn mean(&self, loss: usize) -> f64 {
        let total = self.whole[loss] as f64 + self.part[loss] as f64 / PART;
        total / self.pairs.max(1) as f64
    }
}

fn is_relevant(member: &Member) -> bool {
    member.grade > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::testing::Dice;

    /// Members with scores of all sizes, ties and none, of which some are relevant.
    fn slate(dice: &mut Dice, size: usize) -> Vec<Member> {
        let scale = [1e-3, 1.0, 30.0, 1e6][dice.below(4)];
        let (share, step) = ([0, 5, 30, 90, 100][dice.below(5)], [1, 250][dice.below(2)]);
        let mut member = || Member {
            grade: u8::from(dice.below(100) < share),
            is_clicked: false,
            score: match dice.below(5) {
                0 => f64::NAN,
                _ => (dice.below(1000) / step * step) as f64 / 500.0 * scale - scale,
            },
            listed: 0,
            is_held_out: false,
        };
        (0..size).map(|_| member()).collect()
    }

    /// The losses of members that come one by one, and become relevant and not.
    fn stepwise(members: &[Member], margin: f64) -> PairLosses {
        let (mut now, mut losses): (Vec<Member>, _) = (Vec::new(), PairLosses::new(margin));
        for (i, member) in members.iter().enumerate() {
            let grade = u8::from(i % 3 == 0);
            let at = i * 7 % (now.len() + 1);
            now.insert(at, Member { grade, ..*member });
            losses.insert(&now, at);
            if is_relevant(member) != (grade > 0) {
                losses.flip(&now, at, is_relevant(member));
            }
            now[at].grade = member.grade;
        }
        losses
    }

    #[test]
    fn kept_losses_are_those_computed_again() {
        let (mut dice, mut with_pairs) = (Dice(11), 0);
        for i in 0..404 {
            let size = if i < 400 { 1 + dice.below(60) } else { 1000 };
            let members = slate(&mut dice, size);
            let whole = PairLosses::of(&members, 0.3);
            assert_eq!(stepwise(&members, 0.3), whole);
            with_pairs += usize::from(whole.pairs > 0);
        }
        assert!(with_pairs > 150);
    }
}
