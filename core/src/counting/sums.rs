//! Sums: each has a name, a unit, and the amount that a change adds. Windows, groups of users,
//! experiments and alerts add up the same ones; the catalogue of metrics reads them by these names.

use crate::changes::{
    CustomChange, Dwell, FeedbackChange, ImpressionChange, Kind, Listed, OutcomeChange,
    PolicyChange, Session, SlateChange, UserAt,
};
use crate::counting::custom::CustomAmount;
use crate::counting::listing::ListAmount;
use crate::counting::off_policy::PolicyAmount;
use crate::counting::scores::ScoreAmount;
use crate::hash::is_anonymous;
use crate::limbs::limbs;
use crate::slates::family::{Population, SlateValue};
use crate::slates::values::SlateContext;
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
    /// Low and high limb of millionths of currency; the low one is not below 0.
    Value,
    ValueHigh,
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
    /// Over impressions with a weight for a policy, by its place.
    Policy(usize, PolicyAmount),
    /// Over lists that are cut off.
    List(usize, ListAmount),
    /// Over events with a value of a custom metric, by its place.
    Custom(usize, CustomAmount),
    /// Slates of a population.
    Slates(Population),
    /// Millionths of a value of slates.
    SlateValue(SlateValue),
}

/// Every sum over events: its name, how many of its integers are 1, and what it adds; of those of a
/// policy, a list, a custom metric or a threshold with 0 for which one (`Sum::at`).
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
    ("value", MILLIONTHS, Sum::Value),
    ("value_high", MILLIONTHS, Sum::ValueHigh),
    ("dwell_ms", 1000, Sum::DwellMs),
    ("viewings", 1, Sum::Viewings),
    ("sessions", 1, Sum::Sessions),
    ("bounces", 1, Sum::Bounces),
    ("views", 1, Sum::Views),
    ("session_ms", 1000, Sum::SessionMs),
    ("feedback", 1, Sum::Feedback(0)),
    ("scores.probabilities", 1, Sum::Score(ScoreAmount::Probabilities)),
    ("scores.positives", 1, Sum::Score(ScoreAmount::Positives)),
    ("scores.score", BILLIONTHS, Sum::Score(ScoreAmount::Score)),
    ("scores.score_of_positives", BILLIONTHS, Sum::Score(ScoreAmount::ScoreOfPositives)),
    ("scores.score_square", BILLIONTHS, Sum::Score(ScoreAmount::ScoreSquare)),
    ("scores.absolute_error", BILLIONTHS, Sum::Score(ScoreAmount::AbsoluteError)),
    ("scores.squared_error", BILLIONTHS, Sum::Score(ScoreAmount::SquaredError)),
    ("scores.log_loss", BILLIONTHS, Sum::Score(ScoreAmount::LogLoss)),
    ("scores.predicted", 1, Sum::Score(ScoreAmount::Predicted(0))),
    ("scores.true_positives", 1, Sum::Score(ScoreAmount::TruePositives(0))),
    ("off_policy.impressions", 1, Sum::Policy(0, PolicyAmount::Impressions)),
    ("off_policy.clipped", 1, Sum::Policy(0, PolicyAmount::Clipped)),
    ("off_policy.weight", MILLIONTHS, Sum::Policy(0, PolicyAmount::Weight)),
    ("off_policy.weight_square", MILLIONTHS, Sum::Policy(0, PolicyAmount::WeightSquare)),
    ("off_policy.clicked_weight", MILLIONTHS, Sum::Policy(0, PolicyAmount::ClickedWeight)),
    ("off_policy.estimated", 1, Sum::Policy(0, PolicyAmount::Estimated)),
    ("off_policy.doubly_robust", BILLIONTHS, Sum::Policy(0, PolicyAmount::DoublyRobust)),
    ("lists.lists", 1, Sum::List(0, ListAmount::Lists)),
    ("lists.diversity", MILLIONTHS, Sum::List(0, ListAmount::Diversity)),
    ("custom.events", 1, Sum::Custom(0, CustomAmount::Events)),
    ("custom.sum", MILLIONTHS, Sum::Custom(0, CustomAmount::Low)),
    ("custom.sum_high", MILLIONTHS, Sum::Custom(0, CustomAmount::High)),
    ("custom.sum_of_users", MILLIONTHS, Sum::Custom(0, CustomAmount::LowOfUsers)),
    ("custom.sum_of_users_high", MILLIONTHS, Sum::Custom(0, CustomAmount::HighOfUsers)),
    ("slates", 1, Sum::Slates(Population::All)),
];

