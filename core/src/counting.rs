//! Counting: what changes add to panes, users, experiments and alert series.

pub mod alert_series;
pub mod intervals;
pub mod item_counts;
pub mod listing;
pub mod off_policy;
pub mod own_sums;
pub mod ratio_cells;
pub mod ratio_rows;
pub mod scores;
pub mod sessions;
pub mod statistics;
pub mod sums;
mod time_spent;
pub mod viewings;

use std::sync::Arc;

use crate::attribution::emitted::{Emitted, ShownItem, Sink};
use crate::attribution::pending::Feedback;
use crate::changes::{Change, Combination, Fact, ItemOf, PolicyOutcome, UserAt};
use crate::counting::alert_series::Series;
use crate::counting::listing::Listing;
use crate::counting::own_sums::{Origin, OwnSums};
use crate::counting::ratio_rows::RatioRecorder;
use crate::counting::statistics::Statistics;
use crate::counting::sums::{Sum, SumsByFact};
use crate::counting::viewings::Viewings;
use crate::experiments::Experiments;
use crate::experiments::units::Units;
use crate::hash::{NONE, is_anonymous, unmix};
use crate::kinds::FeedbackKind;
use crate::own_sums::Values;
use crate::panes::Overflow;
use crate::panes::dimensions::Dimensions;
use crate::panes::order::Order;
use crate::panes::rings::Rings;
use crate::panes::rolled_up::RolledUpPanes;
use crate::panes::segments::{Placement, Segments};
use crate::slates::family::SlateFamily;
use crate::slates::members::{Member, Probed};
use crate::slates::pairs::PairLosses;
use crate::slates::values::{SlateContext, Tables};
use crate::spec::Spec;
use crate::spec::sums::{SumSpec, VisibleSpec};
use crate::users::{Touch, Users, UsersSpec};
use crate::weights::{Weight, Weights};

/// Everything that is counted in one partition.
pub struct Counting {
    pub dimensions: Dimensions,
    pub panes: RolledUpPanes,
    pub series: Vec<Series>,
    /// Where rows of a ratio are wanted, and nothing else.
    pub recorder: Option<RatioRecorder>,
    pub viewings: Viewings,
    pub listing: Listing,
    pub experiments: Experiments,
    /// Experiments whose unit is not the user.
    pub units: Units,
    /// If metrics of users are wanted.
    pub users: Option<Users>,
    /// Place of conversions among the kinds of users' feedback.
    conversions_of_users: Option<usize>,
    statistics: Statistics,
    own_sums: OwnSums,
    families: Vec<(u32, SlateFamily)>,
    visible: Option<VisibleSpec>,
    /// What slates are read into, one after another; none while sums are made of one.
    context: Option<SlateContext>,
    amounts: Vec<i64>,
    /// The sums of experiments, and of alerts, with their places.
    of_experiments: SumsByFact<usize>,
    of_series: SumsByFact<usize>,
    has_overflowed: bool,
    /// Stream time, as far as it is known.
    pub stream_ms: i64,
}

