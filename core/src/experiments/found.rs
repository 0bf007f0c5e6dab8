//! Experiments that events name and settings do not: each gets a free slot, whose arms are numbered as
//! they come. Where there are too many, those stay whose people include the one with the smallest
//! hash, whatever came first: one person who invents names puts out few true ones. So do arms.

use hashbrown::{HashMap, HashSet};

use crate::experiments::exposures::ArmOf;
use crate::experiments::spans::DAY_MS;
use crate::hash::{HashKey, mix};
use crate::spec::experiments::{ExposureSpec, FoundSpec};

/// A key or an arm, and the smallest hash of a person of whom an event named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub text: String,
    pub by: u64,
}

impl Named {
    fn new(text: &str, by: u64) -> Self {
        let text = text.to_owned();
        Self { text, by }
    }

    /// Of two the one with the smaller rank stays: the bits of the smallest hash of a person, which fall
    /// by one where twice as many people name it; then a hash of the name, the same everywhere.
    fn rank(&self) -> (u32, u64) {
        (u64::BITS - self.by.leading_zeros(), hash_of(&self.text))
    }
}

/// An experiment that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundExperiment {
    pub key: Named,
    /// By their numbers.
    pub arms: Vec<Named>,
    /// The first and the last day (since 1970-01-01) on which an event named it.
    pub days: (i64, i64),
    /// Under which rows of its exposures are stored: another one each time that it is found.
    pub code: i64,
}

/// Those of one partition.
#[derive(Debug, Default)]
pub struct FoundExperiments {
    spec: FoundSpec,
    /// Place of the exposure of the first slot.
    first: usize,
    declared: HashSet<String>,
    slots: Vec<Option<FoundExperiment>>,
    by_key: HashMap<String, usize>,
    /// Events that named an experiment or an arm for which there was no room.
    pub left_out: u64,
}

/// What becomes of an arm that an event names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    pub arm: Option<ArmOf>,
    pub replaced: Option<Replaced>,
}

/// What had to leave for an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    Exposure(u32),
    Arm(ArmOf),
}

impl Replaced {
    /// Whether an arm left.
    pub fn has(self, of: ArmOf) -> bool {
        match self {
            Self::Exposure(exposure) => exposure == of.exposure,
            Self::Arm(arm) => arm == of,
        }
    }
}

impl FoundExperiments {
    /// `exposures`: the last ones are those of the slots.
    pub fn new(spec: &FoundSpec, exposures: &[ExposureSpec]) -> Result<Self, String> {
        let first = exposures.len().checked_sub(spec.slots);
        let first = first.ok_or("there are fewer exposures than slots of experiments")?;
        let declared = exposures[..first].iter();
        Ok(Self {
            spec: spec.clone(),
            first,
            declared: declared
                .map(|exposure| exposure.key.clone())
                .chain(spec.taken.iter().cloned())
                .collect(),
            slots: vec![None; spec.slots],
            by_key: HashMap::new(),
            left_out: 0,
        })
    }

