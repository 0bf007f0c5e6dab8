//! Lists: slates by what they show, whatever comes of it. They follow their members as the values of
//! slates do: before the first change a list is retracted as it was emitted, and when all is taken
//! in it is emitted as it is.

use crate::attribution::Attribution;
use crate::attribution::emitted::{Emitted, Sink};
use crate::changes::{ItemOf, Listed, Segment, Slate as SlateChange};

impl Attribution {
    /// A slate is about to have another impression. Where it takes it as a member, the list that was
    /// emitted for it is retracted, once.
    pub(crate) fn retract_list(&mut self, slate: u32, sink: &mut impl Sink) {
        if !self.items.is_kept {
            return;
        }
        let Some(found) = self.slates.get_mut(slate) else {
            return;
        };
        if !found.takes(self.rules.slate_items) {
            return;
        }
        if !std::mem::replace(&mut found.is_list_dirty, true) {
            self.slates.dirty_lists.push(slate);
            self.emit_list(slate, -1, sink);
        }
    }

    /// Emits all lists that changed.
    pub(crate) fn emit_lists(&mut self, sink: &mut impl Sink) {
        for slate in std::mem::take(&mut self.slates.dirty_lists) {
            if let Some(found) = self.slates.get_mut(slate) {
                found.is_list_dirty = false;
                self.emit_list(slate, 1, sink);
            }
        }
    }

    fn emit_list(&self, slate: u32, sign: i64, sink: &mut impl Sink) {
        let Some(found) = self.slates.get(slate) else {
            return;
        };
        let Some((event_ms, _, _)) = found.earliest() else {
            return;
        };
        let items: Vec<ItemOf> = self.ordered_members(
            slate,
            |row, _| self.items.open.get(row).copied().unwrap_or_default(),
            |row, _| self.items.retained.get(row).copied().unwrap_or_default(),
        );
        let slate = SlateChange {
            event_ms,
            segment: Segment::from(found.earliest_segment),
            user: found.user,
            sign,
        };
        sink.emit(Emitted::Listed(Listed {
            slate,
            items: &items,
        }));
    }
}
