//! Counts of each item by window pane: how often it was shown, in which lists it stood.
//!
//! Metrics of coverage and diversity look at items one by one, over all partitions together, so a
//! pane holds a row of counts for each item that was shown in it, under the label of each rollup.
//! Rows of one ring are bounded: beyond the bound those items stay whose hashes begin with enough
//! zero bits, which is a uniform sample of the items, the same one in every partition.
//!
//! Pairs of items have rows, too, where they are asked for, with the same bound and a sample of its
//! own: the lists that hold both up to a cut-off stand at the place of impressions up to it, and the
//! people at that of people by their last feedback, which is here the earlier one of both.

use std::borrow::Cow;

use crate::changes::{ItemOf, UserAt};
use crate::hash::{HashSet, NONE, in_sample};
use crate::panes::dimensions::Dimensions;
use crate::panes::item_rows::{
    Counted, ItemKey, ItemPane, KeyedCounts, PAIR_SAMPLE_PLACE, SAMPLE_PLACE,
};
use crate::panes::labels::Labels;
use crate::panes::pane_map::PaneMap;
use crate::panes::rings::{Rings, gcd, number_of, ring_and_pane};
use crate::panes::{Overflow, PaneColumns, PaneStore, add_up};
use crate::spec::ItemCountsSpec;
use crate::spec::ItemsSince;

/// Codes of a pane's sample bits.
const SAMPLES: [u64; 2] = [SAMPLE_PLACE, PAIR_SAMPLE_PLACE];
/// Stands for all items: under it lists are counted.
const EVERY: u64 = 0;
/// A list of n items has the length √n: what one of them adds has these units, over √n.
const WEIGHT_UNIT: i64 = 1 << 28;

/// What a list of so many items adds to the weight of each, and by how much its squared length is
/// above 1, as weights are rounded.
pub fn list_weight(items: usize) -> (i64, i64) {
    let weight = (WEIGHT_UNIT as f64 / (items as f64).sqrt()).round_ties_even() as i64;
    let excess = items as i64 * weight * weight - WEIGHT_UNIT * WEIGHT_UNIT;
    (weight, excess)
}

/// Places of counts in a row: those of lists only where lists are counted.
#[derive(Clone, Copy, Debug)]
struct Places {
    cutoffs: usize,
    has_lists: bool,
}

impl Places {
    const SHOWN: usize = 0;
    const CLICKED: usize = 1;
    const CATEGORY: usize = 2;

    /// Impressions at a position up to a cut-off.
    fn top(self, at: usize) -> usize {
        3 + at
    }
    /// Sum over lists of the item's part in a list cut off there; of all items the lists.
    fn weight(self, at: usize) -> usize {
        3 + self.cutoffs + at
    }
    /// Of all items: by how much the squared lengths of lists are above 1, as weights are rounded.
    fn excess(self, at: usize) -> usize {
        3 + 2 * self.cutoffs + at
    }
    /// People by their last impression of the item, and by their last feedback to it.
    fn people(self, is_feedback: bool) -> usize {
        3 + 3 * self.cutoffs + usize::from(is_feedback)
    }
    fn width(self) -> usize {
        match self.has_lists {
            true => 5 + 3 * self.cutoffs,
            false => 3 + self.cutoffs,
        }
    }
}

/// One pane: of its items and pairs those in the samples of so many bits, and how many.
#[derive(Debug)]
struct Pane {
    rows: KeyedCounts<ItemKey>,
    len: [usize; 2],
    bits: [u32; 2],
}

impl Pane {
    fn new(width: usize, bits: [u32; 2]) -> Self {
        Self {
            rows: KeyedCounts::new(width),
            len: [0; 2],
            bits,
        }
    }

    fn row(&mut self, key: ItemKey) -> &mut [i64] {
        let known = self.rows.places.len();
        let at = self.rows.place(key);
        if self.rows.places.len() > known && key.counted() != Counted::Every {
            self.len[key.counted() as usize] += 1;
        }
        let width = self.rows.width;
        &mut self.rows.counts[at..at + width]
    }

    /// Keeps a sample of its items, or of its pairs.
    fn sample(&mut self, what: Counted, bits: u32) {
        self.bits[what as usize] = bits;
        self.rows.retain(|key, _| key.is_in_sample(self.bits));
        let is_of = |key: &&ItemKey| key.counted() == what;
        self.len[what as usize] = self.rows.places.keys().filter(is_of).count();
    }
}

