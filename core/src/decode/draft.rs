//! An event while its record is read.

use super::arms::{ArmTexts, ArmValue};
use super::event::{Body, DimensionTexts, Event, Item, Line, worth_of};
use super::fields::Field;
use super::reading::{ElementKind, Place, Reading};
use super::reason::Reason;
use crate::changes::Amounts;
use crate::hash::NONE;
use crate::json::{Reader, Text};
use crate::kinds::{Action, EventKind, FeedbackKind};
use crate::own_sums::Values;

mod form;
mod mapped;
mod metric_fields;
mod scalars;
pub(super) mod traced;
mod values;

pub(super) use form::Form;

pub use mapped::NativeEvent;
pub(super) use metric_fields::OwnNumbers;
use metric_fields::{Asked, NumberFrom, OwnSaid, OwnValues, PolicyFields};
use scalars::{Moment, read_integer, read_number, read_position};

/// Of texts with escapes, whose memory is kept from one record to the next.
const KEPT_BYTES: usize = 1 << 16;

/// An event as far as it is read.
#[derive(Debug, Default)]
pub(super) struct Draft {
    head: Head,
    dimensions: Vec<Text>,
    items: Vec<Item>,
    lines: Vec<Line>,
    /// What each line says that it is worth.
    values: Vec<Option<f64>>,
    /// Where there are policies.
    policies: Option<Box<PolicyFields>>,
    /// Where there are own sums.
    own: Option<Box<OwnValues>>,
    /// What it says of arms.
    arms: Vec<ArmValue>,
    /// The items that brute force gives, best first.
    reference: Vec<u64>,
    /// Texts of the record that have escapes.
    pub unescaped: String,
    pub place: Place,
    /// What the record is, as far as that is known.
    pub kind: Option<EventKind>,
}

/// The fields that have one value: the last of each name. `NONE` and None are null or missing.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    ts: Option<Moment>,
    user: u64,
    user_text: Text,
    join: u64,
    join_text: Text,
    /// The id that was read last.
    id: Text,
    event_id: u64,
    request: u64,
    /// The item that is not in a list.
    shown: Shown,
    session: u64,
    held_out: u64,
    dwell_ms: Option<i64>,
    start: Option<Moment>,
    end: Option<Moment>,
    feedback: Option<Text>,
    action: Option<Action>,
    has_list: bool,
    /// Where the list stands.
    list_at: u32,
    has_reference: bool,
    /// Values of dimensions that were cut.
    cut: u32,
    feedback_kind: Option<FeedbackKind>,
    /// Whether a conversion gives back what it says.
    is_refund: bool,
    experiment: Text,
    arm: Text,
}

/// Fields that an item or a line has wherever it stands.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    item: u64,
    impression: u64,
    position: u32,
    /// As `Amounts` keeps it.
    rating: i32,
    score: Option<f64>,
    category: u64,
    value: Option<f64>,
}

impl Shown {
    /// Whether it says which item, or which impression.
    fn is_of_something(self) -> bool {
        (self.item, self.impression) != (NONE, NONE)
    }

    fn item(self) -> Item {
        let score = self.score.unwrap_or(f64::NAN);
        Item {
            item: self.line().of(),
            impression: self.impression,
            position: self.position,
            score,
            category: self.category,
        }
    }

    fn line(self) -> Line {
        Line {
            item: self.item,
            impression: self.impression,
            position: self.position,
            amounts: Amounts {
                value_micros: (self.value.unwrap_or(0.0) * 1e6).round_ties_even() as i64,
                orders: 0,
                dwell_ms: None, // the event's
                rating: self.rating,
            },
        }
    }
}

impl Draft {
    pub fn new(dimensions: usize, has_policies: bool, own: &OwnNumbers) -> Self {
        Self {
            dimensions: vec![Text::EMPTY; dimensions],
            policies: has_policies.then(Box::default),
            own: OwnValues::new(own),
            ..Self::default()
        }
    }

