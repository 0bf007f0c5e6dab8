//! What is emitted of slates: their values follow their members and the feedback on them, their lists
//! the members alone.
//!
//! Before the first change of a slate both are retracted as they were emitted; when all is taken in
//! they are emitted as they are now. So a slate costs its members twice, however many of them change.

use crate::attribution::Attribution;
use crate::attribution::emitted::{Emitted, Sink};
use crate::attribution::impressions::Impression;
use crate::attribution::pair_log::OfPair;
use crate::attribution::retained::{Outcome, Retained};
use crate::changes::{Age, ItemOf};
use crate::log::NO_ROW;
use crate::slates::members::{Member, Probed};
use crate::slates::pairs::PairLosses;
use crate::slates::probes::Lookup;
use crate::slates::{EmittedLosses, Slate};

/// Where members without a position stand.
const LAST: u32 = u32::MAX;
/// Slates with so many pairs of scored members keep their losses.
const MANY_PAIRS: usize = 2_048;

/// The members of a slate as they are now, in the order shown, and what it is compared with.
struct Ranking {
    ages: Vec<Age>,
    members: Vec<Member>,
    probed: Probed,
}

impl Attribution {
    /// A slate is about to change: what was emitted for it is retracted, once.
    pub(crate) fn retract_values(&mut self, slate: u32, sink: &mut impl Sink) {
        let Some(found) = self.slates.get_mut(slate) else {
            return;
        };
        if found.is_dirty || found.is_closed || !self.rules.looks_at_slates {
            return;
        }
        found.is_dirty = true;
        let losses = found.losses.as_ref().map(|emitted| emitted.losses);
        let is_ranked = found.is_ranked();
        self.slates.dirty.push(slate);
        if is_ranked {
            self.emit(slate, -1, &self.ranking(slate), losses, sink);
        }
    }

    /// Emits the values of all slates that changed.
    pub fn emit_values(&mut self, sink: &mut impl Sink) {
        self.emit_lists(sink);
        for slate in std::mem::take(&mut self.slates.dirty) {
            let Some(found) = self.slates.get_mut(slate) else {
                continue;
            };
            found.is_dirty = false;
            if found.is_ranked() && !found.is_closed {
                let before = found.losses.take();
                let ranking = self.ranking(slate);
                let losses = losses_of(&ranking, before, self.rules.margin);
                if let Some(found) = self.slates.get_mut(slate) {
                    found.losses = losses.map(|losses| emitted(&ranking, losses));
                }
                self.emit(slate, 1, &ranking, losses, sink);
            }
        }
    }

    fn emit(
        &self,
        slate: u32,
        sign: i64,
        ranking: &Ranking,
        losses: Option<PairLosses>,
        sink: &mut impl Sink,
    ) {
        if let Some(at) = self.slates.get(slate).and_then(Slate::at) {
            sink.emit(Emitted::Ranked {
                at,
                sign,
                members: &ranking.members,
                probed: ranking.probed,
                losses,
            });
        }
    }

    fn ranking(&self, slate: u32) -> Ranking {
        let found = self.slates.get(slate);
        let lookup = Lookup::new(found.and_then(|found| found.probes.as_deref()));
        let ranked = |age, pair, score, outcome: Outcome| {
            let member = Member {
                grade: outcome.grade,
                is_clicked: outcome.is_clicked,
                score,
                listed: lookup.rank(pair),
                is_held_out: lookup.is_held_out(pair),
            };
            (age, member)
        };
        let ordered = self.ordered_members(
            slate,
            |_, open| {
                let outcome = self.retained.get(open.retained).map(|x| x.outcome);
                let outcome = outcome.unwrap_or_default();
                ranked(open.age(), open.pair, open.score, outcome)
            },
            |_, kept| ranked(kept.age(), kept.pair, kept.score, kept.outcome),
        );
        let (ages, members) = ordered.into_iter().unzip();
        let probed = Probed {
            reference_size: lookup.reference_size(),
            has_held_out: lookup.has_held_out(),
        };
        Ranking {
            ages,
            members,
            probed,
        }
    }