/// The counts of one partition.
#[derive(Debug)]
pub struct ItemCounts {
    spec: ItemCountsSpec,
    places: Places,
    pub labels: Labels,
    rings: Rings,
    unit_ms: i64,
    gathered: KeyedCounts<ItemPane>,
    /// By rollup, counts of no item at the time and under the label that came last.
    last: Vec<Option<(ItemPane, usize)>>,
    panes: PaneMap<Pane>,
    /// Sample bits that new panes of each ring begin with.
    bits: Vec<[u32; 2]>,
    /// From when on what counts.
    since: ItemsSince,
}

impl ItemCounts {
    pub fn new(spec: &ItemCountsSpec, has_lists: bool, since: &ItemsSince) -> Self {
        let places = Places {
            cutoffs: spec.cutoffs.len(),
            has_lists,
        };
        let rings = Rings::new(&spec.rings);
        Self {
            labels: Labels::of_rollups(&spec.rollups, spec.labels),
            unit_ms: since.times().fold(rings.unit_ms(), gcd),
            gathered: KeyedCounts::new(places.width()),
            last: vec![None; spec.rollups.len()],
            panes: PaneMap::default(),
            bits: vec![[0; 2]; rings.len()],
            rings,
            since: since.clone(),
            places,
            spec: spec.clone(),
        }
    }

    fn gather(&mut self, event_ms: i64, key: ItemKey) -> &mut [i64] {
        let unit = event_ms.div_euclid(self.unit_ms);
        self.gathered.row(ItemPane(unit, key))
    }

    /// The counts of no item under a label of a rollup, which every event adds to.
    fn gather_every(&mut self, event_ms: i64, rollup: usize, label: u32) -> &mut [i64] {
        let moment = ItemPane(
            event_ms.div_euclid(self.unit_ms),
            ItemKey::new(EVERY, label),
        );
        let at = match self.last[rollup] {
            Some((last, at)) if last == moment => at,
            _ => self.gathered.place(moment),
        };
        self.last[rollup] = Some((moment, at));
        let width = self.gathered.width;
        &mut self.gathered.counts[at..at + width]
    }

    /// An item is shown.
    pub fn shown(&mut self, dimensions: &Dimensions, at: UserAt, position: u32, item: ItemOf) {
        let places = self.places;
        let reached = match position {
            0 => self.spec.cutoffs.len(),
            position => self.spec.cutoffs.partition_point(|k| *k < position),
        };
        for rollup in 0..self.labels.rollups() {
            let label = self.labels.of_rollup(dimensions, at.combination, rollup);
            let row = self.gather(at.event_ms, ItemKey::new(item.item, label));
            row[Places::SHOWN] += 1;
            for at in reached..places.cutoffs {
                row[places.top(at)] += 1;
            }
            if item.category != NONE {
                let key = ItemKey::of_category(item.category, label);
                let row = self.gather(at.event_ms, key);
                row[Places::CATEGORY] += 1;
            }
            let every = self.gather_every(at.event_ms, rollup, label);
            every[Places::SHOWN] += 1;
            every[Places::CATEGORY] += i64::from(item.category != NONE);
        }
    }

    /// Whether lists are counted, and the people of items.
    pub fn has_lists(&self) -> bool {
        self.places.has_lists
    }

    /// An impression of an item is clicked, or is not any more.
    pub fn clicked(&mut self, dimensions: &Dimensions, at: UserAt, sign: i64, item: u64) {
        for rollup in 0..self.labels.rollups() {
            let label = self.labels.of_rollup(dimensions, at.combination, rollup);
            let row = self.gather(at.event_ms, ItemKey::new(item, label));
            row[Places::CLICKED] += sign;
        }
    }

    /// Somebody saw an item last, or gave feedback to it, or later again: whatever the segments, of
    /// which there may be several, people count under the label of none.
    pub fn person(
        &mut self,
        dimensions: &Dimensions,
        (last_ms, sign): (i64, i64),
        is_feedback: bool,
        item: u64,
    ) {
        let place = self.places.people(is_feedback);
        for rollup in 0..self.labels.rollups() {
            let label = self.labels.unknown(dimensions, rollup);
            self.gather(last_ms, ItemKey::new(item, label))[place] += sign;
        }
    }

    /// Whether the pairs of an item are counted in any ring.
    pub fn has_pairs_of(&self, item: u64) -> bool {
        let is_in = |bits: &[u32; 2]| in_sample(item, bits[Counted::Pair as usize]);
        self.spec.has_pairs && self.bits.iter().any(is_in)
    }

