//! What the values of one slate are made of, computed once a slate in integers.
//!
//! Members have ranks i = 1 … n in the order shown. Those of a grade above 0 are relevant. A value
//! is in units of 1e-9, rounded half up once; the tables it is made of have 20 bits more.

use std::sync::Arc;

use crate::slates::members::{Member, Probed};
use crate::slates::pairs::{PairLosses, Scored, won};
use crate::spec::sums::TableSpec;

/// Units of a value that is 1.
pub const UNIT: i64 = 1_000_000_000;
/// Bits that tables have more than values.
pub const TABLE_BITS: u32 = 20;
/// Members of a slate that are looked at: tables go so far.
pub const MAX_ITEMS: usize = 1000;
/// Grades above 0: one a kind of feedback at most.
pub const MAX_GRADES: usize = 17;
/// A rank beyond any.
pub const BEYOND: i64 = 1 << 31;

/// A choice within a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convention {
    Default,
    Shown,
    Jurity,
    Primer,
    Exponential,
    TauB,
}

impl Convention {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "" => Self::Default,
            "shown" => Self::Shown,
            "jurity" => Self::Jurity,
            "primer" => Self::Primer,
            "exponential" => Self::Exponential,
            "tau_b" => Self::TauB,
            _ => return None,
        })
    }
}

/// The tables, checked.
#[derive(Debug)]
pub struct Tables {
    pub gains: Vec<f64>,
    pub exponential_gains: Vec<f64>,
    pub margin: f64,
    reciprocal: Vec<i64>,
    discount: Vec<i64>,
    /// Sums of the first discounts.
    ideal: Vec<i64>,
}

impl Tables {
    /// An error where the tables are too short or there are too many grades.
    pub fn new(spec: TableSpec) -> Result<Self, String> {
        let TableSpec {
            gains,
            exponential_gains,
            margin,
            reciprocal,
            discount,
        } = spec;
        if gains.len() > MAX_GRADES || exponential_gains.len() != gains.len() {
            return Err(format!(
                "{} gains, at most {MAX_GRADES}, in two lists",
                gains.len()
            ));
        }
        if reciprocal.len() != MAX_ITEMS + 1 || discount.len() != MAX_ITEMS + 1 {
            return Err(format!("tables of ranks 0 to {MAX_ITEMS} are needed"));
        }
        let sums = discount.iter().scan(0i64, |sum, x| {
            *sum = sum.wrapping_add(*x);
            Some(*sum)
        });
        let ideal = sums.collect();
        Ok(Self {
            gains,
            exponential_gains,
            margin,
            reciprocal,
            discount,
            ideal,
        })
    }

    /// 1 / rank, in units of a table.
    pub fn reciprocal(&self, rank: i64) -> i64 {
        at(&self.reciprocal, rank)
    }

    /// 1 / log2(rank + 1), in units of a table.
    pub fn discount(&self, rank: i64) -> i64 {
        at(&self.discount, rank)
    }

    /// Sum of the discounts of the ranks after `first` up to `last`.
    fn discounts(&self, first: i64, last: i64) -> i64 {
        at(&self.ideal, last) - at(&self.ideal, first)
    }
}

/// The entry of a rank, that of the last one beyond.
fn at(table: &[i64], rank: i64) -> i64 {
    table
        .get(rank.clamp(0, MAX_ITEMS as i64) as usize)
        .copied()
        .unwrap_or(0)
}

/// above / below in units; 0 where `below` is 0.
pub fn quotient(above: i64, below: i64) -> i64 {
    if below > 0 {
        (2 * UNIT * above + below).div_euclid(2 * below)
    } else {
        0
    }
}

/// A double in units.
pub fn rounded(value: f64) -> i64 {
    (value * 1e9 + 0.5).floor() as i64
}

/// Units of a table in units.
pub fn from_table(value: i64) -> i64 {
    (value + (1 << (TABLE_BITS - 1))) >> TABLE_BITS
}

/// A relevant member.
#[derive(Clone, Copy, Debug)]
pub struct Relevant {
    pub rank: i64,
    grade: usize,
}

