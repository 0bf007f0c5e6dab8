//! Paths into records, all of which are found in one pass.

use crate::decode::names::{Last, Names};
use crate::decode::reason::Reason;
use crate::json::{Reader, Text};
use crate::spec::records::Step;

use super::scope::Found;

/// All paths into records of one shape; each has its place in the order in which they are given.
#[derive(Debug, Default)]
pub(super) struct Paths {
    nodes: Vec<Node>,
    pub count: usize,
    /// The empty one: the value itself.
    own: Option<usize>,
}

/// What is looked at within one value.
#[derive(Debug)]
struct Node {
    fields: Names<Target>,
    elements: Vec<(usize, Target)>,
    /// Field of the elements → by its text.
    matches: Vec<(String, Names<Target>)>,
}

/// A value that is found at a place, or looked into, or both.
#[derive(Clone, Copy, Debug, Default)]
struct Target {
    place: Option<u32>,
    node: Option<u32>,
}

impl Paths {
    pub fn new(paths: &[Vec<Step>]) -> Self {
        let mut made = Self {
            nodes: Vec::new(),
            count: paths.len(),
            own: paths.iter().position(Vec::is_empty),
        };
        let all = paths.iter().map(Vec::as_slice).enumerate();
        let longer: Vec<(usize, &[Step])> = all.filter(|(_, path)| !path.is_empty()).collect();
        made.add(&longer);
        made
    }

    /// Adds a node for the rests of paths, and returns its number.
    fn add(&mut self, paths: &[(usize, &[Step])]) -> u32 {
        let at = self.nodes.len();
        self.nodes.push(Node::default());
        let mut steps: Vec<&Step> = Vec::new();
        for (_, path) in paths {
            steps.extend(path.first().filter(|step| !steps.contains(step)));
        }
        let mut fields = Vec::new();
        let mut matches: Vec<(&String, Vec<(&str, Target)>)> = Vec::new();
        for step in steps {
            let same = paths.iter().filter(|(_, path)| path.first() == Some(step));
            let rests: Vec<(usize, &[Step])> = same.map(|(i, path)| (*i, &path[1..])).collect();
            let target = self.target(&rests);
            match step {
                Step::Field(name) => fields.push((name.as_str(), target)),
                Step::Element(number) => self.nodes[at].elements.push((*number, target)),
                Step::Where { key, equals } => {
                    match matches.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, targets)) => targets.push((equals, target)),
                        None => matches.push((key, vec![(equals, target)])),
                    }
                }
            }
        }
        let node = &mut self.nodes[at];
        node.fields = Names::new(fields);
        let matches = matches.into_iter();
        node.matches = matches
            .map(|(key, targets)| (key.clone(), Names::new(targets)))
            .collect();
        at as u32
    }

    /// What the ends of paths, and the rests of longer ones, lead to.
    fn target(&mut self, rests: &[(usize, &[Step])]) -> Target {
        let ends = rests.iter().find(|(_, path)| path.is_empty());
        let longer: Vec<_> = rests
            .iter()
            .copied()
            .filter(|(_, p)| !p.is_empty())
            .collect();
        Target {
            place: ends.map(|(i, _)| *i as u32),
            node: (!longer.is_empty()).then(|| self.add(&longer)),
        }
    }

    /// Finds all values within the one that comes next; of several at one path the last counts.
    pub fn find(
        &self,
        reader: &mut Reader,
        depth: usize,
        source: (&str, &mut String),
        found: &mut Found,
    ) -> Result<(), Reason> {
        let (record, unescaped) = source;
        if let Some(own) = self.own {
            reader.peek();
            found[own] = reader.at() as u32 + 1;
        }
        let mut search = Search {
            paths: self,
            record,
            unescaped,
            found,
        };
        search.look(0, reader, depth)
    }
}

impl Default for Node {
    fn default() -> Self {
        Self {
            fields: Names::new([]),
            elements: Vec::new(),
            matches: Vec::new(),
        }
    }
}

struct Search<'a> {
    paths: &'a Paths,
    record: &'a str,
    unescaped: &'a mut String,
    found: &'a mut Found,
}

