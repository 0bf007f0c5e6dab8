//! What each change adds to the statistics of panes, and to those since the start.
//!
//! The families of metrics declare which statistics there are; here stands what fills each of them.

use crate::changes::{Dwell, Given, Kind, Outcome, Session, Shown, Valued, Weighing};
use crate::counting::components::LIMB_BITS;
use crate::counting::custom::Customs;
use crate::counting::named_sums::NamedSums;
use crate::counting::off_policy::PolicySum;
use crate::counting::scores::Scores;
use crate::hash::is_anonymous;
use crate::panes::Panes;
use crate::spec::{Classes, Spec, Statistic};

/// Groups of users by hash, of which intervals are made.
pub const GROUPS: u32 = 16;

/// The group of a user: all that a user did is in one group, in every pane.
pub fn group_of(user: u64) -> u32 {
    (user >> 40) as u32 % GROUPS
}

/// Places of the statistics of traffic.
#[derive(Debug, Default)]
struct Traffic {
    conversions: u32,
    value_high: u32,
    value_low: u32,
    clicked: u32,
    converted: u32,
    feedback: u32,
    shown_at: u32,
    clicks_at: u32,
    deepest: u32,
}

/// Places of the statistics of engagement.
#[derive(Debug, Default)]
struct Engagement {
    clicks_of_users: u32,
    dwells: u32,
    dwell_ms: u32,
    dwell_class: u32,
    dwell_bucket: u32,
    sessions: u32,
    bounces: u32,
    session_views: u32,
    session_ms: u32,
    session_class: u32,
    session_bucket: u32,
}

/// Quantities by group of users, in the order of the wide statistic.
#[derive(Clone, Copy)]
enum Quantity {
    Impressions,
    Clicks,
    Conversions,
    Clicked,
    Converted,
    Value,
    DwellMs,
    Viewings,
    Sessions,
    Bounces,
    Views,
    SessionMs,
    ValueHigh,
    ClicksOfUsers,
}

/// The families that the settings ask for, and where their statistics stand.
#[derive(Debug)]
pub struct Statistics {
    traffic: Option<Traffic>,
    engagement: Option<Engagement>,
    by_group: Option<u32>,
    scores: Option<Scores>,
    off_policy: Option<NamedSums<PolicySum>>,
    custom: Option<Customs>,
    kinds: u32,
    classes: Classes,
}

/// Finds statistics by name.
pub(super) struct Places<'a>(pub(super) &'a [Statistic]);

impl Places<'_> {
    pub(super) fn at(&self, name: &str) -> Result<u32, String> {
        self.find(name).map(|found| found.at)
    }

    fn find(&self, name: &str) -> Result<&Statistic, String> {
        let found = self.0.iter().find(|statistic| statistic.name == name);
        found.ok_or_else(|| format!("the spec lacks statistic {name:?}"))
    }

    fn has(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    /// Where a wide statistic stands, if it is wanted.
    pub(super) fn wide(&self, name: &str, width: usize) -> Result<Option<u32>, String> {
        match self.find(name) {
            Err(_) => Ok(None),
            Ok(found) if found.width as usize == width => Ok(Some(found.at)),
            Ok(found) => Err(format!(
                "{name} is {} wide: {width} are filled",
                found.width
            )),
        }
    }
}

impl Statistics {
    /// An error where a statistic is missing, or nothing here fills it.
    pub fn new(spec: &Spec) -> Result<Self, String> {
        let places = Places(&spec.statistics);
        for statistic in &spec.statistics {
            if !spec.is_sum(&statistic.name) && !is_known(&statistic.name) {
                return Err(format!("nothing fills statistic {:?}", statistic.name));
            }
        }
        Ok(Self {
            traffic: places
                .has("shown_at")
                .then(|| traffic_of(&places))
                .transpose()?,
            engagement: places
                .has("dwells")
                .then(|| engagement_of(&places))
                .transpose()?,
            by_group: places
                .has("by_user_group")
                .then(|| places.at("by_user_group"))
                .transpose()?,
            scores: Scores::of(spec, &places)?,
            off_policy: NamedSums::of(&spec.off_policy, "off_policy_by_user_group", &places)?,
            custom: Customs::of(spec, &places)?,
            kinds: spec.feedback.kinds.len() as u32,
            classes: spec.classes.clone(),
        })
    }

    fn of_group(&self, quantity: Quantity, user: u64) -> Option<u32> {
        self.by_group
            .map(|first| first + quantity as u32 * GROUPS + group_of(user))
    }

