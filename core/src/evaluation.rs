//! Offline evaluation: the values of slates over tables of impressions and clicks, by the functions
//! that the live engine uses, as sums over lists and users.
//!
//! Lists are grouped by user, and every sum is an integer: users can be divided among threads, and
//! the result is the same.

pub mod arrow_columns;
pub mod exposure;
pub mod list_reader;
pub mod mean_sums;
pub mod relevant_items;
pub mod shown_lists;

use std::sync::Arc;
use std::thread;

use serde::Deserialize;

use crate::evaluation::exposure::Exposure;
use crate::evaluation::list_reader::ListReader;
use crate::evaluation::mean_sums::{MeanSums, UserMeanSums};
use crate::evaluation::relevant_items::RelevantItems;
use crate::evaluation::shown_lists::{Groups, ShownLists};
use crate::slates::family::{Population, SlateValue};
use crate::slates::values::{SlateContext, Tables};

/// Threads at most: further ones wait for memory.
const MAX_THREADS: usize = 8;

/// A mean that is wanted; `over`: the lists that it is taken over.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeanSpec {
    name: String,
    k: i64,
    convention: String,
    population: String,
    over: String,
}

/// What is wanted of the lists.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeansSpec {
    means: Vec<MeanSpec>,
    /// Whether relevant items that a list does not show count.
    counts_unshown: bool,
    has_scoring: bool,
    /// Cut-offs of counts of items; none: items are not counted.
    cutoffs: Option<Vec<usize>>,
}

/// A mean, as it is computed.
#[derive(Clone, Copy, Debug)]
struct Mean {
    value: SlateValue,
    over: Population,
}

/// What is computed, the same for all lists.
#[derive(Debug)]
pub struct Means {
    means: Vec<Mean>,
    counts_unshown: bool,
    has_scoring: bool,
    cutoffs: Option<Vec<usize>>,
}

impl Means {
    /// An error where a name is unknown.
    pub fn new(spec: MeansSpec) -> Result<Self, String> {
        let mean = |spec: &MeanSpec| {
            Ok(Mean {
                value: SlateValue::new(&spec.name, spec.k, &spec.convention, &spec.population)?,
                over: Population::parse(&spec.over)?,
            })
        };
        Ok(Self {
            means: spec.means.iter().map(mean).collect::<Result<_, String>>()?,
            counts_unshown: spec.counts_unshown,
            has_scoring: spec.has_scoring,
            cutoffs: spec.cutoffs,
        })
    }
}

/// The sums of one segment.
#[derive(Debug)]
pub struct SegmentTotals {
    /// One a mean.
    pub means: Vec<MeanSums>,
    pub exposure: Option<Exposure>,
}

impl SegmentTotals {
    fn new(of: &Means) -> Self {
        Self {
            means: vec![MeanSums::default(); of.means.len()],
            exposure: of.cutoffs.clone().map(Exposure::new),
        }
    }

    fn add(&mut self, other: &Self) {
        for (sums, more) in self.means.iter_mut().zip(&other.means) {
            sums.add(more);
        }
        if let (Some(exposure), Some(more)) = (&mut self.exposure, &other.exposure) {
            exposure.add(more);
        }
    }
}

/// The sums over all lists, and those of each segment behind them.
pub fn evaluate(
    lists: &ShownLists,
    relevant: &RelevantItems,
    means: &Means,
    tables: Arc<Tables>,
) -> Vec<SegmentTotals> {
    let rows = lists.rows_by_list();
    let by_user = lists.has_requests().then(|| lists.lists_by_user());
    let users = lists.users();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let part = users.div_ceil(threads.min(MAX_THREADS)).max(1);
    let parts: Vec<Vec<SegmentTotals>> = thread::scope(|scope| {
        let (rows, by_user) = (&rows, by_user.as_ref());
        let begin = |first: usize| {
            let context = SlateContext::new(Arc::clone(&tables), means.has_scoring);
            let of_part = PartOfUsers {
                means,
                by_user,
                reader: ListReader::new(lists, relevant, rows, context),
                totals: Vec::new(),
                user: UserMeanSums::new(means.means.len()),
            };
            let part = first as u32..(first + part).min(users) as u32;
            scope.spawn(move || of_part.run(part))
        };
        let begun: Vec<_> = (0..users).step_by(part).map(begin).collect();
        let joined = begun.into_iter().map(|thread| thread.join());
        let panicked = |panic| std::panic::resume_unwind(panic);
        joined.map(|done| done.unwrap_or_else(panicked)).collect()
    });
    added_up(parts, lists.segments().len() + 1, means)
}

fn added_up(parts: Vec<Vec<SegmentTotals>>, segments: usize, means: &Means) -> Vec<SegmentTotals> {
    let mut parts = parts.into_iter();
    let mut totals = parts.next().unwrap_or_default();
    totals.resize_with(segments, || SegmentTotals::new(means));
    for part in parts {
        for (total, more) in totals.iter_mut().zip(&part) {
            total.add(more);
        }
    }
    totals
}

/// The users of one thread.
struct PartOfUsers<'a> {
    means: &'a Means,
    by_user: Option<&'a Groups>,
    reader: ListReader<'a>,
    /// Of all lists, and of each segment that came up.
    totals: Vec<SegmentTotals>,
    user: UserMeanSums,
}

impl PartOfUsers<'_> {
    fn run(mut self, users: std::ops::Range<u32>) -> Vec<SegmentTotals> {
        for user in users {
            self.user.clear();
            match self.by_user {
                Some(lists) => lists
                    .of(user)
                    .iter()
                    .for_each(|list| self.list(*list, user)),
                None => self.list(user, user),
            }
            for (segment, sums) in self.user.segments() {
                let totals = totals_of(&mut self.totals, segment, self.means);
                for (total, of_user) in totals.means.iter_mut().zip(sums) {
                    total.add_user(of_user);
                }
            }
        }
        self.totals
    }

    /// Adds a list to the sums of its user: to those of all lists, and of its segment.
    fn list(&mut self, list: u32, user: u32) {
        let segments = [Some(0), self.reader.segment(list)];
        let is_read = self.reader.read(list, user, self.means.counts_unshown);
        if is_read || self.means.cutoffs.is_some() {
            for segment in segments.into_iter().flatten() {
                let totals = totals_of(&mut self.totals, segment, self.means);
                if let Some(exposure) = &mut totals.exposure {
                    self.reader.expose(list, is_read, exposure);
                }
            }
        }
        for (number, mean) in self.means.means.iter().enumerate() {
            let is_over = match is_read {
                true => mean.over.contains(self.reader.context()),
                false => mean.over == Population::All,
            };
            if is_over {
                let value = match is_read {
                    true => mean.value.units(self.reader.context()),
                    false => 0,
                };
                for segment in segments.into_iter().flatten() {
                    self.user.add(segment, number, value);
                }
            }
        }
    }
}

/// The sums of a segment, made if need be.
fn totals_of<'a>(
    totals: &'a mut Vec<SegmentTotals>,
    segment: usize,
    means: &Means,
) -> &'a mut SegmentTotals {
    if totals.len() <= segment {
        totals.resize_with(segment + 1, || SegmentTotals::new(means));
    }
    &mut totals[segment]
}