    /// Forgets all but the memory.
    pub fn clear(&mut self) {
        self.head = Head::default();
        self.dimensions.fill(Text::EMPTY);
        self.arms.clear();
        self.clear_list();
        if let Some(policies) = &mut self.policies {
            policies.clear();
        }
        if let Some(own) = &mut self.own {
            own.clear();
        }
        self.unescaped.clear();
        self.unescaped.shrink_to(KEPT_BYTES);
        (self.place, self.kind) = (Place::default(), None);
    }

    /// Who it is of, as far as that is read: the id of joins, else the user.
    pub fn key<'a>(&'a self, record: &'a str) -> &'a str {
        let text = match self.head.join {
            NONE => self.head.user_text,
            _ => self.head.join_text,
        };
        text.of(record, &self.unescaped)
    }

    /// How many items an impression shows.
    pub fn shown_items(&self) -> usize {
        self.items.len()
    }

    /// The event that was read, once it is checked; `record` is what it was read from.
    pub fn event<'a>(&'a self, element: ElementKind, record: &'a str) -> Event<'a> {
        let body = match element.kind {
            EventKind::Impressions => Body::Impressions {
                items: &self.items,
                is_list: self.head.has_list,
                weights: self.policies.as_ref().map_or(&[], |x| &x.weights),
                reference: match self.head.has_reference {
                    true => &self.reference,
                    false => &[],
                },
                held_out: self.head.held_out,
            },
            EventKind::Clicks => Body::Click {
                lines: &self.lines,
                kind: self.head.feedback_kind.unwrap_or(FeedbackKind::Other),
            },
            EventKind::Conversions => Body::Conversion {
                lines: &self.lines,
                is_list: self.head.has_list,
            },
            EventKind::Sessions => Body::Session {
                session: self.head.session,
                action: self.head.action.unwrap_or(Action::View),
                item: self.head.shown.item,
                dwell_ms: self.head.dwell_ms,
            },
            EventKind::Exposures => Body::Exposure {
                experiment: self.head.experiment.of(record, &self.unescaped),
                arm: self.head.arm.of(record, &self.unescaped),
            },
        };
        Event {
            event_ms: self.head.ts.map_or(0, |ts| ts.ms),
            user: self.head.user,
            user_id: self.head.user_text.of(record, &self.unescaped),
            join: self.head.join,
            join_id: self.head.join_text.of(record, &self.unescaped),
            values: self.own.as_ref().map_or(&[], |own| &own.values),
            event_id: self.head.event_id,
            request: self.head.request,
            dimensions: DimensionTexts {
                texts: &self.dimensions,
                record,
                unescaped: &self.unescaped,
            },
            arms: ArmTexts {
                values: &self.arms,
                record,
            },
            cut: self.head.cut,
            shared: element.shared,
            body,
        }
    }

