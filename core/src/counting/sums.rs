//! Sums: each has a name, a unit, and the amount that a change adds. Windows, groups of users,
//! experiments and alerts add up the same ones; the catalogue of metrics reads them by these names.

use crate::changes::{Amounts, Change, Fact};
use crate::counting::listing::ListAmount;
use crate::counting::off_policy::PolicyAmount;
use crate::counting::own_sums::{MAX_OWN_SUMS, OwnAmount};
use crate::counting::scores::{PairAmount, ScoreAmount};
use crate::hash::is_anonymous;
use crate::kinds::FeedbackKind;
use crate::limbs::limbs;
use crate::slates::family::{Population, SlateValue};
use crate::spec::sums::SumSpec;

const MILLIONTHS: i64 = 1_000_000;
const BILLIONTHS: i64 = 1_000_000_000;

/// What is added up.
#[derive(Clone, Copy, Debug)]
pub enum Sum {
    Impressions,
    /// Feedback of any kind, conversions and viewings.
    Outcomes,
    Clicks,
    /// Clicks that have a user.
    ClicksOfUsers,
    /// Impressions with an attributed click, and those of them with an attributed conversion.
    Clicked,
    Converted,
    /// Orders; their lines.
    Conversions,
    ConversionLines,
    /// Conversions that give money back.
    Refunds,
    /// Low and high limb of millionths of currency; the low one is not below 0. Of refunds: of what
    /// is below 0.
    Value,
    ValueHigh,
    RefundValue,
    RefundValueHigh,
    DwellMs,
    Viewings,
    /// Sessions by the time at which they end, those of them with one view, views, and lengths.
    Sessions,
    Bounces,
    Views,
    SessionMs,
    /// Feedback of a configured kind, by its place; of all others.
    Feedback(u8),
    OtherFeedback,
    /// Over impressions with a score.
    Score(ScoreAmount),
    /// Over ratings of impressions with a score.
    Rating(PairAmount),
    /// Over impressions with a weight for a policy, by its place.
    Policy(usize, PolicyAmount),
    /// Over lists that are cut off.
    List(usize, ListAmount),
    /// Over the events of an own sum, by its place.
    Own(usize, OwnAmount),
    /// Slates, empty ones too; these.
    Requests,
    EmptySlates,
    /// Slates of a population.
    Slates(Population),
    /// Millionths of a value of slates.
    SlateValue(SlateValue),
}