impl Search<'_> {
    /// Goes over the next value as a node says.
    fn look(&mut self, node: u32, reader: &mut Reader, depth: usize) -> Result<(), Reason> {
        let paths = self.paths;
        let Some(node) = paths.nodes.get(node as usize) else {
            return reader.skip(depth);
        };
        let mut last = Last::default();
        match reader.peek() {
            b'{' | b'[' if depth >= reader.max_depth() => Err(Reason::TooDeep),
            b'{' => reader.object(
                self,
                |reader, search| node.fields.read(&mut last, reader, search.unescaped),
                |reader, search, target| match target {
                    Some(target) => search.take(target, reader, depth + 1),
                    None => reader.skip(depth + 1),
                },
            ),
            b'[' if !node.elements.is_empty() || !node.matches.is_empty() => reader
                .list(|reader, i| self.element(node, i, reader, depth + 1))
                .map(|_| ()),
            _ => reader.skip(depth),
        }
    }

    /// Notes the next value, and looks into it.
    fn take(&mut self, target: Target, reader: &mut Reader, depth: usize) -> Result<(), Reason> {
        reader.peek();
        if let Some(place) = target.place {
            self.found[place as usize] = reader.at() as u32 + 1;
        }
        match target.node {
            Some(node) => self.look(node, reader, depth),
            None => reader.skip(depth),
        }
    }

    fn element(
        &mut self,
        node: &Node,
        number: usize,
        reader: &mut Reader,
        depth: usize,
    ) -> Result<(), Reason> {
        let start = *reader;
        for (_, target) in node.elements.iter().filter(|(i, _)| *i == number) {
            self.take(*target, &mut start.clone(), depth)?;
        }
        for (key, targets) in &node.matches {
            let text = self.text_of(key, start)?;
            let text = text.map(|text| text.of(self.record, self.unescaped));
            if let Some(target) = text.and_then(|text| targets.get(text)) {
                self.take(target, &mut start.clone(), depth)?;
            }
        }
        reader.skip(depth)
    }

    /// The text of a field of the next value, where that is an object with such a field.
    fn text_of(&mut self, key: &str, mut reader: Reader) -> Result<Option<Text>, Reason> {
        if reader.peek() != b'{' {
            return Ok(None);
        }
        let (record, mut found) = (self.record, None);
        reader.object(
            &mut (&mut *self.unescaped, &mut found),
            |reader, (unescaped, _)| reader.text(unescaped),
            |reader, (unescaped, found), name| {
                if name.of(record, unescaped) == key && reader.peek() == b'"' {
                    **found = Some(reader.text(unescaped)?);
                    return Ok(());
                }
                reader.skip(1)
            },
        )?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(paths: &str, record: &str) -> Vec<String> {
        let paths: Vec<Vec<Step>> = serde_json::from_str(paths).unwrap();
        let paths = Paths::new(&paths);
        let mut found = vec![0; paths.count];
        let mut unescaped = String::new();
        let mut reader = Reader::new(record, 8);
        paths
            .find(&mut reader, 0, (record, &mut unescaped), &mut found)
            .unwrap();
        let text = |at: &u32| {
            let Some(at) = at.checked_sub(1) else {
                return "-".to_owned();
            };
            let mut value = Reader::starting(record, at as usize, 8);
            value.skip(0).unwrap();
            record[at as usize..value.at()].to_owned()
        };
        found.iter().map(text).collect()
    }

    #[test]
    fn values_are_found_in_objects_and_lists() {
        let record = r#"{"a": {"b": [1, {"c": "x"}], "b\u0032": 5}, "d": null,
            "params": [{"key": "page", "value": {"n": 7}}, 3, {"value": {"n": 8}, "key": "s\u0031"}],
            "a": {"e": []}}"#;
        let paths = r#"[["a", "b", 1, "c"], ["a", "b"], ["d"], ["a", "b2"], ["none"], ["a", "e"],
            ["params", {"key": "key", "equals": "s1"}, "value", "n"],
            ["params", {"key": "key", "equals": "page"}, "value"], ["a", "b", 2]]"#;
        assert_eq!(
            found(paths, record),
            [
                "\"x\"",
                "[1, {\"c\": \"x\"}]",
                "null",
                "5",
                "-",
                "[]",
                "8",
                "{\"n\": 7}",
                "-"
            ]
        );
    }

    #[test]
    fn other_types_on_the_way_are_nothing() {
        assert_eq!(
            found(r#"[["a", "b"], ["a", 0]]"#, r#"{"a": 5}"#),
            ["-", "-"]
        );
        assert_eq!(
            found(r#"[["a", "b"], ["a", 0]]"#, r#"{"a": [{"b": 1}]}"#),
            ["-", "{\"b\": 1}"]
        );
    }
}
