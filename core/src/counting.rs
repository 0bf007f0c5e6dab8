//! Counting: what changes add to panes, users, experiments and alert series.

pub mod alert_series;
pub mod crossings;
pub mod custom;
pub mod intervals;
pub mod item_counts;
pub mod listing;
pub mod off_policy;
pub mod scores;
pub mod sessions;
pub mod statistics;
pub mod sums;
mod time_spent;
pub mod viewings;

use std::sync::Arc;

use crate::attribution::emitted::{Emitted, ShownItem, Sink};
use crate::attribution::pending::Feedback;
use crate::changes::{
    Combination, CustomChange, Dwell, FeedbackChange, ImpressionChange, ItemShown, Kind, Listed,
    Member, OutcomeChange, PolicyChange, PolicyOutcome, Probed, Session, SlateChange,
};
use crate::counting::alert_series::Series;
use crate::counting::crossings::Crossings;
use crate::counting::custom::Filters;
use crate::counting::listing::Listing;
use crate::counting::statistics::Statistics;
use crate::counting::sums::{Change, Sum, Sums};
use crate::counting::viewings::Viewings;
use crate::custom::Values;
use crate::experiments::Experiments;
use crate::experiments::units::Units;
use crate::hash::{NONE, is_anonymous};
use crate::panes::Overflow;
use crate::panes::dimensions::Dimensions;
use crate::panes::order::Order;
use crate::panes::rings::Rings;
use crate::panes::rolled_up::RolledUpPanes;
use crate::panes::segments::{Placement, Segments};
use crate::slates::family::SlateFamily;
use crate::slates::pairs::PairLosses;
use crate::slates::values::{SlateContext, Tables};
use crate::spec::Spec;
use crate::spec::sums::SumSpec;
use crate::users::{Touch, Users, UsersSpec};
use crate::weights::Weights;
use time_spent::dwell_of;

/// Everything that is counted in one partition.
pub struct Counting {
    pub dimensions: Dimensions,
    pub panes: RolledUpPanes,
    pub series: Vec<Series>,
    pub crossings: Vec<Crossings>,
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
    filters: Filters,
    families: Vec<(u32, SlateFamily)>,
    /// What slates are read into, one after another; none while sums are made of one.
    context: Option<SlateContext>,
    amounts: Vec<i64>,
    /// The sums of experiments, and of alerts, with their places.
    of_experiments: Sums<usize>,
    of_series: Sums<usize>,
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
            crossings: (spec.alerts.crossings.iter())
                .map(|crossings| Crossings::new(crossings, shown))
                .collect(),
            viewings: Viewings::new(gap_ms, lateness_ms, limits.open_sessions),
            statistics: Statistics::new(&spec.statistics)?,
            filters: Filters::new(&spec.custom),
            families,
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
    fn change(&mut self, change: &Change<'_>) {
        self.statistics.add(&mut self.panes, change);
        self.add_to_experiments(change, false);
        for (sum, amount) in self.of_series.of(change) {
            for series in &mut self.series {
                series.add(&self.dimensions, *sum, change.at(), amount);
            }
            for crossings in &mut self.crossings {
                crossings.add(&self.dimensions, *sum, change.at(), amount);
            }
        }
    }

    /// Adds a change to the sums of experiments; `is_load`: to those that loaded rows do not have.
    fn add_to_experiments(&mut self, change: &Change<'_>, is_load: bool) {
        for (sum, amount) in self.of_experiments.of(change) {
            if !(is_load && self.experiments.is_stored(*sum)) {
                let added = self
                    .experiments
                    .add(&self.dimensions, *sum, change.at(), amount);
                self.has_overflowed |= added.is_err();
            }
            let (_, event_ms, combination) = change.at();
            let place = (event_ms, combination);
            let added = self
                .units
                .add(&self.dimensions, (*sum, is_load), place, amount);
            self.has_overflowed |= added.is_err();
        }
    }

    /// Nothing takes a change back any more: it counts since the start.
    fn settle(&mut self, change: &Change<'_>) {
        self.statistics.settle(&mut self.panes, change);
    }

    /// Fetches what is known of a user: see `Partition::warm_up`.
    pub fn warm_up(&self, user: u64) -> usize {
        self.users.as_ref().map_or(0, |users| users.warm_up(user))
    }