/// Every sum over events: its name, how many of its integers are 1, and what it adds; of those of a
/// policy, a list, an own sum or a threshold with 0 for which one (`Sum::at`).
#[rustfmt::skip]
pub const TABLE: &[(&str, i64, Sum)] = &[
    ("impressions", 1, Sum::Impressions),
    ("outcomes", 1, Sum::Outcomes),
    ("clicks", 1, Sum::Clicks),
    ("clicks_of_users", 1, Sum::ClicksOfUsers),
    ("clicked", 1, Sum::Clicked),
    ("converted", 1, Sum::Converted),
    ("conversions", 1, Sum::Conversions),
    ("conversion_lines", 1, Sum::ConversionLines),
    ("refunds", 1, Sum::Refunds),
    ("value", MILLIONTHS, Sum::Value),
    ("value_high", MILLIONTHS, Sum::ValueHigh),
    ("refund_value", MILLIONTHS, Sum::RefundValue),
    ("refund_value_high", MILLIONTHS, Sum::RefundValueHigh),
    ("dwell_ms", 1000, Sum::DwellMs),
    ("viewings", 1, Sum::Viewings),
    ("sessions", 1, Sum::Sessions),
    ("bounces", 1, Sum::Bounces),
    ("views", 1, Sum::Views),
    ("session_ms", 1000, Sum::SessionMs),
    ("feedback", 1, Sum::Feedback(0)),
    ("scores.probabilities", 1, Sum::Score(ScoreAmount::Pair(PairAmount::Count))),
    ("scores.positives", 1, Sum::Score(ScoreAmount::Positives)),
    ("scores.score", BILLIONTHS, Sum::Score(ScoreAmount::Pair(PairAmount::Score))),
    ("scores.score_of_positives", BILLIONTHS, Sum::Score(ScoreAmount::Pair(PairAmount::Product))),
    ("scores.score_square", BILLIONTHS, Sum::Score(ScoreAmount::Pair(PairAmount::ScoreSquare))),
    ("scores.absolute_error", BILLIONTHS, Sum::Score(ScoreAmount::Pair(PairAmount::AbsoluteError))),
    ("scores.squared_error", BILLIONTHS, Sum::Score(ScoreAmount::Pair(PairAmount::SquaredError))),
    ("scores.log_loss", BILLIONTHS, Sum::Score(ScoreAmount::LogLoss)),
    ("scores.predicted", 1, Sum::Score(ScoreAmount::Predicted(0))),
    ("scores.true_positives", 1, Sum::Score(ScoreAmount::TruePositives(0))),
    ("ratings.ratings", 1, Sum::Rating(PairAmount::Count)),
    ("ratings.score", MILLIONTHS, Sum::Rating(PairAmount::Score)),
    ("ratings.rating", MILLIONTHS, Sum::Rating(PairAmount::Label)),
    ("ratings.product", MILLIONTHS, Sum::Rating(PairAmount::Product)),
    ("ratings.score_square", MILLIONTHS, Sum::Rating(PairAmount::ScoreSquare)),
    ("ratings.rating_square", MILLIONTHS, Sum::Rating(PairAmount::LabelSquare)),
    ("ratings.absolute_error", MILLIONTHS, Sum::Rating(PairAmount::AbsoluteError)),
    ("ratings.squared_error", MILLIONTHS, Sum::Rating(PairAmount::SquaredError)),
    ("off_policy.impressions", 1, Sum::Policy(0, PolicyAmount::Impressions)),
    ("off_policy.clipped", 1, Sum::Policy(0, PolicyAmount::Clipped)),
    ("off_policy.weight", MILLIONTHS, Sum::Policy(0, PolicyAmount::Weight)),
    ("off_policy.weight_square", MILLIONTHS, Sum::Policy(0, PolicyAmount::WeightSquare)),
    ("off_policy.clicked_weight", MILLIONTHS, Sum::Policy(0, PolicyAmount::ClickedWeight)),
    ("off_policy.estimated", 1, Sum::Policy(0, PolicyAmount::Estimated)),
    ("off_policy.doubly_robust", BILLIONTHS, Sum::Policy(0, PolicyAmount::DoublyRobust)),
    ("lists.lists", 1, Sum::List(0, ListAmount::Lists)),
    ("lists.diversity", MILLIONTHS, Sum::List(0, ListAmount::Diversity)),
    ("own.count", 1, Sum::Own(0, OwnAmount::Count)),
    ("own.sum", MILLIONTHS, Sum::Own(0, OwnAmount::Low)),
    ("own.sum_high", MILLIONTHS, Sum::Own(0, OwnAmount::High)),
    ("requests", 1, Sum::Requests),
    ("empty_slates", 1, Sum::EmptySlates),
    ("slates", 1, Sum::Slates(Population::All)),
];

/// The kinds of facts.
#[derive(Clone, Copy)]
enum FactKind {
    Impression,
    Feedback,
    Outcome,
    Rating,
    Viewing,
    Session,
    Slate,
    List,
    RankedSlate,
    PolicyWeight,
    /// Of the first own sum; those of the others follow.
    OwnValue,
}

const FACT_KINDS: usize = FactKind::OwnValue as usize + MAX_OWN_SUMS;

impl Fact<'_> {
    /// The number of its kind.
    fn kind(&self) -> usize {
        let kind = match self {
            Self::Impression { .. } => FactKind::Impression,
            Self::Feedback { .. } => FactKind::Feedback,
            Self::Outcome { .. } => FactKind::Outcome,
            Self::Rating { .. } => FactKind::Rating,
            Self::Viewing { .. } => FactKind::Viewing,
            Self::Session { .. } => FactKind::Session,
            Self::Slate { .. } => FactKind::Slate,
            Self::List(_) => FactKind::List,
            Self::RankedSlate(_) => FactKind::RankedSlate,
            Self::PolicyWeight { .. } => FactKind::PolicyWeight,
            Self::OwnValue { sum, .. } => return FactKind::OwnValue as usize + sum,
        };
        kind as usize
    }
}