impl Counting {
    pub fn new(spec: &Spec) -> Result<Self, String> {
        let families = slate_families(spec)?;
        let has_scoring = families
            .iter()
            .any(|(_, family)| family.statistic == "scoring");
        let tables = Arc::new(Tables::new(spec.slates.tables.clone())?);
        let width = families
            .iter()
            .map(|(_, family)| family.width)
            .max()
            .unwrap_or(0);
        let gap_ms = spec.attribution.session_gap_ms;
        let (lateness_ms, limits) = (spec.time.max_lateness_ms, &spec.limits);
        let series = &spec.alerts.series;
        let order = Order::new(&spec.rollups);
        let kept = order.bits(&spec.day_before.statistics);
        let rings = Rings::with_day_before(&spec.rings, &spec.day_before, kept)?;
        let segments = Segments::new(&spec.rollups, &order, limits.segments);
        let mut since = spec.since.clone();
        since.statistics = order.places(&since.statistics);
        let panes = RolledUpPanes::new(rings, since, segments, order);
        let shown = spec.dimensions.iter().filter(|x| !x.is_sampled).count(); // units follow them
        let has_users = |at: &usize| spec.rollups[*at].has_users;
        let kinds = spec.feedback.user_kinds;
        let users = UsersSpec {
            rings: spec.rings.clone(),
            unit_ms: panes.unit_ms(),
            rollups: (0..spec.rollups.len()).filter(has_users).collect(),
            kinds,
            limit: limits.of_items(),
            since_ms: spec.since.users_ms.clone(),
        };
        let is_on = spec.families.iter().any(|family| family == "engagement");
        let counts_conversions = spec.feedback.counts_conversions_of_users;
        Ok(Self {
            users: is_on.then(|| Users::new(users)).transpose()?,
            conversions_of_users: counts_conversions.then(|| kinds.saturating_sub(1)),
            dimensions: Dimensions::new(spec.hash_key, &spec.dimensions),
            listing: Listing::new(spec),
            panes,
            series: series
                .iter()
                .map(|s| Series::new(s, limits.series_labels))
                .collect(),
            recorder: (spec.alerts.rows.as_ref()).map(|rows| RatioRecorder::new(rows, shown)),
            viewings: Viewings::new(gap_ms, lateness_ms, limits.open_sessions),
            statistics: Statistics::new(&spec.statistics)?,
            own_sums: OwnSums::new(&spec.own_sums)?,
            families,
            visible: spec.slates.visible.clone(),
            context: Some(SlateContext::new(tables, has_scoring)),
            amounts: vec![0; width],
            experiments: Experiments::new(&spec.experiments, spec)?,
            units: Units::new(
                &spec.experiments.units,
                &spec.hash_key,
                (spec.dimensions.len(), limits.of_days()),
            )?,
            of_experiments: with_places(&spec.experiments.sums)?,
            has_overflowed: false,
            of_series: with_places(&spec.alerts.sums)?,
            stream_ms: 0,
        })
    }

    /// Adds a change to all that is made of sums.
    pub fn change(&mut self, change: &Change<'_>) {
        if let Some(recorder) = &mut self.recorder {
            for (sum, amount) in self.of_series.of(change) {
                recorder.add(&self.dimensions, *sum, change.at, amount);
            }
            return;
        }
        self.statistics.add(&mut self.panes, change);
        self.add_to_experiments(change, false);
        for (sum, amount) in self.of_series.of(change) {
            for series in &mut self.series {
                series.add(&self.dimensions, *sum, change.at, amount);
            }
        }
    }

    /// Adds a change to the sums of experiments; `is_load`: to those that loaded rows do not have.
    fn add_to_experiments(&mut self, change: &Change<'_>, is_load: bool) {
        for (sum, amount) in self.of_experiments.of(change) {
            if !(is_load && self.experiments.is_stored(*sum)) {
                let added = self
                    .experiments
                    .add(&self.dimensions, *sum, change.at, amount);
                self.has_overflowed |= added.is_err();
            }
            let added = self
                .units
                .add(&self.dimensions, (*sum, is_load), change.at, amount);
            self.has_overflowed |= added.is_err();
        }
    }

    /// Nothing takes a change back any more: it counts since the start.
    pub fn settle(&mut self, change: &Change<'_>) {
        self.statistics.settle(&mut self.panes, change);
    }

    /// Fetches what is known of a user: see `Partition::warm_up`.
    pub fn warm_up(&self, user: u64) -> usize {
        self.users.as_ref().map_or(0, |users| users.warm_up(user))
    }

