//! Rejoining: after rows were loaded, the joins of pending feedback and what follows from them, as
//! they were when the rows were stored; nothing is emitted.

use crate::attribution::Attribution;
use crate::attribution::emitted::{Emitted, Sink};
use crate::attribution::pending::Feedback;
use crate::custom::Values;
use crate::hash::NONE;
use crate::log::NO_ROW;

impl Attribution {
    /// Takes pending feedback back: clicks first, then conversions. Whatever it had joined is
    /// retained.
    pub(crate) fn take_back(
        &mut self,
        mut feedback: Feedback,
        values: &Values,
        sink: &mut impl Sink,
    ) {
        feedback.joined = self.rejoined(&feedback);
        (feedback.segment, feedback.position) = self.effective(&feedback, sink);
        let row = feedback.joined;
        self.retained.count(row, self.kind_of(feedback.kind), 1);
        if let (Some(found), false) = (self.retained.get_mut(row), feedback.is_conversion()) {
            found.first_ms = found.first_ms.min(feedback.event_ms);
        }
        if !feedback.is_complete {
            sink.emit(Emitted::OfUser(&feedback, false));
        }
        let place = self.pending.put(feedback);
        self.values.set(place, Some(values));
    }

    fn rejoined(&self, feedback: &Feedback) -> u32 {
        if feedback.is_conversion() {
            return self.converted(feedback);
        }
        let (key, click_ms) = (feedback.slate_key, self.rules.click_ms);
        let rows = &self.retained.rows;
        let found = rows.newest_before(feedback.pair, feedback.event_ms, click_ms, |row| {
            key == NONE || row.slate_key == key
        });
        found.unwrap_or(NO_ROW)
    }

    /// What impressions count as now is what was emitted.
    pub(crate) fn learn_outcomes(&mut self) {
        let rows: Vec<u32> = self.retained.rows.log.iter().map(|(row, _)| row).collect();
        for row in rows {
            let Some(found) = self.retained.get(row) else {
                continue;
            };
            let outcome = self.retained.outcome(found, &self.rules.grades);
            let (slate, is_member) = (found.slate, found.is_member);
            if let Some(found) = self.retained.get_mut(row) {
                found.outcome = outcome;
            }
            if is_member
                && outcome.is_ranked()
                && let Some(found) = self.slates.get_mut(slate)
            {
                found.marked += 1;
            }
        }
    }
}
