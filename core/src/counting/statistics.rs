//! Statistics: where sums stand in panes, whole or divided into classes.
//!
//! The families of metrics declare which statistics there are, and the sums that fill each.

use crate::changes::{Change, Fact};
use crate::counting::own_sums::bucket_of;
use crate::counting::scores::{Bins, bin_of};
use crate::counting::sums::{Sum, SumsByFact};
use crate::panes::rolled_up::RolledUpPanes;
use crate::spec::sums::{By, Statistic, SumSpec};

/// Groups of users by hash, of which intervals are made.
pub const GROUPS: u32 = 16;

/// The group of a user: all that a user did is in one group, in every pane.
pub fn group_of(user: u64) -> u32 {
    (user >> 40) as u32 % GROUPS
}

/// What divides a sum into classes, each with an integer of its own.
#[derive(Clone, Debug)]
enum Classes {
    Whole,
    UserGroups,
    /// Positions: missing, each up to one, and all that are deeper.
    Positions(u32),
    /// Times up to each of these; longer ones count with the last.
    Times(Vec<i64>),
    Scores(Bins),
    /// Probabilities, in so many bins of equal width.
    Probabilities(u32),
    /// Values of own sums, by magnitude up to each of these.
    Magnitudes(Vec<i64>),
}

impl Classes {
    fn new(by: Option<&By>) -> Result<Self, String> {
        Ok(match by {
            None => Self::Whole,
            Some(By::UserGroup) => Self::UserGroups,
            Some(By::Position(classes)) => Self::Positions(classes.saturating_sub(1)),
            Some(By::Time(upper)) => Self::Times(upper.clone()),
            Some(By::Score(edges)) => Self::Scores(Bins::new(edges.clone())?),
            Some(By::Probability(bins)) => Self::Probabilities((*bins).max(1)),
            Some(By::Magnitude(upper)) => Self::Magnitudes(upper.clone()),
        })
    }

    /// How many there are.
    fn count(&self) -> u32 {
        match self {
            Self::Whole => 1,
            Self::UserGroups => GROUPS,
            Self::Positions(deepest) => deepest + 1,
            Self::Times(upper) => upper.len() as u32,
            Self::Scores(bins) => bins.count() as u32,
            Self::Probabilities(bins) => *bins,
            Self::Magnitudes(upper) => 2 * upper.len() as u32 - 1,
        }
    }

    /// The class of a change; none where it is in no class.
    #[inline]
    fn of(&self, change: &Change<'_>) -> Option<u32> {
        match (self, &change.what) {
            (Self::Whole, _) => Some(0),
            (Self::UserGroups, _) => Some(group_of(change.at.user)),
            (
                Self::Positions(deepest),
                Fact::Impression { position, .. } | Fact::Feedback { position, .. },
            ) => Some(*position.min(deepest)),
            (
                Self::Times(upper),
                Fact::Viewing { dwell_ms: ms } | Fact::Session { length_ms: ms, .. },
            ) => Some(class_of(upper, *ms)),
            (Self::Scores(bins), Fact::Impression { score, .. } | Fact::Outcome { score, .. }) => {
                bins.of(*score).map(|bin| bin as u32)
            }
            (
                Self::Probabilities(bins),
                Fact::Impression { score, .. } | Fact::Outcome { score, .. },
            ) => bin_of(*score, *bins),
            (Self::Magnitudes(upper), Fact::OwnValue { value, .. }) => {
                Some(bucket_of(upper, *value))
            }
            _ => None,
        }
    }
}

/// The first class whose upper bound is not below the value, else the last.
fn class_of(upper: &[i64], value: i64) -> u32 {
    let class = upper.partition_point(|bound| *bound < value);
    class.min(upper.len().saturating_sub(1)) as u32
}

/// Where a sum stands: its first integer, and its classes.
type Place = (u32, Classes);

/// What is added to panes, and to the totals since the start.
#[derive(Debug)]
pub struct Statistics {
    windows: SumsByFact<Vec<Place>>,
    totals: SumsByFact<Vec<Place>>,
}

impl Statistics {
    /// An error where a sum is unknown, or sums do not fill their statistic.
    pub fn new(statistics: &[Statistic]) -> Result<Self, String> {
        let (mut windows, mut totals) = (Placed::default(), Placed::default());
        for statistic in statistics {
            let mut at = statistic.at;
            for part in &statistic.of {
                let classes = Classes::new(part.by.as_ref())?;
                let next = at + classes.count();
                if statistic.in_windows {
                    windows.put(&part.sum, (at, classes.clone()));
                }
                if statistic.in_totals {
                    totals.put(&part.sum, (at, classes));
                }
                at = next;
            }
            if !statistic.of.is_empty() && at != statistic.at + statistic.width {
                return Err(format!(
                    "{} is {} wide: {} are filled",
                    statistic.name,
                    statistic.width,
                    at - statistic.at
                ));
            }
        }
        Ok(Self {
            windows: windows.made()?,
            totals: totals.made()?,
        })
    }

    /// Adds a change to panes.
    #[inline]
    pub fn add(&self, panes: &mut RolledUpPanes, change: &Change<'_>) {
        let (event_ms, combination) = (change.at.event_ms, change.at.combination);
        for (places, amount) in self.windows.of(change) {
            for (first, classes) in places {
                if let Some(class) = classes.of(change) {
                    panes.add(event_ms, combination, first + class, amount);
                }
            }
        }
    }

    /// Adds a change to the totals, where nothing takes it back any more: they never fall.
    pub fn settle(&self, panes: &mut RolledUpPanes, change: &Change<'_>) {
        for (places, amount) in self.totals.of_totals(change) {
            for (first, classes) in places {
                if let Some(class) = classes.of(change) {
                    panes.add_total(change.at.combination, first + class, amount);
                }
            }
        }
    }
}

/// The places of each sum, in the order in which sums were first met.
#[derive(Default)]
struct Placed<'a>(Vec<(&'a SumSpec, Vec<Place>)>);

impl<'a> Placed<'a> {
    fn put(&mut self, sum: &'a SumSpec, place: Place) {
        match self.0.iter_mut().find(|(other, _)| *other == sum) {
            Some((_, places)) => places.push(place),
            None => self.0.push((sum, vec![place])),
        }
    }

    fn made(self) -> Result<SumsByFact<Vec<Place>>, String> {
        let sums = self.0.into_iter();
        let made = sums.map(|(spec, places)| Ok((Sum::new(spec)?, places)));
        Ok(SumsByFact::new(made.collect::<Result<Vec<_>, String>>()?))
    }
}
