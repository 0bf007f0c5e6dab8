//! Experiments whose unit is not the user: a value of a dimension, such as a store or an account, or a slot
//! of time of one.
//!
//! Events of a unit come in all partitions. So a partition keeps only rows of its units, by day or slot; a
//! reader adds up those of all partitions, and only then are sums over units made. A unit is exposed from
//! the beginning of the day on whose events say its arm first, so that its rows need not be parted: which
//! partition says it changes nothing. The arm of a slot stands in the settings; it is in an experiment if
//! an event that is accepted has its value and a time in it.

use std::collections::BTreeMap;

use crate::changes::{Combination, UserAt};
use crate::columns::{Columns, LoadError};
use crate::decode::ArmTexts;
use crate::experiments::exposures::ArmOf;
use crate::experiments::spans::DAY_MS;
use crate::experiments::{ExperimentTable, Experiments};
use crate::hash::{HashKey, HashMap, HashSet, NONE, in_sample, mix};
use crate::panes::Overflow;
use crate::panes::dimensions::{Dimensions, OTHER};
use crate::spec::RowLimit;
use crate::spec::experiments::{SlotsSpec, UnitSpec};

/// The hash of everything, where no dimension tells units apart.
const EVERYTHING: u64 = 1;
/// Not looked at yet: no value has this hash.
const UNSET: u64 = u64::MAX;
/// The column that says of which unit a stored row is.
const CODE: &str = "unit_code";

/// A stored table of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitTable {
    Exposures,
    Days,
}

impl UnitTable {
    /// In the order in which they are loaded.
    pub const ALL: [Self; 2] = [Self::Exposures, Self::Days];

    /// Under which it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exposures => "unit_exposures",
            Self::Days => "unit_days",
        }
    }

    /// The latest time of stored rows.
    pub fn latest_ms(self, columns: &Columns) -> Result<i64, LoadError> {
        if columns.0.is_empty() {
            return Ok(0); // there are no units
        }
        self.within().latest_ms(columns)
    }

    fn within(self) -> ExperimentTable {
        match self {
            Self::Exposures => ExperimentTable::Exposures,
            Self::Days => ExperimentTable::Days,
        }
    }
}

/// Slots of time, with the arms of each value.
#[derive(Debug)]
struct Slots {
    spec: SlotsSpec,
    /// Hash of a value → the numbers of the arms of its slots.
    arms: HashMap<Vec<u32>>,
}

impl Slots {
    fn new(spec: &SlotsSpec, key: &HashKey) -> Self {
        let arms = spec.schedule.iter();
        let arms = arms.map(|(value, arms)| (key.of(value.as_bytes()), arms.clone()));
        Self {
            arms: arms.collect(),
            spec: spec.clone(),
        }
    }

    /// The number of the slot that a time counts for.
    fn number(&self, event_ms: i64) -> Option<i64> {
        let since_ms = event_ms - self.spec.start_ms;
        let is_in = since_ms >= 0 && since_ms % self.spec.length_ms >= self.spec.washout_ms;
        is_in.then(|| since_ms / self.spec.length_ms)
    }

    fn start_ms(&self, number: i64) -> i64 {
        self.spec.start_ms + number * self.spec.length_ms
    }

    /// The arm of a value in a slot.
    fn arm(&self, digest: u64, number: i64) -> Option<u32> {
        let arms = self.arms.get(&digest).unwrap_or(&self.spec.others);
        let turns = i64::try_from(arms.len()).ok().filter(|turns| *turns > 0)?;
        arms.get((number % turns) as usize).copied()
    }
}

/// What tells the slots of a value apart.
fn of_slot(number: i64) -> u64 {
    mix(number as u64, 1)
}

/// The experiments of one unit.
#[derive(Debug)]
struct UnitKind {
    dimension: Option<usize>,
    slots: Option<Slots>,
    code: i64,
    /// The hashes of values that are kept whatever the sample.
    named: HashSet,
    /// Their users are units. No sums are made in a partition, as it has not all of a unit.
    experiments: Experiments,
    /// The hash of the value of each combination; `NONE`: it has none.
    digests: Vec<u64>,
    changes: u64,
}

impl UnitKind {
    fn new(
        spec: &UnitSpec,
        (key, dimensions, limit): (&HashKey, usize, RowLimit),
    ) -> Result<Self, String> {
        if spec.dimension.is_some_and(|place| place >= dimensions) {
            return Err("a unit is of a dimension that there is not".to_owned());
        }
        if let Some(slots) = &spec.slots
            && (slots.length_ms <= slots.washout_ms || slots.washout_ms < 0)
        {
            return Err("a slot of time is not longer than its beginning".to_owned());
        }
        let mut experiments = Experiments::bounded(&spec.experiments, dimensions, limit)?;
        experiments.restore(vec![Vec::new()], i64::MAX);
        Ok(Self {
            dimension: spec.dimension,
            slots: spec.slots.as_ref().map(|slots| Slots::new(slots, key)),
            code: spec.code,
            named: spec.named.iter().map(|x| key.of(x.as_bytes())).collect(),
            experiments,
            digests: Vec::new(),
            changes: 0,
        })
    }

