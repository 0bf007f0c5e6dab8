//! The tables that are stored of a partition: their names, their columns, and when a blob of them
//! may leave. A column is declared here, or with what is stored as it is: see `stored_row!`.

use crate::attribution::pending::PendingValues;
use crate::changes::{Combination, ItemOf};
use crate::columns::{Columns, LoadError, StoredRow, stored_row};
use crate::experiments;
use crate::experiments::units::UnitTable;
use crate::own_sums::Values;
use crate::users;
use crate::weights::{MAX_POLICIES, Weight, Weights};

/// A stored table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Combinations,
    /// Twice the place of a log, and 1 of conversions.
    EventIds(usize),
    Impressions,
    Retained,
    Probes,
    Feedback,
    Sessions,
    Viewings,
    UserItems,
    OfExperiments(experiments::ExperimentTable),
    OfUnits(UnitTable),
}

impl Table {
    /// Those of a partition with so many logs, in the order in which they are loaded: combinations
    /// before what refers to them, feedback after the impressions that it joins.
    pub fn all(logs: usize) -> impl Iterator<Item = Self> {
        let ids = (0..2 * logs).map(Self::EventIds);
        let rows = [
            Self::Impressions,
            Self::Retained,
            Self::Probes,
            Self::Feedback,
            Self::Sessions,
            Self::Viewings,
            Self::UserItems,
        ];
        let of_experiments = experiments::ExperimentTable::ALL.map(Self::OfExperiments);
        let combinations = std::iter::once(Self::Combinations);
        let of_units = UnitTable::ALL.map(Self::OfUnits);
        let rows = rows.into_iter().chain(of_experiments).chain(of_units);
        combinations.chain(ids).chain(rows)
    }

    /// Under which it is stored; those of logs have the names of these, too.
    pub fn name(self) -> &'static str {
        match self {
            Self::Combinations => "combinations",
            Self::EventIds(_) => "ids",
            Self::Impressions => "impressions",
            Self::Retained => "retained",
            Self::Probes => "probes",
            Self::Feedback => "feedback",
            Self::Sessions => "sessions",
            Self::Viewings => "viewings",
            Self::UserItems => "user_items",
            Self::OfExperiments(table) => table.name(),
            Self::OfUnits(table) => table.name(),
        }
    }

    /// Whether rows hold anything that settings number: see `TableMigration`.
    pub fn is_migrated(self) -> bool {
        match self {
            Self::EventIds(_)
            | Self::Probes
            | Self::Sessions
            | Self::Viewings
            | Self::OfExperiments(_)
            | Self::OfUnits(_) => false,
            Self::Combinations
            | Self::Impressions
            | Self::Retained
            | Self::Feedback
            | Self::UserItems => true,
        }
    }

    /// The latest time of stored rows; 0 where they leave by number.
    pub fn latest_ms(self, columns: &Columns) -> Result<i64, LoadError> {
        match self {
            Self::Combinations | Self::EventIds(_) | Self::Impressions | Self::Probes => Ok(0),
            Self::Retained | Self::Feedback => columns.largest("event_ms"),
            Self::Sessions | Self::Viewings => columns.largest("high_ms"),
            Self::UserItems => users::latest_unit(columns),
            Self::OfExperiments(table) => table.latest_ms(columns),
            Self::OfUnits(table) => table.latest_ms(columns),
        }
    }
}

/// The column of a dimension's value in a combination, whose number stands in `number`.
pub fn code_column(dimension: usize) -> String {
    format!("code_{dimension}")
}

stored_row! {
    /// An open impression, and what is known of its slate; beside it stand its weights.
    pub struct ImpressionRow {
        pair: u64,
        event_ms: i64,
        offset: i64,
        index: u16,
        position: u16,
        combination: Combination,
        score: f64,
        is_member: bool,
        user: u64,
        slate: u64,
        opened_ms: i64,
        arrival_ms: i64,
        placed: u32,
        is_closed: bool,
    }
}

stored_row! {
    /// A retained impression; beside it stand `final_{n}`, the final feedback of each kind, and its
    /// weights.
    pub struct RetainedRow {
        id: u64,
        pair: u64,
        user: u64,
        slate: u64,
        opened_ms: i64,
        event_ms: i64,
        offset: i64,
        index: u16,
        position: u16,
        combination: Combination,
        score: f64,
        is_member: bool,
        first_ms: i64,
    }
}

stored_row! {
    /// An item that a slate is compared with, as a pair, and the member that it comes from: the held
    /// out one, or one of the brute-force list, whose rows stand in its order.
    pub struct ProbeRow {
        slate: u64,
        opened_ms: i64,
        event_ms: i64,
        offset: i64,
        index: u16,
        is_held_out: bool,
        pair: u64,
    }
}