    /// An item is shown: what is said of it, of items, own sums and policies.
    fn shown(&mut self, item: &ShownItem) {
        let (at, position) = (item.at, u32::from(item.position));
        self.experiments.expose(&self.dimensions, at);
        self.units.expose(&self.dimensions, at);
        let score = item.score;
        let change = Change::new(at, 1, Fact::Impression { position, score });
        self.settle(&change);
        let before = self.last_ms(at.user, item.item_pair, false);
        if let Some(users) = &mut self.users
            && !is_anonymous(at.user)
        {
            users.touch(
                &Touch {
                    user: at.user,
                    pair: item.item_pair,
                    combination: at.combination,
                    event_ms: at.event_ms,
                    column: 0,
                },
                Placement {
                    combinations: &self.dimensions,
                    segments: &self.panes.segments,
                },
                self.stream_ms,
            );
        }
        self.count_person((at.user, item.item_pair), item.item.item, before, false);
        self.change(&change);
        if let Some(counts) = &mut self.listing.counts {
            counts.shown(&self.dimensions, at, position, item.item);
        }
        self.add_values(item.values, at, 1, Origin::Shown);
        for (policy, weighed) in item.weights.into_iter().flatten().enumerate() {
            let outcome = PolicyOutcome::Shown {
                is_clipped: weighed.is_clipped,
                unclicked: weighed.unclicked,
            };
            self.add_weight(at, 1, policy, weighed.weight, outcome);
        }
    }

    /// A slate without items is shown: it says who is in which arm as others do.
    pub fn show_nothing(&mut self, at: UserAt) {
        self.experiments.expose(&self.dimensions, at);
        self.units.expose(&self.dimensions, at);
        let is_empty = true;
        self.change(&Change::new(at, 1, Fact::Slate { is_empty }));
    }

    /// An impression says something of a policy; nothing without a weight.
    fn add_weight(
        &mut self,
        at: UserAt,
        sign: i64,
        policy: usize,
        weight: Weight,
        outcome: PolicyOutcome,
    ) {
        if weight.units().is_some() {
            let what = Fact::PolicyWeight {
                policy,
                weight,
                outcome,
            };
            self.change(&Change::new(at, sign, what));
        }
    }

    /// The outcome of an impression changed: so do those of its item and its weights where it is
    /// clicked now, or is not any more.
    fn outcome(&mut self, change: &Change<'_>, item: Option<u64>, weights: Option<&Weights>) {
        self.change(change);
        let clicked = match change.what {
            Fact::Outcome { clicked, .. } if clicked != 0 => clicked,
            _ => return,
        };
        for (policy, weight) in weights.into_iter().flatten().enumerate() {
            self.add_weight(change.at, clicked, policy, *weight, PolicyOutcome::Clicked);
        }
        if let (Some(counts), Some(item)) = (&mut self.listing.counts, item) {
            counts.clicked(&self.dimensions, change.at, clicked, item);
        }
    }

    /// All tables are loaded: sessions may count under a time that lies ahead, so that what is new
    /// has those which `emit` gives, too.
    pub fn load_sessions(&mut self, emit: impl Fn(&mut dyn FnMut(&Change))) {
        if self.panes.has_new() {
            emit(&mut |change| self.statistics.add(&mut self.panes, change));
        }
        if !self.experiments.is_all_stored() || !self.units.is_all_stored() {
            emit(&mut |change| self.add_to_experiments(change, true));
        }
    }

    // Users

    /// Feedback counts for its user: `is_fixed` when it cannot move any more.
    fn of_user(&mut self, feedback: &Feedback, is_fixed: bool) {
        if feedback.orders() < 1 {
            return; // nobody likes what they give back
        }
        let column = column_of(feedback.kind, self.conversions_of_users);
        let (Some(users), Some(column), false) =
            (&mut self.users, column, is_anonymous(feedback.user))
        else {
            return;
        };
        let touch = Touch {
            user: feedback.user,
            pair: feedback.item_pair,
            combination: feedback.combination,
            event_ms: feedback.event_ms,
            column,
        };
        let segments = Placement {
            combinations: &self.dimensions,
            segments: &self.panes.segments,
        };
        if is_fixed {
            users.release(feedback.id, segments);
            users.touch(&touch, segments, self.stream_ms);
        } else {
            users.hold(feedback.id, &touch, segments);
        }
    }

