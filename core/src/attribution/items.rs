//! What impressions show, kept apart from them and only where metrics look at lists: rows have the
//! numbers of the impressions.

use crate::attribution::ShownItem;
use crate::changes::{ItemOf, ItemShown, Outcome};
use crate::counting::Counting;
use crate::log::Log;

/// Those of one partition.
#[derive(Debug, Default)]
pub struct ItemLogs {
    pub is_kept: bool,
    /// Of open impressions, and of retained ones.
    pub open: Log<ItemOf>,
    pub retained: Log<ItemOf>,
}

impl ItemLogs {
    pub fn new(is_kept: bool) -> Self {
        Self {
            is_kept,
            ..Self::default()
        }
    }

    /// An open impression is retained.
    pub(super) fn retain(&mut self, open: u32) {
        let item = self.open.get(open).copied().unwrap_or_default();
        self.load_retained(item);
    }

    /// Emits a shown item.
    pub(super) fn emit_shown(item: &ShownItem, counting: &mut Counting) {
        counting.item_shown(&ItemShown {
            event_ms: item.event_ms,
            segment: item.segment,
            position: u32::from(item.position),
            item: item.item,
        });
    }

    /// Emits that a retained impression is clicked, or is not any more.
    pub(super) fn emit_outcome(&self, row: u32, change: &Outcome, counting: &mut Counting) {
        if let Some(item) = self.retained.get(row) {
            counting.item_outcome(item.item, change);
        }
    }

    /// A new or stored open impression, and a retained one.
    pub fn load_open(&mut self, item: ItemOf) {
        if self.is_kept {
            self.open.push(item);
        }
    }

    pub fn load_retained(&mut self, item: ItemOf) {
        if self.is_kept {
            self.retained.push(item);
        }
    }

    pub fn bytes(&self) -> usize {
        self.open.bytes() + self.retained.bytes()
    }
}
