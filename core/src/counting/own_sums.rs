//! Sums of one's own: which events count by their kind, the conditions that they and their impressions
//! meet, and their combination. Formulas stand in `streamer/metrics/own_ratios.py`.

use crate::attribution::pending::Feedback;
use crate::changes::{Combination, UserAt};
use crate::hash::is_anonymous;
use crate::kinds::{EventKind, FeedbackKind};
use crate::limbs::limbs;
use crate::own_sums::{Values, places};
use crate::panes::dimensions::Dimensions;
use crate::spec::sums::OwnSum;

/// Sums at most: each has a bit.
pub const MAX_OWN_SUMS: usize = u32::BITS as usize;

/// What is added up of an own sum: its events, or a limb of their values; the low one is not below 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnAmount {
    Count,
    Low,
    High,
}

impl Origin<'_> {
    /// Whether it refunds a whole order.
    fn is_return(self) -> bool {
        matches!(self, Origin::Feedback(feedback) if feedback.orders() < 0)
    }
}

impl OwnAmount {
    /// What a value adds.
    pub fn of(self, value: i64) -> i64 {
        let (high, low) = limbs(value);
        match self {
            Self::Count => 1,
            Self::Low => low,
            Self::High => high,
        }
    }
}

/// What an event is that may add to own sums.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    Shown,
    Feedback(&'a Feedback),
    Visit,
}

/// The own sums of the settings; several of them are a bit each.
#[derive(Debug)]
pub struct OwnSums {
    sums: Vec<OwnSum>,
    shown: u32,
    visits: u32,
    /// Of orders and of their further lines.
    orders: u32,
    lines: u32,
    /// Those that add up a field.
    of_fields: u32,
    /// By the place of the kind of feedback.
    feedback: Vec<u32>,
    /// Those that choose by dimensions, and which of them count by combination, as long as numbers
    /// keep their values.
    filtered: u32,
    known: Vec<Option<u32>>,
    changes: u64,
}

impl OwnSums {
    /// An error where there are too many, or of a kind that there is not.
    pub fn new(sums: &[OwnSum]) -> Result<Self, String> {
        if sums.len() > MAX_OWN_SUMS {
            return Err(format!("{} own sums", sums.len()));
        }
        let mut found = Self {
            sums: sums.to_vec(),
            shown: 0,
            visits: 0,
            orders: 0,
            lines: 0,
            of_fields: 0,
            feedback: Vec::new(),
            filtered: 0,
            known: Vec::new(),
            changes: 0,
        };
        for (place, sum) in sums.iter().enumerate() {
            let bit = 1 << place;
            match (EventKind::named(&sum.kind)?, sum.feedback) {
                (EventKind::Impressions, _) => found.shown |= bit,
                (EventKind::Sessions, _) => found.visits |= bit,
                (EventKind::Clicks, Some(kind)) => {
                    let kinds = found.feedback.len().max(usize::from(kind) + 1);
                    found.feedback.resize(kinds, 0);
                    found.feedback[usize::from(kind)] |= bit;
                }
                (EventKind::Conversions, _) => {
                    found.orders |= bit;
                    found.lines |= if sum.is_of_lines { bit } else { 0 };
                }
                _ => return Err(format!("an own sum of {:?}", sum.kind)),
            }
            found.of_fields |= if sum.amount.is_some() { bit } else { 0 };
            found.filtered |= if sum.dimensions.is_empty() { 0 } else { bit };
        }
        Ok(found)
    }

    /// The sums that an event counts for.
    #[inline]
    pub fn of(
        &mut self,
        origin: Origin<'_>,
        at: UserAt,
        values: &Values,
        dimensions: &Dimensions,
    ) -> u32 {
        let (of_kind, met_by_joined) = match origin {
            Origin::Shown => (self.shown, 0),
            Origin::Visit => (self.visits, 0),
            Origin::Feedback(feedback) => {
                let counted = if feedback.orders() == 0 {
                    self.of_fields
                } else {
                    u32::MAX
                };
                let of_kind = self.of_feedback(feedback.kind) & counted;
                (of_kind, feedback.met_by_joined)
            }
        };
        let mut found = of_kind;
        for place in places(of_kind) {
            let sum = &self.sums[place];
            let counts = sum.own & !values.met == 0
                && sum.joined & !met_by_joined == 0
                && !(sum.is_of_users && is_anonymous(at.user));
            if !counts {
                found &= !(1 << place);
            }
        }
        match found & self.filtered {
            0 => found,
            _ => found & (!self.filtered | self.by_combination(at.combination, dimensions)),
        }
    }

    /// What an event adds to one of them, and how often; nothing where it lacks the amount. A
    /// refund of a whole order is one event less.
    pub fn value(&self, sum: usize, values: &Values, origin: Origin<'_>) -> Option<(i64, i64)> {
        let amount = self.sums[sum].amount;
        let value = values.amount(amount)?;
        let is_event_less = amount.is_none() && origin.is_return();
        Some((if is_event_less { -1 } else { 1 }, value))
    }

    fn of_feedback(&self, kind: FeedbackKind) -> u32 {
        match kind {
            FeedbackKind::Configured(place) => {
                let of_kind = self.feedback.get(usize::from(place));
                of_kind.copied().unwrap_or_default()
            }
            FeedbackKind::Conversion => self.orders,
            FeedbackKind::ConversionLine => self.lines,
            FeedbackKind::Other | FeedbackKind::Gone => 0,
        }
    }

    fn by_combination(&mut self, combination: Combination, dimensions: &Dimensions) -> u32 {
        if std::mem::replace(&mut self.changes, dimensions.changes) != dimensions.changes {
            self.known.clear();
        }
        let at = combination as usize;
        if at >= self.known.len() {
            self.known.resize(dimensions.len().max(at + 1), None);
        }
        if let Some(known) = self.known[at] {
            return known;
        }
        let codes = dimensions.codes(combination);
        let counts = |sum: &OwnSum| {
            sum.dimensions.iter().all(|(dimension, values)| {
                values.contains(&dimensions.values[*dimension].texts[codes[*dimension] as usize])
            })
        };
        let bits = (0..).zip(&self.sums);
        let found = bits.map(|(bit, sum)| u32::from(counts(sum)) << bit).sum();
        self.known[at] = Some(found);
        found
    }
}

/// The bucket of a value: negative ones come first, the largest magnitude foremost, then those that
/// count as 0. What is beyond the last bound is in its bucket.
pub fn bucket_of(upper: &[i64], value: i64) -> u32 {
    let last = upper.len() as u32 - 1;
    let magnitude = upper.partition_point(|bound| *bound < value.abs()) as u32;
    match value < 0 {
        true => last - magnitude.min(last),
        false => last + magnitude.min(last),
    }
}