impl Sum {
    /// The sum that a spec names; an error where there is none.
    pub fn new(spec: &SumSpec) -> Result<Self, String> {
        if let Some(of) = &spec.slates {
            return Ok(match &of.value {
                None => Self::Slates(Population::parse(&of.population)?),
                Some(name) => {
                    Self::SlateValue(SlateValue::new(name, of.k, &of.convention, &of.population)?)
                }
            });
        }
        let entry = TABLE.iter().find(|(name, ..)| *name == spec.name);
        let (.., sum) = entry.ok_or_else(|| format!("no sum is called {:?}", spec.name))?;
        Ok(sum.at(spec.at))
    }

    /// The same of another policy, cut-off, own sum, threshold or kind of feedback.
    fn at(self, at: i64) -> Self {
        match self {
            Self::Feedback(_) => u8::try_from(at).map_or(Self::OtherFeedback, Self::Feedback),
            Self::Policy(_, amount) => Self::Policy(at as usize, amount),
            Self::List(_, amount) => Self::List(at as usize, amount),
            Self::Own(_, amount) => Self::Own(at as usize, amount),
            Self::Score(ScoreAmount::Predicted(_)) => Self::Score(ScoreAmount::Predicted(at)),
            Self::Score(ScoreAmount::TruePositives(_)) => {
                Self::Score(ScoreAmount::TruePositives(at))
            }
            other => other,
        }
    }

    /// The kinds of facts that add to it.
    fn facts(&self) -> &'static [FactKind] {
        use FactKind as Of;
        match self {
            Self::Impressions => &[Of::Impression],
            Self::Outcomes => &[Of::Feedback, Of::Viewing],
            Self::Clicks
            | Self::ClicksOfUsers
            | Self::Conversions
            | Self::ConversionLines
            | Self::Refunds
            | Self::Value
            | Self::ValueHigh
            | Self::RefundValue
            | Self::RefundValueHigh
            | Self::Feedback(_)
            | Self::OtherFeedback => &[Of::Feedback],
            Self::Clicked | Self::Converted => &[Of::Outcome],
            Self::DwellMs | Self::Viewings => &[Of::Viewing],
            Self::Sessions | Self::Bounces | Self::Views | Self::SessionMs => &[Of::Session],
            Self::Score(_) => &[Of::Impression, Of::Outcome],
            Self::Rating(_) => &[Of::Rating],
            Self::Requests | Self::EmptySlates | Self::Slates(Population::All) => &[Of::Slate],
            Self::List(..) => &[Of::List],
            Self::Slates(_) | Self::SlateValue(_) => &[Of::RankedSlate],
            Self::Policy(..) => &[Of::PolicyWeight],
            Self::Own(..) => &[Of::OwnValue],
        }
    }

    /// What a change adds; 0: nothing.
    pub fn amount(&self, change: &Change<'_>) -> i64 {
        change.sign * self.of_fact(&change.what, change.at.user)
    }

    /// Whether it falls with a fact: what is given back.
    fn falls(&self, fact: &Fact<'_>) -> bool {
        match (self, fact) {
            (Self::Value | Self::ValueHigh, Fact::Feedback { amounts, .. }) => {
                amounts.value_micros < 0
            }
            (Self::Conversions | Self::ConversionLines, Fact::Feedback { amounts, .. }) => {
                amounts.orders < 0
            }
            _ => false,
        }
    }

    fn of_fact(&self, fact: &Fact<'_>, user: u64) -> i64 {
        match *fact {
            Fact::Impression { score, .. } => match self {
                Self::Impressions => 1,
                Self::Score(amount) => amount.amount(score, false),
                _ => 0,
            },
            Fact::Feedback {
                kind, ref amounts, ..
            } => self.of_feedback(kind, amounts, user),
            Fact::Outcome {
                score,
                clicked,
                converted,
            } => match self {
                Self::Clicked => clicked,
                Self::Converted => converted,
                Self::Score(amount) => amount.of_clicks(score, clicked),
                _ => 0,
            },
            Fact::Rating { score, rating } => match self {
                Self::Rating(amount) => amount.of_rating(score, rating),
                _ => 0,
            },
            Fact::Viewing { dwell_ms } => match self {
                Self::DwellMs => dwell_ms,
                Self::Viewings | Self::Outcomes => 1,
                _ => 0,
            },
            Fact::Session { length_ms, views } => match self {
                Self::Sessions => 1,
                Self::Bounces => i64::from(views == 1),
                Self::Views => views,
                Self::SessionMs => length_ms,
                _ => 0,
            },
            Fact::Slate { is_empty } => match self {
                Self::Requests => 1,
                Self::EmptySlates => i64::from(is_empty),
                Self::Slates(Population::All) => i64::from(!is_empty),
                _ => 0,
            },
            Fact::List(items) => match self {
                Self::List(k, amount) => amount.amount(*k, items),
                _ => 0,
            },
            Fact::RankedSlate(context) => match self {
                Self::Slates(population) => i64::from(population.contains(context)),
                Self::SlateValue(value) => value.millionths(context),
                _ => 0,
            },
            Fact::PolicyWeight {
                policy,
                weight,
                outcome,
            } => match self {
                Self::Policy(of, amount) if *of == policy => amount.of(weight, outcome),
                _ => 0,
            },
            Fact::OwnValue { sum, value } => match self {
                Self::Own(of, amount) if *of == sum => amount.of(value),
                _ => 0,
            },
        }
    }

    fn of_feedback(&self, kind: FeedbackKind, amounts: &Amounts, user: u64) -> i64 {
        let is_line = kind.is_conversion();
        let is_refund = kind == FeedbackKind::Conversion && amounts.orders < 1;
        let refunded = (-amounts.value_micros).max(0);
        let counts = match self {
            Self::Outcomes => kind != FeedbackKind::ConversionLine,
            Self::Clicks => kind == FeedbackKind::Configured(0),
            Self::ClicksOfUsers => kind == FeedbackKind::Configured(0) && !is_anonymous(user),
            Self::Feedback(place) => kind == FeedbackKind::Configured(*place),
            Self::OtherFeedback => kind == FeedbackKind::Other,
            Self::Conversions => kind == FeedbackKind::Conversion,
            Self::ConversionLines => is_line,
            Self::Refunds => is_refund,
            Self::Value if is_line => return limbs(amounts.value_micros).1,
            Self::ValueHigh if is_line => return limbs(amounts.value_micros).0,
            Self::RefundValue if is_line => return limbs(refunded).1,
            Self::RefundValueHigh if is_line => return limbs(refunded).0,
            _ => false,
        };
        let times = match self {
            Self::Conversions | Self::ConversionLines => amounts.orders.into(),
            _ => 1,
        };
        times * i64::from(counts)
    }
}

