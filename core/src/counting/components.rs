//! Components: sums over what a user did, of which experiments and alerts make ratios.

use serde::Deserialize;

use crate::changes::{
    Dwell, Given, Kind, Outcome, Session, Shown, Slate, UserAt, Valued, Weighing,
};
use crate::counting::custom::CustomSum;
use crate::counting::listing::ListSum;
use crate::counting::off_policy::PolicySum;
use crate::counting::scores::ScoreSum;
use crate::slates::family::{Population, SlateValue};
use crate::slates::values::SlateContext;

/// Bits of the low limb of amounts of money.
pub const LIMB_BITS: u32 = 32;

/// What is added up, by its name in the catalogue.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Component {
    Impressions,
    /// Feedback of any kind, conversions and viewings.
    Outcomes,
    Clicks,
    /// Impressions with an attributed click, and those of them with an attributed conversion.
    Clicked,
    Converted,
    Conversions,
    /// Low and high limb of millionths of currency.
    Value,
    ValueHigh,
    DwellMs,
    Viewings,
    /// Sessions by the time at which they end, those of them with one view, views, and lengths.
    Sessions,
    Bounces,
    Views,
    SessionMs,
    /// Feedback of a configured kind, by its place.
    Feedback(u8),
    /// Slates of a population; `all` is every slate.
    Slates(String),
    /// Over impressions with a score.
    Scores(ScoreSum),
    /// Over lists.
    Lists(ListSum),
    /// Over impressions with a weight.
    OffPolicy(PolicySum),
    /// Over events with a value of a custom metric.
    Custom(CustomSum),
    /// Millionths of a value of slates.
    SlateValue {
        name: String,
        k: u32,
        convention: String,
        population: String,
    },
}

/// A change that adds the same whatever the slate.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    Shown(Shown),
    Given(Given),
    Outcome(Outcome),
    Dwell(Dwell),
    Session(Session),
    Slate(Slate),
    Weighing(Weighing),
    Valued(Valued),
}

impl Change {
    /// User, time and segment.
    pub fn place(&self) -> UserAt {
        match self {
            Change::Shown(x) => (x.user, x.event_ms, x.segment),
            Change::Given(x) => (x.user, x.event_ms, x.segment),
            Change::Outcome(x) => (x.user, x.event_ms, x.segment),
            Change::Dwell(x) => (x.user, x.event_ms, x.segment),
            Change::Session(x) => (x.user, x.event_ms, x.segment),
            Change::Slate(x) => (x.user, x.event_ms, x.segment),
            Change::Weighing(x) => (x.user, x.event_ms, x.segment),
            Change::Valued(x) => (x.user, x.event_ms, x.segment),
        }
    }
}

impl Component {
    /// What a change adds; 0: nothing.
    pub fn amount(&self, change: &Change) -> i64 {
        match change {
            Change::Shown(shown) => match self {
                Component::Impressions => 1,
                Component::Scores(sum) => sum.of_shown(shown),
                _ => 0,
            },
            Change::Given(given) => self.of_feedback(given),
            Change::Outcome(outcome) => match self {
                Component::Clicked => outcome.clicked,
                Component::Converted => outcome.converted,
                Component::Scores(sum) => sum.of_outcome(outcome),
                _ => 0,
            },
            Change::Dwell(dwell) => match self {
                Component::DwellMs => dwell.dwell_ms * dwell.sign,
                Component::Viewings | Component::Outcomes => dwell.sign,
                _ => 0,
            },
            Change::Session(session) => self.of_session(session),
            Change::Slate(slate) => match self {
                Component::Slates(population) if population == "all" => slate.sign,
                _ => 0,
            },
            Change::Weighing(weighing) => match self {
                Component::OffPolicy(sum) => sum.amount(weighing),
                _ => 0,
            },
            Change::Valued(valued) => match self {
                Component::Custom(sum) => sum.amount(valued),
                _ => 0,
            },
        }
    }

    /// What a session adds.
    pub fn of_session(&self, session: &Session) -> i64 {
        let amount = match self {
            Component::Sessions => 1,
            Component::Bounces => i64::from(session.views == 1),
            Component::Views => session.views,
            Component::SessionMs => session.length_ms,
            _ => 0,
        };
        session.sign * amount
    }

    fn of_feedback(&self, given: &Given) -> i64 {
        let counts = match self {
            Component::Outcomes => true,
            Component::Clicks => given.kind == Kind::Configured(0),
            Component::Feedback(place) => given.kind == Kind::Configured(*place),
            Component::Conversions => given.kind == Kind::Conversion,
            Component::Value => return (given.value_micros & ((1 << LIMB_BITS) - 1)) * given.sign,
            Component::ValueHigh => return (given.value_micros >> LIMB_BITS) * given.sign,
            _ => false,
        };
        if counts { given.sign } else { 0 }
    }
}

/// What a component adds for a slate that is ranked.
#[derive(Debug)]
pub enum OfSlates {
    Size(Population),
    Value(SlateValue),
}

impl OfSlates {
    pub fn amount(&self, context: &SlateContext) -> i64 {
        match self {
            OfSlates::Size(population) => i64::from(population.contains(context)),
            OfSlates::Value(value) => value.millionths(context),
        }
    }
}

/// Components that slates which are ranked add to, with their places.
pub fn of_slates(components: &[Component]) -> Result<Vec<(usize, OfSlates)>, String> {
    let mut found = Vec::new();
    for (place, component) in components.iter().enumerate() {
        match component {
            Component::Slates(population) if population != "all" => {
                found.push((place, OfSlates::Size(Population::parse(population)?)));
            }
            Component::SlateValue {
                name,
                k,
                convention,
                population,
            } => {
                let value = SlateValue::new(name, i64::from(*k), convention, population)?;
                found.push((place, OfSlates::Value(value)));
            }
            _ => {}
        }
    }
    Ok(found)
}