    /// Somebody has given feedback to two items: the first of their last times is another one now.
    pub fn person_of_pair(&mut self, (last_ms, sign): (i64, i64), one: u64, other: u64) {
        let place = self.places.people(true);
        self.gather(last_ms, ItemKey::of_pair(one, other))[place] += sign;
    }

    /// A list is shown as it is now, or is not any more.
    pub fn listed(&mut self, dimensions: &Dimensions, at: UserAt, sign: i64, items: &[ItemOf]) {
        let items = &self.first_places(items);
        if self.spec.has_pairs {
            self.pairs_listed(at.event_ms, sign, items);
        }
        for rollup in 0..self.labels.rollups() {
            let label = self.labels.of_rollup(dimensions, at.combination, rollup);
            self.listed_under(at.event_ms, rollup, label, sign, items);
        }
    }

    /// Each item at its first place in a list, up to the last cut-off: impressions with ids of their
    /// own may show one twice.
    fn first_places(&self, items: &[ItemOf]) -> Vec<(usize, u64)> {
        let longest = self.spec.cutoffs.last().map_or(0, |k| *k as usize);
        let mut seen = HashSet::default();
        (0..longest)
            .zip(items)
            .filter(|(_, item)| seen.insert(item.item))
            .map(|(place, item)| (place, item.item))
            .collect()
    }

    fn pairs_listed(&mut self, event_ms: i64, sign: i64, items: &[(usize, u64)]) {
        let shown = items.iter().filter(|(_, item)| self.has_pairs_of(*item));
        let shown: Vec<_> = shown.collect();
        for (at, (second, item)) in shown.iter().enumerate() {
            for (_, other) in &shown[..at] {
                let places = self.places;
                let reached = self
                    .spec
                    .cutoffs
                    .partition_point(|k| *k as usize <= *second);
                let row = self.gather(event_ms, ItemKey::of_pair(*item, *other));
                for at in reached..places.cutoffs {
                    row[places.top(at)] += sign;
                }
            }
        }
    }

    fn listed_under(
        &mut self,
        event_ms: i64,
        rollup: usize,
        label: u32,
        sign: i64,
        items: &[(usize, u64)],
    ) {
        let places = self.places;
        let cutoffs = if places.has_lists { places.cutoffs } else { 0 };
        for at in 0..cutoffs {
            let cutoff = self.spec.cutoffs[at] as usize;
            let shown = items.partition_point(|(place, _)| *place < cutoff);
            let (weight, excess) = list_weight(shown);
            for (_, item) in &items[..shown] {
                let row = self.gather(event_ms, ItemKey::new(*item, label));
                row[places.weight(at)] += sign * weight;
            }
            let row = self.gather_every(event_ms, rollup, label);
            row[places.weight(at)] += sign;
            row[places.excess(at)] += sign * excess;
        }
    }

    /// Brings what was gathered into the panes; forgets old panes, and items beyond the bound.
    pub fn fold(&mut self, stream_ms: i64) -> Result<(), Overflow> {
        self.last.fill(None);
        let mut gathered = std::mem::replace(&mut self.gathered, KeyedCounts::new(0));
        for (ItemPane(unit, key), counts) in gathered.iter() {
            let counts = &*self.due(unit * self.unit_ms, counts);
            let mut place = 0;
            while let Some((number, ring)) = self.rings.get(place) {
                let pane = (unit * self.unit_ms).div_euclid(ring.pane_ms);
                let of_pairs_ms = match key.counted() {
                    Counted::Pair => self.since.pairs_ms,
                    _ => 0,
                };
                let since_ms = self.since.of_ring(place).max(of_pairs_ms);
                if pane >= ring.oldest(stream_ms) && unit * self.unit_ms >= since_ms {
                    self.add(number_of(number, pane), self.bits[place], key, counts)?;
                }
                place += 1;
            }
        }
        gathered.clear();
        self.gathered = gathered;
        if self.rings.advance(stream_ms) {
            self.panes.expire(&self.rings, |_| ());
        }
        for place in 0..self.rings.len() {
            self.bound(place, Counted::Item);
            self.bound(place, Counted::Pair);
        }
        Ok(())
    }

