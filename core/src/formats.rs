//! Formats of values, where a schema registry says how they are written (Confluent's wire format):
//! what becomes of a value before its fields are looked for is the text of a JSON object.
//!
//! <https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format>

mod avro;
mod bytes;
mod protobuf;

use std::collections::{HashMap, HashSet};
use std::io;

use crate::decode::reason::Reason;
use crate::kafka::Record;
use crate::spec::records::Format;

/// The first byte of every value.
const MAGIC: u8 = 0;
/// The magic byte and the id of the schema.
const HEAD_BYTES: usize = 5;

/// A schema as the registry has it.
#[derive(Debug)]
enum Schema {
    Avro(avro::AvroSchema),
    Protobuf(protobuf::ProtobufSchema),
    /// One that there is not, or that cannot be used: its records are rejected.
    Refused,
}

/// The format of a source, with those of its schemas that are known.
#[derive(Debug)]
pub struct FormatReader {
    format: Format,
    schemas: HashMap<u32, Schema>,
    /// How many refused schemas are kept; all of them leave when there is one more.
    max_refused: usize,
    refused: usize,
}

/// The ids of schemas without which records cannot be read, each once, in the order of the records;
/// as many as are kept where they are refused.
#[derive(Debug, Default)]
pub struct UnknownSchemas {
    pub ids: Vec<u32>,
    seen: HashSet<u32>,
}

impl UnknownSchemas {
    /// Notes the schema of a record, unless it is known; returns whether it is.
    pub fn note(&mut self, format: &FormatReader, record: &Record) -> bool {
        let Some(id) = format.unknown(record) else {
            return false;
        };
        if self.ids.len() < format.max_refused && self.seen.insert(id) {
            self.ids.push(id);
        }
        true
    }
}

/// Where the text of a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// In the value.
    Here(&'a [u8]),
    /// In the buffer that was given.
    Written,
}

/// The text of a schema as the registry has it, and names and texts of those that it refers to.
pub type SchemaText = (String, Vec<(String, String)>);

impl FormatReader {
    pub fn new(format: Format, max_refused: usize) -> Self {
        Self {
            format,
            schemas: HashMap::new(),
            max_refused,
            refused: 0,
        }
    }

    /// Makes a schema known; without its text, records of it are rejected.
    ///
    /// # Errors
    /// Where it cannot be used, in words; its records are then rejected, too.
    pub fn set(&mut self, id: u32, schema: Option<&SchemaText>) -> Result<(), String> {
        self.refuse(id);
        let Some((text, references)) = schema else {
            return Ok(());
        };
        let made = match self.format {
            Format::Avro => Schema::Avro(avro::AvroSchema::new(text, references)?),
            Format::Protobuf => Schema::Protobuf(protobuf::ProtobufSchema::new(text, references)?),
            Format::Json | Format::JsonSchema => return Ok(()),
        };
        self.schemas.insert(id, made);
        self.refused -= 1;
        Ok(())
    }

    fn refuse(&mut self, id: u32) {
        if !matches!(self.schemas.get(&id), Some(Schema::Refused)) {
            if self.refused == self.max_refused {
                let is_usable = |schema: &Schema| !matches!(schema, Schema::Refused);
                self.schemas.retain(|_, schema| is_usable(schema));
                self.refused = 0;
            }
            self.refused += 1;
        }
        self.schemas.insert(id, Schema::Refused);
    }

    /// The text of a value, which is written to the buffer where it does not stand in the value.
    ///
    /// # Errors
    /// Where it has none, or its schema is not known; the buffer is then empty.
    pub fn text<'a>(
        &self,
        value: &'a [u8],
        max_bytes: usize,
        to: &mut String,
    ) -> Result<Payload<'a>, Reason> {
        if self.format == Format::Json {
            return Ok(Payload::Here(value));
        }
        let (id, payload) = split(value).ok_or(Reason::Schema)?;
        if self.format == Format::JsonSchema {
            return Ok(Payload::Here(payload));
        }
        match self.schemas.get(&id) {
            Some(Schema::Avro(schema)) => {
                write_bounded(to, max_bytes, |to| schema.write(payload, to))?;
            }
            Some(Schema::Protobuf(schema)) => {
                write_bounded(to, max_bytes, |to| schema.write(payload, to))?;
            }
            Some(Schema::Refused) | None => return Err(Reason::Schema),
        }
        Ok(Payload::Written)
    }

    /// The name of the record or message that a value is, with its namespace or package; None where
    /// its schema gives none.
    pub fn schema_name(&self, record: &Record) -> Option<String> {
        let (id, payload) = split(record.value?)?;
        match self.schemas.get(&id)? {
            Schema::Avro(schema) => schema.name(payload).map(str::to_owned),
            Schema::Protobuf(schema) => schema.name(payload),
            Schema::Refused => None,
        }
    }

    /// The id of the schema that has to be made known before a record can be read.
    #[inline]
    pub fn unknown(&self, record: &Record) -> Option<u32> {
        if matches!(self.format, Format::Json | Format::JsonSchema) {
            return None;
        }
        let (id, _) = split(record.value?)?;
        (!self.schemas.contains_key(&id)).then_some(id)
    }

    /// What of a value is text; nothing where that is in another format.
    pub fn plain<'a>(&self, value: &'a [u8]) -> &'a [u8] {
        match self.format {
            Format::Json => value,
            Format::JsonSchema => split(value).map_or(&[], |(_, text)| text),
            Format::Avro | Format::Protobuf => &[],
        }
    }
}

/// The id of its schema, and what follows; None where a value has not this form.
fn split(value: &[u8]) -> Option<(u32, &[u8])> {
    let (head, payload) = value.split_at_checked(HEAD_BYTES)?;
    let (magic, id) = head.split_first()?;
    let id = u32::from_be_bytes(id.try_into().ok()?);
    (*magic == MAGIC).then_some((id, payload))
}

/// Bytes that grow up to a bound.
struct Bounded {
    bytes: Vec<u8>,
    max_bytes: usize,
    is_full: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, some: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + some.len() > self.max_bytes {
            self.is_full = true;
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(some);
        Ok(some.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Fills an empty buffer with JSON; it stays empty where nothing came of it.
///
/// # Errors
/// `TooLarge` where the text is longer than the bound, `Schema` where the writer fails.
fn write_bounded(
    to: &mut String,
    max_bytes: usize,
    writer: impl FnOnce(&mut Bounded) -> Result<(), ()>,
) -> Result<(), Reason> {
    let mut bytes = std::mem::take(to).into_bytes();
    bytes.clear();
    let mut bounded = Bounded {
        bytes,
        max_bytes,
        is_full: false,
    };
    match (writer(&mut bounded), bounded.is_full) {
        (_, true) => Err(Reason::TooLarge),
        (Err(()), _) => Err(Reason::Schema),
        (Ok(()), _) => {
            *to = String::from_utf8(bounded.bytes).map_err(|_| Reason::Schema)?;
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
