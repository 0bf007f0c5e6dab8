//! Values in Avro: read by the schema that they were written with, so that fields which were added
//! or removed need no care.

use std::collections::HashMap;
use std::io::Write;

use serde_avro_fast::de::DeserializerState;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter};

/// A schema of the registry.
#[derive(Debug)]
pub struct Schema(serde_avro_fast::Schema);

impl Schema {
    /// A schema from its JSON.
    ///
    /// # Errors
    /// Where it is none, in words.
    pub fn new(text: &str, references: &[(String, String)]) -> Result<Self, String> {
        let text = match references {
            [] => text.to_owned(),
            _ => with_references(text, references)?,
        };
        let schema = text.parse::<serde_avro_fast::Schema>();
        schema.map(Self).map_err(|error| error.to_string())
    }

    /// Writes a value as JSON: the value of a union without its type, times and decimals as the
    /// numbers and texts that they are stored as.
    pub fn write(&self, payload: &[u8], to: &mut impl Write) -> Result<(), ()> {
        let mut state = DeserializerState::from_slice(payload, &self.0);
        let mut json = serde_json::Serializer::with_formatter(to, BytesAsText);
        serde_transcode::transcode(state.deserializer(), &mut json).map_err(|_| ())
    }
}

/// Bytes are the text that they hold, or nothing.
struct BytesAsText;

impl Formatter for BytesAsText {
    fn write_byte_array<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        value: &[u8],
    ) -> std::io::Result<()> {
        match std::str::from_utf8(value) {
            Ok(text) => Ok(serde_json::to_writer(writer, text)?),
            Err(_) => CompactFormatter.write_null(writer),
        }
    }
}

/// A schema in which the schemas that it refers to stand where each is first named.
fn with_references(text: &str, references: &[(String, String)]) -> Result<String, String> {
    let parse = |text: &str| serde_json::from_str(text).map_err(|error| error.to_string());
    let mut others = HashMap::new();
    for (name, text) in references {
        others.insert(name.clone(), parse(text)?);
    }
    let mut schema = parse(text)?;
    Inlining { others }.walk(&mut schema, "");
    Ok(schema.to_string())
}

/// The schemas that are not placed yet, by their full names.
struct Inlining {
    others: HashMap<String, Value>,
}

impl Inlining {
    /// Goes through a schema within a namespace.
    fn walk(&mut self, schema: &mut Value, namespace: &str) {
        match schema {
            Value::String(name) => {
                let full = full_name(name, namespace);
                let found = self.others.remove(&full);
                if let Some(mut other) = found.or_else(|| self.others.remove(name)) {
                    self.walk(&mut other, "");
                    *schema = placed(other);
                }
            }
            Value::Array(variants) => {
                for variant in variants {
                    self.walk(variant, namespace);
                }
            }
            Value::Object(fields) => {
                let text = |key: &str| fields.get(key).and_then(Value::as_str);
                let name = text("name").unwrap_or_default();
                let own = match (name.rsplit_once('.'), text("namespace")) {
                    (Some((own, _)), _) => own,
                    (None, Some(own)) => own,
                    (None, None) => namespace,
                };
                let own = own.to_owned();
                for key in ["type", "items", "values"] {
                    if let Some(inner) = fields.get_mut(key) {
                        self.walk(inner, &own);
                    }
                }
                let inner = fields.get_mut("fields").and_then(Value::as_array_mut);
                for field in inner.into_iter().flatten() {
                    if let Some(schema) = field.get_mut("type") {
                        self.walk(schema, &own);
                    }
                }
            }
            _ => {}
        }
    }
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
            || fields
                .get("name")
                .and_then(Value::as_str)
                .is_some_and(|name| name.contains('.'));
        if !has_own {
            fields.insert("namespace".to_owned(), Value::String(String::new()));
        }
    }
    schema
}
