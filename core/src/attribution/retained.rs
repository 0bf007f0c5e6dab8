//! Retained impressions: those with feedback, which conversions can still join, and the other
//! members of their slates where conversions can still grade them.
//!
//! What is final of their feedback is counted apart: it is stored, the rest follows from the
//! feedback that is still pending.

use smallvec::{SmallVec, smallvec};

use crate::attribution::pair_log::{Link, NOT_YET, OfPair, PairLog};
use crate::changes::{Age, Combination, NEVER};
use crate::columns::LoadError;
use crate::log::NO_ROW;
use crate::slates::NO_SLATE;

/// What an impression counts as: clicked, converted, and its grade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub is_clicked: bool,
    pub is_converted: bool,
    pub grade: u8,
}

impl Outcome {
    /// Whether metrics of slates see any of it.
    pub fn is_ranked(&self) -> bool {
        self.is_clicked || self.grade > 0
    }
}

/// One impression.
#[derive(Clone, Debug)]
pub struct Retained {
    pub pair: u64,
    pub user: u64,
    /// Hash of its user and request; `hash::NONE` without one.
    pub slate_key: u64,
    pub event_ms: i64,
    pub offset: i64,
    pub score: f64,
    /// The time of its first feedback.
    pub first_ms: i64,
    pub final_first_ms: i64,
    pub index: u16,
    pub position: u16,
    pub combination: Combination,
    pub slate: u32,
    /// The retained member of the slate before it.
    pub prev_in_slate: u32,
    /// The open impression; `NO_ROW` when it has left.
    pub open: u32,
    pub is_member: bool,
    /// The outcome that was emitted.
    pub outcome: Outcome,
    link: Link,
    /// Epoch in which what is stored of it last changed.
    pub epoch: u32,
    /// The latest time of this row and of those before it, which leave first.
    leaves_ms: i64,
    /// Feedback of each kind, conversions last; then what is final of it.
    counts: SmallVec<[i32; 4]>,
}

impl Retained {
    /// An impression without feedback, of no slate.
    pub fn new(pair: u64, user: u64, (event_ms, offset, index): Age) -> Self {
        Self {
            pair,
            user,
            slate_key: crate::hash::NONE,
            event_ms,
            offset,
            score: f64::NAN,
            first_ms: NOT_YET,
            final_first_ms: NOT_YET,
            index,
            position: 0,
            combination: 0,
            slate: NO_SLATE,
            prev_in_slate: NO_ROW,
            open: NO_ROW,
            is_member: false,
            outcome: Outcome::default(),
            link: Link::default(),
            epoch: 0,
            leaves_ms: event_ms,
            counts: SmallVec::new(),
        }
    }
}

impl OfPair for Retained {
    fn pair(&self) -> u64 {
        self.pair
    }
    fn age(&self) -> Age {
        (self.event_ms, self.offset, self.index)
    }
    fn group(&self) -> u64 {
        self.slate_key
    }
    fn first_ms(&self) -> i64 {
        self.first_ms
    }
    fn link(&self) -> Link {
        self.link
    }
    fn set_link(&mut self, link: Link) {
        self.link = link;
    }
}

/// The retained impressions of one partition.
#[derive(Debug)]
pub struct RetainedImpressions {
    pub rows: PairLog<Retained>,
    kinds: usize,
    /// Rows of which what is stored changed in this epoch, and in the one before if that is known.
    changed: Vec<u32>,
    sealed: Option<Vec<u32>>,
    pub epoch: u32,
    /// What is added to the number of a row: those that were loaded keep theirs.
    first_id: u64,
    /// Rows with smaller numbers left, some before their time; 0 where none did.
    pub first_kept: u64,
    /// The latest time of all rows that were added.
    latest_ms: i64,
}

impl RetainedImpressions {
    /// `kinds`: how many kinds of feedback there are, conversions included.
    pub fn new(kinds: usize) -> Self {
        let rows = PairLog::default();
        Self {
            rows,
            kinds,
            changed: Vec::new(),
            sealed: None,
            epoch: 1,
            first_id: 0,
            first_kept: 0,
            latest_ms: NEVER,
        }
    }

    pub fn push(&mut self, mut row: Retained) -> u32 {
        row.counts = smallvec![0; 2 * self.kinds];
        let added = self.add(row);
        self.touch(added);
        added
    }

    fn add(&mut self, mut row: Retained) -> u32 {
        self.latest_ms = self.latest_ms.max(row.event_ms);
        row.leaves_ms = self.latest_ms;
        self.rows.push(row)
    }

