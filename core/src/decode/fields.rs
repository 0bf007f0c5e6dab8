//! The fields of events. Each is declared once, in the table below: its name, the kinds of events that
//! have it, what it may hold, and the reason for which a record with a wrong value is refused. The
//! comment above it is what the page on events says of it. Python has the table from here.

use std::collections::HashMap;

use crate::kinds::EventKind::{Clicks, Conversions, Exposures, Impressions, Sessions};
use crate::kinds::{Action, EventKind, REFUND};
use Holds::*;
use Of::{Event, Item};

/// What is declared of a field.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// Its name; of fields that settings name, the setting.
    pub name: &'static str,
    pub of: Of,
    pub holds: Holds,
    /// Why a record with a wrong value in it is refused: mostly its name.
    pub reason: &'static str,
    /// What it is, for docs.
    pub about: &'static str,
}

/// Which events have a field.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    Event(&'static [EventKind]),
    /// Each item or line of them: at the top of an event of one, else in the elements of `items`.
    Item(&'static [EventKind]),
}

/// What a field may hold.
#[derive(Clone, Copy, Debug)]
pub enum Holds {
    /// No value is wrong.
    Anything,
    /// A text or an integer; an empty text is missing.
    Id,
    Ids,
    ItemList,
    Time,
    /// One end of a span of time.
    Span,
    KindOfEvent,
    OneAction,
    Text,
    Integer(Limit, Limit),
    Number(Limit, Limit),
    /// A number above one, and at most another.
    Above(f64, Limit),
}

/// A bound of a number, inclusive: so many times a bound that Python owns; "": times 1.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub times: f64,
    pub name: &'static str,
}

