//! Values in Protobuf: before their bytes stands which message of the schema they are.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::Write;

use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, FileDescriptor, Kind, MapKey,
    MessageDescriptor, ReflectMessage, SerializeOptions, Value,
};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use protox::{Compiler, Error};
use serde::ser::{Error as _, Serialize, SerializeMap, Serializer};

use super::bytes::{bytes_as_text, varint, zigzag};

/// What the file of a schema is called: no import has such a name.
const MAIN: &str = "streamer/schema.proto";
/// Messages within messages, at most.
const MAX_LEVELS: usize = 32;
/// Enums at their default that a value has: so many, and so many for each of its bytes. A message of
/// many within messages that are empty has no end of them.
const DEFAULTS: usize = 10_000;
const DEFAULTS_A_BYTE: usize = 16;

/// A schema of the registry: all messages of its file.
#[derive(Debug)]
pub struct ProtobufSchema {
    file: FileDescriptor,
    /// Its messages and those within them, by name: AWS Glue's serializers number them so.
    sorted: Vec<MessageDescriptor>,
    /// By the full name of a message: its enums that have a value though they are not set.
    enums: HashMap<String, Vec<FieldDescriptor>>,
}

impl ProtobufSchema {
    /// A schema from the text of its file; `references`: by the names that it imports them by.
    ///
    /// # Errors
    /// Where it is none, in words.
    pub fn new(text: &str, references: &[(String, String)]) -> Result<Self, String> {
        let mut files = Texts(vec![(MAIN.to_owned(), text.to_owned())]);
        files.0.extend(references.iter().cloned());
        let known = KNOWN_FILES;
        let known = known.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let mut resolver = ChainFileResolver::new();
        resolver.add(files);
        resolver.add(Texts(known.to_vec()));
        resolver.add(GoogleFileResolver::new());
        let mut compiler = Compiler::with_file_resolver(resolver);
        compiler.include_imports(true);
        let opened = compiler.open_file(MAIN).map_err(|error| error.to_string());
        let pool: DescriptorPool = opened?.descriptor_pool();
        let file = pool.get_file_by_name(MAIN);
        let has_value = |field: &FieldDescriptor| {
            let is_enum = matches!(field.kind(), Kind::Enum(_)) && !field.is_list();
            is_enum && !field.supports_presence()
        };
        let enums = pool.all_messages().map(|message| {
            let fields = message.fields().filter(has_value).collect();
            (message.full_name().to_owned(), fields)
        });
        let file = file.ok_or("the schema has no file")?;
        let mut sorted: Vec<_> = file.messages().collect();
        let mut next = 0;
        while let Some(message) = sorted.get(next) {
            let within: Vec<_> = message.child_messages().collect();
            sorted.extend(within);
            next += 1;
        }
        sorted.sort_by(|a, b| a.full_name().cmp(b.full_name()));
        Ok(Self {
            enums: enums
                .filter(|(_, fields): &(_, Vec<_>)| !fields.is_empty())
                .collect(),
            file,
            sorted,
        })
    }

    /// Writes a value as JSON by Protobuf's own mapping, but with the names of the schema, integers
    /// as numbers, and bytes as ``bytes_as_text`` has them. A field without presence that is at its
    /// default is missing, for nobody can tell whether it was set; of an enum it has a name that
    /// says what it is.
    pub fn write(
        &self,
        message: Option<(MessageDescriptor, &[u8])>,
        to: &mut impl Write,
    ) -> Result<(), ()> {
        let (message, payload) = message.ok_or(())?;
        let value = DynamicMessage::decode(message, payload).map_err(|_| ())?;
        let mut json = serde_json::Serializer::new(to);
        let defaults = Cell::new(DEFAULTS + DEFAULTS_A_BYTE * payload.len());
        let of = Writing {
            enums: &self.enums,
            defaults: &defaults,
        };
        JsonMessage(&value, of).serialize(&mut json).map_err(|_| ())
    }

    /// Which message a value is, and its bytes.
    pub fn message<'a>(
        &self,
        payload: &'a [u8],
        is_glue: bool,
    ) -> Option<(MessageDescriptor, &'a [u8])> {
        let mut rest = payload;
        if is_glue {
            let place = usize::try_from(varint(&mut rest)?).ok()?;
            return Some((self.sorted.get(place)?.clone(), rest));
        }
        let levels = usize::try_from(zigzag(&mut rest)?).ok()?;
        if levels == 0 {
            return Some((self.file.messages().next()?, rest));
        }
        if levels > MAX_LEVELS {
            return None;
        }
        let mut message: Option<MessageDescriptor> = None;
        for _ in 0..levels {
            let place = usize::try_from(zigzag(&mut rest)?).ok()?;
            message = match message {
                None => self.file.messages().nth(place),
                Some(outer) => outer.child_messages().nth(place),
            };
            message.as_ref()?;
        }
        Some((message?, rest))
    }
}

