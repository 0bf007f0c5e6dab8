use std::collections::BTreeMap;

use super::*;
use crate::columns::Columns;
use crate::hash::mix;
use crate::kafka::testing::Dice;
use crate::panes::order::Order;
use crate::spec;
use crate::users::sums::{SEGMENT_BITS, STAT_BITS, positive_users};

const T0: i64 = 1_700_000_000_000;
const KINDS: usize = 2;
/// Codes of values; 1 is that of `other`.
const OTHER: u32 = 1;
const VALUES: [u32; 3] = [OTHER, 2, 3];
const EVERY_EPOCH: (u32, u32) = (0, 1 << 30);

/// Combinations of two dimensions, whose codes change when values are folded.
struct Codes(Vec<[u32; 2]>);

impl CombinationCodes for Codes {
    fn codes(&self, combination: Combination) -> &[u32] {
        &self.0[combination as usize]
    }
}

impl Codes {
    fn resolve(&self, combination: Combination) -> Combination {
        let codes = self.0[combination as usize];
        self.0.iter().position(|other| *other == codes).unwrap() as u32
    }
}

fn placed<'a>(combinations: &'a Codes, segments: &'a Segments) -> Placement<'a, Codes> {
    Placement {
        combinations,
        segments,
    }
}

fn rings() -> Vec<Ring> {
    let ring = |(pane_ms, panes)| Ring { pane_ms, panes };
    [(1000, 60), (60_000, 60), (600_000, 18)].map(ring).to_vec()
}

/// The total, each dimension alone, and both.
fn segments() -> Segments {
    let rollup = |dimensions: &[usize]| spec::RollupSpec {
        dimensions: dimensions.to_vec(),
        kept: Vec::new(),
        has_users: true,
        since: Vec::new(),
    };
    let rollups: [&[usize]; 4] = [&[], &[0], &[1], &[0, 1]];
    let rollups = rollups.map(rollup);
    Segments::new(&rollups, &Order::new(&rollups), 1000)
}

/// The codes of a segment; -1 where its rollup has no such dimension.
fn codes_of(segments: &Segments, segment: usize) -> Vec<i64> {
    let (rollup, codes) = &segments.rows()[segment];
    let at = |places: &[usize]| {
        let mut of = vec![-1; 2];
        for (place, code) in places.iter().zip(codes) {
            of[*place] = i64::from(*code);
        }
        of
    };
    at([&[][..], &[0], &[1], &[0, 1]][*rollup as usize])
}

fn users_spec(rows: usize, of_a_user: u32) -> UsersSpec {
    UsersSpec {
        rings: rings(),
        unit_ms: 1000,
        rollups: vec![0, 1, 2, 3],
        kinds: KINDS,
        limit: RowLimit { rows, of_a_user },
        since_ms: Vec::new(),
    }
}

fn users(rows: usize) -> Users {
    Users::new(users_spec(rows, 1 << 18)).unwrap()
}

fn impression(user: u64, item: u64, combination: Combination, event_ms: i64) -> Touch {
    let pair = mix(user, item);
    Touch {
        user,
        pair,
        combination,
        event_ms,
        column: 0,
    }
}

/// Ring, pane, codes of a group and statistic → the sum, of panes that a window covers.
type Sums = BTreeMap<(usize, i64, Vec<i64>, i64), i64>;

fn sums_of(users: &Users, segments: &Segments, stream_ms: i64) -> Sums {
    let mut found = Sums::new();
    for (ring, spec) in rings().iter().enumerate() {
        let sums = users.sums(ring).unwrap();
        assert!(sums.key.is_sorted_by(|a, b| a < b) && !sums.value.contains(&0));
        for (key, value) in sums.key.iter().zip(&sums.value) {
            let (pane, stat) = (
                key >> (SEGMENT_BITS + STAT_BITS),
                key & ((1 << STAT_BITS) - 1),
            );
            let segment = (key >> STAT_BITS & ((1 << SEGMENT_BITS) - 1)) as usize;
            if pane >= spec.oldest(stream_ms) {
                found.insert((ring, pane, codes_of(segments, segment), stat), *value);
            }
        }
    }
    found
}

/// Users who do things at random, and all that they did.
struct Crowd {
    users: Users,
    dice: Dice,
    codes: Codes,
    segments: Segments,
    people: Vec<u64>,
    stream_ms: i64,
    touched: Vec<Touch>,
    held: BTreeMap<u64, Touch>,
}

impl Crowd {
    fn new(people: usize, seed: u64, rows: usize) -> Self {
        let codes = VALUES.iter().flat_map(|a| VALUES.map(|b| [*a, b]));
        Self {
            users: users(rows),
            dice: Dice(seed),
            codes: Codes(codes.collect()),
            segments: segments(),
            people: (0..people as u64).map(|i| mix(i, seed + 1)).collect(),
            stream_ms: T0,
            touched: Vec::new(),
            held: BTreeMap::new(),
        }
    }