/// Makes `Field` of rows, and what they declare: `Field = name, who has it, what it may hold;`, with a
/// reason behind where that is not the name.
macro_rules! fields {
    ($($(#[doc = $about:literal])+
        $field:ident $(($place:ident))? = $name:literal, $of:expr, $holds:expr $(, $reason:literal)?;
    )+) => {
        /// A field; of those that settings name, with the place in the settings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Field {
            $($(#[doc = $about])+ $field $(($place))?,)+
        }

        /// A field without its place.
        enum Ordinal { $($field),+ }

        impl Field {
            /// All of them, of those that settings name the first.
            pub const ALL: &[Self] = &[$(Self::$field $((0 as $place))?),+];

            const fn number(self) -> usize {
                match self { $(Self::$field { .. } => Ordinal::$field as usize),+ }
            }
        }

        /// By number.
        const DECLARED: &[Declared] = &[$(Declared {
            name: $name,
            of: $of,
            holds: $holds,
            reason: last(&[$name $(, $reason)?]),
            about: concat!($($about),+),
        }),+];
    };
}

const ALL: &[EventKind] = &EventKind::ALL;
const COUNTED: &[EventKind] = &[Impressions, Clicks, Conversions, Sessions];
const SHOWN_OR_CLICKED: &[EventKind] = &[Impressions, Clicks];
const WITH_DWELL: &[EventKind] = &[Clicks, Sessions];
const WITH_ITEMS: &[EventKind] = &[Impressions, Clicks, Conversions];

fields! {
    /// When it happened; required. See [times](#times).
    Ts = "ts", Event(ALL), Time;
    /// The user. See [ids](#ids); without it and `join_id` the event is [anonymous](#anonymous-events).
    UserId = "user_id", Event(ALL), Id;
    /// An id that does not change at [login](#login). It says who the person is in place of `user_id`,
    /// in joins and in every metric.
    JoinId = "join_id", Event(ALL), Id;
    /// A second event with the same id and topic within `time.dedup_horizon` is a duplicate; of
    /// conversions the id is that of the order, and an event with another `item_id` a line of it.
    EventId = "event_id", Event(ALL), Id;
    /// The request. Together with the person it identifies the [slate](ranking.md#a-slate).
    RequestId = "request_id", Event(COUNTED), Id;
    /// The kind of the event; required in files.
    Type = "type", Event(ALL), KindOfEvent;
    /// The visit; without it visits are told apart [by person and gap](engagement.md#sessions).
    SessionId = "session_id", Event(&[Sessions]), Id;
    /// What happened; required. `view` is of a page, `dwell` of an item.
    Action = "action", Event(&[Sessions]), OneAction;
    /// The `key` of the experiment, by default its name; required. Experiments that settings do not
    /// name are ignored.
    Experiment = "experiment", Event(&[Exposures]), Anything;
    /// The arm that the person is in; required.
    Arm = "arm", Event(&[Exposures]), Anything;
    /// The item that is shown, clicked or bought; required without `impression_id`. In sessions, only
    /// for `dwell`.
    ItemId = "item_id", Item(COUNTED), Id;
    /// The shown item by an id of its own: feedback joins [by it alone](#joins-by-impression).
    ImpressionId = "impression_id", Item(WITH_ITEMS), Id;
    /// The position of the item, from 1; from 0 with `events.positions_from = 0`.
    Position = "position", Item(SHOWN_OR_CLICKED), Integer(at(1.0), most("MAX_POSITION"));
    /// The score that the model predicted, if possible a probability.
    Score = "score", Item(&[Impressions]), Number(least("MAX_SCORE"), most("MAX_SCORE"));
    /// The probability with which the policy that ran showed the item here.
    Propensity = "propensity", Item(&[Impressions]), Above(0.0, at(1.0));
    /// The clicks that a model expects of the item.
    RewardEstimate = "reward_estimate", Item(&[Impressions]), Number(at(0.0), at(1.0));
    /// The category of the item; see [diversity](diversity.md).
    ItemCategory = "item_category", Item(&[Impressions]), Id;
    /// Several items in one event: a slate in the order shown, or [lines](#lines). If no item of a slate
    /// has a `position`, positions are 1, 2 and so on; `[]` is a slate without results.
    Items = "items", Event(WITH_ITEMS), ItemList;
    /// The items that brute force would have shown, best first ([why](ranking.md#tests-of-retrieval)).
    Reference = "reference", Event(&[Impressions]), Ids;
    /// The held-out item among sampled ones.
    HeldOut = "held_out", Event(&[Impressions]), Id;
    /// The kind of feedback; `click` if missing.
    Feedback = "feedback", Event(&[Clicks]), Text;
    /// The time spent on the item; in sessions, only for `dwell`.
    DwellMs = "dwell_ms", Event(WITH_DWELL), Integer(at(0.0), most("MAX_DWELL_MS")), "dwell";
    /// In place of `dwell_ms`.
    StartTs = "start_ts", Event(WITH_DWELL), Span, "dwell";
    /// In place of `dwell_ms`.
    EndTs = "end_ts", Event(WITH_DWELL), Span, "dwell";
    /// How much the user likes the item, to [compare](ranking.md#scores) with the score.
    Rating = "rating", Item(&[Clicks]), Number(least("MAX_RATING"), most("MAX_RATING"));
    /// The value of the conversion, in currency units; below 0 it is a [refund](#refunds).
    Value = "value", Item(&[Conversions]), Number(least("MAX_VALUE"), most("MAX_VALUE"));
    /// See [dimensions](#dimensions); by default `variant` and `surface`.
    Dimension(u8) = "dimensions.name", Event(ALL), Anything;
    /// The arms of [experiments](experiments.md#arms) that the user is in.
    Arms(u8) = "experiments.arm", Event(ALL), Anything;
    /// See [off-policy](off-policy.md).
    Target(u8) = "policies.propensity", Item(&[Impressions]), Number(at(0.0), at(1.0)), "propensity";
    /// See [off-policy](off-policy.md).
    Estimate(u8) = "policies.estimate", Item(&[Impressions]), Number(at(0.0), at(1.0)), "reward_estimate";
    /// See [ratios](how-to/add-a-ratio.md); in events of the kind that the ratio names.
    Amount(u8) = "ratios.field", Item(COUNTED), Number(least("MAX_AMOUNT"), most("MAX_AMOUNT")), "ratios";
    /// See [ratios](how-to/add-a-ratio.md).
    Asked(u8) = "ratios.where", Item(COUNTED), Anything;
}

const fn at(number: f64) -> Limit {
    Limit {
        times: number,
        name: "",
    }
}

const fn most(name: &'static str) -> Limit {
    Limit { times: 1.0, name }
}

const fn least(name: &'static str) -> Limit {
    Limit { times: -1.0, name }
}

const fn last(names: &[&'static str]) -> &'static str {
    names[names.len() - 1]
}

impl Field {
    /// Those of events of a kind that settings do not name.
    pub fn of_event(kind: EventKind) -> impl Iterator<Item = Self> {
        let own = Self::ALL
            .iter()
            .filter(|field| !field.is_named_by_settings());
        own.copied().filter(move |field| field.is_of(kind))
    }

    /// Those of them that an element of `items` has.
    pub fn of_element(kind: EventKind) -> impl Iterator<Item = Self> {
        Self::of_event(kind).filter(move |field| field.declared().of.is_of_element(kind))
    }

    pub fn declared(self) -> &'static Declared {
        &DECLARED[self.number()]
    }

    fn is_of(self, kind: EventKind) -> bool {
        self.declared().of.kinds().contains(&kind)
    }

    fn is_named_by_settings(self) -> bool {
        matches!(
            self,
            Self::Dimension(_)
                | Self::Arms(_)
                | Self::Target(_)
                | Self::Estimate(_)
                | Self::Amount(_)
                | Self::Asked(_)
        )
    }

    /// Whether its values are numbers.
    pub fn is_number(self) -> bool {
        matches!(self.declared().holds, Integer(..) | Number(..) | Above(..))
    }

    /// Our name; "" for fields whose names are settings.
    pub fn name(self) -> &'static str {
        match self.is_named_by_settings() {
            true => "",
            false => self.declared().name,
        }
    }
}

impl Of {
    /// Whether the elements of `items` of a kind of events have the field.
    pub fn is_of_element(self, kind: EventKind) -> bool {
        matches!(self, Item(kinds) if kinds.contains(&kind)) && Field::Items.is_of(kind)
    }

    pub fn kinds(self) -> &'static [EventKind] {
        match self {
            Event(kinds) | Item(kinds) => kinds,
        }
    }
}

impl Holds {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Anything => "anything",
            Id => "id",
            Ids => "ids",
            ItemList => "items",
            Time => "time",
            Span => "span",
            KindOfEvent => "kind",
            OneAction => "action",
            Text => "text",
            Integer(..) => "integer",
            Number(..) | Above(..) => "number",
        }
    }

    /// The least and the largest number.
    pub fn range(self) -> Option<(Limit, Limit)> {
        match self {
            Integer(low, high) | Number(low, high) => Some((low, high)),
            Above(low, high) => Some((at(low.next_up()), high)),
            _ => None,
        }
    }

    /// In words; a bound in braces, as Python fills it in.
    pub fn expected(self) -> String {
        let names = |names: &[&str]| format!("one of {}", names.join(", "));
        match self {
            Anything => "any value".to_owned(),
            Id => "an integer, or a text of 1 to {MAX_ID_BYTES} bytes".to_owned(),
            Ids => "1 to {MAX_ITEMS} item ids".to_owned(),
            ItemList => "up to {MAX_ITEMS} ids (lines: from 1), or objects with item_id, and no \
                item_id beside them"
                .to_owned(),
            Time => "epoch milliseconds from 0 to {MAX_EVENT_MS}, or RFC 3339 text".to_owned(),
            Span => "start_ts and end_ts, both like ts, at most a day apart".to_owned(),
            KindOfEvent => {
                let kinds = EventKind::ALL.map(EventKind::event_type);
                format!("{}, {REFUND}", names(&kinds))
            }
            OneAction => names(&Action::ALL.map(Action::name)),
            Text => "a text of 1 to {MAX_LABEL_CHARS} characters".to_owned(),
            Integer(low, high) => {
                format!("an integer from {} to {}", low.words(""), high.words(""))
            }
            Number(low, high) => {
                format!("a number from {} to {}", low.words(":g"), high.words(":g"))
            }
            Above(low, high) => format!("a number above {low} and at most {}", high.words(":g")),
        }
    }
}