    /// Counts at a time, without what counts from later on.
    fn due<'a>(&self, at_ms: i64, counts: &'a [i64]) -> Cow<'a, [i64]> {
        let mut due = Cow::Borrowed(counts);
        if at_ms < self.since.clicked_ms {
            due.to_mut()[Places::CLICKED] = 0;
        }
        if at_ms < self.since.people_ms && self.places.has_lists {
            for is_feedback in [false, true] {
                due.to_mut()[self.places.people(is_feedback)] = 0;
            }
        }
        for (at, _) in (0..)
            .zip(&self.since.cutoffs_ms)
            .filter(|(_, ms)| at_ms < **ms)
        {
            due.to_mut()[self.places.top(at)] = 0;
        }
        for (at, _) in (0..)
            .zip(&self.since.lists_ms)
            .filter(|(_, ms)| self.places.has_lists && at_ms < **ms)
        {
            due.to_mut()[self.places.weight(at)] = 0;
            due.to_mut()[self.places.excess(at)] = 0;
        }
        due
    }

    /// Adds counts to a pane; a new one is of the sample of so many bits.
    fn add(
        &mut self,
        number: u64,
        bits: [u32; 2],
        key: ItemKey,
        counts: &[i64],
    ) -> Result<(), Overflow> {
        let width = self.places.width();
        let found = self.panes.find_or(number, || Pane::new(width, bits));
        if !key.is_in_sample(found.pane().bits) {
            return Ok(());
        }
        add_up(found.change().row(key), counts)
    }

    /// Beyond the bound of rows of a ring half of the items stay, and half of those, until they fit;
    /// where few are left, new panes hold more again. So do pairs, of half of the items. Rows of no
    /// item always stay: only panes and labels bound them.
    fn bound(&mut self, place: usize, what: Counted) {
        let at = what as usize;
        let Some((ring, _)) = self.rings.get(place) else {
            return;
        };
        let is_of = |number: u64| ring_and_pane(number).0 == ring;
        loop {
            let of_ring = self.panes.iter().filter(|(number, _)| is_of(*number));
            let rows: usize = of_ring.map(|(_, pane)| pane.len[at]).sum();
            if rows <= self.spec.limit {
                if rows < self.spec.limit / 8 {
                    self.bits[place][at] = self.bits[place][at].saturating_sub(1);
                }
                return;
            }
            self.bits[place][at] += 1;
            let bits = self.bits[place][at];
            self.panes.each(|found| {
                if is_of(found.number) && found.pane().bits[at] < bits {
                    found.change().sample(what, bits);
                }
            });
        }
    }

    pub fn bytes(&self) -> usize {
        let panes: usize = self.panes.iter().map(|(_, pane)| pane.rows.bytes()).sum();
        panes + self.gathered.bytes()
    }

    /// Rows of items and of pairs, of all panes.
    pub fn len(&self) -> usize {
        let of_pane = |(_, pane): (_, &Pane)| pane.len.iter().sum::<usize>();
        self.panes.iter().map(of_pane).sum()
    }
}

impl PaneStore for ItemCounts {
    fn take_changed(&mut self) -> Vec<u64> {
        self.panes.take_changed()
    }

    fn live(&self) -> Vec<u64> {
        self.panes.live()
    }

    fn dump(&self, numbers: &[u64]) -> PaneColumns {
        let mut columns = PaneColumns::default();
        for number in numbers {
            let Some(pane) = self.panes.get(*number) else {
                continue;
            };
            let mut push = |code: u64, value| columns.push(*number, code as i64, value);
            for (place, bits) in SAMPLES.into_iter().zip(pane.bits) {
                push(place, i64::from(bits));
            }
            let mut rows: Vec<_> = pane.rows.iter().collect();
            rows.sort_unstable_by_key(|(key, _)| *key);
            for (key, counts) in rows {
                for (place, count) in (0..).zip(counts) {
                    push(key.code(place), *count);
                }
            }
        }
        columns
    }

    fn load(&mut self, number: u64, codes: &[i64], values: &[i64]) -> Result<(), Overflow> {
        let (ring, _) = ring_and_pane(number);
        let mut pane = Pane::new(self.places.width(), [0; 2]);
        for (code, value) in codes.iter().zip(values) {
            let (key, place) = ItemKey::of_code(*code as u64);
            if let Some(at) = SAMPLES.iter().position(|sample| *sample == *code as u64) {
                pane.bits[at] = *value as u32;
            } else if let Some(count) = pane.row(key).get_mut(place as usize) {
                *count += *value; // of labels that are one now
            }
        }
        if let Some(bits) = ring
            .checked_sub(1)
            .and_then(|at| self.bits.get_mut(at as usize))
        {
            *bits = [0, 1].map(|at| pane.bits[at].max(bits[at]));
        }
        self.panes.insert(number, pane);
        Ok(())
    }
}
