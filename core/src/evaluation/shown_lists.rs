//! What lists show: rows of a table, grouped by list, and lists by user.
//!
//! A list is a request of a user, or all rows of the user where the table has no requests. Rows are
//! columns of their own, 20 bytes a row, and grouped by counting, not by sorting.

use std::collections::HashMap as TextMap;

use arrow_array::RecordBatch;
use serde::Deserialize;

use crate::evaluation::arrow_columns::TableBatch;
use crate::hash::{HashKey, HashMap, mix};

const TABLE: &str = "impressions";
/// The largest score either way, as of events.
const MAX_SCORE: f64 = 1e6;
/// What stands for a missing label.
const UNKNOWN: &str = "unknown";

/// Names of the columns of impressions. The order of a list is that of `position`, ascending, else
/// of `score`, descending, else of the rows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShownColumns {
    user: String,
    item: String,
    request: Option<String>,
    position: Option<String>,
    score: Option<String>,
    by: Vec<String>,
    /// Whether the scores themselves are needed, not their order alone.
    is_scored: bool,
    /// Segments at most.
    max_segments: usize,
}

impl ShownColumns {
    /// The table has columns of these names: others that are optional and not in `asked` (which
    /// somebody named) are left out. An error where scores are needed and there are none.
    fn settle(&mut self, names: &[&str], asked: &[String]) -> Result<(), String> {
        for column in [&mut self.request, &mut self.position, &mut self.score] {
            column.take_if(|name| is_absent(name, names, asked));
        }
        if self.is_scored && self.score.is_none() {
            let names = names.join(", ");
            return Err(format!(
                "{TABLE}: no column of scores; it has {names}: name it with columns={{…}}, or \
                 leave out gauc and the losses"
            ));
        }
        Ok(())
    }
}

/// Whether a table lacks a column that nobody asked for.
pub fn is_absent(name: &String, names: &[&str], asked: &[String]) -> bool {
    !names.contains(&name.as_str()) && !asked.contains(name)
}

/// What one row shows.
#[derive(Clone, Copy, Debug)]
pub struct ShownRow {
    pub item: u64,
    /// Ascending in the order shown; infinite where it is missing.
    pub order: f64,
    /// NaN: none.
    pub score: f64,
}

/// Texts, numbered as they come.
#[derive(Debug, Default)]
struct LabelCodes {
    texts: Vec<String>,
    codes: TextMap<String, u32>,
}

impl LabelCodes {
    fn code(&mut self, text: &str) -> u32 {
        if let Some(code) = self.codes.get(text) {
            return *code;
        }
        let code = self.texts.len() as u32;
        self.codes.insert(text.to_owned(), code);
        self.texts.push(text.to_owned());
        code
    }
}

/// The lists of a table of impressions.
#[derive(Debug)]
pub struct ShownLists {
    columns: ShownColumns,
    key: HashKey,
    /// Of each row.
    list: Vec<u32>,
    item: Vec<u64>,
    order: Vec<f64>,
    score: Vec<f64>,
    /// User → number; (user, request) → number of the list, where there are requests.
    users: HashMap<u32>,
    requests: HashMap<u32>,
    /// Of each list.
    user: Vec<u32>,
    segment: Vec<u32>,
    labels: Vec<LabelCodes>,
    segments: Vec<Vec<u32>>,
    segment_codes: TextMap<Vec<u32>, u32>,
}

impl ShownLists {
    /// No lists yet.
    pub fn new(columns: ShownColumns, key: HashKey) -> Self {
        let labels = columns.by.iter().map(|_| LabelCodes::default()).collect();
        Self {
            columns,
            key,
            list: Vec::new(),
            item: Vec::new(),
            order: Vec::new(),
            score: Vec::new(),
            users: HashMap::default(),
            requests: HashMap::default(),
            user: Vec::new(),
            segment: Vec::new(),
            labels,
            segments: Vec::new(),
            segment_codes: TextMap::new(),
        }
    }

    /// Looks at the names of the table's columns, before rows are added; `asked`: those that
    /// somebody named. An error where scores are needed and there are none.
    pub fn settle(&mut self, names: &[&str], asked: &[String]) -> Result<(), String> {
        self.columns.settle(names, asked)
    }