    /// The hash of the value that a combination has.
    fn digest(&mut self, dimensions: &Dimensions, combination: Combination) -> u64 {
        let Some(place) = self.dimension else {
            return EVERYTHING;
        };
        if self.changes != dimensions.changes {
            self.digests.clear();
            self.changes = dimensions.changes;
        }
        let at = combination as usize;
        if at >= self.digests.len() {
            self.digests.resize(at + 1, UNSET);
        }
        if self.digests[at] == UNSET {
            let code = dimensions.codes(combination)[place];
            let text = &dimensions.values[place].texts[code as usize];
            let is_other = code <= OTHER;
            self.digests[at] = if is_other {
                NONE
            } else {
                dimensions.hash_of(text)
            };
        }
        self.digests[at]
    }

    /// The unit of a value at a time, and the time under which its rows are; None where it has none.
    fn unit_of(&self, digest: u64, event_ms: i64) -> Option<(u64, i64)> {
        if digest == NONE {
            return None;
        }
        let Some(slots) = &self.slots else {
            return Some((digest, event_ms.div_euclid(DAY_MS) * DAY_MS));
        };
        let number = slots.number(event_ms)?;
        slots.arm(digest, number)?;
        Some((digest ^ of_slot(number), slots.start_ms(number)))
    }

    fn unit(&mut self, dimensions: &Dimensions, at: UserAt) -> Option<(u64, i64)> {
        let digest = self.digest(dimensions, at.combination);
        self.unit_of(digest, at.event_ms)
    }

    /// The hash of the value that a unit is of.
    fn value_of(&self, (unit, at): (u64, i64)) -> u64 {
        match &self.slots {
            Some(slots) => unit ^ of_slot((at - slots.spec.start_ms) / slots.spec.length_ms),
            None => unit,
        }
    }

    /// Whether a unit is in the samples: of values, and of rows.
    fn is_in(&self, unit: (u64, i64), (values, rows): (u32, u32)) -> bool {
        let value = self.value_of(unit);
        in_sample(unit.0, rows) && (self.named.contains(&value) || in_sample(value, values))
    }

    /// Adds the rows of another one that are in the samples.
    fn add_all(&mut self, other: &Self, bits: (u32, u32)) -> Result<(), Overflow> {
        let (from, to) = (&other.experiments.tables, &mut self.experiments.tables);
        for (key, amounts) in from.days.iter() {
            if other.is_in((key.user, key.at), bits) {
                to.days.add_row(key, amounts)?;
            }
        }
        for unit in from.exposures.users() {
            for (of, first_ms) in from.exposures.of(unit) {
                let is_in = other.is_in((unit, first_ms), bits);
                if is_in && to.exposures.is_new(unit, of, first_ms) {
                    to.exposures.set(unit, of, first_ms);
                }
            }
        }
        Ok(())
    }
}

/// The units of one partition, or the sum of all.
#[derive(Debug, Default)]
pub struct Units {
    kinds: Vec<UnitKind>,
}

impl Units {
    /// `limit`: of the rows of each unit's tables; an error where places do not fit.
    pub fn new(
        specs: &[UnitSpec],
        key: &HashKey,
        (dimensions, limit): (usize, RowLimit),
    ) -> Result<Self, String> {
        let kinds = specs.iter();
        let kinds = kinds.map(|spec| UnitKind::new(spec, (key, dimensions, limit)));
        Ok(Self {
            kinds: kinds.collect::<Result<_, _>>()?,
        })
    }

    // Events ----------------------------------------------------------------------------------------