    /// Brings the sums over users up to date; no impression before `final_ms` can come any more.
    pub fn refresh_user_sums(&mut self, stream_ms: i64, final_ms: i64) -> Result<(), Overflow> {
        if let Some(users) = &mut self.users {
            users.refresh(stream_ms, &self.dimensions, &mut self.panes.segments);
        }
        self.experiments.refresh(final_ms)
    }

    /// Whether something changed that the sums over users do not show yet.
    pub fn is_dirty(&self) -> bool {
        self.experiments.is_dirty() || self.users.as_ref().is_some_and(Users::is_dirty)
    }

    /// Whether all of them are to be computed anew.
    pub fn is_stale(&self) -> bool {
        self.experiments.is_stale() || self.users.as_ref().is_some_and(Users::is_stale)
    }

    /// Beyond the bound a sample of the users stays, of whom all is computed anew at once.
    pub fn bound_users(&mut self, stream_ms: i64, final_ms: i64) -> Result<(), Overflow> {
        let is_short = self
            .users
            .as_mut()
            .is_some_and(|users| users.shrink(stream_ms));
        self.units.shrink(&self.dimensions);
        if self.experiments.shrink() || is_short {
            self.refresh_user_sums(stream_ms, final_ms)?;
        }
        Ok(())
    }