    fn touch(&mut self, touch: Touch) {
        if touch.column == 0 {
            self.stream_ms = self.stream_ms.max(touch.event_ms);
        }
        self.touched.push(touch);
        let segments = placed(&self.codes, &self.segments);
        self.users.touch(&touch, segments, self.stream_ms);
    }

    fn hold(&mut self, serial: u64, touch: Touch) {
        self.held.insert(serial, touch);
        let segments = placed(&self.codes, &self.segments);
        self.users.hold(serial, &touch, segments);
    }

    /// One event, now and then late or ahead; or feedback moves, settles or leaves.
    fn step(&mut self) {
        let pace = [10, 300, 20_000][self.dice.below(3)];
        let later_ms = [pace, 0, -pace, -40_000, -4_000_000, 3_000][self.dice.below(6)];
        let combination = self.dice.below(self.codes.0.len()) as u32;
        let combination = self.codes.resolve(combination);
        let user = self.people[self.dice.below(self.people.len())];
        let item = self.dice.below(14) as u64;
        let shown = impression(user, item, combination, self.stream_ms + later_ms);
        let column = 1 + self.dice.below(KINDS);
        let given = Touch { column, ..shown };
        let serials: Vec<u64> = self.held.keys().copied().collect();
        match self.dice.below(100) {
            0..55 => self.touch(shown),
            55..70 => self.touch(given),
            70..85 => {
                let serial = self.touched.len() as u64;
                self.hold(serial, given);
            }
            dice if !serials.is_empty() => {
                let serial = serials[self.dice.below(serials.len())];
                let before = self.held[&serial];
                if dice < 92 {
                    self.hold(
                        serial,
                        Touch {
                            combination,
                            ..before
                        },
                    );
                } else {
                    self.held.remove(&serial);
                    let segments = placed(&self.codes, &self.segments);
                    self.users.release(serial, segments);
                    if dice < 98 {
                        self.touch(before);
                    }
                }
            }
            _ => (),
        }
    }

    /// Put a value of a dimension under `other`.
    fn fold(&mut self, dimension: usize, code: u32) {
        let segments = placed(&self.codes, &self.segments);
        self.users.before_fold((dimension, code), segments);
        for codes in &mut self.codes.0 {
            if codes[dimension] == code {
                codes[dimension] = OTHER;
            }
        }
    }

    fn refresh(&mut self) {
        self.users
            .refresh(self.stream_ms, &self.codes, &mut self.segments);
    }

    /// The sums are those of a partition to which all of it came at once, under today's values.
    /// Returns how many there are.
    fn check(&mut self) -> usize {
        self.refresh();
        assert!(!self.users.is_dirty());
        assert_eq!(self.users.items.dropped_rows, 0);
        let mut whole = users(1 << 30);
        whole.set_sample_bits(self.users.sample_bits());
        for touch in &self.touched {
            whole.touch(touch, placed(&self.codes, &self.segments), T0);
        }
        for (serial, touch) in &self.held {
            whole.hold(*serial, touch, placed(&self.codes, &self.segments));
        }
        whole.refresh(self.stream_ms, &self.codes, &mut self.segments);
        let expected = sums_of(&whole, &self.segments, self.stream_ms);
        let found = sums_of(&self.users, &self.segments, self.stream_ms);
        assert_eq!(found, expected);
        if self.users.sample_bits() == 0 {
            assert_eq!(self.users.held.iter().count(), self.held.len());
        }
        expected.len()
    }
}

#[test]
fn sums_are_the_same_whatever_is_refreshed_when() {
    for (seed, people) in [(0, 300), (1, 1), (2, 12)] {
        for often in [5, 50, 500] {
            let mut crowd = Crowd::new(people, seed, 1 << 30);
            for _ in 0..400 {
                crowd.step();
                if crowd.dice.below(often) == 0 {
                    crowd.check();
                }
            }
            assert!(crowd.check() > 20);
        }
    }
}

#[test]
fn folds_move_what_users_contribute() {
    for (seed, people) in [(0, 20), (1, 300), (2, 300)] {
        let mut crowd = Crowd::new(people, seed, 1 << 30);
        let mut folds = [(0, 3), (1, 2), (0, 2)].into_iter();
        for i in 0..900 {
            crowd.step();
            if i % 250 == 249
                && let Some((dimension, code)) = folds.next()
            {
                crowd.fold(dimension, code);
            }
            if crowd.dice.below(20) == 0 {
                crowd.check();
            }
        }
        assert!(crowd.check() > 20);
        let other = [OTHER];
        assert!(crowd.segments.find(1, &other).is_some());
    }
}

