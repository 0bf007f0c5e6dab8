//! Attribution: which impression each feedback belongs to, and what is emitted when that changes.
//!
//! 1. A shown item counts at once. In its slate it is placed unless it stands there already: then it
//!    is an impression only, and nothing joins it. Pending feedback that fits it better moves to it.
//! 2. Feedback of a configured kind joins the newest impression of the item in its request's slates,
//!    or without a request of all that the user saw, at or before it and within the click horizon.
//! 3. A conversion joins likewise, within its own horizon, an impression that has feedback no later
//!    than it. It is looked at again whenever the first feedback of such an impression changes.
//! 4. Feedback counts under its own dimensions and position; its impression's fill what is missing.
//! 5. A join is final when no impression (for conversions: no feedback, either) can come any more
//!    that would change it. A join by request is final at once where the request id cannot come back
//!    for another slate in time.
//! 6. Feedback is settled, and counts since the start, when its dimensions are complete, when its
//!    request names its impression (conversions wait for final feedback), or when its join is final.
//!
//! Windows follow every move; what is settled stays, and a move of it is counted.

pub mod beside;
mod crediting;
pub mod expiry;
mod finality;
pub mod impressions;
mod items;
pub mod pair_log;
pub mod pending;
pub mod rejoining;
pub mod retained;
mod retaining;
pub mod valuing;
mod weighing;

use crate::attribution::beside::Beside;
use crate::attribution::impressions::{Impression, Impressions};
use crate::attribution::pair_log::OfPair;
use crate::attribution::pending::{Feedback, Pending};
use crate::attribution::retained::{Retained, RetainedImpressions};
use crate::attribution::valuing::{PendingValues, place_of};
use crate::changes::{ItemOf, Kind, Segment, Shown, Slate as SlateChange};
use crate::counting::Counting;
use crate::custom::Values;
use crate::hash::NONE;
use crate::log::NO_ROW;
use crate::slates::probes::EventProbes;
use crate::slates::{NO_SLATE, Slates};
use crate::spec::Spec;
use crate::weights::{WeighedItem, Weights};

/// Times and bounds that the rules depend on.
#[derive(Debug)]
pub struct Rules {
    pub click_ms: i64,
    pub conversion_ms: i64,
    pub lateness_ms: i64,
    /// How long, by the arrival clock, a request id belongs to the slate that it opened.
    pub window_ms: i64,
    /// How long after their time retained impressions stay.
    pub retained_ms: i64,
    /// Grade that each kind gives, that of conversions last.
    pub grades: Vec<u8>,
    /// Whether slates are graded by conversions, when their impressions have left.
    pub grades_conversions: bool,
    pub slate_items: u32,
    pub max_open: usize,
    pub max_pending: usize,
}

impl Rules {
    pub fn new(spec: &Spec) -> Self {
        let (time, join) = (&spec.time, &spec.attribution);
        let (late_ms, skew_ms) = (time.max_lateness_ms, time.max_skew_ms);
        let opening_ms = late_ms + join.click_ms + late_ms + 2 * skew_ms;
        let graded_ms = opening_ms + join.feedback_horizon_ms + late_ms;
        Self {
            click_ms: join.click_ms,
            conversion_ms: join.conversion_ms,
            lateness_ms: late_ms,
            window_ms: join.click_ms + late_ms + skew_ms,
            retained_ms: graded_ms.max(join.conversion_ms + late_ms),
            grades: spec.feedback.grades.clone(),
            grades_conversions: spec.feedback.grades.last().is_some_and(|grade| *grade > 0)
                && !spec.slates.families.is_empty(),
            slate_items: spec.limits.slate_items as u32,
            max_open: spec.limits.open_impressions,
            max_pending: spec.limits.open_feedback,
        }
    }
}

/// One shown item of an accepted event.
#[derive(Clone, Copy, Debug)]
pub struct ShownItem<'a> {
    pub user: u64,
    pub pair: u64,
    pub item: ItemOf,
    /// `hash::NONE` without a slate.
    pub slate_key: u64,
    pub event_ms: i64,
    pub arrival_ms: i64,
    pub offset: i64,
    pub index: u16,
    pub position: u16,
    pub segment: Segment,
    pub score: f64,
    pub probes: EventProbes<'a>,
    /// None where there are no policies.
    pub weights: Option<&'a WeighedItem>,
    /// None where there are no custom metrics.
    pub custom: Option<&'a Values>,
}

