//! What impressions show, kept only where metrics look at lists.

use crate::attribution::ShownItem;
use crate::attribution::beside::Beside;
use crate::changes::{ItemOf, ItemShown, Outcome};
use crate::counting::Counting;

impl Beside<ItemOf> {
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
}