#[test]
fn beyond_the_limit_the_same_users_stay() {
    let mut crowd = Crowd::new(400, 5, 150);
    for i in 0..2000 {
        crowd.step();
        if i % 20 == 0 {
            if crowd.users.shrink(crowd.stream_ms) {
                crowd.refresh();
            }
            assert!(crowd.users.rows() <= 150);
            if crowd.dice.below(4) == 0 {
                crowd.check();
            }
        }
    }
    crowd.users.shrink(crowd.stream_ms);
    assert!(crowd.check() > 20);
    assert!(crowd.users.sample_bits() > 0);
}

#[test]
fn rows_that_no_window_covers_leave() {
    let mut crowd = Crowd::new(400, 6, 200);
    for i in 0..2000 {
        let user = crowd.people[i % 400];
        crowd.touch(impression(user, 1, 0, T0 + 200_000 * i as i64));
        crowd.users.shrink(crowd.stream_ms);
    }
    assert!(crowd.users.rows() <= 200);
    assert_eq!(crowd.users.sample_bits(), 0);
    assert!(crowd.check() > 20);
}

#[test]
fn a_leap_in_time_leaves_nothing_behind() {
    for leap_ms in [3_600_000, 40 * 365 * 86_400_000, 100 * 365 * 86_400_000] {
        let mut crowd = Crowd::new(5, 7, 1 << 30);
        for i in 0..30 {
            let shown = impression(crowd.people[i % 3], i as u64, i as u32 % 4, T0 + i as i64);
            crowd.touch(shown);
            let user = crowd.people[i % 5];
            let column = 1;
            let given = impression(user, i as u64, 0, T0);
            crowd.hold(i as u64, Touch { column, ..given });
        }
        crowd.refresh();
        crowd.touch(impression(crowd.people[0], 2, 0, T0 + leap_ms));
        crowd.check();
        let (_, last) = sums_of(&crowd.users, &crowd.segments, crowd.stream_ms)
            .into_keys()
            .map(|(ring, pane, _, _)| (ring, pane * rings()[ring].pane_ms))
            .min_by_key(|(_, pane_ms)| *pane_ms)
            .unwrap();
        assert!(last > T0 + leap_ms - 18 * 600_000);
    }
}

#[test]
fn times_pass_32_bits_within_a_window() {
    let mut crowd = Crowd::new(3, 10, 1 << 30);
    let edge_ms = 1000 * i64::from(u32::MAX);
    for i in 0..40 {
        let (user, at_ms) = (crowd.people[i % 3], edge_ms + 1000 * (i as i64 - 20));
        let (shown, column) = (impression(user, i as u64, i as u32 % 4, at_ms), 1);
        crowd.touch(shown);
        let event_ms = at_ms - 10_000;
        let given = Touch {
            column,
            event_ms,
            ..shown
        };
        crowd.hold(i as u64, given);
        assert!(crowd.check() > 0);
    }
}

#[test]
fn rings_without_changes_are_not_written() {
    let mut crowd = Crowd::new(1, 8, 1 << 30);
    let user = crowd.people[0];
    crowd.touch(impression(user, 1, 0, T0));
    assert_eq!(crowd.users.take_changed_rings(), [0; 0]);
    crowd.refresh();
    assert_eq!(crowd.users.take_changed_rings(), [0, 1, 2]);
    crowd.refresh();
    assert_eq!(crowd.users.take_changed_rings(), [0; 0]);
    crowd.touch(impression(user, 1, 0, T0 - 5000)); // earlier than the last time of the row
    assert!(!crowd.users.is_dirty());
    crowd.touch(impression(user, 1, 0, T0 + 1000));
    assert!(crowd.users.is_dirty());
}

#[test]
fn a_user_has_so_many_rows_and_no_more() {
    let mut users = Users::new(users_spec(1 << 30, 1000)).unwrap();
    let (codes, mut segments) = (Codes(vec![[OTHER; 2]]), segments());
    let mut touch = |touch: &Touch| users.touch(touch, placed(&codes, &segments), T0);
    for item in 0..1010 {
        touch(&impression(7, item, 0, T0));
    }
    let known = impression(7, 5, 0, T0 + 1000);
    touch(&Touch { column: 1, ..known });
    touch(&impression(8, 5, 0, T0 + 1000));
    assert_eq!((users.rows(), users.items.dropped_rows), (1001, 10));
    users.refresh(T0, &codes, &mut segments);
    let of = |stat: usize| {
        let found = sums_of(&users, &segments, T0);
        let everybody = found.iter().filter(|((ring, _, codes, its), _)| {
            *ring == 2 && *its == stat as i64 && *codes == [-1, -1]
        });
        everybody.map(|(_, value)| value).sum::<i64>()
    };
    assert_eq!(
        [of(sums::USERS), of(sums::HITS), of(positive_users(0))],
        [2, 1, 1]
    );
}