    /// An item is shown: what is said of it, of lists, custom metrics and policies.
    fn shown_item(&mut self, item: &ShownItem) {
        let (event_ms, combination, user) = (item.event_ms, item.combination, item.user);
        let position = u32::from(item.position);
        self.shown(&ImpressionChange {
            event_ms,
            combination,
            position,
            user,
            pair: item.pair,
            score: item.score,
        });
        self.item_shown(&ItemShown {
            event_ms,
            combination,
            position,
            item: item.item,
        });
        self.valued(item.custom, (event_ms, combination, user), 1);
        for (policy, weighed) in item.weights.into_iter().flatten().enumerate() {
            self.weighed(&PolicyChange {
                event_ms,
                combination,
                user,
                policy,
                weight: weighed.weight,
                of: PolicyOutcome::Shown {
                    is_clipped: weighed.is_clipped,
                    unclicked: weighed.unclicked,
                },
            });
        }
    }

    fn shown(&mut self, change: &ImpressionChange) {
        let place = (change.user, change.event_ms, change.combination);
        self.experiments.expose(&self.dimensions, place);
        self.units.expose(&self.dimensions, (place.1, place.2));
        self.settle(&Change::Shown(*change));
        if let Some(users) = &mut self.users
            && !is_anonymous(change.user)
        {
            let (user, pair, combination) = (change.user, change.pair, change.combination);
            let event_ms = change.event_ms;
            users.touch(
                &Touch {
                    user,
                    pair,
                    combination,
                    event_ms,
                    column: 0,
                },
                Placement {
                    combinations: &self.dimensions,
                    segments: &self.panes.segments,
                },
                self.stream_ms,
            );
        }
        self.change(&Change::Shown(*change));
    }

    /// Feedback counts, or what it counted as is retracted.
    fn given(&mut self, change: &FeedbackChange) {
        self.change(&Change::Given(*change));
    }

    fn outcome(&mut self, change: &OutcomeChange) {
        self.change(&Change::Outcome(*change));
    }

    /// A weighed impression is clicked now, or is not any more.
    fn outcome_of_policies(&mut self, change: &OutcomeChange, weights: Option<&Weights>) {
        let weights = weights.filter(|_| change.clicked != 0);
        for (policy, weight) in weights.into_iter().flatten().enumerate() {
            self.weighed(&PolicyChange {
                event_ms: change.event_ms,
                combination: change.combination,
                user: change.user,
                policy,
                weight: *weight,
                of: PolicyOutcome::Clicked(change.clicked),
            });
        }
    }

    /// An impression says something of a policy; nothing without a weight.
    fn weighed(&mut self, change: &PolicyChange) {
        if change.weight.units().is_some() {
            self.change(&Change::Weighing(*change));
        }
    }

    pub fn dwell(&mut self, change: &Dwell) {
        self.change(&Change::Dwell(*change));
    }

    pub fn session(&mut self, change: &Session) {
        self.change(&Change::Session(*change));
    }

    /// All tables are loaded: sessions may count under a time that lies ahead, so that what is new
    /// has those which `emit` gives, too.
    pub fn load_sessions(&mut self, emit: impl Fn(&mut dyn FnMut(&Session))) {
        if self.panes.has_new() {
            emit(&mut |change| {
                self.statistics
                    .add(&mut self.panes, &Change::Session(*change));
            });
        }
        if !self.experiments.is_all_stored() || !self.units.is_all_stored() {
            emit(&mut |change| self.add_to_experiments(&Change::Session(*change), true));
        }
    }

    pub fn settled_session(&mut self, change: &Session) {
        self.settle(&Change::Session(*change));
    }

    // Users

