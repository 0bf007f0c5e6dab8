use super::*;
use crate::spec::experiments::Cap;

/// A day, and impressions, outcomes and clicks on it under one label.
type Row = (i64, [i64; 3]);

/// The sums over everybody of the days 7 to 9 before an experiment: (day, statistic, sum).
fn summed(users: &[&[Row]]) -> Vec<(i64, i64, i64)> {
    let clicks_by_impressions = MeasureSpec {
        above: 2,
        below: Some(SHOWN),
        high: None,
        below_high: None,
        cap: Cap::None,
        age: None,
        is_mature: false,
        others: vec![],
    };
    let spec = TrialSpec {
        days: (10, 20),
        covariates: Some((7, 10)),
        exposure: 0,
        arms: vec![1, 2],
        measures: vec![clicks_by_impressions],
    };
    let before = Trial::new(&spec, 3, (1, 0), None)
        .unwrap()
        .before()
        .unwrap();
    let (mut sums, mut work) = (ExperimentSums::default(), Work::default());
    for rows in users {
        let did = |(i, row): (usize, &Row)| Did {
            at_ms: row.0 * DAY_MS,
            day: row.0,
            label: i as u32,
            row: 3 * i,
        };
        let did: Vec<Did> = rows.iter().enumerate().map(did).collect();
        let amounts: Vec<i64> = rows.iter().flat_map(|row| row.1).collect();
        let history = History {
            did: &did,
            amounts: &amounts,
            width: 3,
        };
        work.contribution.clear();
        before.find_whatever_arm(&history, &mut work);
        before.add(&work, 1, (&mut sums, 1));
    }
    let (columns, stats) = (before.columns(&sums, 0..0), COUNTS as i64 + 6);
    let (keys, sums) = (columns.get::<i64>("key"), columns.get::<i64>("limb_0"));
    let both = keys.unwrap().iter().zip(sums.unwrap());
    let apart = |(key, sum): (&i64, &i64)| (key / stats + 7 - 3, key % stats, *sum);
    both.map(apart).collect()
}

#[test]
fn before_the_start_everybody_is_in_the_first_arm_from_the_first_impression_on() {
    let found = summed(&[&[
        (6, [5, 0, 0]), // not a covariate day
        (7, [0, 1, 1]), // before the first impression
        (8, [0, 2, 2]), // on the day of the first impression, under another label
        (8, [3, 0, 0]),
        (9, [0, 4, 4]), // a click without an impression on its day
        (10, [9, 9, 9]),
    ]]);
    let [users, first, nonzero] = [0, COUNTS as i64, COUNTS as i64 + 5];
    let mut expected = vec![(8, users, 1)];
    // 2 clicks of 3 impressions, then 6 of 3: 36 - 4 and 18 - 6 more.
    expected.extend(
        (first..)
            .zip([2, 3, 4, 6, 9])
            .map(|(stat, sum)| (8, stat, sum)),
    );
    expected.push((8, nonzero, 1));
    expected.insert(1, (8, ACTIVE as i64, 1));
    expected.push((9, ACTIVE as i64, 1));
    expected.extend([(9, first, 4), (9, first + 2, 32), (9, first + 3, 12)]);
    assert_eq!(found, expected);
}

#[test]
fn before_the_start_users_without_an_impression_are_not_in() {
    let found = summed(&[&[(6, [5, 0, 0]), (7, [0, 1, 1]), (10, [9, 0, 0])], &[]]);
    assert_eq!(found, []);
    let both = summed(&[&[(7, [1, 0, 0])], &[(7, [2, 0, 0])]]);
    let expected = [(7, 0, 2), (7, ACTIVE as i64, 2), (7, COUNTS as i64 + 1, 3)];
    assert_eq!(both[..3], expected);
}