    /// Reads the value of a field.
    #[inline]
    pub fn read(
        &mut self,
        field: Field,
        reader: &mut Reader,
        reading: &Reading,
    ) -> Result<(), Reason> {
        self.place = Place::value(field, reader.at());
        let reason = Reason::Of(field);
        match field {
            Field::Ts => self.head.ts = Some(self.read_moment(reader, reading, reason)?),
            Field::UserId => {
                self.head.id = Text::EMPTY;
                self.head.user = self.read_optional_id(reader, reading, reason)?;
                self.head.user_text = self.head.id;
            }
            Field::JoinId => {
                self.head.id = Text::EMPTY;
                self.head.join = self.read_optional_id(reader, reading, reason)?;
                self.head.join_text = self.head.id;
            }
            Field::EventId => {
                self.head.event_id = self.read_optional_id(reader, reading, reason)?
            }
            Field::RequestId => {
                self.head.request = self.read_optional_id(reader, reading, reason)?
            }
            Field::Type => self.read_type(reader, reading)?,
            Field::ItemId
            | Field::ImpressionId
            | Field::Position
            | Field::Score
            | Field::Rating
            | Field::Propensity
            | Field::RewardEstimate
            | Field::ItemCategory
            | Field::Value
            | Field::Target(_)
            | Field::Estimate(_)
            | Field::Amount(_)
            | Field::Asked(_) => {
                let mut shown = self.head.shown;
                self.read_shown(field, false, reader, reading, &mut shown)?;
                self.head.shown = shown;
            }
            Field::Items => self.read_items(reader, reading)?,
            Field::Reference => self.read_reference(reader, reading)?,
            Field::HeldOut => {
                self.head.held_out = self.read_optional_id(reader, reading, reason)?
            }
            Field::Feedback => self.head.feedback = self.read_feedback(reader, reading)?,
            Field::DwellMs => self.head.dwell_ms = read_integer(field, reader, reading)?,
            Field::StartTs => {
                self.head.start = self.read_optional_moment(reader, reading, reason)?
            }
            Field::EndTs => self.head.end = self.read_optional_moment(reader, reading, reason)?,
            Field::SessionId => {
                self.head.session = self.read_optional_id(reader, reading, reason)?
            }
            Field::Action => self.head.action = self.read_action(reader, reading)?,
            Field::Dimension(i) => {
                let value = self.read_label(reader, reading)?;
                if let Some(held) = self.dimensions.get_mut(usize::from(i)) {
                    *held = value;
                }
            }
            Field::Experiment => self.head.experiment = self.read_label(reader, reading)?,
            Field::Arm => self.head.arm = self.read_label(reader, reading)?,
            Field::Arms(i) => {
                reading
                    .rules
                    .arms
                    .read(i, reader, &reading.rules.key, &mut self.arms)?
            }
        }
        Ok(())
    }

    /// Reads a field that an item has wherever it stands; in a list, all are wrong as `items`.
    fn read_shown(
        &mut self,
        field: Field,
        is_element: bool,
        reader: &mut Reader,
        reading: &Reading,
        shown: &mut Shown,
    ) -> Result<(), Reason> {
        self.place = Place {
            element: self.place.element,
            ..Place::value(field, reader.at())
        };
        let reason = Reason::Of(if is_element { Field::Items } else { field });
        match field {
            Field::ItemId if is_element => shown.item = self.read_id(reader, reading, reason)?,
            Field::ItemId => shown.item = self.read_optional_id(reader, reading, reason)?,
            Field::ImpressionId => {
                shown.impression = self.read_optional_id(reader, reading, reason)?;
            }
            Field::ItemCategory => {
                shown.category = self.read_optional_id(reader, reading, reason)?;
            }
            Field::Position => shown.position = read_position(reader, reading, reason)?,
            Field::Asked(i) => {
                let text = self.read_label(reader, reading)?;
                let value = text.of(reading.record, &self.unescaped);
                if let Some(own) = &mut self.own {
                    own.ask(usize::from(i), is_element, value, &reading.rules.own);
                }
            }
            _ => {
                let number = read_number(field, reader, reading, reason)?;
                self.set_number(field, is_element, number, shown);
            }
        }
        Ok(())
    }

    /// Takes a number that an item has.
    #[inline]
    fn set_number(
        &mut self,
        field: Field,
        is_element: bool,
        number: Option<f64>,
        shown: &mut Shown,
    ) {
        match field {
            Field::Value => shown.value = number,
            Field::Score => shown.score = number,
            Field::Rating => shown.rating = Amounts::rating_code(number),
            Field::Amount(i) => {
                if let Some(own) = &mut self.own {
                    own.set(usize::from(i), is_element, number);
                }
            }
            Field::Propensity | Field::RewardEstimate | Field::Target(_) | Field::Estimate(_) => {
                if let Some(policies) = &mut self.policies {
                    policies.set(field, is_element, number);
                }
            }
            _ => unreachable!("{field:?} is no number of items"),
        }
    }

