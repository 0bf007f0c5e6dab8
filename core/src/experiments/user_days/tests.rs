use std::collections::BTreeMap;

use super::*;
use crate::hash::mix;

type Model = BTreeMap<(u64, i64, u32), ([i64; 2], u32)>;

/// Rows of every user, and those of every range of epochs, are those of the model.
fn check(rows: &UserDays, model: &Model, epochs: u32) {
    assert_eq!(rows.len(), model.len());
    let place = |key: &UserDayKey| (key.user, key.at, key.label);
    for user in 0..8 {
        let mut found: Vec<_> = rows.of(user).map(|(k, sums)| (place(k), sums)).collect();
        found.sort_unstable();
        let his = model.range((user, 0, 0)..(user + 1, 0, 0));
        let expected: Vec<_> = his.map(|(k, (sums, _))| (*k, sums.as_slice())).collect();
        assert_eq!(found, expected);
        assert_eq!(rows.rows_of(user) as usize, expected.len());
        assert_eq!(rows.has(user), !expected.is_empty());
    }
    for first in 0..=epochs {
        let mut found: Vec<_> = rows
            .changed(first, epochs + 1)
            .map(|(k, _)| place(k))
            .collect();
        found.sort_unstable();
        let is_in = |(_, (_, epoch)): &(_, &([i64; 2], u32))| *epoch >= first;
        let expected: Vec<_> = model.iter().filter(is_in).map(|(k, _)| *k).collect();
        assert_eq!(found, expected);
        assert_eq!(rows.versions.live(&[first]), [expected.len() as u64]);
    }
}

#[test]
fn rows_leave_few_or_many_at_a_time() {
    let (mut rows, mut model, mut epoch) = (UserDays::new(2, 100_000), Model::new(), 0);
    for i in 0..3000_u64 {
        let dice = mix(i, 5);
        let (user, at, label) = (dice % 8, (i + dice % 200) as i64, (dice >> 20) as u32 % 2);
        let (component, amount) = ((dice >> 30) as usize % 2, 1 + (dice >> 40) as i64 % 9);
        let key = UserDayKey { user, at, label };
        assert_eq!(rows.add(&key, component, amount), Ok(()));
        let held = model.entry((user, at, label)).or_default();
        held.0[component] += amount;
        held.1 = epoch;
        if i % 21 == 0 {
            let at = if i % 700 == 0 {
                i as i64 + 50
            } else {
                i as i64 - 100
            };
            rows.remove_before(at);
            model.retain(|key, _| key.1 >= at);
            check(&rows, &model, epoch);
        }
        if i % 31 == 0 {
            epoch = rows.versions.seal();
        }
    }
    assert!(rows.len() > 100);
    rows.keep(|key| key.user < 3);
    model.retain(|key, _| key.0 < 3);
    check(&rows, &model, epoch);
}

#[test]
fn a_sum_that_would_pass_its_bound_is_an_error() {
    let mut rows = UserDays::new(1, 100_000);
    let (user, at, label) = (1, 2, 3);
    let key = UserDayKey { user, at, label };
    assert_eq!(rows.add(&key, 0, -MAX_SUM), Ok(()));
    assert_eq!(rows.add(&key, 0, -1), Err(Overflow));
    assert_eq!(rows.add_row(&key, &[i64::MIN]), Err(Overflow));
    assert_eq!(rows.add_row(&key, &[2 * (MAX_SUM - 1)]), Ok(()));
    assert_eq!(
        rows.of(user).map(|(_, sums)| sums[0]).sum::<i64>(),
        MAX_SUM - 2
    );
}
