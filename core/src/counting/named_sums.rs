//! Sums under names that Python gives: each has a statistic of its own, and all stand by group of
//! users in one wide statistic.

use crate::changes::Segment;
use crate::counting::statistics::{GROUPS, Places, group_of};
use crate::panes::Panes;
use crate::spec::Named;

/// The sums, and where they stand.
#[derive(Debug)]
pub struct NamedSums<T> {
    sums: Vec<(u32, T)>,
    by_group: Option<u32>,
}

impl<T: Copy> NamedSums<T> {
    /// `by_group`: name of the wide statistic. None where there are no sums; an error where a
    /// statistic is missing, or has another width.
    pub(super) fn of(
        named: &[Named<T>],
        by_group: &str,
        places: &Places<'_>,
    ) -> Result<Option<Self>, String> {
        let sums: Vec<(u32, T)> = named
            .iter()
            .map(|named| Ok((places.at(&named.statistic)?, named.sum)))
            .collect::<Result<_, String>>()?;
        let by_group = places.wide(by_group, sums.len() * GROUPS as usize)?;
        Ok((!sums.is_empty()).then_some(Self { sums, by_group }))
    }

    /// Adds an amount of each; `place`: time, segment and user.
    pub fn add(
        &self,
        panes: &mut Panes,
        (event_ms, segment, user): (i64, Segment, u64),
        amount: impl Fn(T) -> i64,
    ) {
        for (number, (place, sum)) in (0..).zip(&self.sums) {
            let amount = amount(*sum);
            if amount == 0 {
                continue;
            }
            panes.add(event_ms, segment, *place, amount);
            if let Some(first) = self.by_group {
                let place = first + number * GROUPS + group_of(user);
                panes.add(event_ms, segment, place, amount);
            }
        }
    }
}

/// The square of an integer of units that are 1 / `unit`, in the same unit; halves go up.
pub fn square(value: i64, unit: i64) -> i64 {
    (value * value + unit / 2) / unit
}