/// One slate at a time; its buffers are used again.
#[derive(Debug)]
pub struct SlateContext {
    pub tables: Arc<Tables>,
    has_scoring: bool,
    /// How many positions people see.
    pub visible: i64,
    /// Number of members.
    pub size: i64,
    /// The relevant members, in the order shown.
    pub relevant: Vec<Relevant>,
    /// Members of each grade from 0.
    at_grade: [i64; MAX_GRADES + 1],
    /// Relevant items of each grade that were not shown: none where only events tell of relevance.
    unshown: [i64; MAX_GRADES + 1],
    unshown_count: i64,
    /// Pairs of different grade in which the higher grade comes first.
    pub concordant: i64,
    /// Pairs of different grade in which the higher grade comes last.
    pub discordant: i64,
    /// Items that brute force gives; 0: there is no list.
    pub reference_size: i64,
    /// Of the members in the brute-force list the larger of both ranks.
    listed: Vec<i64>,
    pub has_held_out: bool,
    /// Rank of the held-out item, or `BEYOND`.
    pub held_out_rank: i64,
    scored: Vec<Scored>,
    /// Members with a score.
    pub scored_count: i64,
    /// Members with a score that are clicked.
    pub scored_clicked: i64,
    /// Members with a score that are relevant.
    pub scored_relevant: i64,
    /// Twice the pairs (clicked, other) in which the clicked one has the higher score; ties once.
    pub won: i64,
    pub losses: PairLosses,
}

impl SlateContext {
    /// `has_scoring`: whether values of scores are asked for.
    pub fn new(tables: Arc<Tables>, has_scoring: bool) -> Self {
        let losses = PairLosses::new(tables.margin);
        Self {
            tables,
            has_scoring,
            visible: 0,
            size: 0,
            relevant: Vec::new(),
            at_grade: [0; MAX_GRADES + 1],
            unshown: [0; MAX_GRADES + 1],
            unshown_count: 0,
            concordant: 0,
            discordant: 0,
            reference_size: 0,
            listed: Vec::new(),
            has_held_out: false,
            held_out_rank: BEYOND,
            scored: Vec::new(),
            scored_count: 0,
            scored_clicked: 0,
            scored_relevant: 0,
            won: 0,
            losses,
        }
    }

    /// Look at a slate, whose members stand in the order shown; those beyond the tables are left
    /// out. `losses`: those of its pairs where the caller keeps them, else they are computed.
    pub fn read(&mut self, members: &[Member], probed: Probed, losses: Option<PairLosses>) {
        let members = members.get(..MAX_ITEMS).unwrap_or(members);
        self.clear(members.len());
        self.reference_size = probed.reference_size as i64;
        self.has_held_out = probed.has_held_out;
        for (rank, member) in (1..).zip(members) {
            self.add(rank, member);
        }
        self.order_pairs();
        if !self.has_scoring {
            return;
        }
        self.scored_count = self.scored.len() as i64;
        if self.has_both_classes() {
            self.won = won(&mut self.scored);
        }
        if self.has_scored_pairs() {
            let margin = self.tables.margin;
            self.losses = losses.unwrap_or_else(|| PairLosses::of(members, margin));
        }
    }

    /// Relevant items that the slate does not show, by grade from 0 (which counts as none): recall,
    /// average precision and the best order count them. To be called after `read`.
    pub fn add_unshown(&mut self, by_grade: &[i64; MAX_GRADES + 1]) {
        for (unshown, count) in self.unshown.iter_mut().zip(by_grade).skip(1) {
            *unshown += count;
            self.unshown_count += count;
        }
    }

    fn clear(&mut self, size: usize) {
        self.size = size as i64;
        self.relevant.clear();
        self.at_grade = [0; MAX_GRADES + 1];
        (self.unshown, self.unshown_count) = ([0; MAX_GRADES + 1], 0);
        self.listed.clear();
        self.scored.clear();
        self.held_out_rank = BEYOND;
        (self.scored_count, self.scored_clicked, self.scored_relevant) = (0, 0, 0);
        (self.won, self.losses) = (0, PairLosses::new(self.tables.margin));
    }