    // The rules across the fields of an event: what a field's type cannot say

    /// Checks what was read, and derives what follows from it.
    pub fn check(&mut self, reading: &Reading) -> Result<(), Reason> {
        let limits = &reading.rules.limits;
        let ts = self.required(Field::Ts, self.head.ts)?;
        let is_in_seconds =
            |at: Moment| at.is_number && (limits.min_seconds..=limits.max_seconds).contains(&at.ms);
        let is_right =
            |at: Moment| !is_in_seconds(at) && (0..=limits.max_event_ms).contains(&at.ms);
        if !is_right(ts) {
            return self.refuse_moment(Field::Ts, ts);
        }
        if reading.kind == EventKind::Exposures {
            return self.check_exposure(reading);
        }
        self.check_items(reading)?;
        if reading.kind == EventKind::Clicks && self.head.feedback_kind.is_none() {
            self.head.feedback_kind = Some(self.kind(reading));
        }
        if reading.kind == EventKind::Sessions {
            let is_known = self.head.session != NONE || self.is_of_somebody();
            self.required(Field::SessionId, is_known.then_some(()))?;
            let action = self.required(Field::Action, self.head.action)?;
            if action == Action::Dwell && self.head.shown.item == NONE {
                return self.refuse(Field::ItemId);
            }
        }
        match (self.head.start, self.head.end) {
            (None, None) => {}
            (Some(start), Some(end)) if is_right(start) && is_right(end) => {
                let spent_ms = end.ms - start.ms;
                if !reading
                    .rules
                    .ranges
                    .contain(Field::DwellMs, spent_ms as f64)
                {
                    return self.refuse_moment(Field::EndTs, end);
                }
                self.head.dwell_ms = self.head.dwell_ms.or(Some(spent_ms));
            }
            (None, _) => return self.refuse(Field::StartTs),
            (_, None) => return self.refuse(Field::EndTs),
            (Some(start), Some(_)) if !is_right(start) => {
                return self.refuse_moment(Field::StartTs, start);
            }
            (_, Some(end)) => return self.refuse_moment(Field::EndTs, end),
        }
        if let (EventKind::Clicks, Some(line)) = (reading.kind, self.lines.first_mut()) {
            line.amounts.dwell_ms = self.head.dwell_ms; // of the record, not of each line
        }
        self.check_dimensions(reading);
        self.fill_own(reading);
        Ok(())
    }

    /// Whether it says who the person is.
    fn is_of_somebody(&self) -> bool {
        self.head.user != NONE || self.head.join != NONE
    }

    /// It says who is in which arm of which experiment.
    fn check_exposure(&mut self, reading: &Reading) -> Result<(), Reason> {
        self.required(Field::UserId, self.is_of_somebody().then_some(()))?;
        let texts = [
            (Field::Experiment, self.head.experiment),
            (Field::Arm, self.head.arm),
        ];
        for (field, text) in texts {
            let is_empty = text.of(reading.record, &self.unescaped).is_empty();
            self.required(field, (!is_empty).then_some(()))?;
        }
        self.check_dimensions(reading);
        Ok(())
    }

    fn refuse<T>(&mut self, field: Field) -> Result<T, Reason> {
        self.place = Place::missing(field);
        Err(Reason::Of(field))
    }

    fn refuse_moment<T>(&mut self, field: Field, moment: Moment) -> Result<T, Reason> {
        self.place = Place::value(field, moment.at as usize);
        Err(Reason::Of(field))
    }

    fn required<T>(&mut self, field: Field, value: Option<T>) -> Result<T, Reason> {
        match value {
            Some(value) => Ok(value),
            None => self.refuse(field),
        }
    }