/// What left before its time, because a bound of memory was hit.
#[derive(Clone, Copy, Debug, Default)]
pub struct EvictedEarly {
    pub impressions: u64,
    pub retained: u64,
    pub feedback: u64,
    pub probes: u64,
}

/// The impressions of one partition and the feedback that joins them.
#[derive(Debug)]
pub struct Attribution {
    pub rules: Rules,
    pub impressions: Impressions,
    pub slates: Slates,
    pub retained: RetainedImpressions,
    pub pending: Pending,
    /// How many policies there are.
    pub policies: usize,
    pub weights: Beside<Weights>,
    pub items: Beside<ItemOf>,
    pub values: PendingValues,
    /// Feedback and conversions whose join is final, and is none.
    pub unattributed: [u64; 2],
    /// Settled feedback that moved to another segment since.
    pub settled_moved: u64,
    pub evicted_early: EvictedEarly,
    pub next_id: u64,
    /// Stream time, as far as it is known.
    pub stream_ms: i64,
}

impl Attribution {
    pub fn new(spec: &Spec) -> Self {
        let policies = spec.records.policies.policies.len();
        Self {
            rules: Rules::new(spec),
            impressions: Impressions::default(),
            slates: Slates::default(),
            retained: RetainedImpressions::new(spec.feedback.grades.len()),
            pending: Pending::default(),
            policies,
            weights: Beside::new(policies > 0),
            items: Beside::new(spec.items.has_lists),
            values: PendingValues::new(&spec.records.custom),
            unattributed: [0, 0],
            settled_moved: 0,
            evicted_early: EvictedEarly::default(),
            next_id: 0,
            stream_ms: 0,
        }
    }

    // 1. Shown items

    /// Takes in a shown item.
    pub fn show(&mut self, item: &ShownItem, counting: &mut Counting) {
        let shown = Shown {
            event_ms: item.event_ms,
            segment: item.segment,
            position: u32::from(item.position),
            user: item.user,
            pair: item.pair,
            score: item.score,
        };
        counting.shown(&shown, self.stream_ms);
        Beside::emit_shown(item, counting);
        counting.valued(item.custom, (item.event_ms, item.segment, item.user), 1);
        if let Some(weights) = item.weights {
            self.emit_weights(item, weights, counting);
        }
        let mut slate = NO_SLATE;
        if item.slate_key != NONE {
            let window_ms = self.rules.window_ms;
            slate = self
                .slates
                .of_arrival(item.slate_key, item.user, item.arrival_ms, window_ms);
            if self.is_repeat(item.pair, slate) {
                return;
            }
        }
        let row = self.place(item, slate, counting);
        self.attract(row, item, counting);
    }

    fn is_repeat(&self, pair: u64, slate: u32) -> bool {
        let first = self
            .slates
            .get(slate)
            .map_or(NO_ROW, |found| found.first_row);
        first != NO_ROW
            && self
                .impressions
                .has_since(pair, first, |row| row.slate == slate)
    }

    /// Adds an impression, to its slate if it has one.
    fn place(&mut self, item: &ShownItem, slate: u32, counting: &mut Counting) -> u32 {
        let mut row = Impression::new(item.pair, (item.event_ms, item.offset, item.index));
        (row.position, row.segment) = (item.position, item.segment as u16);
        (row.score, row.slate) = (item.score, slate);
        let weights = item.weights.map(|of| of.map(|weighed| weighed.weight));
        self.weights.load_open(weights.unwrap_or_default());
        self.items.load_open(item.item);
        self.retract_list(slate, counting);
        let Some(found) = self.slates.get_mut(slate) else {
            return self.impressions.push(row);
        };
        let is_member = found.takes(self.rules.slate_items);
        found.placed += 1;
        found.latest_event_ms = found.latest_event_ms.max(item.event_ms);
        row.set_member(is_member);
        if is_member {
            row.prev_in_slate = found.last_member;
            if found.is_ranked() || !item.probes.is_empty() {
                self.retract_values(slate, counting);
            }
        }
        let added = self.impressions.push(row);
        self.slates.hold(slate);
        if let Some(found) = self.slates.get_mut(slate) {
            if found.first_row == NO_ROW {
                found.first_row = added;
            }
            if is_member {
                found.last_member = added;
            }
        }
        if is_member {
            if !item.probes.is_empty() {
                let age = (item.event_ms, item.offset, item.index);
                let most = self.rules.max_open;
                let is_taken = self.slates.take_probes(slate, age, item.probes, most);
                self.evicted_early.probes += u64::from(!is_taken);
            }
            self.count_slate(slate, item, counting);
            let has_feedback = self
                .slates
                .get(slate)
                .is_some_and(|x| x.last_retained != NO_ROW);
            if has_feedback && self.rules.grades_conversions {
                self.retain_member(added, item.user);
            }
        }
        added
    }