    pub fn shown(&self, panes: &mut Panes, change: &Shown) {
        let (event_ms, segment) = (change.event_ms, change.segment);
        if let Some(at) = &self.traffic {
            let place = at.shown_at + change.position.min(at.deepest);
            panes.add(event_ms, segment, place, 1);
            panes.add_total(segment, place, 1);
        }
        if let Some(place) = self.of_group(Quantity::Impressions, change.user) {
            panes.add(event_ms, segment, place, 1);
        }
        if let Some(scores) = self.scores.as_ref().filter(|_| !change.score.is_nan()) {
            scores.shown(panes, change);
        }
    }

    pub fn given(&self, panes: &mut Panes, change: &Given) {
        let (event_ms, segment, sign) = (change.event_ms, change.segment, change.sign);
        let (high, low) = limbs(change.value_micros);
        if let Some(at) = &self.traffic {
            for (place, amount) in self.of_traffic(at, change, change.position) {
                panes.add(event_ms, segment, place, sign * amount);
            }
        }
        let of_user = i64::from(!is_anonymous(change.user));
        if let (Some(at), Kind::Configured(0), 1) = (&self.engagement, change.kind, of_user) {
            panes.add(event_ms, segment, at.clicks_of_users, sign);
        }
        let amounts: &[(Quantity, i64)] = match change.kind {
            Kind::Configured(0) => &[(Quantity::Clicks, 1), (Quantity::ClicksOfUsers, of_user)],
            Kind::Conversion => &[
                (Quantity::Conversions, 1),
                (Quantity::Value, low),
                (Quantity::ValueHigh, high),
            ],
            _ => &[],
        };
        for (quantity, amount) in amounts.iter().filter(|(_, amount)| *amount != 0) {
            if let Some(place) = self.of_group(*quantity, change.user) {
                panes.add(event_ms, segment, place, sign * amount);
            }
        }
    }

    /// Feedback is settled: it counts since the start, whose positions may still be filled in.
    pub fn settled(&self, panes: &mut Panes, change: &Given) {
        if let Some(at) = &self.traffic {
            for (place, amount) in self.of_traffic(at, change, 0) {
                panes.add_total(change.segment, place, amount);
            }
        }
    }

    fn of_traffic(
        &self,
        at: &Traffic,
        change: &Given,
        position: u32,
    ) -> impl Iterator<Item = (u32, i64)> + use<> {
        let (high, low) = limbs(change.value_micros);
        let class = at.clicks_at + position.min(at.deepest);
        let amounts = match change.kind {
            Kind::Conversion => [
                (at.conversions, 1),
                (at.value_high, high),
                (at.value_low, low),
            ],
            Kind::Configured(0) => [(at.feedback, 1), (class, 1), (0, 0)],
            Kind::Configured(place) => [(at.feedback + u32::from(place), 1), (0, 0), (0, 0)],
            Kind::Other => [(at.feedback + self.kinds, 1), (0, 0), (0, 0)],
            Kind::Gone => [(0, 0); 3],
        };
        amounts.into_iter().filter(|(_, amount)| *amount != 0)
    }

    pub fn outcome(&self, panes: &mut Panes, change: &Outcome) {
        let amounts = [
            (self.traffic.as_ref().map(|at| at.clicked), change.clicked),
            (
                self.traffic.as_ref().map(|at| at.converted),
                change.converted,
            ),
            (
                self.of_group(Quantity::Clicked, change.user),
                change.clicked,
            ),
            (
                self.of_group(Quantity::Converted, change.user),
                change.converted,
            ),
        ];
        for (place, amount) in amounts {
            if let (Some(place), true) = (place, amount != 0) {
                panes.add(change.event_ms, change.segment, place, amount);
            }
        }
        let is_scored = change.clicked != 0 && !change.score.is_nan();
        if let Some(scores) = self.scores.as_ref().filter(|_| is_scored) {
            scores.outcome(panes, change);
        }
    }

    pub fn weighed(&self, panes: &mut Panes, change: &Weighing) {
        if let Some(off_policy) = &self.off_policy {
            let place = (change.event_ms, change.segment, change.user);
            off_policy.add(panes, place, |sum| sum.amount(change));
        }
    }

    pub fn valued(&self, panes: &mut Panes, change: &Valued) {
        if let Some(custom) = &self.custom {
            custom.add(panes, change);
        }
    }

    pub fn dwell(&self, panes: &mut Panes, change: &Dwell) {
        let (event_ms, segment, sign) = (change.event_ms, change.segment, change.sign);
        if let Some(at) = &self.engagement {
            let class = at.dwell_class + class_of(&self.classes.dwell_ms, change.dwell_ms);
            let bucket = class_of(&self.classes.bucket_upper_ms, change.dwell_ms);
            panes.add(event_ms, segment, at.dwells, sign);
            panes.add(event_ms, segment, at.dwell_ms, sign * change.dwell_ms);
            panes.add(event_ms, segment, class, sign);
            panes.add(event_ms, segment, at.dwell_bucket + bucket, sign);
        }
        if let Some(place) = self.of_group(Quantity::DwellMs, change.user) {
            panes.add(event_ms, segment, place, sign * change.dwell_ms);
        }
        if let Some(place) = self.of_group(Quantity::Viewings, change.user) {
            panes.add(event_ms, segment, place, sign);
        }
    }

