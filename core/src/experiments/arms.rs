//! Arms: of which experiments' arms an event is by its dimensions or fields, and the arm of each label.

use hashbrown::HashMap;

use crate::changes::Combination;
use crate::experiments::assignments::{self, ArmAssignment};
use crate::experiments::exposures::ArmOf;
use crate::hash::mix;
use crate::panes::dimensions::Dimensions;
use crate::panes::labels::Labels;
use crate::spec::experiments::ExposureSpec;

/// Arms that are values of a dimension.
#[derive(Clone, Debug)]
pub struct ValueArms {
    /// Place of the dimension.
    pub dimension: usize,
    /// Place of the exposure.
    pub exposure: u32,
    pub values: Vec<String>,
}

/// What a combination says of arms.
#[derive(Clone, Debug)]
pub struct SaidArms {
    /// Equal where the arms are.
    pub hash: u64,
    pub arms: Box<[ArmOf]>,
}

/// The arms of combinations of values.
#[derive(Debug, Default)]
pub struct ArmsByDimension {
    of: Vec<ValueArms>,
    known: Vec<Option<SaidArms>>,
    changes: u64,
}

impl ArmsByDimension {
    pub fn new(of: Vec<ValueArms>) -> Self {
        Self {
            of,
            ..Self::default()
        }
    }

    /// Whether no arm is a value of a dimension.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// What a combination says.
    pub fn of(&mut self, dimensions: &Dimensions, combination: Combination) -> &SaidArms {
        if self.changes != dimensions.changes {
            self.known.clear();
            self.changes = dimensions.changes;
        }
        let at = combination as usize;
        if at >= self.known.len() {
            self.known.resize(at + 1, None);
        }
        let Self { of, known, .. } = self;
        known[at].get_or_insert_with(|| said(of, dimensions, combination))
    }
}

fn said(of: &[ValueArms], dimensions: &Dimensions, combination: Combination) -> SaidArms {
    let codes = dimensions.codes(combination);
    let arm_of = |arms: &ValueArms| {
        let texts = &dimensions.values[arms.dimension].texts;
        let value = &texts[codes[arms.dimension] as usize];
        let place = arms.values.iter().position(|arm| arm == value)?;
        Some(ArmOf {
            exposure: arms.exposure,
            arm: place as u32 + 1,
        })
    };
    let arms: Box<[ArmOf]> = of.iter().filter_map(arm_of).collect();
    let hash = arms.iter().fold(1, |hash, of| {
        mix(hash, u64::from(of.exposure) << 32 | u64::from(of.arm))
    });
    SaidArms { hash, arms }
}

/// An experiment whose arms stand in fields of events.
#[derive(Clone, Debug)]
struct FieldArms {
    exposure: u32,
    numbers: HashMap<String, u32>,
}

impl FieldArms {
    fn arm(&self, name: &str) -> Option<ArmOf> {
        let arm = *self.numbers.get(name)?;
        let exposure = self.exposure;
        Some(ArmOf { exposure, arm })
    }
}

/// The experiments of a path.
#[derive(Clone, Debug, Default)]
struct PathArms {
    /// All of them.
    alone: Vec<FieldArms>,
    /// By what they are called, places in `alone`.
    by_key: HashMap<String, Vec<usize>>,
}

/// The arms that fields of events say.
#[derive(Debug, Default)]
pub struct ArmsByField {
    by_path: Vec<PathArms>,
    /// Of all experiments, as events of exposures name them.
    by_key: HashMap<String, Vec<FieldArms>>,
}

impl ArmsByField {
    /// Whether no field says a declared arm.
    pub fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    /// Whether an experiment is declared under a key.
    pub fn has(&self, key: &str) -> bool {
        self.by_key.contains_key(key)
    }

    /// Adds an exposure, and where events say of which of its arms they are.
    pub fn add(&mut self, exposure: u32, spec: &ExposureSpec) {
        let arms = FieldArms {
            exposure,
            numbers: spec.arms.iter().cloned().zip(1..).collect(),
        };
        for path in spec.paths() {
            if *path >= self.by_path.len() {
                self.by_path.resize(path + 1, PathArms::default());
            }
            let of = &mut self.by_path[*path];
            let place = of.alone.len();
            of.by_key
                .entry_ref(spec.key.as_str())
                .or_default()
                .push(place);
            of.alone.push(arms.clone());
        }
        self.by_key
            .entry_ref(spec.key.as_str())
            .or_default()
            .push(arms);
    }

    /// What an event of exposures says: an experiment and the arm in it.
    pub fn of_key(&self, key: &str, arm: &str, found: &mut Vec<ArmOf>) {
        for of in self.by_key.get(key).into_iter().flatten() {
            found.extend(of.arm(arm));
        }
    }

    /// The arms that the value at a path says. `other`: takes what is of no declared experiment.
    pub fn read(
        &self,
        path: usize,
        json: &str,
        found: &mut Vec<ArmOf>,
        mut other: impl FnMut(&str, &str),
    ) {
        let none = PathArms::default();
        let of = self.by_path.get(path).unwrap_or(&none);
        let mut push = |arms: &FieldArms, name: &str| found.extend(arms.arm(name));
        assignments::each(json, |said| match said {
            ArmAssignment::Arm(arm) => of.alone.iter().for_each(|arms| push(arms, arm)),
            ArmAssignment::Assignment(key, arm) => match of.by_key.get(key) {
                Some(places) => places.iter().for_each(|place| push(&of.alone[*place], arm)),
                None => other(key, arm),
            },
        });
    }
}

/// The arm of each label, from 1; 0: it has none.
#[derive(Debug)]
pub struct ArmsOfLabels {
    dimension: usize,
    numbers: HashMap<String, u32>,
    of_label: Vec<u32>,
}

impl ArmsOfLabels {
    /// `numbers`: of the arms.
    pub fn new(of: &ValueArms, numbers: &[u32]) -> Self {
        let numbers = numbers.iter().copied();
        Self {
            dimension: of.dimension,
            numbers: of.values.iter().cloned().zip(numbers).collect(),
            of_label: Vec::new(),
        }
    }

    /// Gives new labels their arms.
    pub fn learn(&mut self, labels: &Labels) {
        for label in self.of_label.len()..labels.known.len() {
            let text = labels.text(label, self.dimension);
            let arm = text.and_then(|text| self.numbers.get(text));
            self.of_label.push(arm.copied().unwrap_or(0));
        }
    }

    /// The arm of a label.
    pub fn of(&self, label: u32) -> u32 {
        self.of_label.get(label as usize).copied().unwrap_or(0)
    }
}