    /// There is one item, or a list; sessions need none.
    fn check_items(&mut self, reading: &Reading) -> Result<(), Reason> {
        let kind = reading.kind;
        if kind == EventKind::Sessions {
            return Ok(());
        }
        match (self.head.has_list, self.head.shown.is_of_something()) {
            (false, false) if !self.head.is_refund => return self.refuse(Field::ItemId),
            (true, false) => {}
            (false, _) => self.push_shown(kind, self.head.shown),
            (true, true) => {
                self.place = Place::value(Field::Items, self.head.list_at as usize);
                return Err(Reason::Of(Field::Items));
            }
        }
        if kind == EventKind::Impressions {
            self.finish_items();
            let is_named = self.items.iter().any(|item| item.impression != NONE);
            if is_named && (self.head.has_reference || self.head.held_out != NONE) {
                return self.refuse(Field::ImpressionId); // members are compared by their items
            }
            if let Some(policies) = &mut self.policies {
                policies.weigh(&reading.rules.policies, &self.items, self.head.has_list);
            }
        } else if self.head.has_list {
            self.fill_first_line();
        }
        if kind == EventKind::Conversions {
            self.count_orders();
        }
        Ok(())
    }

    /// A conversion is an order; one whose lines are together below 0 gives money back. So does a
    /// refund that lists lines; one without a list takes its order back.
    fn count_orders(&mut self) {
        let orders = match (self.head.is_refund, self.head.has_list) {
            (true, false) => -1,
            (true, true) => 0,
            (false, _) => i16::from(worth_of(&self.lines) >= 0),
        };
        for (line, value) in self.lines.iter_mut().zip(&mut self.values) {
            line.amounts.orders = orders;
            if self.head.is_refund {
                line.amounts.value_micros = -line.amounts.value_micros.abs();
                *value = value.map(f64::abs); // as its order says it
            }
        }
    }

    /// Value and position beside lines that say nothing of them count with the first line.
    fn fill_first_line(&mut self) {
        let of_event = self.head.shown.line();
        let has_value = self.values.iter().any(Option::is_some);
        let has_position = self.lines.iter().any(|line| line.position != 0);
        if let (Some(line), Some(value)) = (self.lines.first_mut(), self.values.first_mut()) {
            if !has_value {
                *value = self.head.shown.value;
                line.amounts.value_micros = of_event.amounts.value_micros;
            }
            if !has_position {
                line.position = of_event.position;
            }
        }
    }

    /// The kind of a feedback event.
    fn kind(&self, reading: &Reading) -> FeedbackKind {
        let Some(feedback) = self.head.feedback else {
            return FeedbackKind::Configured(0);
        };
        let text = feedback.of(reading.record, &self.unescaped);
        let mut kinds = (0..).zip(&reading.rules.feedback);
        kinds
            .find(|(_, kind)| *kind == text)
            .map_or(FeedbackKind::Other, |(i, _)| FeedbackKind::Configured(i))
    }

    /// No value of a dimension is wrong: a long one is cut, and one that is called like our own
    /// labels gets a name apart.
    fn check_dimensions(&mut self, reading: &Reading) {
        let most = reading.rules.limits.max_label_chars;
        if let Some(text) = reading
            .rules
            .user_place
            .and_then(|at| self.dimensions.get_mut(at))
        {
            *text = self.head.user_text;
        }
        for text in &mut self.dimensions {
            if *text == Text::EMPTY {
                continue;
            }
            let value = text.of(reading.record, &self.unescaped);
            if value.len() > most
                && let Some((end, _)) = value.char_indices().nth(most)
            {
                *text = text.cut(end);
                self.head.cut += 1;
            }
            match text.of(reading.record, &self.unescaped) {
                "unknown" => *text = Text::EMPTY,
                "all" => *text = Text::push(&mut self.unescaped, "all (value)"),
                "other" => *text = Text::push(&mut self.unescaped, "other (value)"),
                _ => {}
            }
        }
    }