    /// Adds the rows of a batch. An error, in words, where a column is missing or cannot be read.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<(), String> {
        let from = TableBatch::behind(self.list.len(), TABLE, batch)?;
        let users = from.column(&self.columns.user)?.hashes(&self.key)?;
        let requests = match &self.columns.request {
            Some(name) => Some(from.column(name)?.hashes(&self.key)?),
            None => None,
        };
        self.item
            .extend(from.column(&self.columns.item)?.hashes(&self.key)?);
        if let Some(name) = &self.columns.score {
            let score = from.column(name)?.numbers()?;
            if self.columns.position.is_none() {
                self.order.extend(score.iter().map(|score| ordered(-score)));
            }
            if self.columns.is_scored {
                let is_wrong = |score: &f64| score.abs() > MAX_SCORE;
                if let Some(row) = score.iter().position(is_wrong) {
                    let rule = format!("is {}; a score is at most {MAX_SCORE}", score[row]);
                    return Err(from.column(name)?.wrong(row, &rule));
                }
                self.score.extend(score);
            }
        }
        if let Some(name) = &self.columns.position {
            let position = from.column(name)?.numbers()?;
            self.order.extend(position.into_iter().map(ordered));
        }
        let labels = self.codes_of(from)?;
        for (row, user) in users.into_iter().enumerate() {
            let request = requests.as_ref().map(|requests| requests[row]);
            let list = self.list_of(user, request, row, &labels)?;
            self.list.push(list);
        }
        Ok(())
    }

    /// The codes of the labels of a batch, a column each.
    fn codes_of(&mut self, from: TableBatch<'_>) -> Result<Vec<Vec<u32>>, String> {
        let mut columns = Vec::with_capacity(self.labels.len());
        for (name, codes) in self.columns.by.iter().zip(&mut self.labels) {
            let texts = from.column(name)?.labels()?;
            let code = |text: Option<String>| codes.code(text.as_deref().unwrap_or(UNKNOWN));
            columns.push(texts.into_iter().map(code).collect());
        }
        Ok(columns)
    }

    /// The number of a list, all of whose rows are of one segment.
    fn list_of(
        &mut self,
        user: u64,
        request: Option<u64>,
        row: usize,
        labels: &[Vec<u32>],
    ) -> Result<u32, String> {
        let users = self.users.len() as u32;
        let user_number = *self.users.entry(user).or_insert(users);
        let lists = self.user.len() as u32;
        let list = match request {
            Some(request) => *self.requests.entry(mix(user, request)).or_insert(lists),
            None => user_number,
        };
        if list == lists {
            self.user.push(user_number);
            if !labels.is_empty() {
                let segment = self.segment_of(labels.iter().map(|codes| codes[row]).collect())?;
                self.segment.push(segment);
            }
        } else if !labels.is_empty() {
            self.require_segment(list, row, labels)?;
        }
        Ok(list)
    }

    /// An error where a row has other labels than the list that it belongs to: two models that are
    /// stacked in one table would be one list.
    fn require_segment(&self, list: u32, row: usize, labels: &[Vec<u32>]) -> Result<(), String> {
        let segment = &self.segments[self.segment[list as usize] as usize];
        for (place, (code, codes)) in segment.iter().zip(labels).enumerate() {
            if *code != codes[row] {
                let (name, texts) = (&self.columns.by[place], &self.labels[place].texts);
                let (one, two) = (&texts[*code as usize], &texts[codes[row] as usize]);
                return Err(format!(
                    "{TABLE}: a list has the values '{one}' and '{two}' of '{name}', and belongs to one: \
                     if each value has lists of its own, let '{name}' tell them apart, by \
                     columns={{\"request_id\": \"{name}\"}}; else leave it out of by"
                ));
            }
        }
        Ok(())
    }

    fn segment_of(&mut self, codes: Vec<u32>) -> Result<u32, String> {
        if let Some(segment) = self.segment_codes.get(&codes) {
            return Ok(*segment);
        }
        let most = self.columns.max_segments;
        if self.segments.len() == most {
            let by = self.columns.by.join(", ");
            return Err(format!(
                "by: {by} have more than {most} values together: leave one out, or group its values"
            ));
        }
        let segment = self.segments.len() as u32;
        self.segments.push(codes.clone());
        self.segment_codes.insert(codes, segment);
        Ok(segment)
    }

    /// The list of a request of a user.
    pub fn request(&self, user: u64, request: u64) -> Option<u32> {
        self.requests.get(&mix(user, request)).copied()
    }

    /// The number of a user.
    pub fn user(&self, user: u64) -> Option<u32> {
        self.users.get(&user).copied()
    }

    /// Whether the table has requests.
    pub fn has_requests(&self) -> bool {
        self.columns.request.is_some()
    }

    pub fn rows(&self) -> usize {
        self.list.len()
    }

    pub fn lists(&self) -> usize {
        self.user.len()
    }

    pub fn users(&self) -> usize {
        self.users.len()
    }

    /// The labels of each segment, in the order of `by`.
    pub fn segments(&self) -> Vec<Vec<String>> {
        let text = |(codes, of): (&u32, &LabelCodes)| of.texts[*codes as usize].clone();
        let labels = |codes: &Vec<u32>| codes.iter().zip(&self.labels).map(text).collect();
        self.segments.iter().map(labels).collect()
    }

    /// The segment of a list; none where there are no labels.
    pub fn segment(&self, list: u32) -> Option<usize> {
        Some(*self.segment.get(list as usize)? as usize)
    }

    /// The rows of each list, in row order.
    pub fn rows_by_list(&self) -> Groups {
        Groups::new(&self.list, self.lists())
    }

    /// The lists of each user.
    pub fn lists_by_user(&self) -> Groups {
        Groups::new(&self.user, self.users())
    }

    /// What a row shows.
    pub fn row(&self, row: u32) -> ShownRow {
        let row = row as usize;
        ShownRow {
            item: self.item[row],
            order: self.order.get(row).copied().unwrap_or(0.0),
            score: self.score.get(row).copied().unwrap_or(f64::NAN),
        }
    }

    /// Whether rows carry an order of their own.
    pub fn is_ordered(&self) -> bool {
        !self.order.is_empty()
    }
}

/// A number by which rows are ordered: what is missing comes last.
fn ordered(order: f64) -> f64 {
    if order.is_nan() { f64::INFINITY } else { order }
}

/// Numbers of members by group, each group in ascending order.
#[derive(Debug)]
pub struct Groups {
    first: Vec<u32>,
    members: Vec<u32>,
}

impl Groups {
    fn new(group_of: &[u32], groups: usize) -> Self {
        let mut first = vec![0u32; groups + 1];
        for group in group_of {
            first[*group as usize + 1] += 1;
        }
        for group in 0..groups {
            first[group + 1] += first[group];
        }
        let mut next = first.clone();
        let mut members = vec![0u32; group_of.len()];
        for (member, group) in (0..).zip(group_of) {
            let at = &mut next[*group as usize];
            members[*at as usize] = member;
            *at += 1;
        }
        Self { first, members }
    }

    /// The members of a group.
    pub fn of(&self, group: u32) -> &[u32] {
        let group = group as usize;
        &self.members[self.first[group] as usize..self.first[group + 1] as usize]
    }
}
