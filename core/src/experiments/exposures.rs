//! Which arms each user saw, and since when: what the user does later counts towards the arm.
//!
//! A user has a row for each arm of each exposure, with the time of the first one, and a head with
//! what is known of all of them. Most events repeat what the user's last one said of arms; its hash
//! is kept, so that a repetition is recognised without a look at the rows.

use hashbrown::HashTable;

use crate::users::rows::spread;
use crate::versions::{NEW, Versions};

const GROWTH: usize = 8;
/// Of the last row of a user.
const END: u32 = u32::MAX;
/// Of a user who lacks an exposure.
const NEVER_MS: i64 = i64::MAX;

/// What says of which arms an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaidBy {
    Dimensions,
    Fields,
}

/// An arm of an exposure, by their places; arms are numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArmOf {
    pub exposure: u32,
    pub arm: u32,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    first_ms: i64,
    user: u64,
    epoch: u32,
    /// The next row of the user.
    next: u32,
    of: ArmOf,
}

/// What is known of a user.
#[derive(Clone, Copy, Debug)]
struct Head {
    user: u64,
    /// The first row, and how many there are.
    row: u32,
    rows: u32,
    /// The span of days for which `whole_ms` holds; 0: none.
    whole_of: u32,
    /// Since when every exposure of the span is there; `NEVER_MS`: some is not.
    whole_ms: i64,
    /// The latest first exposure that parts what the user did.
    last_ms: i64,
    /// By what said it: a hash of what an event said of arms, and the earliest time at which one did.
    said: [(u64, i64); 2],
}

/// First exposures of the users of one partition.
#[derive(Debug, Default)]
pub struct Exposures {
    rows: Vec<Row>,
    heads: HashTable<Head>,
    pub versions: Versions,
    /// Of each exposure whether it parts what its users did: not where events are attributed.
    parts: Vec<bool>,
    /// The earliest of each exposure.
    earliest_ms: Vec<Option<i64>>,
}

