//! Which batches belong to aborted transactions, as aiokafka's fetcher finds them.

use std::collections::HashSet;

use super::ReadOptions;
use super::header::{Frame, Header};
use super::records::Cursor;

/// The producers that are within an aborted transaction.
pub(super) struct Aborted {
    is_read_committed: bool,
    /// Producer id and first offset of transactions that have not begun; the next one is the last.
    waiting: Vec<(i64, i64)>,
    producers: HashSet<i64>,
}

impl Aborted {
    pub fn new(options: &ReadOptions) -> Self {
        let mut waiting = Vec::new();
        if options.is_read_committed {
            waiting.extend_from_slice(options.aborted);
            waiting.sort_by_key(|&(_, first_offset)| std::cmp::Reverse(first_offset));
        }
        let is_read_committed = options.is_read_committed;
        Self {
            is_read_committed,
            waiting,
            producers: HashSet::new(),
        }
    }

    /// Whether a batch belongs to an aborted transaction. Batches are asked for in order.
    pub fn contains(&mut self, header: &Header, frame: &Frame) -> bool {
        if !self.is_read_committed {
            return false;
        }
        while self
            .waiting
            .last()
            .is_some_and(|&(_, first)| first <= header.base_offset)
        {
            self.producers
                .extend(self.waiting.pop().map(|(producer, _)| producer));
        }
        if self.producers.is_empty() {
            return false;
        }
        if header.is_control() && is_abort_marker(frame.records()) {
            self.producers.remove(&header.producer_id);
        }
        header.is_transactional() && self.producers.contains(&header.producer_id)
    }
}

/// Whether the first record of a control batch ends a transaction that is aborted: its key is
/// version 0, type 0. An empty control batch, which compaction leaves, is none.
fn is_abort_marker(records: &[u8]) -> bool {
    let mut cursor = Cursor::new(records);
    let key = cursor.record().and_then(|mut record| {
        record.deltas()?;
        record.nullable_bytes()
    });
    matches!(key, Some(Some([0, 0, 0, 0, ..])))
}
