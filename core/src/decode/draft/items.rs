//! Items in a list, brute-force lists, and what an event says of its items by them.

use super::{Draft, Field, NONE, Shown, Source};
use crate::decode::Reason;
use crate::json::Reader;

/// Codes of a held-out item.
const HELD_CODES: i16 = 3;

impl Draft {
    /// Reads `items`, or null.
    pub(super) fn read_items(
        &mut self,
        reader: &mut Reader,
        source: &Source,
    ) -> Result<(), Reason> {
        self.items.clear();
        if let Some(said) = &mut self.said {
            said.items.clear();
        }
        if let Some(custom) = &mut self.custom {
            custom.items.clear();
        }
        self.has_list = !reader.null()?;
        if !self.has_list {
            return Ok(());
        }
        if reader.peek() != b'[' {
            return Err(reader.refusal(Reason::Items));
        }
        let count = reader.list(|reader, i| {
            if i >= source.rules.limits.max_items {
                return Err(Reason::Items);
            }
            let shown = self.read_element(reader, source)?;
            self.items.push(shown.item());
            if let Some(said) = &mut self.said {
                said.end_element();
            }
            if let Some(custom) = &mut self.custom {
                custom.end_element();
            }
            Ok(())
        })?;
        if count == 0 {
            Err(Reason::Items)
        } else {
            Ok(())
        }
    }

    fn read_element(&mut self, reader: &mut Reader, source: &Source) -> Result<Shown, Reason> {
        if reader.peek() != b'{' {
            return Err(reader.refusal(Reason::Items));
        }
        let mut state = (&mut *self, Shown::default());
        reader.object(
            &mut state,
            |reader, (draft, _)| reader.text(&mut draft.unescaped),
            |reader, (draft, shown), name| match source
                .items
                .get(name.of(source.record, &draft.unescaped))
            {
                Some(field) => draft.read_shown(field, true, reader, source, shown),
                None => reader.skip(3),
            },
        )?;
        let (_, shown) = state;
        if shown.item == NONE {
            Err(Reason::Items)
        } else {
            Ok(shown)
        }
    }

    /// Reads a field that an item has wherever it stands; in a list, all are wrong as `items`.
    pub(super) fn read_shown(
        &mut self,
        field: Field,
        is_element: bool,
        reader: &mut Reader,
        source: &Source,
        shown: &mut Shown,
    ) -> Result<(), Reason> {
        let limits = &source.rules.limits;
        let reason = if is_element {
            Reason::Items
        } else {
            field.reason()
        };
        match field {
            Field::ItemId if is_element => shown.item = self.read_id(reader, source, reason)?,
            Field::ItemId => shown.item = self.read_optional_id(reader, source, reason)?,
            Field::ItemCategory => {
                shown.category = self.read_optional_id(reader, source, reason)?;
            }
            Field::Position => {
                let position = reader.integer(1, i64::from(limits.max_position), reason)?;
                shown.position = position.unwrap_or(0) as u32;
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
        source: &Source,
    ) -> Result<(), Reason> {
        if !self.reference.is_empty() {
            self.reference.clear();
        }
        self.has_reference = !reader.null()?;
        if !self.has_reference {
            return Ok(());
        }
        if reader.peek() != b'[' {
            return Err(reader.refusal(Reason::Reference));
        }
        let count = reader.list(|reader, i| {
            if i >= source.rules.limits.max_items {
                return Err(Reason::Reference);
            }
            let item = self.read_id(reader, source, Reason::Reference)?;
            self.reference.entry(item).or_insert(i as i16 + 1);
            Ok(())
        })?;
        if count == 0 {
            Err(Reason::Reference)
        } else {
            Ok(())
        }
    }

    /// Positions of a list without any are its order; and each item's probe.
    pub(super) fn finish_items(&mut self) {
        if self.has_list && self.items.iter().all(|item| item.position == 0) {
            for (position, item) in (1..).zip(&mut self.items) {
                item.position = position;
            }
        }
        if !self.has_reference && self.held_out == NONE {
            return;
        }
        for item in &mut self.items {
            let rank = self.reference.get(&item.item).copied().unwrap_or(0);
            let listed = if self.has_reference { 1 + rank } else { 0 };
            let is_held = i16::from(item.item == self.held_out);
            let held = if self.held_out == NONE {
                0
            } else {
                1 + is_held
            };
            item.probe = listed * HELD_CODES + held;
        }
    }
}