    /// The combination of an accepted event, by the texts of its dimensions.
    pub fn combination_of<'a>(
        &mut self,
        texts: impl Iterator<Item = &'a str> + Clone,
    ) -> Combination {
        let (users, segments) = (&mut self.users, &self.panes.segments);
        self.dimensions
            .combination_of(texts, |combinations, pushed_out| {
                let segments = Placement {
                    combinations,
                    segments,
                };
                if let Some(users) = users {
                    users.before_fold(pushed_out, segments);
                }
            })
    }

    // Settled

    /// Feedback counts since the start from now on.
    fn settled(&mut self, feedback: &Feedback) {
        self.settle(&feedback.change(1, 0)); // its position may still be filled in
        if let (Some(dwell_ms), false) = (feedback.amounts.dwell_ms, feedback.has_request()) {
            self.settle(&Change::new(feedback.at(), 1, Fact::Viewing { dwell_ms }));
        }
    }

    /// A slate is shown, or is not any more.
    fn slate(&mut self, at: UserAt, sign: i64) {
        for (first, family) in &self.families {
            for place in family.of_every_slate() {
                let stat = first + place as u32;
                self.panes.add(at.event_ms, at.combination, stat, sign);
            }
        }
        let is_empty = false;
        self.change(&Change::new(at, sign, Fact::Slate { is_empty }));
    }

    /// The values of a slate with feedback or probes, whose members stand in the order shown.
    fn ranked(
        &mut self,
        at: UserAt,
        sign: i64,
        members: &[Member],
        probed: Probed,
        losses: Option<PairLosses>,
    ) {
        let Some(mut context) = self.context.take() else {
            return;
        };
        context.read(members, probed, losses);
        context.visible = self.visible_under(at.combination);
        for (first, family) in &self.families {
            let amounts = &mut self.amounts[..family.width];
            family.amounts(&context, amounts);
            self.panes
                .add_wide(at.event_ms, at.combination, *first, amounts, sign);
        }
        self.change(&Change::new(at, sign, Fact::RankedSlate(&context)));
        self.context = Some(context);
    }

    /// How many positions people see under a combination; 0 where nobody asks.
    fn visible_under(&self, combination: Combination) -> i64 {
        let Some(visible) = &self.visible else {
            return 0;
        };
        let code = self.dimensions.codes(combination)[visible.dimension];
        let text = &self.dimensions.values[visible.dimension].texts[code as usize];
        let positions = visible.values.get(text.as_str());
        positions.copied().unwrap_or(visible.others)
    }

    /// Brings what was gathered into the panes.
    pub fn fold(&mut self, stream_ms: i64) -> Result<(), Overflow> {
        if std::mem::take(&mut self.has_overflowed) {
            return Err(Overflow);
        }
        self.panes.fold(&self.dimensions, stream_ms)?;
        self.fold_items(stream_ms)?;
        self.series
            .iter_mut()
            .try_for_each(|series| series.fold(stream_ms))
    }

    /// Folds what was gathered at the end of loading, where it is new.
    pub fn fold_new(&mut self, stream_ms: i64) -> Result<(), Overflow> {
        self.panes.fold_new(&self.dimensions, stream_ms)
    }

    /// Folds before more is gathered than fits a processor's cache.
    pub fn fold_if_full(&mut self, stream_ms: i64) -> Result<(), Overflow> {
        let is_full = self.panes.is_full() || self.series.iter().any(|s| s.panes.is_full());
        if is_full {
            self.fold(stream_ms)
        } else {
            Ok(())
        }
    }

    // Sums of one's own

    /// What an event adds to own sums counts, or is retracted.
    pub fn add_values(
        &mut self,
        values: Option<&Values>,
        at: UserAt,
        sign: i64,
        origin: Origin<'_>,
    ) {
        let values = values.unwrap_or(&Values::NONE);
        let mut wanted = self.own_sums.of(origin, at, values, &self.dimensions);
        while wanted != 0 {
            let sum = wanted.trailing_zeros() as usize;
            wanted &= wanted - 1;
            if let Some((times, value)) = self.own_sums.value(sum, values, origin) {
                let what = Fact::OwnValue { sum, value };
                self.change(&Change::new(at, sign * times, what));
            }
        }
    }

    // Items and lists

    /// When (ms) somebody last saw an item, or gave feedback to it; None where nobody asks.
    pub fn last_ms(&self, user: u64, pair: u64, is_feedback: bool) -> Option<i64> {
        let asks = self.listing.counts.as_ref().is_some_and(|x| x.has_lists());
        let users = self.users.as_ref().filter(|_| asks)?;
        users.last_ms(user, pair, is_feedback)
    }

    /// Somebody counts for an item at the last time, and no longer at the one before.
    pub fn count_person(
        &mut self,
        (user, pair): (u64, u64),
        item: u64,
        before: Option<i64>,
        is_feedback: bool,
    ) {
        let now = self.last_ms(user, pair, is_feedback);
        let has_changed = item != NONE && now != before;
        if let Some(counts) = self.listing.counts.as_mut().filter(|_| has_changed) {
            for (last_ms, sign) in [(before, -1), (now, 1)] {
                if let Some(last_ms) = last_ms {
                    counts.person(&self.dimensions, (last_ms, sign), is_feedback, item);
                }
            }
            let is_in_pairs = is_feedback && counts.has_pairs_of(item);
            if is_in_pairs {
                self.count_pairs((user, pair), item, before, now);
            }
        }
    }

    /// Somebody counts for an item and each of the others by the first of both last times.
    fn count_pairs(
        &mut self,
        (user, pair): (u64, u64),
        item: u64,
        before: Option<i64>,
        now: Option<i64>,
    ) {
        let (Some(users), Some(counts)) = (&self.users, &mut self.listing.counts) else {
            return;
        };
        for (other, other_ms) in users.last_feedback(user) {
            let [before, now] = [before, now].map(|last_ms| last_ms.map(|ms| ms.min(other_ms)));
            let second = unmix(user, other);
            if other != pair && before != now && counts.has_pairs_of(second) {
                for (last_ms, sign) in [(before, -1), (now, 1)] {
                    if let Some(last_ms) = last_ms {
                        counts.person_of_pair((last_ms, sign), item, second);
                    }
                }
            }
        }
    }

    /// The category of what an event shows, where a dimension is the category; its values in order.
    pub fn category_of<'a>(&self, mut values: impl Iterator<Item = &'a str>) -> Option<u64> {
        let value = values.nth(self.listing.category?);
        Some(value.map_or(NONE, |text| self.dimensions.hash_of(text)))
    }

    /// A list is shown as it is now, or is not any more.
    fn list(&mut self, at: UserAt, sign: i64, items: &[ItemOf]) {
        if let Some(counts) = &mut self.listing.counts {
            counts.listed(&self.dimensions, at, sign, items);
        }
        self.change(&Change::new(at, sign, Fact::List(items)));
    }

    /// Brings counts of items into their panes.
    pub(super) fn fold_items(&mut self, stream_ms: i64) -> Result<(), Overflow> {
        let counts = self.listing.counts.as_mut();
        counts.map_or(Ok(()), |counts| counts.fold(stream_ms))
    }
}