    /// What is said of each member of a slate, open or retained, in the order shown: by position,
    /// then by age; those without a position come last.
    pub(crate) fn ordered_members<T>(
        &self,
        slate: u32,
        of_open: impl Fn(u32, &Impression) -> T,
        of_retained: impl Fn(u32, &Retained) -> T,
    ) -> Vec<T> {
        let Some(found) = self.slates.get(slate) else {
            return Vec::new();
        };
        let mut members = Vec::with_capacity(found.placed as usize);
        let mut row = found.last_member;
        while let Some(open) = self.impressions.log.get(row) {
            let order = (place_of(open.position), open.age());
            members.push((order, of_open(row, open)));
            row = open.prev_in_slate;
        }
        let mut row = found.last_retained;
        while let Some(kept) = self.retained.get(row) {
            if kept.open == NO_ROW && kept.is_member {
                let order = (place_of(kept.position), kept.age());
                members.push((order, of_retained(row, kept)));
            }
            row = kept.prev_in_slate;
        }
        members.reverse();
        if !members.is_sorted_by_key(|(order, _)| *order) {
            members.sort_unstable_by_key(|(order, _)| *order);
        }
        members.into_iter().map(|(_, member)| member).collect()
    }

    // Lists: what slates show, whatever comes of it

    /// A slate is about to have another impression. Where it takes it as a member, the list that was
    /// emitted for it is retracted, once.
    pub(crate) fn retract_list(&mut self, slate: u32, sink: &mut impl Sink) {
        if !self.items.is_kept {
            return;
        }
        let Some(found) = self.slates.get_mut(slate) else {
            return;
        };
        if !found.takes(self.rules.slate_items) {
            return;
        }
        if !std::mem::replace(&mut found.is_list_dirty, true) {
            self.slates.dirty_lists.push(slate);
            self.emit_list(slate, -1, sink);
        }
    }

    /// Emits all lists that changed.
    pub(crate) fn emit_lists(&mut self, sink: &mut impl Sink) {
        for slate in std::mem::take(&mut self.slates.dirty_lists) {
            if let Some(found) = self.slates.get_mut(slate) {
                found.is_list_dirty = false;
                self.emit_list(slate, 1, sink);
            }
        }
    }

    fn emit_list(&self, slate: u32, sign: i64, sink: &mut impl Sink) {
        let Some(at) = self.slates.get(slate).and_then(Slate::at) else {
            return;
        };
        let items: Vec<ItemOf> = self.ordered_members(
            slate,
            |row, _| self.items.open.get(row).copied().unwrap_or_default(),
            |row, _| self.items.retained.get(row).copied().unwrap_or_default(),
        );
        let items = &items;
        sink.emit(Emitted::List { at, sign, items });
    }
}

fn place_of(position: u16) -> u32 {
    if position == 0 {
        LAST
    } else {
        u32::from(position)
    }
}

/// The losses of a slate with many pairs, from those emitted before where that is less to do.
fn losses_of(
    ranking: &Ranking,
    before: Option<Box<EmittedLosses>>,
    margin: f64,
) -> Option<PairLosses> {
    let now = &ranking.members;
    let relevant = now.iter().filter(|member| member.grade > 0).count();
    if relevant * (now.len() - relevant) < MANY_PAIRS {
        return None;
    }
    let Some(before) = before else {
        return Some(PairLosses::of(now, margin));
    };
    // Members as they were: those that are new have no score yet.
    let mut then = now.clone();
    let mut changed = Vec::new();
    for (at, age) in ranking.ages.iter().enumerate() {
        let known = before.members.binary_search_by_key(age, |(age, _)| *age);
        match known.ok().and_then(|found| before.members.get(found)) {
            None => {
                then[at].score = f64::NAN;
                changed.push(at);
            }
            Some((_, was_relevant)) if *was_relevant != (now[at].grade > 0) => {
                then[at].grade = u8::from(*was_relevant);
                changed.push(at);
            }
            Some(_) => {}
        }
    }
    if changed.len() * now.len() > relevant * (now.len() - relevant) {
        return Some(PairLosses::of(now, margin));
    }
    let mut losses = before.losses;
    for at in changed {
        let is_new = then[at].score.is_nan() && !now[at].score.is_nan();
        then[at] = now[at];
        if is_new {
            losses.insert(&then, at);
        } else {
            losses.flip(&then, at, now[at].grade > 0);
        }
    }
    Some(losses)
}

fn emitted(ranking: &Ranking, losses: PairLosses) -> Box<EmittedLosses> {
    let is_relevant = ranking.members.iter().map(|member| member.grade > 0);
    let mut known: Vec<(Age, bool)> = ranking.ages.iter().copied().zip(is_relevant).collect();
    known.sort_unstable();
    Box::new(EmittedLosses {
        losses,
        members: known,
    })
}
