//! Values in Avro: read by the schema that they were written with, so that fields which were added
//! or removed need no care.

use std::collections::HashMap;
use std::io::Write;

use serde_avro_fast::de::DeserializerState;
use serde_json::ser::Formatter;
use serde_json::{Map, Value};

use super::bytes_as_text;

/// A schema of the registry.
#[derive(Debug)]
pub struct AvroSchema {
    schema: serde_avro_fast::Schema,
    /// Full names: of a union of its variants, else the only one.
    names: Vec<Option<String>>,
    is_union: bool,
}

impl AvroSchema {
    /// A schema from its JSON.
    ///
    /// # Errors
    /// Where it is none, in words.
    pub fn new(text: &str, references: &[(String, String)]) -> Result<Self, String> {
        let schema = with_references(text, references)?;
        require_small(&schema)?;
        let is_union = schema.is_array();
        let names = match &schema {
            Value::Array(variants) => variants.iter().map(own_name).collect(),
            schema => vec![own_name(schema)],
        };
        let schema = schema.to_string().parse::<serde_avro_fast::Schema>();
        let schema = schema.map_err(|error| error.to_string())?;
        Ok(Self {
            schema,
            names,
            is_union,
        })
    }

    /// The full name of the type that a value is.
    pub fn name(&self, payload: &[u8]) -> Option<&str> {
        let variant = match self.is_union {
            true => usize::from(payload.first()? / 2), // zigzag; of few variants one byte
            false => 0,
        };
        self.names.get(variant)?.as_deref()
    }

    /// Writes a value as JSON: the value of a union without its type, times and decimals as the
    /// numbers and texts that they are stored as.
    pub fn write(&self, payload: &[u8], to: &mut impl Write) -> Result<(), ()> {
        let mut state = DeserializerState::from_slice(payload, &self.schema);
        let mut json = serde_json::Serializer::with_formatter(to, BytesAsText);
        serde_transcode::transcode(state.deserializer(), &mut json).map_err(|_| ())
    }
}

fn own_name(schema: &Value) -> Option<String> {
    match schema {
        Value::Object(fields) => Some(full_name(name_of(fields)?, &namespace_of(fields, ""))),
        Value::String(name) => Some(name.clone()),
        _ => None,
    }
}

/// Writes bytes as ``bytes_as_text`` has them.
struct BytesAsText;

impl Formatter for BytesAsText {
    fn write_byte_array<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        value: &[u8],
    ) -> std::io::Result<()> {
        Ok(serde_json::to_writer(writer, &bytes_as_text(value))?)
    }
}

/// Levels of a schema with those that it refers to: as many as a JSON parser takes.
const MAX_LEVELS: usize = 128;
/// What a schema may name before it is defined.
const UNNAMED: [&str; 14] = [
    "null", "boolean", "int", "long", "float", "double", "bytes", "string", "record", "enum",
    "array", "map", "fixed", "error",
];
/// Types of a schema, where each stands as often as it is named, at most: so often the parser looks
/// at them, a million in some milliseconds.
const MAX_UNFOLDED: u64 = 1_000_000;

/// An error where a schema names its records within each other so often that to read it
/// would take hours: twice in each of forty is 2^40.
fn require_small(schema: &Value) -> Result<(), String> {
    let mut unfolding = Unfolding::default();
    let unfolded = unfolding.size(schema, "");
    if let Some(name) = unfolding.unknown {
        return Err(format!(
            "it names the type {name:?} before it says what that is"
        ));
    }
    if unfolded > MAX_UNFOLDED {
        return Err(format!(
            "it names its types within each other so often that there are more than {MAX_UNFOLDED}"
        ));
    }
    Ok(())
}

/// How many types there are in each named one, itself included; 1 in those that are not closed yet.
#[derive(Default)]
struct Unfolding {
    known: HashMap<String, u64>,
    /// The first name that is not known where it stands: what it holds cannot be counted.
    unknown: Option<String>,
}

impl Unfolding {
    fn size(&mut self, schema: &Value, namespace: &str) -> u64 {
        match schema {
            Value::String(name) => {
                let known = self.known.get(&full_name(name, namespace));
                let known = known.or_else(|| self.known.get(name)).copied();
                if known.is_none() && !UNNAMED.contains(&name.as_str()) {
                    self.unknown.get_or_insert_with(|| name.clone());
                }
                known.unwrap_or(1)
            }
            Value::Array(variants) => self.sum(variants.iter(), namespace),
            Value::Object(fields) => {
                let (own, name) = (namespace_of(fields, namespace), name_of(fields));
                let name = name.map(|name| full_name(name, &own));
                if let Some(name) = &name {
                    self.known.insert(name.clone(), 1);
                }
                let of_fields = fields.get("fields").and_then(Value::as_array);
                let inner = ["type", "items", "values"].map(|key| fields.get(key));
                let types = of_fields.into_iter().flatten();
                let types = types.filter_map(|field| field.get("type"));
                let size = self.sum(inner.into_iter().flatten().chain(types), &own);
                if let Some(name) = name {
                    self.known.insert(name, size);
                }
                size
            }
            _ => 1,
        }
    }

    fn sum<'a>(&mut self, schemas: impl Iterator<Item = &'a Value>, namespace: &str) -> u64 {
        schemas.fold(1, |sum, schema| {
            sum.saturating_add(self.size(schema, namespace))
        })
    }
}

