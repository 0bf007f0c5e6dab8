use ethnum::I256;
use serde_json::{Value, json};

use super::trial::SHOWN;
use super::*;
use crate::changes::{Combination, UserAt};
use crate::hash::{HashKey, mix};
use crate::kafka::testing::Dice;
use crate::spec::{self, RowLimit};

const DAY: i64 = 20_000;
const T0: i64 = DAY * DAY_MS;
const LATENESS_MS: i64 = 3 * 3_600_000;
/// Places of the sums.
const CLICKS: usize = 2;
const VALUE: usize = 3;
const VALUE_HIGH: usize = 4;

/// Two experiments under one exposure and one that is attributed, all by the first dimension.
fn whole_spec() -> Value {
    let names = ["impressions", "outcomes", "clicks", "value", "value_high"];
    let exposure = |is_attributed: bool, code: i64| {
        json!({"by": {"dimension": 0}, "arms": ["A", "B"], "first_day": DAY, "key": "e",
               "is_attributed": is_attributed, "days": [DAY - 2, DAY + 9], "code": code})
    };
    let clicks = json!({"above": CLICKS, "below": SHOWN, "high": null});
    let value = json!({"above": VALUE, "below": null, "high": VALUE_HIGH, "cap": "quantile"});
    let trial = |exposure: usize, days: i64, covariates: Value| {
        json!({"days": [DAY, DAY + days], "arms": [1, 2],
               "covariates": covariates, "exposure": exposure, "measures": [&clicks, &value]})
    };
    json!({
        "sums": names.map(|name| json!({"name": name})),
        "columns": names,
        "explored": [1],
        "exposures": [exposure(false, 7), exposure(true, 8)],
        "trials": [
            trial(0, 9, Value::Null), trial(0, 3, json!([DAY - 2, DAY])), trial(1, 6, Value::Null)
        ],
    })
}

fn experiments(spec: Value, limit: (usize, u32)) -> Result<Experiments, String> {
    let spec = serde_json::from_value(spec).map_err(|error| error.to_string())?;
    let (rows, of_a_user) = limit;
    Experiments::bounded(&spec, 2, RowLimit { rows, of_a_user })
}

fn dimensions() -> Dimensions {
    let dimension = |(name, values): (&str, &[&str])| spec::Dimension {
        name: name.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        max_values: 100,
        is_sampled: false,
    };
    let both: [(&str, &[&str]); 2] = [("variant", &["A", "B"]), ("surface", &[])];
    Dimensions::new(HashKey(1, 2), &both.map(dimension))
}

/// What an event adds; an impression exposes its user.
fn add(
    experiments: &mut Experiments,
    dimensions: &Dimensions,
    sum: usize,
    (at, amount): (UserAt, i64),
) -> Result<(), Overflow> {
    if sum == SHOWN {
        experiments.expose(dimensions, at);
    }
    experiments.add(dimensions, sum, at, amount)
}

/// The sums of an experiment.
fn columns_of(experiments: &Experiments, trial: usize) -> Columns {
    experiments.trials[trial].columns(&experiments.sums, ALL_OUTCOMES..ALL_OUTCOMES + 1)
}

/// Experiments, the dimensions of their events, and all that was added to them.
struct Run {
    experiments: Experiments,
    dimensions: Dimensions,
    final_ms: i64,
    added: Vec<(usize, UserAt, i64)>,
}

impl Run {
    fn new(limit: usize, of_a_user: u32) -> Self {
        Self {
            experiments: experiments(whole_spec(), (limit, of_a_user)).unwrap(),
            dimensions: dimensions(),
            final_ms: 0,
            added: Vec::new(),
        }
    }

    fn combination(&mut self, variant: &str, surface: &str) -> Combination {
        self.dimensions
            .combination_of([variant, surface].into_iter(), |_, _| ())
    }

    fn add(&mut self, sum: usize, place: UserAt, amount: i64) -> Result<(), Overflow> {
        self.added.push((sum, place, amount));
        add(
            &mut self.experiments,
            &self.dimensions,
            sum,
            (place, amount),
        )
    }

    fn refresh(&mut self, clock_ms: i64) -> Result<(), Overflow> {
        self.final_ms = clock_ms - LATENESS_MS;
        self.experiments.refresh(self.final_ms)
    }

    fn columns(&self, trial: usize) -> Columns {
        columns_of(&self.experiments, trial)
    }

