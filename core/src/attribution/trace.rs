//! What became of each feedback event of a sample, by the rules that joined it. All of a sample is
//! kept, and none of it is final: whatever feedback may join is there.

use super::Attribution;
use crate::attribution::pending::Feedback;
use crate::hash::{HashSet, NONE};
use crate::kinds::{EventKind, FeedbackKind};
use crate::partition::admission::OFFSET_BITS;

/// Offset of its record, kind of events, time, what became of it, and milliseconds since the
/// impression that this is about.
pub type Traced = (i64, &'static str, i64, &'static str, i64);

/// Later than any event.
const FOR_EVER: i64 = i64::MAX / 2;

pub fn traced(of: &mut Attribution) -> Vec<Traced> {
    let people: HashSet = of.impressions.log.iter().map(|(_, row)| row.user).collect();
    let items: HashSet = of.items.open.iter().map(|(_, row)| row.item).collect();
    let Some(traced) = of.traced.take() else {
        return Vec::new();
    };
    let mut row = |(feedback, item): &(Feedback, u64)| {
        let (offset, ms) = (
            feedback.offset & ((1 << OFFSET_BITS) - 1),
            feedback.event_ms,
        );
        let (kind, horizon_ms) = match feedback.is_conversion() {
            true => (EventKind::Conversions, of.rules.conversion_ms),
            false => (EventKind::Clicks, of.rules.click_ms),
        };
        let (what, shown_ms) = match reached(of, feedback, horizon_ms) {
            Some(found) => found,
            None if feedback.has_impression() => ("impression", ms),
            None if !items.contains(item) => ("item", ms),
            None if !people.contains(&feedback.user) => ("person", ms),
            None => ("pair", ms),
        };
        (offset, kind.name(), ms, what, ms - shown_ms)
    };
    let known = traced.iter().filter(|(x, _)| x.kind != FeedbackKind::Other);
    let rows = known.map(&mut row).collect();
    of.traced = Some(traced);
    rows
}

/// What became of feedback, and when the impression was shown that this is about; None where its
/// person was not shown its item.
fn reached(
    of: &mut Attribution,
    feedback: &Feedback,
    horizon_ms: i64,
) -> Option<(&'static str, i64)> {
    // A request in which the item was never shown says nothing else.
    let of_any = Feedback {
        slate_key: NONE,
        ..*feedback
    };
    let by = shown_ms(of, feedback, FOR_EVER, i64::MAX).map_or(&of_any, |_| feedback);
    let named = |what, found: Option<i64>| found.map(|ms| (what, ms));
    named("joined", joined_ms(of, feedback, horizon_ms))
        .or_else(|| named("request", joined_ms(of, by, horizon_ms)))
        .or_else(|| named("late", joined_ms(of, by, i64::MAX)))
        .or_else(|| named("unclicked", shown_ms(of, by, by.event_ms, i64::MAX)))
        .or_else(|| named("before", shown_ms(of, by, FOR_EVER, i64::MAX)))
}

fn shown_ms(of: &mut Attribution, by: &Feedback, at_ms: i64, horizon_ms: i64) -> Option<i64> {
    let row = of.shown_before(by, at_ms, horizon_ms)?;
    of.impressions.log.get(row).map(|row| row.event_ms)
}

fn joined_ms(of: &mut Attribution, by: &Feedback, horizon_ms: i64) -> Option<i64> {
    if !by.is_conversion() {
        return shown_ms(of, by, by.event_ms, horizon_ms);
    }
    let row = of.converted(by, horizon_ms);
    of.retained.get(row).map(|row| row.event_ms)
}