/// A schema in which the schemas that it refers to stand where each is first named.
fn with_references(text: &str, references: &[(String, String)]) -> Result<Value, String> {
    let parse = |text: &str| serde_json::from_str(text).map_err(|error| error.to_string());
    let mut others = HashMap::new();
    for (name, text) in references {
        others.insert(name.clone(), parse(text)?);
    }
    let mut schema = parse(text)?;
    if !others.is_empty() {
        Inlining { others }.walk(&mut schema, "", MAX_LEVELS)?;
    }
    Ok(schema)
}

/// The schemas that are not placed yet, by their full names.
struct Inlining {
    others: HashMap<String, Value>,
}

impl Inlining {
    /// Goes through a schema within a namespace, which may have so many more levels.
    fn walk(&mut self, schema: &mut Value, namespace: &str, levels: usize) -> Result<(), String> {
        let Some(levels) = levels.checked_sub(1) else {
            return Err(format!("it nests more than {MAX_LEVELS} levels"));
        };
        match schema {
            Value::String(name) => {
                let full = full_name(name, namespace);
                let found = self.others.remove(&full);
                if let Some(mut other) = found.or_else(|| self.others.remove(name)) {
                    self.walk(&mut other, "", levels)?;
                    *schema = placed(other);
                }
            }
            Value::Array(variants) => {
                for variant in variants {
                    self.walk(variant, namespace, levels)?;
                }
            }
            Value::Object(fields) => {
                let own = namespace_of(fields, namespace);
                for key in ["type", "items", "values"] {
                    if let Some(inner) = fields.get_mut(key) {
                        self.walk(inner, &own, levels)?;
                    }
                }
                let inner = fields.get_mut("fields").and_then(Value::as_array_mut);
                for field in inner.into_iter().flatten() {
                    if let Some(schema) = field.get_mut("type") {
                        self.walk(schema, &own, levels)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn name_of(fields: &Map<String, Value>) -> Option<&str> {
    fields.get("name").and_then(Value::as_str)
}

/// The namespace of a schema that stands within another one.
fn namespace_of(fields: &Map<String, Value>, outer: &str) -> String {
    let own = fields.get("namespace").and_then(Value::as_str);
    match name_of(fields).and_then(|name| name.rsplit_once('.')) {
        Some((of_name, _)) => of_name,
        None => own.unwrap_or(outer),
    }
    .to_owned()
}

fn full_name(name: &str, namespace: &str) -> String {
    match name.contains('.') || namespace.is_empty() {
        true => name.to_owned(),
        false => format!("{namespace}.{name}"),
    }
}

/// A schema that stands within another one and keeps its own namespace.
fn placed(mut schema: Value) -> Value {
    if let Value::Object(fields) = &mut schema {
        let has_own = fields.contains_key("namespace")
            || name_of(fields).is_some_and(|name| name.contains('.'));
        if !has_own {
            fields.insert("namespace".to_owned(), Value::String(String::new()));
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of so many records has the one before twice.
    fn doubling(levels: usize) -> String {
        let mut inner =
            r#"{"type": "record", "name": "L0", "fields": [{"name": "x", "type": "int"}]}"#
                .to_owned();
        for level in 1..levels {
            let before = level - 1;
            inner = format!(
                r#"{{"type": "record", "name": "L{level}", "namespace": "a", "fields": [
                {{"name": "a", "type": {inner}}}, {{"name": "b", "type": "L{before}"}}]}}"#
            );
        }
        inner
    }

    #[test]
    fn a_schema_that_names_its_records_too_often_is_refused() {
        assert!(AvroSchema::new(&doubling(15), &[]).is_ok());
        let said = AvroSchema::new(&doubling(40), &[]).unwrap_err();
        assert!(said.contains("more than 1000000"), "{said}");
        let (of, text) = ("L39".to_owned(), doubling(40));
        assert!(AvroSchema::new(r#"{"type": "array", "items": "L39"}"#, &[(of, text)]).is_err());
    }

    #[test]
    fn a_name_stands_behind_what_it_means() {
        let record = |level: usize, of: &str| {
            format!(
                r#"{{"type": "record", "name": "L{level}", "fields": [
                {{"name": "a", "type": "{of}"}}, {{"name": "b", "type": "{of}"}}]}}"#
            )
        };
        let levels = (1..40)
            .rev()
            .map(|level| record(level, &format!("L{}", level - 1)));
        let all = levels.chain([record(0, "int")]).collect::<Vec<_>>();
        let said = AvroSchema::new(&format!("[{}]", all.join(",")), &[]).unwrap_err();
        assert!(said.contains("names the type \"L38\" before"), "{said}");
    }

    #[test]
    fn schemas_within_each_other_are_bounded() {
        let record = |level: usize| {
            let inner = format!(r#"{{"type": "array", "items": "L{}"}}"#, level + 1);
            let text = format!(
                r#"{{"type": "record", "name": "L{level}", "fields": [{{"name": "a", "type": {inner}}}]}}"#
            );
            (format!("L{level}"), text)
        };
        let references: Vec<_> = (1..900).map(record).collect();
        let said = AvroSchema::new(&record(0).1, &references).unwrap_err();
        assert!(said.contains("more than 128 levels"), "{said}");
    }

    #[test]
    fn a_record_may_name_another_one_often_and_itself() {
        let mut fields =
            r#"{"name": "x", "type": {"type": "record", "name": "P", "fields": []}}"#.to_owned();
        for i in 0..2000 {
            fields += &format!(r#", {{"name": "x{i}", "type": ["null", "P", "R"]}}"#);
        }
        let text = format!(r#"{{"type": "record", "name": "R", "fields": [{fields}]}}"#);
        assert!(AvroSchema::new(&text, &[]).is_ok());
    }
}