    /// An event is accepted: it exposes its unit to the arms that its fields say, or an event of
    /// exposures (`named`: experiment and arm), or that the settings say of its time.
    pub fn accept(
        &mut self,
        dimensions: &Dimensions,
        place: (i64, Combination),
        (said, named): (ArmTexts<'_>, Option<(&str, &str)>),
    ) {
        for kind in &mut self.kinds {
            let digest = kind.digest(dimensions, place.1);
            let Some((unit, at)) = kind.unit_of(digest, place.0) else {
                continue;
            };
            let own = &mut kind.experiments;
            if let Some(slots) = &kind.slots {
                let arm = slots.number(place.0).and_then(|n| slots.arm(digest, n));
                let of = arm.map(|arm| ArmOf { exposure: 0, arm });
                if own.is_wanted(unit, at) {
                    own.set_exposures(unit, at, of.as_slice());
                }
                continue;
            }
            own.expose_by_fields(unit, at, said);
            if let Some(named) = named {
                own.expose_by_event(unit, at, named);
            }
        }
    }

    /// An impression exposes its unit to the arms that its dimensions say.
    pub fn expose(&mut self, dimensions: &Dimensions, of: UserAt) {
        for kind in self.kinds.iter_mut().filter(|kind| kind.slots.is_none()) {
            if let Some((user, event_ms)) = kind.unit(dimensions, of) {
                let at = UserAt::new(user, event_ms, of.combination);
                kind.experiments.expose(dimensions, at);
            }
        }
    }

    /// Adds an amount of one sum; `is_load`: where loaded rows do not have it.
    pub fn add(
        &mut self,
        dimensions: &Dimensions,
        (sum, is_load): (usize, bool),
        at: UserAt,
        amount: i64,
    ) -> Result<(), Overflow> {
        for kind in &mut self.kinds {
            if is_load && kind.experiments.is_stored(sum) {
                continue;
            }
            if let Some(unit) = kind.unit(dimensions, at) {
                kind.experiments.add_at(unit, sum, amount)?;
            }
        }
        Ok(())
    }

    /// Whether loaded rows know all sums.
    pub fn is_all_stored(&self) -> bool {
        self.kinds
            .iter()
            .all(|kind| kind.experiments.is_all_stored())
    }

    // Bounds of memory --------------------------------------------------------------------------------

    /// Beyond the bound of rows keep half of the units; and those alone whose values are kept.
    pub fn shrink(&mut self, dimensions: &Dimensions) {
        for kind in &mut self.kinds {
            let values = kind.dimension.map(|place| &dimensions.values[place]);
            let bits = values.filter(|_| kind.named.is_empty() && kind.slots.is_none());
            let bits = bits.map_or(0, |values| values.bits());
            let own = &mut kind.experiments;
            if bits > own.sample_bits() {
                own.keep_sample(bits);
            }
            own.shrink();
        }
    }

    /// Of each unit how many bits of the hashes of its values are 0, and of those of its rows.
    pub fn bits(&self, dimensions: &Dimensions) -> Vec<(u32, u32)> {
        let bits = |kind: &UnitKind| {
            let values = kind.dimension.map(|place| dimensions.values[place].bits());
            (values.unwrap_or(0), kind.experiments.sample_bits())
        };
        self.kinds.iter().map(bits).collect()
    }

    /// Before rows are loaded: likewise, as they were.
    pub fn restore(&mut self, dimensions: &mut Dimensions, bits: &[(u32, u32)]) {
        for (kind, (values, rows)) in self.kinds.iter_mut().zip(bits) {
            if let Some(place) = kind.dimension {
                dimensions.values[place].set_bits(*values);
            }
            kind.experiments.keep_sample(*rows);
        }
    }

    /// Amounts that were not kept because their unit had too many rows.
    pub fn dropped_rows(&self) -> u64 {
        self.kinds
            .iter()
            .map(|kind| kind.experiments.dropped_rows())
            .sum()
    }

    /// Rows, and bytes of memory.
    pub fn sizes(&self) -> (usize, usize) {
        let sizes = self.kinds.iter().map(|kind| {
            let (rows, bytes) = kind.experiments.exposure_rows();
            let own = &kind.experiments;
            (rows.max(own.user_rows()), bytes + own.nbytes())
        });
        sizes.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }

    // Stored form -------------------------------------------------------------------------------------

    /// Changes from now on belong to another epoch.
    pub fn seal(&mut self) {
        for kind in &mut self.kinds {
            kind.experiments.seal();
        }
        UnitTable::ALL
            .into_iter()
            .for_each(|table| self.align(table));
    }

    /// All units have the same epoch after a seal.
    fn align(&mut self, table: UnitTable) {
        let epochs = self.kinds.iter();
        let epochs = epochs.map(|kind| kind.experiments.versions(table.within()).epoch());
        let latest = epochs.max().unwrap_or(0);
        for kind in &mut self.kinds {
            kind.experiments
                .versions_mut(table.within())
                .advance(latest);
        }
    }

    /// The epoch that changes of a table belong to.
    pub fn epoch(&self, table: UnitTable) -> u32 {
        let first = self.kinds.first();
        first.map_or(0, |kind| kind.experiments.versions(table.within()).epoch())
    }

    /// Stored rows of a table before this time (ms) are not wanted.
    pub fn horizon_ms(&self, table: UnitTable) -> i64 {
        let kinds = self.kinds.iter();
        let horizons = kinds.map(|kind| kind.experiments.horizon_ms(table.within()));
        horizons.min().unwrap_or(i64::MAX)
    }

    /// What is stored of rows of a table that last changed in the epochs [first, end).
    pub fn changed(&self, table: UnitTable, first: u32, end: u32) -> Columns {
        let of_kind = |kind: &UnitKind| {
            let mut columns = kind.experiments.changed(table.within(), first, end);
            let rows = columns.rows().unwrap_or(0);
            columns.add(CODE, vec![kind.code; rows]);
            columns
        };
        let found: Vec<Columns> = self.kinds.iter().map(of_kind).collect();
        Columns::joined(&found).unwrap_or_default() // all have the columns of the table
    }

    /// How many rows of a table last changed from each of these epochs (ascending) on, before the
    /// next.
    pub fn live(&self, table: UnitTable, firsts: &[u32]) -> Vec<u64> {
        let mut all = vec![0; firsts.len()];
        for kind in &self.kinds {
            let live = kind.experiments.versions(table.within()).live(firsts);
            all.iter_mut()
                .zip(live)
                .for_each(|(sum, of_kind)| *sum += of_kind);
        }
        all
    }

    /// Takes over stored rows, as an epoch of their own; those of units that are not wanted any more are
    /// left out.
    pub fn load(&mut self, table: UnitTable, columns: &Columns) -> Result<(), LoadError> {
        let codes: &[i64] = columns.get(CODE)?;
        columns.rows()?;
        for kind in &mut self.kinds {
            let own = codes
                .iter()
                .enumerate()
                .filter(|(_, code)| **code == kind.code);
            let own: Vec<usize> = own.map(|(row, _)| row).collect();
            kind.experiments
                .load(table.within(), &columns.taken(&own))?;
        }
        self.align(table);
        Ok(())
    }
}

/// Sums over the units of all partitions.
#[derive(Debug)]
pub struct UnitTotals {
    specs: Vec<UnitSpec>,
    key: HashKey,
    dimensions: usize,
    /// Of each unit the samples: of values, and of rows.
    bits: Vec<(u32, u32)>,
    all: Units,
}

/// What a unit's experiments come to.
pub struct UnitSumsOf {
    /// The first key of each experiment on a day.
    pub first_keys: Vec<i64>,
    pub days: BTreeMap<i64, Columns>,
    /// Of each exposure when it exposed a unit first.
    pub first_exposures_ms: Vec<Option<i64>>,
}

/// Rows are bounded in the partitions.
const UNBOUNDED: RowLimit = RowLimit {
    rows: usize::MAX,
    of_a_user: u32::MAX,
};

impl UnitTotals {
    /// `bits`: of each unit the samples of all partitions, values and rows.
    pub fn new(
        specs: Vec<UnitSpec>,
        (key, dimensions): (HashKey, usize),
        bits: Vec<(u32, u32)>,
    ) -> Result<Self, String> {
        let all = Units::new(&specs, &key, (dimensions, UNBOUNDED))?;
        Ok(Self {
            specs,
            key,
            dimensions,
            bits,
            all,
        })
    }