impl Exposures {
    /// `parts`: of each exposure whether it parts what its users did into before and after.
    pub fn new(parts: Vec<bool>) -> Self {
        Self {
            earliest_ms: vec![None; parts.len()],
            parts,
            ..Self::default()
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        let rows = self.rows.capacity() * size_of::<Row>();
        rows + self.heads.allocation_size() + self.versions.nbytes()
    }

    fn head(&self, user: u64) -> Option<&Head> {
        self.heads.find(spread(user), |head| head.user == user)
    }

    fn head_mut(&mut self, user: u64) -> Option<&mut Head> {
        self.heads.find_mut(spread(user), |head| head.user == user)
    }

    /// Arms and first exposures of a user.
    pub fn of(&self, user: u64) -> impl Iterator<Item = (ArmOf, i64)> {
        let mut next = self.head(user).map_or(END, |head| head.row);
        std::iter::from_fn(move || {
            let row = (next != END).then(|| &self.rows[next as usize])?;
            next = row.next;
            Some((row.of, row.first_ms))
        })
    }

    /// Every user.
    pub fn users(&self) -> impl Iterator<Item = u64> {
        self.heads.iter().map(|head| head.user)
    }

    /// The first exposure (ms) of any user.
    pub fn earliest_ms(&self, exposure: usize) -> Option<i64> {
        self.earliest_ms.get(exposure).copied().flatten()
    }

    /// Whether an event of a user says of arms what one at the same time or earlier has said.
    pub fn is_repeated(&self, user: u64, by: SaidBy, said: u64, event_ms: i64) -> bool {
        self.head(user).is_some_and(|head| {
            let (known, since_ms) = head.said[by as usize];
            known == said && event_ms >= since_ms
        })
    }

    /// An event of a user said this of arms, all of which are rows now.
    pub fn note(&mut self, user: u64, by: SaidBy, said: u64, event_ms: i64) {
        head_of(&mut self.heads, user).said[by as usize] = (said, event_ms);
    }

    /// Whether it is new that a user saw an arm at this time.
    pub fn is_new(&self, user: u64, of: ArmOf, event_ms: i64) -> bool {
        let mut rows = self.of(user);
        !rows.any(|(other, first_ms)| other == of && first_ms <= event_ms)
    }

    /// The first exposure of a user to an arm is at this time.
    pub fn set(&mut self, user: u64, of: ArmOf, first_ms: i64) {
        let mut next = self.head(user).map_or(END, |head| head.row);
        while next != END && self.rows[next as usize].of != of {
            next = self.rows[next as usize].next;
        }
        let number = if next == END {
            self.insert(user, of)
        } else {
            next as usize
        };
        let earliest = self.earliest_ms[of.exposure as usize].get_or_insert(first_ms);
        *earliest = first_ms.min(*earliest);
        let row = &mut self.rows[number];
        row.first_ms = first_ms;
        self.versions.mark(number as u32, &mut row.epoch);
        let of_user = self.of(user).filter(|(of, _)| self.parts(*of));
        let last_ms = of_user.map(|(_, first_ms)| first_ms).max();
        if let Some(head) = self.head_mut(user) {
            head.whole_of = 0;
            head.last_ms = last_ms.unwrap_or(i64::MIN);
        }
    }

    fn insert(&mut self, user: u64, of: ArmOf) -> usize {
        let number = self.rows.len();
        if number == self.rows.capacity() {
            self.rows.reserve_exact(number / GROWTH + 1024);
        }
        self.rows.push(Row {
            first_ms: 0,
            user,
            epoch: NEW,
            next: END,
            of,
        });
        self.link(number);
        number
    }

    /// Chains a row before the others of its user.
    fn link(&mut self, number: usize) {
        let user = self.rows[number].user;
        let head = head_of(&mut self.heads, user);
        self.rows[number].next = std::mem::replace(&mut head.row, number as u32);
        head.rows += 1;
    }

    /// Whether an exposure parts what its users did.
    pub fn parts(&self, of: ArmOf) -> bool {
        self.parts[of.exposure as usize]
    }

    /// Whether a user had by this time seen an arm of every exposure of a span: then no exposure that
    /// is to come parts what is not before it. `span`: the number of the span, from 1.
    pub fn is_whole(&mut self, user: u64, (span, exposures): (u32, &[u32]), event_ms: i64) -> bool {
        if exposures.is_empty() {
            return true;
        }
        let may_be = |head: &&Head| head.rows as usize >= exposures.len();
        let Some(head) = self.head(user).filter(may_be) else {
            return false;
        };
        let (whole_of, whole_ms) = (head.whole_of, head.whole_ms);
        if whole_of == span {
            return whole_ms <= event_ms;
        }
        let since_ms = |exposure: &u32| {
            let rows = self.of(user).filter(|(of, _)| of.exposure == *exposure);
            rows.map(|(_, first_ms)| first_ms).min().unwrap_or(NEVER_MS)
        };
        let whole_ms = exposures.iter().map(since_ms).max().unwrap_or(NEVER_MS);
        if let Some(head) = self.head_mut(user) {
            (head.whole_of, head.whole_ms) = (span, whole_ms);
        }
        whole_ms <= event_ms
    }

    /// The latest first exposure of a user that is not after this time, if that is not before `least`;
    /// else `least`.
    pub fn slot(&self, user: u64, event_ms: i64, least: i64) -> i64 {
        let Some(head) = self.head(user) else {
            return least;
        };
        if head.last_ms <= event_ms {
            return head.last_ms.max(least);
        }
        let of_user = self.of(user).filter(|(of, _)| self.parts(*of));
        let before = of_user.filter(|(_, first_ms)| *first_ms <= event_ms);
        before.map(|(_, first_ms)| first_ms).fold(least, i64::max)
    }

    /// Keep the rows of some users and exposures.
    pub fn keep(&mut self, is_wanted: impl Fn(u64, ArmOf) -> bool) {
        self.rows.retain(|row| is_wanted(row.user, row.of));
        self.rows
            .shrink_to(self.rows.len() + self.rows.len() / GROWTH);
        self.heads = HashTable::new();
        for number in 0..self.rows.len() {
            self.rows[number].next = END;
            self.link(number);
        }
        for number in 0..self.rows.len() {
            let Row {
                user, of, first_ms, ..
            } = self.rows[number];
            if self.parts(of)
                && let Some(head) = self.head_mut(user)
            {
                head.last_ms = head.last_ms.max(first_ms);
            }
        }
        self.versions
            .renumber(self.rows.iter().map(|row| row.epoch));
    }

    // Stored form -----------------------------------------------------------------------------------

    /// User, arm and first exposure of the rows that last changed in the epochs [first, end).
    pub fn changed(&self, first: u32, end: u32) -> impl Iterator<Item = (u64, ArmOf, i64)> {
        let of = |row: u32| self.rows[row as usize].epoch;
        let found = self.versions.changed(first, end, self.rows.len(), of);
        found.into_iter().map(|row| {
            let row = &self.rows[row as usize];
            (row.user, row.of, row.first_ms)
        })
    }
}

/// The head of a user, which is made where it is missing.
fn head_of(heads: &mut HashTable<Head>, user: u64) -> &mut Head {
    let entry = heads.entry(
        spread(user),
        |head| head.user == user,
        |head| spread(head.user),
    );
    let new = Head {
        user,
        row: END,
        rows: 0,
        whole_of: 0,
        whole_ms: NEVER_MS,
        last_ms: i64::MIN,
        said: [(0, NEVER_MS); 2],
    };
    entry.or_insert(new).into_mut()
}
