//! Why a record is no event, for people.

use super::draft::Field;
use super::{Decoder, EventKind, Layout, Reason};
use crate::json::Reader;
use crate::kafka::Record;

/// Why a record is no event.
#[derive(Clone, Debug)]
pub struct Explained {
    /// None where it is one.
    pub reason: Option<Reason>,
    /// What it is, as far as that is known.
    pub kind: Option<EventKind>,
    /// Our name of the field that the reason is about; "" where it is the whole.
    pub field: String,
    /// Of which element of a list, from 0.
    pub element: Option<u32>,
    /// What stands there.
    pub found: Option<String>,
}

impl Decoder {
    /// Why a record is no event, for people.
    pub fn explain(&mut self, source: usize, record: &Record) -> Explained {
        self.drafts[0].clear();
        let reason = self.decode(source, record).err();
        let draft = &self.drafts[0];
        let format = &self.sources[source].format;
        let plain = format.plain(record.value.unwrap_or_default());
        let text = draft.text_of(std::str::from_utf8(plain).unwrap_or_default());
        let at = draft.place.at as usize;
        let kind = match &self.sources[source].layout {
            Layout::Flat(flat) => Some(flat.kind),
            Layout::Mapped(_) => draft.kind,
        };
        let mut reader = Reader::starting(text, at, self.rules.limits.max_depth);
        let is_value = at < text.len() && reader.skip(0).is_ok();
        let found = is_value.then(|| text.get(at..reader.at())).flatten();
        let found = found.map(str::trim);
        let name = draft.place.field.map(|field| self.name_of(field));
        Explained {
            reason,
            kind,
            field: name.unwrap_or_default(),
            element: draft.place.element.checked_sub(1),
            found: found.map(str::to_owned),
        }
    }

    fn name_of(&self, field: Field) -> String {
        let known = self.names.iter().find(|(_, other)| *other == field);
        known.map_or_else(|| field.name().to_owned(), |(name, _)| name.clone())
    }
}
