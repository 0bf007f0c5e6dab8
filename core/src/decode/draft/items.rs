//! Items in a list, and brute-force lists.

use super::{Draft, EventKind, Field, NONE, Place, Reading, Shown};
use crate::decode::Reason;
use crate::json::Reader;

impl Draft {
    /// Reads `items`, or null.
    pub(super) fn read_items(
        &mut self,
        reader: &mut Reader,
        reading: &Reading,
    ) -> Result<(), Reason> {
        self.clear_list();
        self.head.has_list = !reader.null()?;
        self.head.list_at = reader.at() as u32;
        if !self.head.has_list {
            return Ok(());
        }
        if reader.peek() != b'[' {
            return Err(reader.refusal(Reason::Items));
        }
        let count = reader.list(|reader, i| {
            if i >= reading.rules.limits.max_items {
                return Err(Reason::Items);
            }
            self.place = Place::element(i, reader.at());
            let shown = self.read_element(reader, reading)?;
            self.push_element(reading.kind, shown)
        })?;
        if count == 0 {
            Err(Reason::Items)
        } else {
            Ok(())
        }
    }

    /// Forgets the list that was read.
    pub(super) fn clear_list(&mut self) {
        self.items.clear();
        self.lines.clear();
        self.values.clear();
        if let Some(said) = &mut self.said {
            said.items.clear();
        }
        if let Some(custom) = &mut self.custom {
            custom.items.clear();
        }
    }

    /// Adds an element of a list.
    pub(super) fn push_element(&mut self, kind: EventKind, shown: Shown) -> Result<(), Reason> {
        if shown.item == NONE {
            self.place = Place {
                element: self.place.element,
                ..Place::missing(Field::ItemId)
            };
            return Err(Reason::Items);
        }
        self.push_shown(kind, shown);
        if let Some(said) = &mut self.said {
            said.end_element();
        }
        if let Some(custom) = &mut self.custom {
            custom.end_element();
        }
        Ok(())
    }

    pub(super) fn push_shown(&mut self, kind: EventKind, shown: Shown) {
        if kind == EventKind::Impressions {
            self.items.push(shown.item());
        } else {
            self.lines.push(shown.line());
            self.values.push(shown.value);
        }
    }

    /// An object, or the id alone.
    fn read_element(&mut self, reader: &mut Reader, reading: &Reading) -> Result<Shown, Reason> {
        let mut state = (&mut *self, Shown::default());
        if reader.peek() != b'{' {
            let (draft, mut shown) = state;
            shown.item = draft.read_id(reader, reading, Reason::Items)?;
            return Ok(shown);
        }
        reader.object(
            &mut state,
            |reader, (draft, _)| reader.text(&mut draft.unescaped),
            |reader, (draft, shown), name| match reading
                .items
                .get(name.of(reading.record, &draft.unescaped))
            {
                Some(field) => draft.read_shown(field, true, reader, reading, shown),
                None => reader.skip(3),
            },
        )?;
        Ok(state.1)
    }

    /// Reads a field that an item has wherever it stands; in a list, all are wrong as `items`.
    pub(super) fn read_shown(
        &mut self,
        field: Field,
        is_element: bool,
        reader: &mut Reader,
        reading: &Reading,
        shown: &mut Shown,
    ) -> Result<(), Reason> {
        let limits = &reading.rules.limits;
        self.place = Place {
            element: self.place.element,
            ..Place::value(field, reader.at())
        };
        let reason = if is_element {
            Reason::Items
        } else {
            field.reason()
        };
        match field {
            Field::ItemId if is_element => shown.item = self.read_id(reader, reading, reason)?,
            Field::ItemId => shown.item = self.read_optional_id(reader, reading, reason)?,
            Field::ItemCategory => {
                shown.category = self.read_optional_id(reader, reading, reason)?;
            }
            Field::Position => {
                let from = i64::from(reading.values.positions_from);
                let last = i64::from(limits.max_position) + from - 1;
                let position = reader.integer(from, last, reason)?;
                shown.position = position.map_or(0, |position| position - from + 1) as u32;
            }
            Field::Value => {
                let is_right = |value: f64| (0.0..=limits.max_value).contains(&value);
                shown.value = reader.double(is_right, reason)?;
            }
            Field::Score => {
                let is_right = |score: f64| score.abs() <= limits.max_score;
                shown.score = reader.double(is_right, reason)?;
            }
            Field::Custom(i) => {
                let is_right = |value: f64| value.abs() <= limits.max_custom;
                let value = reader.double(is_right, reason)?;
                if let Some(custom) = &mut self.custom {
                    custom.set(i, is_element, value);
                }
            }
            _ => {
                let value = match field {
                    Field::Propensity => reader.double(|p| p > 0.0 && p <= 1.0, reason)?,
                    _ => reader.double(|share| (0.0..=1.0).contains(&share), reason)?,
                };
                if let Some(said) = &mut self.said {
                    said.set(field, is_element, value);
                }
            }
        }
        Ok(())
    }

    /// Reads `reference`, or null.
    pub(super) fn read_reference(
        &mut self,
        reader: &mut Reader,
        reading: &Reading,
    ) -> Result<(), Reason> {
        self.reference.clear();
        self.head.has_reference = !reader.null()?;
        if !self.head.has_reference {
            return Ok(());
        }
        if reader.peek() != b'[' {
            return Err(reader.refusal(Reason::Reference));
        }
        let count = reader.list(|reader, i| {
            if i >= reading.rules.limits.max_items {
                return Err(Reason::Reference);
            }
            self.place = Place {
                field: Some(Field::Reference),
                ..Place::element(i, reader.at())
            };
            let item = self.read_id(reader, reading, Reason::Reference)?;
            if item == NONE {
                return Err(Reason::Reference);
            }
            self.reference.push(item);
            Ok(())
        })?;
        if count == 0 {
            Err(Reason::Reference)
        } else {
            Ok(())
        }
    }

    /// Positions of a list without any are its order.
    pub(super) fn finish_items(&mut self) {
        if self.head.has_list && self.items.iter().all(|item| item.position == 0) {
            for (position, item) in (1..).zip(&mut self.items) {
                item.position = position;
            }
        }
    }
}