/// What a value is written with.
#[derive(Clone, Copy)]
struct Writing<'a> {
    enums: &'a HashMap<String, Vec<FieldDescriptor>>,
    /// How many enums at their default it may still have.
    defaults: &'a Cell<usize>,
}

/// A message, as it is written.
struct JsonMessage<'a>(&'a DynamicMessage, Writing<'a>);

impl Serialize for JsonMessage<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(message, of) = self;
        let descriptor = message.descriptor();
        if descriptor.package_name() == "google.protobuf" {
            let options = SerializeOptions::new().stringify_64_bit_integers(false);
            return message.serialize_with_options(to, &options);
        }
        let mut map = to.serialize_map(None)?;
        for (field, value) in message.fields() {
            map.serialize_entry(field.name(), &JsonValue(value, &field.kind(), *of))?;
        }
        let enums = of.enums.get(descriptor.full_name());
        for field in enums.into_iter().flatten() {
            if !message.has_field(field) {
                let left = of.defaults.get().checked_sub(1);
                of.defaults
                    .set(left.ok_or_else(|| S::Error::custom("too many defaults"))?);
                let (value, kind) = (message.get_field(field), field.kind());
                map.serialize_entry(field.name(), &JsonValue(&value, &kind, *of))?;
            }
        }
        map.end()
    }
}

/// A value of a field of such a kind.
struct JsonValue<'a>(&'a Value, &'a Kind, Writing<'a>);

impl Serialize for JsonValue<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(value, kind, of) = self;
        match value {
            Value::Bool(value) => to.serialize_bool(*value),
            Value::I32(value) => to.serialize_i32(*value),
            Value::I64(value) => to.serialize_i64(*value),
            Value::U32(value) => to.serialize_u32(*value),
            Value::U64(value) => to.serialize_u64(*value),
            Value::F32(value) if value.is_finite() => to.serialize_f32(*value),
            Value::F64(value) if value.is_finite() => to.serialize_f64(*value),
            Value::F32(value) => to.serialize_str(name_of(f64::from(*value))),
            Value::F64(value) => to.serialize_str(name_of(*value)),
            Value::String(value) => to.serialize_str(value),
            Value::Bytes(value) => to.serialize_str(&bytes_as_text(value)),
            Value::Message(message) => JsonMessage(message, *of).serialize(to),
            Value::List(values) => {
                to.collect_seq(values.iter().map(|each| JsonValue(each, kind, *of)))
            }
            Value::EnumNumber(number) => match kind {
                Kind::Enum(names) => match names.get_value(*number) {
                    Some(value) => to.serialize_str(value.name()),
                    None => to.serialize_i32(*number),
                },
                _ => to.serialize_i32(*number),
            },
            Value::Map(values) => {
                let Kind::Message(entry) = kind else {
                    return to.serialize_none();
                };
                let kind = entry.map_entry_value_field().kind();
                let pairs = values.iter().map(|(key, each)| (key_of(key), each));
                let pairs: std::collections::BTreeMap<String, &Value> = pairs.collect();
                to.collect_map(
                    pairs
                        .iter()
                        .map(|(key, each)| (key, JsonValue(each, &kind, *of))),
                )
            }
        }
    }
}

/// What is no number, as Protobuf's mapping calls it.
fn name_of(value: f64) -> &'static str {
    match value {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    }
}

fn key_of(key: &MapKey) -> String {
    match key {
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::I64(key) => key.to_string(),
        MapKey::U32(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
        MapKey::String(key) => key.clone(),
    }
}

/// Files by name.
struct Texts(Vec<(String, String)>);

impl FileResolver for Texts {
    fn open_file(&self, name: &str) -> Result<File, Error> {
        let found = self.0.iter().find(|(known, _)| known == name);
        match found {
            Some((_, text)) => File::from_source(name, text),
            None => Err(Error::file_not_found(name)),
        }
    }
}

/// Files that schemas import without naming them as references, besides Google's own: the registry's
/// clients know them. Names and texts.
const KNOWN_FILES: [(&str, &str); 2] = [
    (
        "confluent/meta.proto",
        r#"syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta {
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
}
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
"#,
    ),
    (
        "confluent/type/decimal.proto",
        r#"syntax = "proto3";
package confluent.type;
message Decimal {
  bytes value = 1;
  uint32 precision = 2;
  int32 scale = 3;
}
"#,
    ),
];
