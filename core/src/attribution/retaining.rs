//! What is kept of an impression that has feedback.

use super::Attribution;
use crate::attribution::pair_log::OfPair;
use crate::attribution::retained::Retained;
use crate::log::NO_ROW;

impl Attribution {
    /// What is retained of an open impression; its slate's other members are retained with the first
    /// one, where conversions may grade them when their impressions have left.
    pub(super) fn retain(&mut self, row: u32, user: u64) -> u32 {
        let Some(open) = self.impressions.log.get(row) else {
            return NO_ROW;
        };
        let (slate, retained) = (open.slate, open.retained);
        if self.retained.get(retained).is_some() {
            return retained;
        }
        let is_first = self
            .slates
            .get(slate)
            .is_some_and(|found| found.last_retained == NO_ROW);
        let added = self.retain_row(row, user);
        if is_first && self.rules.grades_conversions {
            let mut member = self
                .slates
                .get(slate)
                .map_or(NO_ROW, |found| found.last_member);
            while let Some(open) = self.impressions.log.get(member) {
                let (before, is_open) = (open.prev_in_slate, open.retained == NO_ROW);
                if is_open {
                    self.retain_member(member, user);
                }
                member = before;
            }
        }
        added
    }

    /// Retains a member without feedback, within the bound.
    pub(super) fn retain_member(&mut self, row: u32, user: u64) {
        if self.retained.rows.log.len() < self.rules.max_open {
            self.retain_row(row, user);
        } else {
            self.evicted_early.retained += 1;
        }
    }

    pub(super) fn retain_row(&mut self, row: u32, user: u64) -> u32 {
        let Some(open) = self.impressions.log.get(row).copied() else {
            return NO_ROW;
        };
        let mut made = Retained::new(open.pair, user, open.age());
        (made.position, made.segment) = (open.position, open.segment);
        (made.score, made.open) = (open.score, row);
        if let Some(found) = self.slates.get(open.slate) {
            (made.slate, made.slate_key) = (open.slate, found.key);
            made.is_member = open.is_member() && !found.is_closed;
            made.prev_in_slate = found.last_retained;
        }
        let added = self.retained.push(made);
        self.weights.retain(row);
        self.items.retain(row);
        if let Some(open) = self.impressions.log.get_mut(row) {
            open.retained = added;
        }
        self.slates.hold(open.slate);
        if let Some(found) = self.slates.get_mut(open.slate) {
            found.last_retained = added;
        }
        added
    }
}