/// The column of an impression's weight for a policy: see `Weight::code`.
pub fn weight_column(policy: usize) -> String {
    format!("weight_{policy}")
}

/// The column of final feedback of a kind.
pub fn final_column(kind: usize) -> String {
    format!("final_{kind}")
}

/// The column of feedback's amount of an own sum: see `Values::code`.
pub fn amount_column(amount: usize) -> String {
    format!("amount_{amount}")
}

/// The column of whether an event meets a condition of an own sum.
pub fn met_column(condition: usize) -> String {
    format!("met_{condition}")
}

stored_row! {
    /// Pending feedback; beside it stand its amounts, and what it says to
    /// own sums. `kind`: its place in the
    /// settings, -1 another one, -2 a conversion, -3 one that the settings had; `is_complete`:
    /// whether all dimensions that there were had a value.
    pub struct FeedbackRow {
        id: u64,
        kind: i16,
        user: u64,
        pair: u64,
        item_pair: u64,
        slate: u64,
        event_ms: i64,
        joins_ms: i64,
        offset: i64,
        number: u32,
        combination: Combination,
        position: u16,
        is_complete: bool,
        is_settled: bool,
    }
}

stored_row! {
    /// An interval: of a session, or of a viewing.
    pub struct IntervalRow {
        id: u64,
        alive: bool,
        key: u64,
        low_ms: i64,
        high_ms: i64,
    }
}

/// Adds a column for each policy.
pub(super) fn store_weights(columns: &mut Columns, policies: usize, rows: &[&Weights]) {
    for policy in 0..policies {
        let codes = rows.iter().map(|weights| weights[policy].code());
        columns.add(&weight_column(policy), codes.collect());
    }
}

/// What impressions show at each place of stored rows; nothing where it is not kept.
pub(super) fn items_reader(
    columns: &Columns,
    is_kept: bool,
) -> Result<impl Fn(usize) -> ItemOf, LoadError> {
    let item_at = is_kept.then(|| ItemOf::reader("", columns)).transpose()?;
    Ok(move |at: usize| {
        item_at
            .as_ref()
            .map_or_else(ItemOf::default, |item_at| item_at(at))
    })
}

/// The weights at each place of stored rows.
pub(super) fn weights_reader(
    columns: &Columns,
    policies: usize,
) -> Result<impl Fn(usize) -> Weights, LoadError> {
    let codes: Vec<&[i32]> = (0..policies)
        .map(|policy| columns.get(&weight_column(policy)))
        .collect::<Result<_, _>>()?;
    Ok(move |at: usize| {
        let mut weights = [Weight::NONE; MAX_POLICIES];
        for (weight, of_policy) in weights.iter_mut().zip(&codes) {
            *weight = Weight::of_code(of_policy[at]);
        }
        weights
    })
}

/// Adds a column for each of these conditions.
pub(super) fn store_met(columns: &mut Columns, conditions: &[usize], rows: &[u32]) {
    for condition in conditions {
        let is_met = rows.iter().map(|met| met >> condition & 1 == 1);
        columns.add(&met_column(*condition), is_met.collect());
    }
}

/// The conditions that are met at each place of stored rows.
pub(super) fn met_reader<'a>(
    columns: &'a Columns,
    conditions: &[usize],
) -> Result<impl Fn(usize) -> u32 + use<'a>, LoadError> {
    let stored: Vec<(usize, &'a [bool])> = conditions
        .iter()
        .map(|condition| Ok((*condition, columns.get(&met_column(*condition))?)))
        .collect::<Result<_, LoadError>>()?;
    Ok(move |at: usize| {
        let bits = stored.iter();
        bits.map(|(condition, is_met)| u32::from(is_met[at]) << condition)
            .sum()
    })
}

/// What feedback says to own sums at each place of its stored rows.
pub(super) fn values_reader<'a>(
    columns: &'a Columns,
    wanted: &PendingValues,
) -> Result<impl Fn(usize) -> Values + use<'a>, LoadError> {
    let codes: Vec<(usize, &'a [i64])> = wanted
        .amounts
        .iter()
        .map(|amount| Ok((*amount, columns.get(&amount_column(*amount))?)))
        .collect::<Result<_, LoadError>>()?;
    let met_at = met_reader(columns, &wanted.conditions)?;
    Ok(move |at: usize| {
        let mut values = Values::NONE;
        values.met = met_at(at);
        for (amount, of_amount) in &codes {
            values.set_code(*amount, of_amount[at]);
        }
        values
    })
}