impl Sink for Counting {
    fn dimensions(&mut self) -> &mut Dimensions {
        &mut self.dimensions
    }

    fn emit(&mut self, emitted: Emitted) {
        match emitted {
            Emitted::Shown(item) => self.shown(item),
            Emitted::Slate(at, sign) => self.slate(at, sign),
            Emitted::Ranked {
                at,
                sign,
                members,
                probed,
                losses,
            } => self.ranked(at, sign, members, probed, losses),
            Emitted::List { at, sign, items } => self.list(at, sign, items),
            Emitted::Feedback(feedback, values) => {
                self.change(&feedback.change(1, feedback.position));
                self.add_values(values, feedback.at(), 1, Origin::Feedback(feedback));
                self.dwell_of_feedback(feedback);
            }
            Emitted::Moved {
                before,
                now,
                values,
            } => {
                self.change(&before.change(-1, before.position));
                self.change(&now.change(1, now.position));
                if now.combination != before.combination {
                    self.dwell_moved(before, now);
                }
                self.add_values(values, before.at(), -1, Origin::Feedback(before));
                self.add_values(values, now.at(), 1, Origin::Feedback(now));
            }
            Emitted::Settled(feedback) => self.settled(feedback),
            Emitted::Rated(change) => self.change(&change),
            Emitted::OfUser(feedback, is_fixed) => self.of_user(feedback, is_fixed),
            Emitted::Outcome {
                change,
                item,
                weights,
            } => self.outcome(&change, item, weights),
        }
    }
}

/// The column of times of users that feedback is of: 0 is that of impressions; none for kinds that
/// do not count.
pub fn column_of(kind: FeedbackKind, conversions: Option<usize>) -> Option<usize> {
    match kind {
        FeedbackKind::Configured(place) => Some(1 + usize::from(place)),
        FeedbackKind::Conversion | FeedbackKind::ConversionLine => {
            conversions.map(|place| 1 + place)
        }
        FeedbackKind::Other | FeedbackKind::Gone => None,
    }
}

/// The families of values of slates, each with the first integer of its statistic.
fn slate_families(spec: &Spec) -> Result<Vec<(u32, SlateFamily)>, String> {
    let filled = |statistic: &str| {
        spec.slates
            .families
            .iter()
            .any(|f| f.statistic == statistic)
    };
    for statistic in &spec.statistics {
        if statistic.of.is_empty() && !filled(&statistic.name) {
            return Err(format!("nothing fills statistic {:?}", statistic.name));
        }
    }
    let families = spec.slates.families.iter().map(|family| {
        let mut statistics = spec.statistics.iter();
        let statistic = statistics
            .find(|statistic| statistic.name == family.statistic)
            .ok_or_else(|| format!("the spec lacks statistic {:?}", family.statistic))?;
        Ok((statistic.at, SlateFamily::new(family)?))
    });
    families.collect()
}

fn with_places(sums: &[SumSpec]) -> Result<SumsByFact<usize>, String> {
    let made = sums.iter().map(Sum::new).collect::<Result<Vec<_>, _>>()?;
    Ok(SumsByFact::new(made.into_iter().zip(0..)))
}