// Stored form -----------------------------------------------------------------------------------

#[test]
fn loaded_rows_give_the_same_sums() {
    let (mut crowd, mut epochs) = (Crowd::new(40, 9, 1 << 30), vec![0]);
    for i in 0..800 {
        crowd.step();
        if i % 100 == 99 {
            epochs.push(crowd.users.seal());
        }
        if i == 400 {
            crowd.fold(0, 2);
        }
    }
    for (serial, touch) in std::mem::take(&mut crowd.held) {
        let segments = placed(&crowd.codes, &crowd.segments);
        crowd.users.release(serial, segments);
        crowd.touch(touch);
    }
    epochs.push(crowd.users.seal());
    let spans = epochs
        .windows(2)
        .map(|span| crowd.users.changed(span[0], span[1]));
    let blobs: Vec<Columns> = spans.collect();
    let rows: Vec<u64> = blobs
        .iter()
        .map(|blob| blob.rows().unwrap() as u64)
        .collect();
    assert_eq!(crowd.users.live(&epochs[..epochs.len() - 1]), rows);
    let every = crowd.users.changed(EVERY_EPOCH.0, EVERY_EPOCH.1);
    assert_eq!(rows.iter().sum::<u64>(), every.rows().unwrap() as u64);
    let mut loaded = users(1 << 30);
    for blob in &blobs {
        loaded.load(blob, crowd.stream_ms).unwrap();
    }
    assert!(loaded.is_stale());
    assert_eq!(
        loaded.live(&(0..blobs.len() as u32).collect::<Vec<u32>>()),
        rows
    );
    crowd.users = loaded;
    assert!(crowd.check() > 20);
}

/// One stored row with these columns of times.
fn blob<const N: usize>(combination: i32, times: [&[i64]; N]) -> Columns {
    let mut found = Columns::default();
    found.add("user", vec![1_u64]);
    found.add("pair", vec![1_u64]);
    found.add("combination", vec![combination]);
    for (column, times) in times.into_iter().enumerate() {
        found.add(&format!("time_{column}"), times.to_vec());
    }
    found
}

#[test]
fn blobs_that_do_not_fit_are_refused() {
    let mut users = users(100);
    let mut error = |blob: Columns| users.load(&blob, T0).unwrap_err();
    assert!(error(blob(1, [&[1], &[1]])).contains("no column"));
    assert!(error(blob(1, [&[1]; 4])).contains("columns"));
    assert!(error(blob(1, [&[1], &[1], &[]])).contains("lengths"));
    assert!(error(blob(-1, [&[1]; 3])).contains("combination"));
    users.load(&blob(1, [&[-1], &[1 << 60], &[0]]), T0).unwrap();
    assert_eq!(users.rows(), 0);
}

#[test]
fn units_and_panes_that_do_not_fit_are_refused() {
    let error = |unit_ms, pane_ms, kinds| {
        let rings = vec![Ring { pane_ms, panes: 60 }];
        let more = users_spec(100, 100);
        let spec = UsersSpec {
            rings,
            unit_ms,
            kinds,
            ..more
        };
        Users::new(spec).unwrap_err()
    };
    assert!(error(0, 1000, 1).contains("units"));
    assert!(error(1000, 1500, 1).contains("multiples"));
    assert!(error(1000, 1000, 200).contains("kinds"));
}

#[test]
fn a_rollup_that_fills_between_refreshes_counts_nobody_twice() {
    let codes = Codes(vec![[OTHER, OTHER], [2, 2], [3, 3]]);
    let rollup = spec::RollupSpec {
        dimensions: vec![0, 1],
        kept: Vec::new(),
        has_users: true,
        since: Vec::new(),
    };
    let rollups = [rollup];
    let mut segments = Segments::new(&rollups, &Order::new(&rollups), 2);
    let spec = UsersSpec {
        rollups: vec![0],
        ..users_spec(1000, 1 << 18)
    };
    let mut users = Users::new(spec).unwrap();
    let touch = |users: &mut Users, segments: &Segments, user, combination| {
        let shown = impression(user, 7, combination, T0);
        users.touch(&shown, placed(&codes, segments), T0);
    };
    touch(&mut users, &segments, 1, 0);
    users.refresh(T0, &codes, &mut segments);
    touch(&mut users, &segments, 1, 2);
    segments.learn(0, &[2, 2]); // as another user's event does: the rollup is full
    users.refresh(T0, &codes, &mut segments);
    let sums = users.sums(0).unwrap();
    assert_eq!(sums.value, [1]);
}