    /// A slate counts under its earliest member.
    fn count_slate(&mut self, slate: u32, item: &ShownItem, counting: &mut Counting) {
        let Some(found) = self.slates.get_mut(slate) else {
            return;
        };
        let age = (item.event_ms, item.offset, item.index);
        if found.earliest().is_some_and(|earliest| earliest <= age) {
            return;
        }
        if let Some((event_ms, _, _)) = found.earliest() {
            let segment = Segment::from(found.earliest_segment);
            counting.slate(&SlateChange {
                event_ms,
                segment,
                user: found.user,
                sign: -1,
            });
        }
        found.learn_earliest(age, item.segment as u16);
        let (event_ms, segment) = (item.event_ms, item.segment);
        counting.slate(&SlateChange {
            event_ms,
            segment,
            user: found.user,
            sign: 1,
        });
    }

    /// Pending feedback that fits a new impression better than what it joins moves to it.
    fn attract(&mut self, row: u32, item: &ShownItem, counting: &mut Counting) {
        let to_ms = item.event_ms + self.rules.click_ms;
        let age = (item.event_ms, item.offset, item.index);
        for place in self.pending.of_pair(false, item.pair, item.event_ms, to_ms) {
            let Some(feedback) = self.pending.get(place) else {
                continue;
            };
            let fits = !feedback.has_request() || feedback.slate_key == item.slate_key;
            let joined = self.retained.get(feedback.joined).map(Retained::age);
            if fits && joined.is_none_or(|joined| joined < age) {
                let retained = self.retain(row, item.user);
                self.rejoin(place, retained, counting);
            }
        }
    }

    // 2. Feedback of the clicks topic

    /// Takes in feedback of any kind but conversions; it has no id yet and joins nothing.
    pub fn give(
        &mut self,
        mut feedback: Feedback,
        values: Option<&Values>,
        counting: &mut Counting,
    ) {
        if feedback.kind == Kind::Other {
            counting.given(&feedback.given(1));
            counting.valued(values, place_of(&feedback), 1);
            counting.dwell_of_feedback(&feedback);
            counting.settled(&feedback);
            return;
        }
        let (key, click_ms) = (feedback.slate_key, self.rules.click_ms);
        let row = self
            .impressions
            .newest_before(feedback.pair, feedback.event_ms, click_ms, |x| {
                key == NONE
                    || self
                        .slates
                        .get(x.slate)
                        .is_some_and(|slate| slate.key == key)
            });
        if let Some(row) = row {
            feedback.joined = self.retain(row, feedback.user);
        }
        self.take_in(feedback, values, counting);
    }

    // 3. Conversions

    /// Takes in a conversion, which has no id yet and joins nothing.
    pub fn convert(
        &mut self,
        mut feedback: Feedback,
        values: Option<&Values>,
        counting: &mut Counting,
    ) {
        feedback.joined = self.converted(&feedback);
        self.take_in(feedback, values, counting);
    }

    /// The impression that a conversion joins.
    pub(crate) fn converted(&self, feedback: &Feedback) -> u32 {
        let (key, event_ms) = (feedback.slate_key, feedback.event_ms);
        let conversion_ms = self.rules.conversion_ms;
        let rows = &self.retained.rows;
        let found = rows.newest_before(feedback.pair, event_ms, conversion_ms, |row| {
            row.first_ms <= event_ms && (key == NONE || row.slate_key == key)
        });
        found.unwrap_or(NO_ROW)
    }

    /// Looks again at conversions of a pair, in the times [from, to), whose impressions changed.
    fn convert_again(&mut self, pair: u64, from_ms: i64, to_ms: i64, counting: &mut Counting) {
        for place in self
            .pending
            .of_pair(true, pair, from_ms, to_ms.saturating_sub(1))
        {
            let Some(feedback) = self.pending.get(place).copied() else {
                continue;
            };
            let joined = self.converted(&feedback);
            if joined != feedback.joined {
                self.rejoin(place, joined, counting);
            }
        }
    }
}
