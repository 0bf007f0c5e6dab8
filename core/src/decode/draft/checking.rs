//! The rules across the fields of an event: what a field's type cannot say.

use super::{Action, Draft, EventKind, Field, Moment, Place, Reading};
use crate::changes::Kind;
use crate::decode::Reason;
use crate::hash::NONE;
use crate::json::Text;

impl Draft {
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
        self.check_items(reading)?;
        if reading.kind == EventKind::Clicks && self.head.feedback_kind.is_none() {
            self.head.feedback_kind = Some(self.kind(reading));
        }
        if reading.kind == EventKind::Sessions {
            self.required(Field::SessionId, (self.head.session != NONE).then_some(()))?;
            let action = self.required(Field::Action, self.head.action)?;
            if action == Action::Dwell && self.head.shown.item == NONE {
                return self.refuse(Field::ItemId);
            }
        }
        match (self.head.start, self.head.end) {
            (None, None) => {}
            (Some(start), Some(end)) if is_right(start) && is_right(end) => {
                let spent_ms = end.ms - start.ms;
                if !(0..=limits.max_dwell_ms).contains(&spent_ms) {
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
        self.check_dimensions(reading);
        self.fill_custom(reading.kind, &reading.rules.custom);
        Ok(())
    }

    fn refuse<T>(&mut self, field: Field) -> Result<T, Reason> {
        self.place = Place::missing(field);
        Err(field.reason())
    }

    fn refuse_moment<T>(&mut self, field: Field, moment: Moment) -> Result<T, Reason> {
        self.place = Place::value(field, moment.at as usize);
        Err(field.reason())
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
        match (self.head.has_list, self.head.shown.item) {
            (false, NONE) => return self.refuse(Field::ItemId),
            (true, NONE) => {}
            (false, _) => self.push_shown(kind, self.head.shown),
            (true, _) => {
                self.place = Place::value(Field::Items, self.head.list_at as usize);
                return Err(Reason::Items);
            }
        }
        if kind == EventKind::Impressions {
            self.finish_items();
            if let Some(said) = &mut self.said {
                said.weigh(&reading.rules.policies, &self.items, self.head.has_list);
            }
        } else if self.head.has_list && self.values.iter().all(Option::is_none) {
            self.value_first_line();
        }
        Ok(())
    }

    /// What an event is worth beside lines that say nothing of it counts with the first of them.
    fn value_first_line(&mut self) {
        if let (Some(line), Some(value)) = (self.lines.first_mut(), self.values.first_mut()) {
            *value = self.head.shown.value;
            line.value_micros = self.head.shown.line().value_micros;
        }
    }

    /// The kind of a feedback event.
    fn kind(&self, reading: &Reading) -> Kind {
        let Some(feedback) = self.head.feedback else {
            return Kind::Configured(0);
        };
        let text = feedback.of(reading.record, &self.unescaped);
        let mut kinds = (0..).zip(&reading.rules.feedback);
        kinds
            .find(|(_, kind)| *kind == text)
            .map_or(Kind::Other, |(i, _)| Kind::Configured(i))
    }

    /// No value of a dimension is wrong: a long one is cut, and one that is called like our own
    /// labels gets a name apart.
    fn check_dimensions(&mut self, reading: &Reading) {
        let most = reading.rules.limits.max_label_chars;
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
}