    /// Feedback counts for its user: `is_fixed` when it cannot move any more.
    fn of_user(&mut self, feedback: &Feedback, is_fixed: bool) {
        let column = column_of(feedback.kind, self.conversions_of_users);
        let (Some(users), Some(column), false) =
            (&mut self.users, column, is_anonymous(feedback.user))
        else {
            return;
        };
        let touch = Touch {
            user: feedback.user,
            pair: feedback.pair,
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
        let given = FeedbackChange {
            position: 0, // may still be filled in
            ..feedback.given(1)
        };
        self.settle(&Change::Given(given));
        if let (Some(dwell_ms), false) = (feedback.dwell_ms, feedback.has_request()) {
            let dwell = dwell_of(feedback, dwell_ms, 1);
            self.settle(&Change::Dwell(dwell));
        }
    }

    fn slate(&mut self, change: &SlateChange) {
        for (at, family) in &self.families {
            for place in family.of_every_slate() {
                let stat = at + place as u32;
                self.panes
                    .add(change.event_ms, change.combination, stat, change.sign);
            }
        }
        self.change(&Change::Slate(*change));
    }

    /// The values of a slate with feedback or probes, whose members stand in the order shown.
    fn ranked(
        &mut self,
        slate: &SlateChange,
        members: &[Member],
        probed: Probed,
        losses: Option<PairLosses>,
    ) {
        let Some(mut context) = self.context.take() else {
            return;
        };
        context.read(members, probed, losses);
        for (at, family) in &self.families {
            let amounts = &mut self.amounts[..family.width];
            family.amounts(&context, amounts);
            self.panes
                .add_wide(slate.event_ms, slate.combination, *at, amounts, slate.sign);
        }
        self.change(&Change::Ranked(*slate, &context));
        self.context = Some(context);
    }

    /// Brings what was gathered into the panes.
    pub fn fold(&mut self, stream_ms: i64) -> Result<(), Overflow> {
        if std::mem::take(&mut self.has_overflowed) {
            return Err(Overflow);
        }
        self.panes.fold(&self.dimensions, stream_ms)?;
        self.fold_items(stream_ms)?;
        for crossings in &mut self.crossings {
            crossings.fold(stream_ms)?;
        }
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

    // Custom metrics

    /// The values of an event count, or are retracted; `place`: time, combination and user.
    pub fn valued(
        &mut self,
        values: Option<&Values>,
        (event_ms, combination, user): (i64, Combination, u64),
        sign: i64,
    ) {
        let Some(values) = values else {
            return;
        };
        let counts = self.filters.of(combination, &self.dimensions);
        for (metric, value) in values
            .iter()
            .filter(|(metric, _)| counts >> metric & 1 == 1)
        {
            let change = CustomChange {
                event_ms,
                combination,
                user,
                metric,
                value,
                sign,
            };
            self.change(&Change::Valued(change));
        }
    }

    // Items and lists

    /// The category of what an event shows, where a dimension is the category; its values in order.
    pub fn category_of<'a>(&self, mut values: impl Iterator<Item = &'a str>) -> Option<u64> {
        let value = values.nth(self.listing.category?);
        Some(value.map_or(NONE, |text| self.dimensions.hash_of(text)))
    }

    /// An item is shown.
    pub fn item_shown(&mut self, change: &ItemShown) {
        if let Some(counts) = &mut self.listing.counts {
            counts.shown(&self.dimensions, change);
        }
    }

    /// An impression of an item is clicked, or is not any more.
    pub fn item_outcome(&mut self, item: u64, change: &OutcomeChange) {
        if let Some(counts) = self.listing.counts.as_mut().filter(|_| change.clicked != 0) {
            counts.outcome(&self.dimensions, item, change);
        }
    }

    /// A list is shown as it is now, or is not any more.
    pub fn listed(&mut self, change: &Listed) {
        if let Some(counts) = &mut self.listing.counts {
            counts.listed(&self.dimensions, change);
        }
        self.change(&Change::Listed(*change));
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
            Emitted::Shown(item) => self.shown_item(item),
            Emitted::Slate(change) => self.slate(&change),
            Emitted::Ranked {
                slate,
                members,
                probed,
                losses,
            } => self.ranked(&slate, members, probed, losses),
            Emitted::Listed(change) => self.listed(&change),
            Emitted::Feedback(feedback, values) => {
                self.given(&feedback.given(1));
                self.valued(values, place_of(feedback), 1);
                self.dwell_of_feedback(feedback);
            }
            Emitted::Moved {
                before,
                now,
                values,
            } => {
                self.given(&before.given(-1));
                self.given(&now.given(1));
                if now.combination != before.combination {
                    self.dwell_moved(now, before.combination);
                    self.valued(values, place_of(before), -1);
                    self.valued(values, place_of(now), 1);
                }
            }
            Emitted::Settled(feedback) => self.settled(feedback),
            Emitted::OfUser(feedback, is_fixed) => self.of_user(feedback, is_fixed),
            Emitted::Outcome {
                change,
                item,
                weights,
            } => {
                self.outcome(&change);
                self.outcome_of_policies(&change, weights);
                if let Some(item) = item {
                    self.item_outcome(item, &change);
                }
            }
        }
    }
}

/// Time, combination and user under which the values of feedback count.
fn place_of(feedback: &Feedback) -> (i64, Combination, u64) {
    (feedback.event_ms, feedback.combination, feedback.user)
}

/// The column of times of users that feedback is of: 0 is that of impressions; none for kinds that
/// do not count.
pub fn column_of(kind: Kind, conversions: Option<usize>) -> Option<usize> {
    match kind {
        Kind::Configured(place) => Some(1 + usize::from(place)),
        Kind::Conversion | Kind::ConversionLine => conversions.map(|place| 1 + place),
        Kind::Other | Kind::Gone => None,
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

fn with_places(sums: &[SumSpec]) -> Result<Sums<usize>, String> {
    let made = sums.iter().map(Sum::new).collect::<Result<Vec<_>, _>>()?;
    Ok(Sums::new(made.into_iter().zip(0..)))
}
