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
fn old_panes_leave_and_their_cells_are_used_again() {
    let mut panes = panes();
    for second in 0..1_000 {
        panes.add(second * 1_000, 1, 5, 1);
        panes.fold(second * 1_000).unwrap();
    }
    assert_eq!(panes.live().len(), 120);
    assert!(panes.cells.len() < 130, "{}", panes.cells.len());
}