impl Limit {
    fn words(self, format: &str) -> String {
        let sign = if self.times < 0.0 { "-" } else { "" };
        match self.name {
            "" => self.times.to_string(),
            name => format!("{sign}{{{name}{format}}}"),
        }
    }

    fn value(self, values: &HashMap<String, f64>) -> Result<f64, String> {
        match self.name {
            "" => Ok(self.times),
            name => values
                .get(name)
                .map(|value| value * self.times)
                .ok_or_else(|| format!("no bound {name:?}")),
        }
    }
}

/// Names of the bounds of all fields.
pub fn bounds() -> impl Iterator<Item = &'static str> {
    let ranges = DECLARED.iter().filter_map(|field| field.holds.range());
    let names = ranges.flat_map(|(low, high)| [low.name, high.name]);
    names.filter(|name| !name.is_empty())
}

/// Between what numbers may be, by field.
#[derive(Clone, Copy, Debug)]
pub struct Ranges([(f64, f64); DECLARED.len()]);

impl Ranges {
    /// `values`: those of the bounds, by name.
    pub fn new(values: &HashMap<String, f64>) -> Result<Self, String> {
        let mut ranges = [(0.0, 0.0); DECLARED.len()];
        for (range, field) in ranges.iter_mut().zip(DECLARED) {
            if let Some((low, high)) = field.holds.range() {
                *range = (low.value(values)?, high.value(values)?);
            }
        }
        Ok(Self(ranges))
    }

    /// The least and the largest number of a field.
    #[inline]
    pub fn of(&self, field: Field) -> (f64, f64) {
        self.0[field.number()]
    }

    /// Whether a field may hold a number.
    #[inline]
    pub fn contain(&self, field: Field, number: f64) -> bool {
        let (low, high) = self.of(field);
        low <= number && number <= high
    }
}
