//! The events of some records while they are read: drafts, and what became of each.

use super::draft::traced::{Trace, trace_values};
use super::draft::{Draft, NativeEvent, OwnNumbers};
use super::mapping::{Fields, Levels, Scope};
use super::reading::{ElementKind, Reading};
use super::reason::Reason;
use crate::attribution::impressions::Impression;

/// Drafts whose memory is kept from one call to the next.
const KEPT: usize = 256;
/// Items that all events of one record may show: as many as an impression can be numbered by.
const MOST_SHOWN: usize = Impression::MOST_OF_RECORD;
/// What the events of one record may be written as, in records of the largest size.
const MOST_WRITTEN: usize = 64;

/// What became of a draft.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// Place of its record among those that are read together.
    pub record: usize,
    pub draft: usize,
    pub read: Result<ElementKind, Reason>,
}

impl End {
    /// Whether it is no event, and not to be ignored.
    pub fn is_refused(&self) -> bool {
        self.read.is_err_and(|reason| reason != Reason::Ignored)
    }
}

/// The drafts of some records.
#[derive(Debug)]
pub(super) struct Drafts {
    dimensions: usize,
    has_policies: bool,
    own: OwnNumbers,
    drafts: Vec<Draft>,
    used: usize,
    record: usize,
    /// Items that events of the record show.
    shown: usize,
    pub ends: Vec<End>,
    /// Where events are written in our own shape.
    pub native: Option<Native>,
    /// Where it is noted how they are read.
    pub trace: Option<Trace>,
}

/// Events in our own shape, of one record.
#[derive(Debug, Default)]
pub(super) struct Native {
    /// Makes ids of those that have none.
    pub id: String,
    pub events: Vec<NativeEvent>,
}

impl Drafts {
    pub fn new(dimensions: usize, has_policies: bool, own: &OwnNumbers) -> Self {
        Self {
            dimensions,
            has_policies,
            own: own.clone(),
            drafts: Vec::new(),
            used: 0,
            record: 0,
            shown: 0,
            ends: Vec::new(),
            native: None,
            trace: None,
        }
    }

    /// Forgets all but the memory.
    pub fn clear(&mut self) {
        self.drafts.truncate(KEPT);
        (self.used, self.record) = (0, 0);
        self.ends.clear();
    }

    /// What is begun from here on is of a record.
    pub fn set_record(&mut self, record: usize) {
        (self.record, self.shown) = (record, 0);
    }

    /// An event shows so many items.
    ///
    /// # Errors
    /// `TooLarge` where all of the record are too many.
    pub fn show(&mut self, items: usize) -> Result<(), Reason> {
        self.shown += items;
        match self.shown > MOST_SHOWN {
            true => Err(Reason::TooLarge),
            false => Ok(()),
        }
    }

    /// Notes why a record as a whole is none, in a draft of its own where the last one is an event's.
    pub fn end_record(&mut self, reason: Reason) {
        let last = self.ends.last().map(|end| end.draft);
        if self.used == 0 || last == Some(self.used - 1) {
            self.begin();
        }
        self.end(Err(reason));
    }

    /// Begins an event.
    pub fn begin(&mut self) -> &mut Draft {
        if self.used == self.drafts.len() {
            let made = Draft::new(self.dimensions, self.has_policies, &self.own);
            self.drafts.push(made);
        }
        self.drafts[self.used].clear();
        self.used += 1;
        self.last()
    }

    /// The one that was begun last.
    pub fn last(&mut self) -> &mut Draft {
        &mut self.drafts[self.used - 1]
    }

    /// Notes what became of it.
    pub fn end(&mut self, read: Result<ElementKind, Reason>) {
        if let Some(trace) = &mut self.trace {
            trace.end();
        }
        self.ends.push(End {
            record: self.record,
            draft: self.used - 1,
            read,
        });
    }

    /// There is no such event.
    pub fn discard(&mut self) {
        self.used -= 1;
        if let Some(trace) = &mut self.trace {
            trace.values.clear();
        }
    }

    /// Notes where the fields of the event stand, where that is asked for.
    pub fn note_values(
        &mut self,
        mapped: (&Fields, &Levels),
        scope: &mut Scope,
        reading: &Reading,
    ) {
        let draft = &self.drafts[self.used - 1];
        if let Some(trace) = &mut self.trace {
            trace_values(draft, mapped, scope, reading, &mut trace.values);
        }
    }

    /// Whether something became of the record that is read.
    pub fn has_ends(&self) -> bool {
        self.ends
            .last()
            .is_some_and(|end| end.record == self.record)
    }

    pub fn get(&self, draft: usize) -> &Draft {
        &self.drafts[draft]
    }

    /// Writes the event that was read and checked in our own shape, where that is asked for.
    ///
    /// # Errors
    /// `TooLarge` where those of the record are too long together.
    pub fn rewrite(
        &mut self,
        mapped: (&Fields, &Levels),
        element: ElementKind,
        scope: &mut Scope,
        reading: &Reading,
    ) -> Result<(), Reason> {
        let Some(native) = &mut self.native else {
            return Ok(());
        };
        let written: usize = native.events.iter().map(|event| event.json.len()).sum();
        if written > MOST_WRITTEN * reading.rules.limits.max_record_bytes {
            return Err(Reason::TooLarge);
        }
        let id = match native.events.len() {
            0 => native.id.clone(),
            number => format!("{}/{number}", native.id),
        };
        // Events of one element join each other: where they have neither user nor request, its id is
        // what all of them join by.
        let shared = element.shared.map(|number| match number {
            0 => native.id.clone(),
            number => format!("{}/{number}", native.id),
        });
        let mut event = NativeEvent::new(element.kind);
        let draft = &self.drafts[self.used - 1];
        draft.write_native(
            mapped,
            (&id, shared.as_deref()),
            (scope, reading),
            &mut event,
        );
        native.events.push(event);
        Ok(())
    }
}