    fn add(&mut self, rank: i64, member: &Member) {
        let grade = usize::from(member.grade).min(self.tables.gains.len());
        self.at_grade[grade] += 1;
        if grade > 0 {
            self.relevant.push(Relevant { rank, grade });
        }
        if member.listed > 0 {
            self.listed.push(rank.max(i64::from(member.listed)));
        }
        if member.is_held_out {
            self.held_out_rank = self.held_out_rank.min(rank);
        }
        if self.has_scoring && !member.score.is_nan() {
            self.scored.push(Scored {
                score: member.score,
                is_clicked: member.is_clicked,
            });
            self.scored_clicked += i64::from(member.is_clicked);
            self.scored_relevant += i64::from(grade > 0);
        }
    }

    fn order_pairs(&mut self) {
        (self.concordant, self.discordant) = (0, 0);
        let mut seen = [0i64; MAX_GRADES + 1];
        for member in &self.relevant {
            let not_lower: i64 = seen[member.grade..].iter().sum();
            let lower: i64 = self.at_grade[..member.grade].iter().sum();
            let before = member.rank - 1 - not_lower;
            self.discordant += before;
            self.concordant += lower - before;
            seen[member.grade] += 1;
        }
    }

    /// Number of relevant items: members, and those not shown.
    pub fn relevant_count(&self) -> i64 {
        self.relevant.len() as i64 + self.unshown_count
    }

    /// Number of items of the best order: all members, and relevant items not shown.
    pub fn best_size(&self) -> i64 {
        self.size + self.unshown_count
    }

    /// The relevant members among the first k.
    pub fn relevant_within(&self, k: i64) -> &[Relevant] {
        let end = self.relevant.partition_point(|member| member.rank <= k);
        self.relevant.get(..end).unwrap_or_default()
    }

    /// Number of relevant members among the first k.
    pub fn hits_within(&self, k: i64) -> i64 {
        self.relevant_within(k).len() as i64
    }

    /// Members among the first k that stand in the first k of the brute-force list.
    pub fn listed_within(&self, k: i64) -> i64 {
        self.listed.iter().filter(|rank| **rank <= k).count() as i64
    }

    /// Whether there are members of different grade.
    pub fn is_contrasted(&self) -> bool {
        self.concordant + self.discordant > 0
    }

    /// Whether clicked members and others carry scores.
    pub fn has_both_classes(&self) -> bool {
        self.scored_clicked > 0 && self.scored_clicked < self.scored_count
    }

    /// Whether relevant members and others carry scores.
    pub fn has_scored_pairs(&self) -> bool {
        self.scored_relevant > 0 && self.scored_relevant < self.scored_count
    }

    /// Sum of gain * weight of the rank over the first k; grades are added in ascending order.
    pub fn gained(&self, k: i64, gains: &[f64], weight: impl Fn(i64) -> i64) -> f64 {
        let mut totals = [0i64; MAX_GRADES + 1];
        for member in self.relevant_within(k) {
            totals[member.grade] += weight(member.rank);
        }
        weighted(gains, &totals)
    }

    /// Sum of gain / log2(i + 1), in units of a table, of the best order of the members and of the
    /// relevant items not shown.
    pub fn ideally_discounted(&self, k: i64, gains: &[f64]) -> f64 {
        let mut totals = [0i64; MAX_GRADES + 1];
        let mut above = 0;
        let counts = self.at_grade.iter().zip(&self.unshown);
        let counts = counts.map(|(shown, unshown)| shown + unshown);
        for (total, count) in totals.iter_mut().zip(counts).skip(1).rev() {
            *total = self.tables.discounts(above.min(k), (above + count).min(k));
            above += count;
        }
        weighted(gains, &totals)
    }

    /// Of each grade from 0 the members, and the sum of n + 1 - 2 rank over them.
    pub fn orders(&self) -> impl Iterator<Item = (i64, i64)> {
        let mut sums = [0i64; MAX_GRADES + 1];
        for member in &self.relevant {
            sums[member.grade] += self.size + 1 - 2 * member.rank;
        }
        sums[0] = -sums[1..].iter().sum::<i64>(); // over all members it is 0
        self.at_grade
            .into_iter()
            .zip(sums)
            .take(self.tables.gains.len() + 1)
    }
}

fn weighted(gains: &[f64], totals: &[i64]) -> f64 {
    gains
        .iter()
        .zip(totals.iter().skip(1))
        .fold(0.0, |sum, (gain, n)| sum + gain * *n as f64)
}
