//! One list at a time: its members in the order shown, with the grades that its user gave them.

use std::cmp::Ordering;

use crate::evaluation::exposure::Exposure;
use crate::evaluation::relevant_items::{RelevantItem, RelevantItems};
use crate::evaluation::shown_lists::{Groups, ShownLists, ShownRow};
use crate::hash::HashSet;
use crate::slates::members::{Member, Probed};
use crate::slates::values::{MAX_GRADES, MAX_ITEMS, SlateContext};

/// Lists up to this size are searched for repeats row by row.
const SMALL: usize = 32;

/// Reads lists; its buffers are used again.
pub struct ListReader<'a> {
    lists: &'a ShownLists,
    relevant: &'a RelevantItems,
    rows: &'a Groups,
    context: SlateContext,
    /// The distinct items of a list, in the order shown.
    shown: Vec<ShownRow>,
    members: Vec<Member>,
    seen: HashSet,
}

impl<'a> ListReader<'a> {
    pub fn new(
        lists: &'a ShownLists,
        relevant: &'a RelevantItems,
        rows: &'a Groups,
        context: SlateContext,
    ) -> Self {
        Self {
            lists,
            relevant,
            rows,
            context,
            shown: Vec::new(),
            members: Vec::new(),
            seen: HashSet::default(),
        }
    }

    /// The list that was read last.
    pub fn context(&self) -> &SlateContext {
        &self.context
    }

    /// Where a list is counted besides the total: from 1.
    pub fn segment(&self, list: u32) -> Option<usize> {
        Some(self.lists.segment(list)? + 1)
    }

    /// Reads a list of a user; false, and nothing is read, where nothing is relevant in it: each of
    /// its values is 0 then.
    pub fn read(&mut self, list: u32, user: u32, counts_unshown: bool) -> bool {
        let relevant = self.relevant;
        let of = if relevant.is_of_requests() {
            list
        } else {
            user
        };
        let relevant = relevant.of(of);
        if relevant.is_empty() {
            return false;
        }
        self.order(list);
        let mut unshown = [0i64; MAX_GRADES + 1];
        for item in relevant {
            unshown[usize::from(item.grade)] += 1;
        }
        self.members.clear();
        for row in &self.shown {
            let grade = grade_of(relevant, row.item);
            unshown[usize::from(grade)] -= i64::from(grade > 0);
            self.members.push(Member {
                grade,
                is_clicked: grade > 0,
                score: row.score,
                listed: 0,
                is_held_out: false,
            });
        }
        self.context.read(&self.members, Probed::default(), None);
        if counts_unshown {
            self.context.add_unshown(&unshown);
        }
        true
    }

    /// Counts the items of a list; `is_read`: whether it is the one that was read last.
    pub fn expose(&mut self, list: u32, is_read: bool, exposure: &mut Exposure) {
        if !is_read {
            self.order(list);
            self.members.clear();
        }
        let rows = self.rows.of(list).iter();
        exposure.add_rows(rows.map(|row| self.lists.row(*row).item));
        exposure.add_list(&self.shown);
        for (row, member) in self.shown.iter().zip(&self.members) {
            if member.is_clicked {
                exposure.add_clicked(row.item);
            }
        }
    }

    /// The distinct items of a list in the order shown, as the engine has them: of repeats the
    /// first row counts, equal positions and scores stay in row order, and the first `MAX_ITEMS`
    /// are left.
    fn order(&mut self, list: u32) {
        let rows = self.rows.of(list);
        self.shown.clear();
        self.seen.clear();
        for row in rows {
            let row = self.lists.row(*row);
            let is_repeat = match rows.len() <= SMALL {
                true => self.shown.iter().any(|shown| shown.item == row.item),
                false => !self.seen.insert(row.item),
            };
            if !is_repeat {
                self.shown.push(row);
            }
        }
        let compare = |a: &ShownRow, b: &ShownRow| a.order.partial_cmp(&b.order);
        let compare = |a: &ShownRow, b: &ShownRow| compare(a, b).unwrap_or(Ordering::Equal);
        if self.lists.is_ordered() && !self.shown.is_sorted_by(|a, b| compare(a, b).is_le()) {
            self.shown.sort_by(compare);
        }
        self.shown.truncate(MAX_ITEMS);
    }
}

/// The grade of an item, 0 if it is not among the relevant ones, which are ascending.
fn grade_of(relevant: &[RelevantItem], item: u64) -> u8 {
    let at = relevant.binary_search_by_key(&item, |relevant| relevant.item);
    at.map_or(0, |at| relevant[at].grade)
}