    /// When rows that last changed in the epochs [first, end) have all left, as a time of theirs:
    /// rows leave in the order of their numbers, an old one not before the newer one ahead of it.
    pub fn leaves_ms(&self, first: u32, end: u32) -> i64 {
        let rows = self.versions(first, end);
        let times = rows.iter().map(|(_, _, row)| row.leaves_ms);
        times.max().unwrap_or(0)
    }

    pub fn get(&self, row: u32) -> Option<&Retained> {
        self.rows.log.get(row)
    }

    pub fn get_mut(&mut self, row: u32) -> Option<&mut Retained> {
        self.rows.log.get_mut(row)
    }

    /// The first row leaves before its time.
    pub fn leave_early(&mut self) {
        self.first_kept = self.rows.log.first().wrapping_add(self.first_id) + 1;
    }

    /// What is stored of a row changes.
    pub fn touch(&mut self, row: u32) {
        let epoch = self.epoch;
        if let Some(found) = self.rows.log.get_mut(row)
            && found.epoch != epoch
        {
            found.epoch = epoch;
            self.changed.push(row);
        }
    }

    /// Adds to the count of a kind.
    pub fn count(&mut self, row: u32, kind: usize, amount: i32) {
        if let Some(count) = self
            .get_mut(row)
            .and_then(|found| found.counts.get_mut(kind))
        {
            *count = count.saturating_add(amount);
        }
    }

    /// Adds to the final count of a kind, and notes the time of final feedback of the clicks topic.
    pub fn count_final(&mut self, row: u32, kind: usize, amount: i32, first_ms: Option<i64>) {
        let place = self.kinds.saturating_add(kind);
        if let Some(found) = self.get_mut(row) {
            if let Some(count) = found.counts.get_mut(place) {
                *count = count.saturating_add(amount);
            }
            found.final_first_ms = found.final_first_ms.min(first_ms.unwrap_or(NOT_YET));
            self.touch(row);
        }
    }

    /// Counts of each kind: final feedback.
    pub fn final_counts<'a>(&self, row: &'a Retained) -> &'a [i32] {
        row.counts.get(self.kinds..).unwrap_or_default()
    }

    /// What a row counts as now; `grades`: what each kind gives.
    pub fn outcome(&self, row: &Retained, grades: &[u8]) -> Outcome {
        let mut outcome = Outcome::default();
        let counts = row.counts.iter().take(self.kinds);
        for (kind, (_, grade)) in counts
            .zip(grades)
            .enumerate()
            .filter(|(_, (count, _))| **count > 0)
        {
            outcome.is_clicked |= kind == 0;
            outcome.is_converted |= kind + 1 == self.kinds;
            outcome.grade = outcome.grade.max(*grade);
        }
        outcome.is_converted &= outcome.is_clicked;
        outcome
    }

    /// Adds a stored row under the number that it had; an error where others lie between.
    pub fn load(&mut self, id: u64, mut row: Retained, counts: &[i32]) -> Result<u32, LoadError> {
        if self.rows.log.is_empty() {
            self.first_id = id.wrapping_sub(self.rows.log.next());
        }
        if self.rows.log.next().wrapping_add(self.first_id) != id {
            return Err(format!(
                "retained impression {id} does not follow the one before it"
            ));
        }
        row.counts = counts.iter().chain(counts).copied().collect();
        row.first_ms = row.final_first_ms;
        Ok(self.add(row))
    }

    /// Rows that last changed in the epochs [first, end), with their numbers and what refers to
    /// them.
    pub fn versions(&self, first: u32, end: u32) -> Vec<(u64, u32, &Retained)> {
        let log = &self.rows.log;
        let is_last = first + 1 == self.epoch && end == self.epoch;
        let rows: Vec<u32> = match self.sealed.as_ref().filter(|_| is_last) {
            Some(sealed) => sealed.clone(),
            None => log.range(log.first(), log.next()).collect(),
        };
        let with_number = |row: u32| {
            let number = log.first() + u64::from(row.wrapping_sub(log.first() as u32));
            Some((number.wrapping_add(self.first_id), row, log.get(row)?))
        };
        let found = rows.into_iter().filter_map(with_number);
        found
            .filter(|(_, _, row)| (first..end).contains(&row.epoch))
            .collect()
    }

    /// Rows were loaded; what changes from now on belongs to this epoch.
    pub fn begin(&mut self, epoch: u32) {
        (self.epoch, self.sealed) = (epoch, None);
        if self.rows.log.is_empty() {
            self.first_id = self.first_kept.wrapping_sub(self.rows.log.next());
        }
    }

    /// What changes from now on belongs to another epoch.
    pub fn seal(&mut self) {
        if !self.changed.is_empty() {
            self.epoch += 1;
            self.sealed = Some(std::mem::take(&mut self.changed));
        }
    }

    pub fn bytes(&self) -> usize {
        self.rows.bytes()
    }
}
