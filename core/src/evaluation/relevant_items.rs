//! The items that users found relevant: rows of a table of clicks, with the largest grade of each
//! item.

use arrow_array::RecordBatch;
use serde::Deserialize;

use crate::evaluation::arrow_columns::{TableBatch, TableColumn};
use crate::evaluation::shown_lists::{ShownLists, is_absent};
use crate::hash::HashKey;
use crate::slates::values::MAX_GRADES;

const TABLE: &str = "clicks";

/// Names of the columns of clicks. Without `request`, an item is relevant in every list of the
/// user.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClickColumns {
    user: String,
    item: String,
    request: Option<String>,
    grade: Option<String>,
}

/// An item that is relevant in a list, or in all lists of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelevantItem {
    /// Number of the list, or of the user.
    of: u32,
    pub item: u64,
    /// Place among the gains, from 1.
    pub grade: u8,
}

/// Grades above 0, each numbered from 1 as it comes.
#[derive(Debug)]
struct Gains(Vec<f64>);

impl Gains {
    /// The codes of the grades of a batch, 0 for a grade of 0.
    fn codes_of(&mut self, column: &TableColumn<'_>) -> Result<Vec<u8>, String> {
        let grades = column.numbers()?;
        let mut codes = Vec::with_capacity(grades.len());
        for (row, grade) in grades.into_iter().enumerate() {
            if !(grade >= 0.0 && grade.is_finite()) {
                let rule = format!("is {grade}; a grade is a number from 0, 0 for not relevant");
                return Err(column.wrong(row, &rule));
            }
            codes.push(if grade > 0.0 { self.code(grade)? } else { 0 });
        }
        Ok(codes)
    }

    /// The code of a gain: from 1, in the order in which they come.
    fn code(&mut self, gain: f64) -> Result<u8, String> {
        let known = self.0.iter().position(|known| *known == gain);
        if known.is_none() && self.0.len() == MAX_GRADES {
            return Err(format!(
                "{TABLE}: more than {MAX_GRADES} different grades above 0: round them to steps"
            ));
        }
        let at = known.unwrap_or_else(|| {
            self.0.push(gain);
            self.0.len() - 1
        });
        Ok(at as u8 + 1)
    }

    /// Orders the gains; the place of each code among them, from 1.
    fn finish(&mut self) -> Vec<u8> {
        let mut order: Vec<usize> = (0..self.0.len()).collect();
        order.sort_unstable_by(|a, b| self.0[*a].total_cmp(&self.0[*b]));
        let mut places = vec![0u8; order.len() + 1];
        for (place, code) in (1..).zip(&order) {
            places[code + 1] = place;
        }
        self.0.sort_unstable_by(f64::total_cmp);
        places
    }
}

/// The relevant items of a table of clicks.
#[derive(Debug)]
pub struct RelevantItems {
    columns: ClickColumns,
    key: HashKey,
    rows: usize,
    /// Clicks of users or requests that have no list.
    pub without_list: usize,
    gains: Gains,
    items: Vec<RelevantItem>,
    first: Vec<u32>,
}

impl RelevantItems {
    /// None yet.
    pub fn new(columns: ClickColumns, key: HashKey) -> Self {
        Self {
            columns,
            key,
            rows: 0,
            without_list: 0,
            gains: Gains(Vec::new()),
            items: Vec::new(),
            first: Vec::new(),
        }
    }

    /// Looks at the names of the table's columns, before rows are added; `asked`: those that
    /// somebody named. Requests are not looked at where impressions have none.
    pub fn settle(&mut self, names: &[&str], asked: &[String], lists: &ShownLists) {
        let columns = &mut self.columns;
        columns
            .request
            .take_if(|name| !lists.has_requests() || is_absent(name, names, asked));
        columns.grade.take_if(|name| is_absent(name, names, asked));
    }

    /// Adds the rows of a batch to the lists that they belong to. An error, in words, where a
    /// column is missing or cannot be read, and where there are too many grades.
    pub fn add(&mut self, batch: &RecordBatch, lists: &ShownLists) -> Result<(), String> {
        let from = TableBatch::behind(self.rows, TABLE, batch)?;
        let users = from.column(&self.columns.user)?.hashes(&self.key)?;
        let items = from.column(&self.columns.item)?.hashes(&self.key)?;
        let requests = match &self.columns.request {
            Some(name) => Some(from.column(name)?.hashes(&self.key)?),
            None => None,
        };
        let grades = match &self.columns.grade {
            Some(name) => self.gains.codes_of(&from.column(name)?)?,
            None => vec![self.gains.code(1.0)?; users.len()],
        };
        self.rows += users.len();
        for (row, (user, item)) in users.into_iter().zip(items).enumerate() {
            let of = match &requests {
                Some(requests) => lists.request(user, requests[row]),
                None => lists.user(user),
            };
            match of {
                Some(of) if grades[row] > 0 => self.items.push(RelevantItem {
                    of,
                    item,
                    grade: grades[row],
                }),
                Some(_) => {}
                None => self.without_list += 1,
            }
        }
        Ok(())
    }

    /// All rows were added: makes items of lists (or users) known, each with its largest grade.
    pub fn finish(&mut self, lists: &ShownLists) {
        let places = self.gains.finish();
        for item in &mut self.items {
            item.grade = places[usize::from(item.grade)];
        }
        self.items.sort_unstable_by(|a, b| b.cmp(a)); // the largest grade comes first
        self.items.dedup_by_key(|item| (item.of, item.item));
        self.items.reverse();
        self.items.shrink_to_fit();
        let groups = match self.is_of_requests() {
            true => lists.lists(),
            false => lists.users(),
        };
        self.first = vec![0; groups + 1];
        for item in &self.items {
            self.first[item.of as usize + 1] += 1;
        }
        for group in 0..groups {
            self.first[group + 1] += self.first[group];
        }
    }

    /// Whether clicks belong to requests, not to users.
    pub fn is_of_requests(&self) -> bool {
        self.columns.request.is_some()
    }

    /// The relevant items of a list (or user), ascending.
    pub fn of(&self, group: u32) -> &[RelevantItem] {
        let group = group as usize;
        &self.items[self.first[group] as usize..self.first[group + 1] as usize]
    }

    /// The gain of each grade from 1, ascending.
    pub fn gains(&self) -> &[f64] {
        &self.gains.0
    }

    pub fn rows(&self) -> usize {
        self.rows
    }
}