    /// The sums are those of a partition to which all of it came at once.
    fn check(&mut self, clock_ms: i64) {
        self.refresh(clock_ms).unwrap();
        assert_eq!(self.experiments.dropped_rows(), 0);
        assert!(!self.experiments.is_dirty());
        let mut whole = experiments(whole_spec(), (1 << 30, 1 << 18)).unwrap();
        whole.keep_sample(self.experiments.sample_bits());
        for (sum, place, amount) in &self.added {
            add(&mut whole, &self.dimensions, *sum, (*place, *amount)).unwrap();
        }
        whole.refresh(self.final_ms).unwrap();
        for trial in 0..3 {
            assert_eq!(self.columns(trial).0, columns_of(&whole, trial).0);
        }
    }
}

/// One event of some kind, often late, most of them in the arm of the user.
fn step(run: &mut Run, dice: &mut Dice, people: usize, clock_ms: &mut i64) {
    *clock_ms += [0, 60_000, 2_000_000][dice.below(3)];
    let late_ms = [0, 1000, LATENESS_MS / 3, LATENESS_MS - 1][dice.below(4)];
    let number = dice.below(people);
    let variant = match dice.below(20) {
        0 => ["A", "B", "C"][dice.below(3)],
        1..6 => "",
        _ => ["A", "B"][number % 2],
    };
    let combination = run.combination(variant, ["home", "feed"][number / 2 % 2]);
    let at = UserAt::new(mix(number as u64, 1), *clock_ms - late_ms, combination);
    let kind = dice.below(10);
    if kind < 4 {
        let event_ms = at.event_ms.max(run.experiments.final_ms());
        run.add(SHOWN, UserAt { event_ms, ..at }, 1).unwrap();
    } else {
        let (sum, amount) = match kind {
            4..8 => (CLICKS, 1),
            8 => (VALUE, 1 + dice.below(1_000_000_000) as i64),
            _ => (VALUE_HIGH, 1 + dice.below(10) as i64),
        };
        run.add(sum, at, amount).unwrap();
        run.add(trial::OUTCOMES, at, 1).unwrap();
    }
}

#[test]
fn sums_are_the_same_whatever_is_refreshed_when() {
    for (seed, people, often) in [(0, 300, 20), (1, 1, 20), (2, 12, 200)] {
        let (mut run, mut dice) = (Run::new(1 << 30, 1 << 18), Dice(seed));
        let mut clock_ms = T0 - DAY_MS;
        for _ in 0..800 {
            step(&mut run, &mut dice, people, &mut clock_ms);
            if dice.below(often) == 0 {
                run.check(clock_ms);
            }
        }
        run.check(clock_ms);
        assert!(people == 1 || run.columns(0).rows().unwrap() > 20);
    }
}

#[test]
fn beyond_the_limit_the_same_users_stay() {
    let (mut run, mut dice) = (Run::new(200, 1 << 18), Dice(3));
    let mut clock_ms = T0;
    for i in 0..1500 {
        step(&mut run, &mut dice, 400, &mut clock_ms);
        if i % 20 == 19 {
            if run.experiments.shrink() {
                run.refresh(clock_ms).unwrap();
            }
            assert!(run.experiments.rows() <= 200);
            if dice.below(10) == 0 {
                run.check(clock_ms);
            }
        }
    }
    run.check(clock_ms);
    assert!(run.experiments.sample_bits() > 0);
    assert!(run.columns(0).rows().unwrap() > 20);
}

#[test]
fn rows_are_settled_when_time_moves_on() {
    let mut run = Run::new(1 << 30, 1 << 18);
    let combination = run.combination("", "home");
    for user in 0..50 {
        let at = UserAt::new(mix(user, 1), T0 + 1000 * user as i64, combination);
        run.add(CLICKS, at, 1).unwrap();
        run.add(trial::OUTCOMES, at, 1).unwrap();
    }
    let pending = |run: &Run| {
        let rows = run
            .experiments
            .changed(ExperimentTable::Pending, 0, 1 << 30);
        rows.rows().unwrap()
    };
    run.check(T0);
    assert_eq!(pending(&run), 50);
    let final_ms = run.experiments.final_ms();
    run.check(T0 + SETTLE_MS - 1);
    assert_eq!(run.experiments.final_ms(), final_ms);
    run.check(T0 + LATENESS_MS + 30_000);
    assert!((1..50).contains(&pending(&run)));
    run.check(T0 + LATENESS_MS + DAY_MS);
    assert_eq!(pending(&run), 0);
}