/// A change that sums are made of.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    Shown(ImpressionChange),
    Given(FeedbackChange),
    Outcome(OutcomeChange),
    Dwell(Dwell),
    Session(Session),
    /// A slate is shown, and what it shows.
    Slate(SlateChange),
    Listed(Listed<'a>),
    /// A slate with feedback or probes.
    Ranked(SlateChange, &'a SlateContext),
    Weighing(PolicyChange),
    Valued(CustomChange),
}

/// The kinds of changes.
#[derive(Clone, Copy)]
enum ChangeKind {
    Shown,
    Given,
    Outcome,
    Dwell,
    Session,
    Slate,
    Listed,
    Ranked,
    Weighing,
    Valued,
}

impl Change<'_> {
    /// User, time and combination.
    pub fn at(&self) -> UserAt {
        match self {
            Self::Shown(x) => (x.user, x.event_ms, x.combination),
            Self::Given(x) => (x.user, x.event_ms, x.combination),
            Self::Outcome(x) => (x.user, x.event_ms, x.combination),
            Self::Dwell(x) => (x.user, x.event_ms, x.combination),
            Self::Session(x) => (x.user, x.event_ms, x.combination),
            Self::Slate(x) | Self::Ranked(x, _) => (x.user, x.event_ms, x.combination),
            Self::Listed(x) => (x.slate.user, x.slate.event_ms, x.slate.combination),
            Self::Weighing(x) => (x.user, x.event_ms, x.combination),
            Self::Valued(x) => (x.user, x.event_ms, x.combination),
        }
    }

    fn kind(&self) -> ChangeKind {
        match self {
            Self::Shown(_) => ChangeKind::Shown,
            Self::Given(_) => ChangeKind::Given,
            Self::Outcome(_) => ChangeKind::Outcome,
            Self::Dwell(_) => ChangeKind::Dwell,
            Self::Session(_) => ChangeKind::Session,
            Self::Slate(_) => ChangeKind::Slate,
            Self::Listed(_) => ChangeKind::Listed,
            Self::Ranked(..) => ChangeKind::Ranked,
            Self::Weighing(_) => ChangeKind::Weighing,
            Self::Valued(_) => ChangeKind::Valued,
        }
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

    /// The same of another policy, cut-off, custom metric, threshold or kind of feedback.
    fn at(self, at: i64) -> Self {
        match self {
            Self::Feedback(_) => u8::try_from(at).map_or(Self::OtherFeedback, Self::Feedback),
            Self::Policy(_, amount) => Self::Policy(at as usize, amount),
            Self::List(_, amount) => Self::List(at as usize, amount),
            Self::Custom(_, amount) => Self::Custom(at as usize, amount),
            Self::Score(ScoreAmount::Predicted(_)) => Self::Score(ScoreAmount::Predicted(at)),
            Self::Score(ScoreAmount::TruePositives(_)) => {
                Self::Score(ScoreAmount::TruePositives(at))
            }
            other => other,
        }
    }

    /// The kinds of changes that add to it.
    fn changes(&self) -> &'static [ChangeKind] {
        use ChangeKind as Of;
        match self {
            Self::Impressions => &[Of::Shown],
            Self::Outcomes => &[Of::Given, Of::Dwell],
            Self::Clicks
            | Self::ClicksOfUsers
            | Self::Conversions
            | Self::ConversionLines
            | Self::Value
            | Self::ValueHigh
            | Self::Feedback(_)
            | Self::OtherFeedback => &[Of::Given],
            Self::Clicked | Self::Converted => &[Of::Outcome],
            Self::DwellMs | Self::Viewings => &[Of::Dwell],
            Self::Sessions | Self::Bounces | Self::Views | Self::SessionMs => &[Of::Session],
            Self::Score(_) => &[Of::Shown, Of::Outcome],
            Self::Slates(Population::All) => &[Of::Slate],
            Self::List(..) => &[Of::Listed],
            Self::Slates(_) | Self::SlateValue(_) => &[Of::Ranked],
            Self::Policy(..) => &[Of::Weighing],
            Self::Custom(..) => &[Of::Valued],
        }
    }

    /// What a change adds; 0: nothing.
    pub fn amount(&self, change: &Change<'_>) -> i64 {
        match (self, change) {
            (Self::Impressions, Change::Shown(_)) => 1,
            (Self::Score(score), Change::Shown(shown)) => score.of_shown(shown),
            (Self::Score(score), Change::Outcome(outcome)) => score.of_outcome(outcome),
            (Self::Clicked, Change::Outcome(outcome)) => outcome.clicked,
            (Self::Converted, Change::Outcome(outcome)) => outcome.converted,
            (_, Change::Given(given)) => given.sign * self.of_feedback(given),
            (Self::DwellMs, Change::Dwell(dwell)) => dwell.sign * dwell.dwell_ms,
            (Self::Viewings | Self::Outcomes, Change::Dwell(dwell)) => dwell.sign,
            (_, Change::Session(session)) => session.sign * self.of_session(session),
            (Self::Slates(Population::All), Change::Slate(slate)) => slate.sign,
            (Self::List(k, list), Change::Listed(listed)) => {
                listed.slate.sign * list.amount(*k, listed.items)
            }
            (Self::Slates(population), Change::Ranked(slate, context)) => {
                slate.sign * i64::from(population.contains(context))
            }
            (Self::SlateValue(value), Change::Ranked(slate, context)) => {
                slate.sign * value.millionths(context)
            }
            (Self::Policy(policy, amount), Change::Weighing(weighing)) => {
                amount.of(*policy, weighing)
            }
            (Self::Custom(metric, amount), Change::Valued(valued)) => amount.of(*metric, valued),
            _ => 0,
        }
    }

    fn of_session(&self, session: &Session) -> i64 {
        match self {
            Self::Sessions => 1,
            Self::Bounces => i64::from(session.views == 1),
            Self::Views => session.views,
            Self::SessionMs => session.length_ms,
            _ => 0,
        }
    }

    fn of_feedback(&self, given: &FeedbackChange) -> i64 {
        let is_line = given.kind.is_conversion();
        let counts = match self {
            Self::Outcomes => given.kind != Kind::ConversionLine,
            Self::Clicks => given.kind == Kind::Configured(0),
            Self::ClicksOfUsers => given.kind == Kind::Configured(0) && !is_anonymous(given.user),
            Self::Feedback(place) => given.kind == Kind::Configured(*place),
            Self::OtherFeedback => given.kind == Kind::Other,
            Self::Conversions => given.kind == Kind::Conversion,
            Self::ConversionLines => is_line,
            Self::Value if is_line => return limbs(given.value_micros).1,
            Self::ValueHigh if is_line => return limbs(given.value_micros).0,
            _ => false,
        };
        i64::from(counts)
    }
}

/// Sums, each with where its amounts go, by the kind of change that adds to them.
#[derive(Debug)]
pub struct Sums<T> {
    by_change: [Vec<(Sum, T)>; ChangeKind::Valued as usize + 1],
}

impl<T: Clone> Sums<T> {
    pub fn new(sums: impl IntoIterator<Item = (Sum, T)>) -> Self {
        let mut by_change: [Vec<_>; ChangeKind::Valued as usize + 1] = Default::default();
        for (sum, target) in sums {
            for change in sum.changes() {
                by_change[*change as usize].push((sum, target.clone()));
            }
        }
        Self { by_change }
    }

    /// What a change adds to each, where that is not 0.
    #[inline]
    pub fn of<'a>(&'a self, change: &'a Change<'_>) -> impl Iterator<Item = (&'a T, i64)> {
        let sums = &self.by_change[change.kind() as usize];
        let amounts = sums.iter().map(move |(sum, to)| (to, sum.amount(change)));
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