/// Sums, each with where its amounts go, by the kind of fact that adds to them.
#[derive(Debug)]
pub struct SumsByFact<T> {
    by_fact: [Vec<(Sum, T)>; FACT_KINDS],
}

impl<T: Clone> SumsByFact<T> {
    pub fn new(sums: impl IntoIterator<Item = (Sum, T)>) -> Self {
        let mut by_fact = [const { Vec::new() }; FACT_KINDS];
        for (sum, target) in sums {
            let of_own = match sum {
                Sum::Own(place, _) => place,
                _ => 0,
            };
            for fact in sum.facts() {
                by_fact[*fact as usize + of_own].push((sum, target.clone()));
            }
        }
        Self { by_fact }
    }

    /// What a change adds to each, where that is not 0.
    #[inline]
    pub fn of<'a>(&'a self, change: &'a Change<'_>) -> impl Iterator<Item = (&'a T, i64)> {
        let sums = &self.by_fact[change.what.kind()];
        let amounts = sums.iter().map(move |(sum, to)| (to, sum.amount(change)));
        amounts.filter(|(_, amount)| *amount != 0)
    }

    /// The same without what would let a sum fall.
    pub fn of_totals<'a>(&'a self, change: &'a Change<'_>) -> impl Iterator<Item = (&'a T, i64)> {
        let sums = &self.by_fact[change.what.kind()];
        let rising = sums.iter().filter(|(sum, _)| !sum.falls(&change.what));
        let amounts = rising.map(|(sum, to)| (to, sum.amount(change)));
        amounts.filter(|(_, amount)| *amount != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_each_of_one_sum() {
        let mut names: Vec<&str> = TABLE.iter().map(|(name, ..)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len());
        let spec = SumSpec {
            name: "nothing".to_owned(),
            at: 0,
            slates: None,
        };
        assert!(Sum::new(&spec).is_err());
    }
}