#[test]
fn only_days_whose_sums_changed_are_written() {
    let mut run = Run::new(1 << 30, 1 << 18);
    let (user, combination) = (mix(1, 1), run.combination("A", "home"));
    run.add(SHOWN, UserAt::new(user, T0 + 4 * DAY_MS, combination), 1)
        .unwrap();
    assert_eq!(run.experiments.take_changed(), [0; 0]);
    run.check(T0);
    assert_eq!(run.experiments.take_changed(), [DAY + 4]);
    run.check(T0);
    assert_eq!(run.experiments.take_changed(), [0; 0]);
    let before = run.columns(0);
    let other = UserAt::new(user, T0 + 4 * DAY_MS, run.combination("", "y"));
    run.add(CLICKS, other, 1).unwrap();
    assert!(run.experiments.is_dirty());
    assert_eq!(run.columns(0).0, before.0);
    run.add(CLICKS, other, -1).unwrap();
    run.check(T0);
    assert_eq!(run.columns(0).0, before.0);
    run.add(SHOWN, UserAt::new(user, T0 - 50 * DAY_MS, combination), 1)
        .unwrap();
    assert!(!run.experiments.is_dirty());
}

#[test]
fn values_may_be_as_large_as_sums_are() {
    let mut run = Run::new(1 << 30, 1 << 18);
    let (user, combination) = (mix(1, 1), run.combination("A", "home"));
    run.add(SHOWN, UserAt::new(user, T0, combination), 1)
        .unwrap();
    run.add(VALUE, UserAt::new(user, T0 + 1, combination), 5)
        .unwrap();
    run.add(VALUE_HIGH, UserAt::new(user, T0 + 1, combination), 1 << 61)
        .unwrap();
    run.add(
        VALUE_HIGH,
        UserAt::new(user, T0 + 2, combination),
        -(1 << 60),
    )
    .unwrap();
    run.check(T0 + DAY_MS);
    let columns = run.columns(0);
    let limbs: Vec<&[i64]> = (0..columns.0.len() - 1)
        .map(|number| columns.get(&format!("limb_{number}")).unwrap())
        .collect();
    let sum = |row: usize| {
        let of_row = limbs.iter().rev().map(|limb| I256::from(limb[row]));
        of_row.fold(I256::from(0), |sum, limb| (sum << 40_u32) + limb)
    };
    let sums: Vec<I256> = (0..columns.rows().unwrap()).map(sum).collect();
    let value = (I256::from(1) << 92_u32) + I256::from(5);
    assert!(sums.contains(&value) && sums.contains(&(value * value)));
    assert_eq!(limbs.len(), 5);
}

#[test]
fn a_sum_that_passes_its_bound_is_an_error() {
    let mut run = Run::new(1 << 30, 1 << 18);
    let (user, combination) = (mix(1, 1), run.combination("A", "home"));
    run.add(CLICKS, UserAt::new(user, T0, combination), 1 << 62)
        .unwrap();
    assert!(
        run.add(CLICKS, UserAt::new(user, T0, combination), 1)
            .is_err()
    );
    run.add(CLICKS, UserAt::new(user, T0, combination), -1)
        .unwrap();
    assert!(
        run.add(
            CLICKS,
            UserAt::new(user, T0 + 1, combination),
            (1 << 62) + 1
        )
        .is_err()
    );
}

#[test]
fn settled_rows_that_meet_may_not_pass_it_either() {
    let (mut run, mut spec) = (Run::new(1 << 30, 1 << 18), whole_spec());
    spec["exposures"].as_array_mut().unwrap().truncate(1); // no attributed one
    spec["trials"].as_array_mut().unwrap().truncate(2);
    run.experiments = experiments(spec, (1 << 30, 1 << 18)).unwrap();
    let (user, combination) = (mix(1, 1), run.combination("", "home"));
    for later_ms in 0..2 {
        run.add(
            CLICKS,
            UserAt::new(user, T0 + later_ms, combination),
            3 << 60,
        )
        .unwrap();
    }
    assert!(run.refresh(T0 + LATENESS_MS + SETTLE_MS).is_err());
}

#[test]
fn a_user_has_so_many_rows_and_no_more() {
    let mut run = Run::new(1 << 30, 1000);
    let (none, arm) = (run.combination("", "home"), run.combination("A", "home"));
    for i in 0..1010 {
        run.add(CLICKS, UserAt::new(7, T0 + i * (DAY_MS / 200), none), 1)
            .unwrap();
    }
    assert_eq!(run.experiments.tables.pending.rows_of(7), 1000);
    assert!(run.experiments.dropped_rows() > 0);
    run.experiments.refresh(0).unwrap();
    run.add(SHOWN, UserAt::new(7, T0, arm), 1).unwrap();
    run.add(SHOWN, UserAt::new(8, T0, none), 1).unwrap();
    run.experiments.refresh(T0 + 7 * DAY_MS).unwrap();
    let days = (DAY, DAY + 9);
    let found = run.experiments.of_range(&run.dimensions, 0, days, None);
    assert_eq!(found.unwrap()[""].0, run.columns(0).0);
}