    /// Adds the rows of a partition: stored exposures and days, the oldest blobs first.
    pub fn add(&mut self, exposures: &[Columns], days: &[Columns]) -> Result<(), LoadError> {
        let mut of_one = Units::new(&self.specs, &self.key, (self.dimensions, UNBOUNDED))?;
        for (table, blobs) in [(UnitTable::Exposures, exposures), (UnitTable::Days, days)] {
            for columns in blobs {
                of_one.load(table, columns)?;
            }
        }
        for ((kind, other), bits) in self.all.kinds.iter_mut().zip(&of_one.kinds).zip(&self.bits) {
            kind.add_all(other, *bits)
                .map_err(|_| "a sum of a unit would pass 2**62")?;
        }
        Ok(())
    }

    /// The sums of each unit.
    pub fn finish(&mut self) -> Result<Vec<UnitSumsOf>, Overflow> {
        let kinds = self.all.kinds.iter_mut();
        let sums = kinds.map(|kind| {
            let own = &mut kind.experiments;
            own.make_stale();
            own.refresh(i64::MIN)?;
            let days: Vec<i64> = own.days().collect();
            Ok(UnitSumsOf {
                first_keys: own.first_keys(),
                days: days
                    .into_iter()
                    .map(|day| (day, own.sums_of_day(day)))
                    .collect(),
                first_exposures_ms: own.first_exposures_ms(),
            })
        });
        sums.collect()
    }
}