    /// A viewing that no report can join any more.
    pub fn settled_dwell(&self, panes: &mut Panes, change: &Dwell) {
        if let Some(at) = &self.engagement {
            let class = at.dwell_class + class_of(&self.classes.dwell_ms, change.dwell_ms);
            panes.add_total(change.segment, class, 1);
            panes.add_total(change.segment, at.dwell_ms, change.dwell_ms);
        }
    }

    pub fn session(&self, panes: &mut Panes, change: &Session) {
        let (event_ms, segment, sign) = (change.event_ms, change.segment, change.sign);
        let is_bounce = i64::from(change.views == 1);
        if let Some(at) = &self.engagement {
            let longest = self.classes.bucket_upper_ms.len() as u32 - 1;
            let bucket = class_of(&self.classes.bucket_upper_ms, change.length_ms).min(longest);
            panes.add(event_ms, segment, at.sessions, sign);
            panes.add(event_ms, segment, at.bounces, sign * is_bounce);
            panes.add(event_ms, segment, at.session_views, sign * change.views);
            panes.add(event_ms, segment, at.session_ms, sign * change.length_ms);
            panes.add(event_ms, segment, at.session_bucket + bucket, sign);
        }
        for (quantity, amount) in [
            (Quantity::Sessions, 1),
            (Quantity::Bounces, is_bounce),
            (Quantity::Views, change.views),
            (Quantity::SessionMs, change.length_ms),
        ] {
            if let Some(place) = self.of_group(quantity, change.user) {
                panes.add(event_ms, segment, place, sign * amount);
            }
        }
    }

    /// A session that no event can join any more.
    pub fn settled_session(&self, panes: &mut Panes, change: &Session) {
        if let Some(at) = &self.engagement {
            let class = at.session_class + class_of(&self.classes.session_ms, change.length_ms);
            panes.add_total(change.segment, class, 1);
            panes.add_total(change.segment, at.session_ms, change.length_ms);
        }
    }
}

/// Whether something fills a statistic; those of slates are filled in `slate_values`.
fn is_known(name: &str) -> bool {
    const KNOWN: [&str; 24] = [
        "conversions",
        "value_high",
        "value_low",
        "clicked",
        "converted",
        "shown_at",
        "clicks_at",
        "clicks_of_users",
        "dwells",
        "dwell_ms",
        "dwell_bucket",
        "sessions",
        "bounces",
        "session_views",
        "session_ms",
        "session_bucket",
        "by_user_group",
        "ranking",
        "score_bins",
        "score_curve",
        "scores_by_user_group",
        "off_policy_by_user_group",
        "lists_by_user_group",
        "custom_by_user_group",
    ];
    let numbered = ["feedback_", "dwell_class_", "session_class_"];
    KNOWN.contains(&name)
        || name == "scoring"
        || numbered.iter().any(|prefix| name.starts_with(prefix))
}

fn traffic_of(places: &Places<'_>) -> Result<Traffic, String> {
    Ok(Traffic {
        conversions: places.at("conversions")?,
        value_high: places.at("value_high")?,
        value_low: places.at("value_low")?,
        clicked: places.at("clicked")?,
        converted: places.at("converted")?,
        feedback: places.at("feedback_0")?,
        shown_at: places.at("shown_at")?,
        clicks_at: places.at("clicks_at")?,
        deepest: places.find("shown_at")?.width - 1,
    })
}

fn engagement_of(places: &Places<'_>) -> Result<Engagement, String> {
    Ok(Engagement {
        clicks_of_users: places.at("clicks_of_users")?,
        dwells: places.at("dwells")?,
        dwell_ms: places.at("dwell_ms")?,
        dwell_class: places.at("dwell_class_0")?,
        dwell_bucket: places.at("dwell_bucket")?,
        sessions: places.at("sessions")?,
        bounces: places.at("bounces")?,
        session_views: places.at("session_views")?,
        session_ms: places.at("session_ms")?,
        session_class: places.at("session_class_0")?,
        session_bucket: places.at("session_bucket")?,
    })
}

/// High and low limb; the low one is not below 0.
pub(super) fn limbs(micros: i64) -> (i64, i64) {
    (micros >> LIMB_BITS, micros & ((1 << LIMB_BITS) - 1))
}

/// The first class whose upper bound is not below the value.
fn class_of(upper: &[i64], value: i64) -> u32 {
    upper.partition_point(|bound| *bound < value) as u32
}