#[test]
fn rows_that_find_no_room_on_their_days_do_not_count() {
    let mut run = Run::new(1 << 30, 4);
    let (none, arm) = (run.combination("", "home"), run.combination("A", "home"));
    for day in 0..4 {
        run.add(CLICKS, UserAt::new(7, T0 + day * DAY_MS + 1, none), 1)
            .unwrap();
    }
    run.add(SHOWN, UserAt::new(7, T0, arm), 1).unwrap();
    run.experiments.refresh(0).unwrap();
    assert_eq!(run.experiments.dropped_rows(), 0);
    let before = run.columns(0);
    run.experiments.refresh(T0 + 7 * DAY_MS).unwrap();
    assert_ne!(run.columns(0).0, before.0);
    assert!(run.experiments.dropped_rows() > 0);
    for trial in 0..3 {
        let days = (DAY, DAY + 9);
        let found = run.experiments.of_range(&run.dimensions, trial, days, None);
        assert_eq!(found.unwrap()[""].0, run.columns(trial).0);
    }
}

// Stored form -----------------------------------------------------------------------------------

/// One stored row of users' days.
fn blob(user: u64, at: i64, label: i32) -> Columns {
    let mut found = Columns::default();
    found.add("user", vec![user]);
    found.add("at", vec![at]);
    found.add("label", vec![label]);
    found
}

/// The same, with a sum.
fn with_clicks(clicks: &[i64], label: i32) -> Columns {
    let mut found = blob(1, T0, label);
    found.add("clicks", clicks.to_vec());
    found
}

#[test]
fn rows_that_are_not_wanted_are_left_out() {
    let mut run = Run::new(1 << 30, 1 << 18);
    run.experiments
        .restore(vec![vec!["A".to_owned(), "home".to_owned()]], T0);
    run.experiments.restore_sample(1);
    let mut load = |table, blob: Columns| {
        run.experiments.load(table, &blob).unwrap();
        run.experiments.rows()
    };
    let (days, pending) = (ExperimentTable::Days, ExperimentTable::Pending);
    let (kept, out) = (1, 1 << 63);
    assert_eq!(load(days, blob(out, T0, 0)), 0); // not in the sample
    assert_eq!(load(days, blob(kept, T0 + 100 * DAY_MS, 0)), 0); // a day that nothing wants
    assert_eq!(load(pending, blob(kept, T0 - 1, 0)), 0); // settled since
    let mut other = with_clicks(&[5], 0);
    other.add("dropped", vec![7_i64]);
    assert_eq!(load(days, other), 1);
    let stored = run.experiments.changed(days, 0, 1 << 30);
    assert_eq!(stored.get::<i64>("clicks").unwrap(), [5]);
    assert!(!stored.has("dropped"));
    let mut exposures = Columns::default();
    exposures.add("user", vec![1_u64]);
    exposures.add("code", vec![6_i64]); // an exposure that there is not
    exposures.add("arm", vec![1_i16]);
    exposures.add("first_ms", vec![T0]);
    run.experiments
        .load(ExperimentTable::Exposures, &exposures)
        .unwrap();
    assert_eq!(run.experiments.first_exposures_ms(), [None, None]);
}

#[test]
fn blobs_that_do_not_fit_are_refused() {
    let mut run = Run::new(1 << 30, 1 << 18);
    run.experiments
        .restore(vec![vec!["A".to_owned(), "home".to_owned()]], T0);
    let mut error = |blob| {
        run.experiments
            .load(ExperimentTable::Days, &blob)
            .unwrap_err()
    };
    assert!(error(with_clicks(&[1], 1)).contains("label"));
    assert!(error(with_clicks(&[1], -1)).contains("label"));
    assert!(error(with_clicks(&[i64::MIN], 0)).contains("beyond"));
    assert!(error(with_clicks(&[], 0)).contains("lengths"));
}

#[test]
fn specs_that_do_not_fit_are_refused() {
    let error = |name: &str, value: Value| {
        let mut spec = whole_spec();
        spec[name] = value;
        experiments(spec, (100, 100)).unwrap_err()
    };
    let turned = ["outcomes", "impressions", "clicks", "value", "value_high"];
    let turned = turned.map(|name| json!({"name": name}));
    assert!(error("sums", json!(turned)).contains("first sums"));
    assert!(error("columns", json!(["a"])).contains("column"));
    assert!(error("exposures", json!([])).contains("exposure"));
    assert!(error("more", json!(1)).contains("unknown field"));
}
