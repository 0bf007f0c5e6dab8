//! Panes that are filled, left behind, stored and loaded.

use super::*;
use crate::spec::Ring;

fn panes() -> Panes {
    let rings = Rings::new(&[
        Ring {
            pane_ms: 1_000,
            panes: 60,
        },
        Ring {
            pane_ms: 5_000,
            panes: 60,
        },
    ]);
    Panes::new(rings)
}

#[test]
fn what_is_added_stands_in_every_ring_that_covers_it() {
    let mut panes = panes();
    panes.add(100_500, 3, 70, 2);
    panes.add(100_900, 3, 70, 1);
    panes.add(20_000, 3, 0, 5); // too old for the first ring at 100 s
    panes.fold(100_900).unwrap();
    assert_eq!(
        panes.take_changed(),
        [1 << 32 | 100, 2 << 32 | 4, 2 << 32 | 20]
    );
    let found = panes.dump(&panes.live());
    assert_eq!(found.value, [3, 5, 3]);
    assert_eq!(
        found.code,
        [3 << STAT_BITS | 70, 3 << STAT_BITS, 3 << STAT_BITS | 70]
    );
    assert!(panes.take_changed().is_empty());
}

#[test]
fn old_panes_leave_and_their_cells_are_used_again() {
    let mut panes = panes();
    for second in 0..1_000 {
        panes.add(second * 1_000, 1, 5, 1);
        panes.fold(second * 1_000).unwrap();
    }
    assert_eq!(panes.live().len(), 120);
    assert!(panes.cells.len() < 130, "{}", panes.cells.len());
}

#[test]
fn sums_do_not_wrap() {
    let mut panes = panes();
    panes.add(0, 0, 0, MAX_SUM);
    assert_eq!(panes.fold(0), Ok(()));
    panes.add(0, 0, 0, 1);
    assert_eq!(panes.fold(0), Err(Overflow));
}

#[test]
fn what_was_dumped_is_loaded() {
    let mut panes = panes();
    panes.add(7_000, 2, 100, -4);
    panes.fold(7_000).unwrap();
    let found = panes.dump(&[1 << 32 | 7]);
    let mut other = self::panes();
    other.load(1 << 32 | 7, &found.code, &found.value).unwrap();
    assert_eq!(other.dump(&[1 << 32 | 7]), found);
}