    /// Whether experiments are looked for.
    pub fn is_on(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Whether they are looked for in what stands at a path.
    pub fn reads(&self, path: usize) -> bool {
        self.spec.paths.contains(&path)
    }

    /// Whether settings name an experiment.
    pub fn is_declared(&self, key: &str) -> bool {
        self.declared.contains(key)
    }

    /// By slot.
    pub fn slots(&self) -> &[Option<FoundExperiment>] {
        &self.slots
    }

    fn exposure(&self, slot: usize) -> u32 {
        (self.first + slot) as u32
    }

    /// An event of a person names an experiment; all that it names are to be noted before any is placed.
    pub fn note(&mut self, key: &str, person: u64) {
        let slot = self
            .by_key
            .get(key)
            .and_then(|slot| self.slots.get_mut(*slot));
        if let Some(found) = slot.and_then(Option::as_mut) {
            found.key.by = found.key.by.min(person);
        }
    }

    /// An event of a person names an experiment that settings do not, and an arm.
    pub fn place(&mut self, (key, arm): (&str, &str), person: u64, event_ms: i64) -> Placed {
        let day = event_ms.div_euclid(DAY_MS);
        let fits = |text: &str| !text.is_empty() && text.len() <= self.spec.most_bytes;
        if !self.is_on() || self.is_declared(key) || !fits(key) || !fits(arm) {
            return Placed::default();
        }
        self.note(key, person);
        let (slot, mut replaced) = match self.by_key.get(key) {
            Some(slot) => (*slot, None),
            None => {
                let new = Named::new(key, person);
                let Some((slot, is_taken)) = self.make_room(&new) else {
                    self.left_out += 1;
                    return Placed::default();
                };
                self.by_key.insert(key.to_owned(), slot);
                self.slots[slot] = Some(FoundExperiment {
                    key: new,
                    arms: Vec::new(),
                    days: (day, day),
                    code: code_of(key, event_ms),
                });
                (
                    slot,
                    is_taken.then(|| Replaced::Exposure(self.exposure(slot))),
                )
            }
        };
        let (exposure, most) = (self.exposure(slot), self.spec.most_arms);
        let arm = self.slots[slot].as_mut().and_then(|found| {
            found.days = (found.days.0.min(day), found.days.1.max(day));
            let (at, is_taken) = place_arm(&mut found.arms, arm, (person, most))?;
            let arm = at as u32 + 1;
            let of = ArmOf { exposure, arm };
            if is_taken {
                replaced = Some(Replaced::Arm(of));
            }
            Some(of)
        });
        self.left_out += u64::from(arm.is_none() || replaced.is_some());
        Placed { arm, replaced }
    }

    /// A slot for a new experiment, and whether another one had it: a free one, or that of the one with
    /// the largest rank, if that is larger.
    fn make_room(&mut self, new: &Named) -> Option<(usize, bool)> {
        if let Some(free) = self.slots.iter().position(Option::is_none) {
            return Some((free, false));
        }
        let ranks = self.slots.iter().flatten().map(|found| found.key.rank());
        let (slot, largest) = ranks.enumerate().max_by_key(|(_, rank)| *rank)?;
        if new.rank() >= largest {
            return None;
        }
        self.forget(slot);
        Some((slot, true))
    }

    fn forget(&mut self, slot: usize) {
        if let Some(found) = self.slots[slot].take() {
            self.by_key.remove(&found.key.text);
        }
    }

    /// Retires experiments that no event has named for long, or that are too old, as of a day. Returns
    /// their exposures.
    pub fn retire(&mut self, today: i64) -> Vec<u32> {
        let FoundSpec {
            silent_days,
            most_days,
            ..
        } = self.spec;
        let is_over = |found: &FoundExperiment| {
            let (first, last) = found.days;
            today - last > silent_days || today - first >= most_days
        };
        let slots = self.slots.iter().enumerate();
        let over = slots.filter(|(_, found)| found.as_ref().is_some_and(is_over));
        let over: Vec<usize> = over.map(|(slot, _)| slot).collect();
        over.iter().for_each(|slot| self.forget(*slot));
        over.into_iter().map(|slot| self.exposure(slot)).collect()
    }

    /// The first day of any that is there.
    pub fn first_day(&self) -> Option<i64> {
        self.slots.iter().flatten().map(|found| found.days.0).min()
    }

    /// Takes over what was found, by slot. Returns those that settings name since.
    pub fn restore(&mut self, stored: Vec<(usize, FoundExperiment)>) -> Vec<FoundExperiment> {
        let mut declared = Vec::new();
        for (slot, found) in stored {
            if self.is_declared(&found.key.text) {
                declared.push(found);
            } else if slot < self.slots.len() && found.arms.len() <= self.spec.most_arms {
                self.by_key.insert(found.key.text.clone(), slot);
                self.slots[slot] = Some(found);
            }
        }
        declared
    }

    /// What stands in the slot of an exposure; None of a declared one.
    pub fn of_exposure(&self, exposure: u32) -> Option<&FoundExperiment> {
        let slot = (exposure as usize).checked_sub(self.first)?;
        self.slots.get(slot)?.as_ref()
    }

    /// The exposure whose rows are stored under a code.
    pub fn of_code(&self, code: i64) -> Option<u32> {
        let is_it =
            |found: &Option<FoundExperiment>| found.as_ref().is_some_and(|x| x.code == code);
        self.slots
            .iter()
            .position(is_it)
            .map(|slot| self.exposure(slot))
    }
}

/// The place of an arm, and whether another one had it; None where there is no room.
fn place_arm(
    arms: &mut Vec<Named>,
    arm: &str,
    (person, most): (u64, usize),
) -> Option<(usize, bool)> {
    if let Some(at) = arms.iter().position(|known| known.text == arm) {
        arms[at].by = arms[at].by.min(person);
        return Some((at, false));
    }
    let new = Named::new(arm, person);
    if arms.len() < most {
        arms.push(new);
        return Some((arms.len() - 1, false));
    }
    let ranks = arms.iter().map(Named::rank).enumerate();
    let (at, largest) = ranks.max_by_key(|(_, rank)| *rank)?;
    if new.rank() >= largest {
        return None;
    }
    arms[at] = new;
    Some((at, true))
}

/// The same in every partition.
fn hash_of(key: &str) -> u64 {
    HashKey(0, 0).of(key.as_bytes())
}

/// Codes of declared experiments are others.
fn code_of(key: &str, event_ms: i64) -> i64 {
    (mix(hash_of(key), event_ms as u64) >> 3) as i64 | 1 << 61
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::experiments::ExposedBy;

    fn found(slots: usize) -> FoundExperiments {
        let exposure = |key: &str| ExposureSpec {
            by: ExposedBy::Fields(vec![]),
            key: key.to_owned(),
            arms: vec!["1".to_owned(), "2".to_owned()],
            first_day: 0,
            is_attributed: false,
            days: (0, 100),
            code: 1,
        };
        let mut exposures = vec![exposure("declared")];
        exposures.extend((0..slots).map(|_| exposure("")));
        let spec = FoundSpec {
            slots,
            paths: vec![1],
            most_arms: 2,
            most_bytes: 8,
            silent_days: 7,
            most_days: 20,
            taken: vec![],
        };
        FoundExperiments::new(&spec, &exposures).unwrap()
    }

    #[test]
    fn arms_are_numbered_as_they_come() {
        let mut found = found(2);
        let place = |found: &mut FoundExperiments, key: &str, arm: &str| {
            let placed = found.place((key, arm), 7, 3 * DAY_MS);
            placed.arm.map(|of| (of.exposure, of.arm))
        };
        assert_eq!(place(&mut found, "a", "x"), Some((1, 1)));
        assert_eq!(place(&mut found, "b", "x"), Some((2, 1)));
        assert_eq!(place(&mut found, "a", "y"), Some((1, 2)));
        assert_eq!(place(&mut found, "a", "x"), Some((1, 1)));
        assert_eq!(place(&mut found, "a", "z"), None);
        assert_eq!(found.left_out, 1);
        assert_eq!(place(&mut found, "declared", "x"), None);
        assert_eq!(place(&mut found, "much too long", "x"), None);
        assert_eq!(found.left_out, 1);
        let first = found.of_exposure(1).unwrap();
        let arms: Vec<&str> = first.arms.iter().map(|arm| &*arm.text).collect();
        assert_eq!(arms, ["x", "y"]);
        assert_eq!(found.of_code(first.code), Some(1));
        assert!(found.of_exposure(0).is_none() && found.of_exposure(3).is_none());
    }

    #[test]
    fn of_too_many_the_same_stay_in_any_order() {
        let keys: Vec<String> = (0..20).map(|n| format!("e{n}")).collect();
        let kept = |order: Vec<&String>| {
            let mut found = found(5);
            for key in order {
                found.place((key, "x"), 7, DAY_MS);
            }
            let mut kept: Vec<_> = found
                .slots
                .iter()
                .flatten()
                .map(|x| x.key.text.clone())
                .collect();
            kept.sort_unstable();
            kept
        };
        let forwards = kept(keys.iter().collect());
        assert_eq!(forwards.len(), 5);
        assert_eq!(kept(keys.iter().rev().collect()), forwards);
    }

    #[test]
    fn what_one_person_invents_puts_out_nothing_that_others_name() {
        let bot = u64::MAX / 1000;
        for is_first in [true, false] {
            let mut found = found(5);
            let flood = |found: &mut FoundExperiments| {
                for n in 0..500 {
                    found.place((&format!("x{n}"), "x"), bot, DAY_MS);
                    found.place(("true", &format!("x{n}")), bot, DAY_MS);
                }
            };
            if is_first {
                flood(&mut found);
            }
            for person in 1..=4_000 {
                let arm = if person % 2 == 0 { "a" } else { "b" };
                found.place(("true", arm), person << 51, DAY_MS);
            }
            if !is_first {
                flood(&mut found);
            }
            let slots = found.slots.iter().flatten();
            let of = slots.filter(|x| x.key.text == "true");
            let mut arms: Vec<String> = of.flat_map(|x| &x.arms).map(|x| x.text.clone()).collect();
            arms.sort_unstable();
            assert_eq!(arms, ["a", "b"], "flood first: {is_first}");
            assert!(found.left_out > 0);
        }
    }

    #[test]
    fn what_is_silent_or_old_is_retired() {
        let mut found = found(3);
        let name = |found: &mut FoundExperiments, key: &str, day: i64| {
            found.place((key, "x"), 7, day * DAY_MS);
        };
        name(&mut found, "a", 1);
        name(&mut found, "b", 1);
        name(&mut found, "c", 9);
        name(&mut found, "b", 9);
        assert_eq!(found.retire(8), [0_u32; 0]);
        assert_eq!(found.retire(9), [1]);
        assert_eq!(found.first_day(), Some(1));
        name(&mut found, "b", 20);
        assert_eq!(found.retire(20), [3]);
        assert_eq!(found.retire(21), [2]);
        assert_eq!(found.first_day(), None);
    }
}