    /// What a checked event says to own sums: each item or line, or the event. A number beside lines
    /// is of all of them together: it counts with the first, where no line has its own.
    fn fill_own(&mut self, reading: &Reading) {
        let (kind, own) = (reading.kind, &reading.rules.own);
        let wanted = own.of(kind);
        if !wanted.is_any {
            return;
        }
        let count = match kind {
            EventKind::Impressions => self.items.len(),
            EventKind::Clicks | EventKind::Conversions => self.lines.len(),
            EventKind::Sessions => 1,
            EventKind::Exposures => 0,
        };
        for at in 0..count {
            let mut values = Values::NONE;
            for (amount, from) in &wanted.amounts {
                let number = self.number(*from, at, kind);
                values.set(*amount, if self.head.is_refund { -number } else { number });
            }
            let said = self.own.as_ref().map_or(0, |said| match self.item_at(at) {
                Some(item) => item.met_or(&said.single),
                None => said.single.met_or(&said.single),
            });
            values.met = said;
            for (condition, asked) in &wanted.derived {
                let is_met = match *asked {
                    Asked::Number(from) => {
                        own.passes_number(*condition, self.asked_number(from, at, kind))
                    }
                    Asked::Dimension(place) => {
                        let text = self.dimensions[place].of(reading.record, &self.unescaped);
                        own.passes(*condition, text)
                    }
                    Asked::Item => own.passes_id(*condition, self.item_of(at, kind)),
                    Asked::Category => own.passes_id(*condition, self.items[at].category),
                    Asked::Field(_) => false, // it was asked when it was read
                };
                values.met |= u32::from(is_met) << condition;
            }
            if let Some(own) = &mut self.own {
                own.values.push(values);
            }
        }
    }

    /// What an element of a list says to own sums.
    fn item_at(&self, at: usize) -> Option<&OwnSaid> {
        let own = self.own.as_ref()?;
        own.items.get(at).filter(|_| self.head.has_list)
    }

    fn item_of(&self, at: usize, kind: EventKind) -> u64 {
        match kind {
            EventKind::Impressions => self.items[at].item,
            EventKind::Sessions => self.head.shown.item,
            _ => self.lines[at].item,
        }
    }

    /// A number of an item or line; NaN: it has none.
    fn number(&self, from: NumberFrom, at: usize, kind: EventKind) -> f64 {
        match from {
            NumberFrom::Own(amount) => self.own_number(amount, at, kind),
            NumberFrom::Score => self.items[at].score,
            NumberFrom::Position => match self.items[at].position {
                0 => f64::NAN,
                position => f64::from(position),
            },
            NumberFrom::Dwell if at > 0 => f64::NAN,
            NumberFrom::Dwell => self.head.dwell_ms.map_or(f64::NAN, |ms| ms as f64),
            NumberFrom::Rating => {
                let rating = self.lines[at].amounts.rating();
                rating.map_or(f64::NAN, |millionths| millionths as f64 / 1e6)
            }
            NumberFrom::Value => self.values[at].unwrap_or(f64::NAN),
        }
    }

    /// The same where it is asked for: what stands beside lines is said of each.
    fn asked_number(&self, from: NumberFrom, at: usize, kind: EventKind) -> f64 {
        let (NumberFrom::Own(amount), Some(own)) = (from, &self.own) else {
            return self.number(from, at, kind);
        };
        let of_item = self.item_at(at).map_or(f64::NAN, |x| x.number(amount));
        match of_item.is_nan() {
            true => own.single.number(amount),
            false => of_item,
        }
    }

    fn own_number(&self, amount: usize, at: usize, kind: EventKind) -> f64 {
        let Some(own) = &self.own else {
            return f64::NAN;
        };
        let is_order = kind != EventKind::Impressions && self.head.has_list;
        let of_item = self.item_at(at).map_or(f64::NAN, |x| x.number(amount));
        let is_of_line = || own.items.iter().any(|x| !x.number(amount).is_nan());
        match of_item.is_nan() {
            false => of_item,
            true if is_order && (at > 0 || is_of_line()) => f64::NAN,
            true => own.single.number(amount),
        }
    }
}
