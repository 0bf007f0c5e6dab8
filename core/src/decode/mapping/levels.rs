//! The levels of a record: itself, elements of lists in it, and elements of lists in those. Values of
//! the elements that are gone over take the places of those before.

use super::kinds::Condition;
use super::paths::Paths;
use super::scope::Scope;
use crate::decode::reason::Reason;
use crate::json::Reader;
use crate::spec::records::LevelSpec;

/// All levels of records of one shape.
#[derive(Debug)]
pub(in crate::decode) struct Levels {
    levels: Vec<Level>,
    /// How many values there are, with those that stand beside records.
    pub values: usize,
}

#[derive(Debug)]
struct Level {
    /// The value that is the list; none: the record.
    list: Option<usize>,
    only: Vec<Condition>,
    paths: Paths,
    /// The number of its first value.
    first: usize,
}

impl Levels {
    /// Compiles levels; `beside`: how many values come before theirs.
    pub fn new(specs: &[LevelSpec], beside: usize) -> Self {
        let mut values = beside;
        let levels = specs.iter().map(|spec| {
            let first = values;
            values += spec.paths.len();
            Level {
                list: spec.list,
                only: spec.only.iter().map(Condition::new).collect(),
                paths: Paths::new(&spec.paths),
                first,
            }
        });
        let levels = levels.collect();
        Self { levels, values }
    }

    /// Finds the values of a record, which ends at a place of the text.
    pub fn open(&self, scope: &mut Scope, end: usize, may_be_list: bool) -> Result<(), Reason> {
        let record = scope.text.get(..end).unwrap_or_default();
        let mut reader = Reader::new(record, scope.max_depth);
        let first = reader.peek();
        let is_right = first == b'{' || (may_be_list && first == b'[');
        self.levels[0].find(&mut reader, 0, scope)?;
        match (reader.is_at_end(), is_right) {
            (false, _) => Err(Reason::Json),
            (true, false) => Err(Reason::Object),
            (true, true) => Ok(()),
        }
    }

    /// Where the list of a level begins, or what stands in its place.
    pub fn list_at(&self, level: usize, scope: &Scope) -> Option<usize> {
        let list = self.levels[level].list?;
        scope.first(&[list]).map(|(_, at)| at)
    }

    /// Whether a list stands where that of a level does.
    pub fn is_list(&self, level: usize, scope: &Scope) -> bool {
        let at = self.list_at(level, scope);
        at.is_some_and(|at| scope.reader_at(at).peek() == b'[')
    }

    /// Whether elements of some levels may not count.
    pub fn choose(&self, levels: &[usize]) -> bool {
        levels
            .iter()
            .any(|level| !self.levels[*level].only.is_empty())
    }

    /// Calls `on` with each element of the last of some levels, and where it begins; values of the
    /// levels are then its own. What is no list has no elements.
    pub fn walk(
        &self,
        levels: &[usize],
        scope: &mut Scope,
        on: &mut dyn FnMut(&mut Scope, usize) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        let Some((level, inner)) = levels.split_first() else {
            return Ok(());
        };
        let Some(at) = self.list_at(*level, scope) else {
            return Ok(());
        };
        let mut reader = scope.reader_at(at);
        if reader.peek() != b'[' {
            return Ok(());
        }
        let level = &self.levels[*level];
        let walked = reader.list(|reader, _| {
            reader.peek();
            let at = reader.at();
            level.find(reader, 1, scope)?;
            match level.only.iter().all(|each| each.holds(scope)) {
                false => Ok(()),
                true if inner.is_empty() => on(scope, at),
                true => self.walk(inner, scope, on),
            }
        });
        walked.map(|_| ())
    }

    /// Appends a text that begins and ends at two places once for each element of the last of some
    /// levels, each time with that alone, between what stands before and behind it.
    pub fn split(
        &self,
        levels: &[usize],
        scope: &mut Scope,
        (start, end): (usize, usize),
        (before, behind): (&str, &str),
        to: &mut Vec<String>,
    ) {
        let Some((level, inner)) = levels.split_first() else {
            return to.push(format!("{before}{}{behind}", &scope.text[start..end]));
        };
        let Some(list) = self.list_at(*level, scope) else {
            return;
        };
        let end_of = |scope: &Scope, at| {
            let mut reader = scope.reader_at(at);
            reader.skip(0).map(|()| reader.at())
        };
        let Ok(list_end) = end_of(scope, list) else {
            return;
        };
        let before = format!("{before}{}[", &scope.text[start..list]);
        let behind = format!("]{}{behind}", &scope.text[list_end..end]);
        let walked = self.walk(&[*level], scope, &mut |scope, at| {
            let end = end_of(scope, at)?;
            self.split(inner, scope, (at, end), (&before, &behind), to);
            Ok(())
        });
        debug_assert!(walked.is_ok(), "the record was opened before");
    }
}

impl Level {
    /// Finds its values in the one that comes next.
    fn find(&self, reader: &mut Reader, depth: usize, scope: &mut Scope) -> Result<(), Reason> {
        let found = &mut scope.found[self.first..self.first + self.paths.count];
        found.fill(0);
        scope.unescaped.clear();
        self.paths
            .find(reader, depth, (scope.text, scope.unescaped), found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_stand_for_no_value_are_none() {
        let record = r#"{"a": "(not set)", "b": "n\/a", "c": "(not set) ", "d": 5}"#;
        let at = |name: &str| record.find(name).unwrap() as u32 + 5 + 1;
        let mut found = [at("\"a\""), at("\"b\""), at("\"c\""), at("\"d\"")];
        let words = ["(not set)".to_owned(), "n/a".to_owned()];
        let mut of = |places: &[usize], missing: &[String]| {
            let scope = Scope {
                text: record,
                found: &mut found,
                unescaped: &mut String::new(),
                missing,
                max_depth: 8,
                timestamp_ms: 0,
            };
            scope.first(places).map(|(i, _)| i)
        };
        assert_eq!(of(&[0, 1, 2, 3], &[]), Some(0));
        assert_eq!(of(&[0, 1, 2, 3], &words), Some(2));
        assert_eq!(of(&[0, 1, 3], &words), Some(2));
        assert_eq!(of(&[1], &words), None);
    }
}
