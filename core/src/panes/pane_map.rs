//! Panes by number, and which of them changed since they were last stored.

use hashbrown::HashMap;

use crate::panes::rings::{Rings, ring_and_pane};

/// One pane, and whether its number stands among the changed ones.
#[derive(Debug)]
struct Held<P> {
    pane: P,
    is_changed: bool,
}

/// The panes of all rings.
#[derive(Debug)]
pub struct PaneMap<P> {
    panes: HashMap<u64, Held<P>>,
    changed: Vec<u64>,
}

/// A pane that is here.
pub struct Found<'a, P> {
    pub number: u64,
    held: &'a mut Held<P>,
    changed: &'a mut Vec<u64>,
}

impl<'a, P> Found<'a, P> {
    pub fn pane(&self) -> &P {
        &self.held.pane
    }

    /// The same, to be changed.
    pub fn change(self) -> &'a mut P {
        if !std::mem::replace(&mut self.held.is_changed, true) {
            self.changed.push(self.number);
        }
        &mut self.held.pane
    }
}

impl<P> PaneMap<P> {
    /// A pane; where there is none, that which is made.
    pub fn find_or(&mut self, number: u64, make: impl FnOnce() -> P) -> Found<'_, P> {
        let held = self.panes.entry(number).or_insert_with(|| Held {
            pane: make(),
            is_changed: false,
        });
        Found {
            number,
            held,
            changed: &mut self.changed,
        }
    }

    /// Every pane in turn, in no order.
    pub fn each(&mut self, mut visit: impl FnMut(Found<'_, P>)) {
        for (number, held) in &mut self.panes {
            visit(Found {
                number: *number,
                held,
                changed: &mut self.changed,
            });
        }
    }

    pub fn get(&self, number: u64) -> Option<&P> {
        self.panes.get(&number).map(|held| &held.pane)
    }

    /// Number and pane, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &P)> {
        self.panes
            .iter()
            .map(|(number, held)| (*number, &held.pane))
    }

    /// Puts a stored pane in its place, as unchanged.
    pub fn insert(&mut self, number: u64, pane: P) {
        let is_changed = false;
        self.panes.insert(number, Held { pane, is_changed });
    }

    /// Forgets the panes that no window covers any more; `leave` gets each.
    pub fn expire(&mut self, rings: &Rings, mut leave: impl FnMut(&P)) {
        let is_gone = |number: u64| {
            let (ring, pane) = ring_and_pane(number);
            rings.is_gone(ring, pane)
        };
        self.panes.retain(|number, held| {
            let is_gone = is_gone(*number);
            if is_gone {
                leave(&held.pane);
            }
            !is_gone
        });
        self.changed.retain(|number| !is_gone(*number));
    }

    /// The numbers of the panes that changed since the last call, ascending.
    pub fn take_changed(&mut self) -> Vec<u64> {
        let mut changed = std::mem::take(&mut self.changed);
        for number in &changed {
            if let Some(held) = self.panes.get_mut(number) {
                held.is_changed = false;
            }
        }
        changed.sort_unstable();
        changed
    }

    /// The numbers of the panes that are here, ascending.
    pub fn live(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.panes.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }
}

impl<P> Default for PaneMap<P> {
    fn default() -> Self {
        Self {
            panes: HashMap::new(),
            changed: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panes::rings::number_of;
    use crate::spec::Ring;

    #[test]
    fn a_pane_is_changed_once_until_it_is_taken_or_leaves() {
        let mut panes = PaneMap::<u32>::default();
        for number in [number_of(1, 7), number_of(1, 3), number_of(1, 7)] {
            *panes.find_or(number, || 0).change() += 1;
        }
        panes.insert(number_of(1, 4), 9);
        assert_eq!(*panes.find_or(number_of(1, 5), || 8).pane(), 8);
        assert_eq!(panes.get(number_of(1, 7)), Some(&2));
        assert_eq!(panes.take_changed(), [3, 7].map(|at| number_of(1, at)));
        assert!(panes.take_changed().is_empty());
        assert_eq!(panes.live(), [3, 4, 5, 7].map(|at| number_of(1, at)));

        panes.each(|found| *found.change() += 1);
        let mut rings = Rings::new(&[Ring {
            pane_ms: 1,
            panes: 3,
        }]);
        rings.advance(7);
        let mut left = Vec::new();
        panes.expire(&rings, |pane| left.push(*pane));
        left.sort_unstable();
        assert_eq!(left, [2, 10]);
        assert_eq!(panes.take_changed(), [5, 7].map(|at| number_of(1, at)));
        assert_eq!(panes.iter().count(), 2);
    }
}
