//! Formats of values, where a schema registry says how they are written (the wire formats of
//! Confluent and of AWS Glue): what becomes of a value before its fields are looked for is the text
//! of a JSON object.
//!
//! <https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format>
//! <https://github.com/awslabs/aws-glue-schema-registry>

mod avro;
mod bytes;
mod protobuf;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read};

use crate::decode::reason::Reason;
use crate::kafka::Record;
use crate::spec::records::Format;

/// The first byte of a value in Confluent's wire format; the id of its schema follows.
const CONFLUENT: u8 = 0;
/// That in AWS Glue's; how it is compressed follows, and the UUID of a version of its schema.
const GLUE: u8 = 3;
const PLAIN: u8 = 0;
const ZLIB: u8 = 5;

/// The id of a schema: a number of Confluent's registry, or a UUID of AWS Glue's.
pub type SchemaId = u128;

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
    schemas: HashMap<SchemaId, Schema>,
    /// How many refused schemas are kept; all of them leave when there is one more.
    max_refused: usize,
    refused: usize,
}

/// The ids of schemas without which records cannot be read, each once, in the order of the records;
/// as many as are kept where they are refused.
#[derive(Debug, Default)]
pub struct UnknownSchemas {
    pub ids: Vec<SchemaId>,
    seen: HashSet<SchemaId>,
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
    pub fn set(&mut self, id: SchemaId, schema: Option<&SchemaText>) -> Result<(), String> {
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

    fn refuse(&mut self, id: SchemaId) {
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
        let framed = Framed::of(value).ok_or(Reason::Schema)?;
        let payload = framed.payload(max_bytes)?;
        if self.format == Format::JsonSchema {
            return match payload {
                Cow::Borrowed(text) => Ok(Payload::Here(text)),
                Cow::Owned(text) => {
                    *to = String::from_utf8(text).map_err(|_| Reason::Json)?;
                    Ok(Payload::Written)
                }
            };
        }
        match self.schemas.get(&framed.id) {
            Some(Schema::Avro(schema)) => {
                write_bounded(to, max_bytes, |to| schema.write(&payload, to))?;
            }
            Some(Schema::Protobuf(schema)) => {
                let message = schema.message(&payload, framed.is_glue);
                write_bounded(to, max_bytes, |to| schema.write(message, to))?;
            }
            Some(Schema::Refused) | None => return Err(Reason::Schema),
        }
        Ok(Payload::Written)
    }

    /// The name of the record or message that a value is, with its namespace or package; None where
    /// its schema gives none.
    pub fn schema_name(&self, record: &Record, max_bytes: usize) -> Option<String> {
        let framed = Framed::of(record.value?)?;
        let payload = framed.payload(max_bytes).ok()?;
        match self.schemas.get(&framed.id)? {
            Schema::Avro(schema) => schema.name(&payload).map(str::to_owned),
            Schema::Protobuf(schema) => {
                let (message, _) = schema.message(&payload, framed.is_glue)?;
                Some(message.full_name().to_owned())
            }
            Schema::Refused => None,
        }
    }

    /// The id of the schema that has to be made known before a record can be read.
    #[inline]
    pub fn unknown(&self, record: &Record) -> Option<SchemaId> {
        if matches!(self.format, Format::Json | Format::JsonSchema) {
            return None;
        }
        let id = Framed::of(record.value?)?.id;
        (!self.schemas.contains_key(&id)).then_some(id)
    }

    /// What of a value is text; nothing where that is in another format.
    pub fn plain<'a>(&self, value: &'a [u8]) -> &'a [u8] {
        match self.format {
            Format::Json => value,
            Format::JsonSchema => match Framed::of(value) {
                Some(framed) if !framed.is_zlib => framed.payload,
                _ => &[],
            },
            Format::Avro | Format::Protobuf => &[],
        }
    }
}

/// A value in the wire format of a registry: the id of its schema, and what follows.
struct Framed<'a> {
    id: SchemaId,
    is_glue: bool,
    is_zlib: bool,
    payload: &'a [u8],
}

impl<'a> Framed<'a> {
    /// None where a value has neither form.
    #[inline]
    fn of(value: &'a [u8]) -> Option<Self> {
        let (magic, rest) = value.split_first()?;
        let (id, compression, payload) = match *magic {
            CONFLUENT => {
                let (id, payload) = rest.split_first_chunk()?;
                (u32::from_be_bytes(*id).into(), PLAIN, payload)
            }
            GLUE => {
                let (compression, rest) = rest.split_first()?;
                let (id, payload) = rest.split_first_chunk()?;
                (u128::from_be_bytes(*id), *compression, payload)
            }
            _ => return None,
        };
        matches!(compression, PLAIN | ZLIB).then_some(Self {
            id,
            is_glue: *magic == GLUE,
            is_zlib: compression == ZLIB,
            payload,
        })
    }

    /// What follows, inflated; `TooLarge` where that has more bytes than the bound.
    fn payload(&self, max_bytes: usize) -> Result<Cow<'a, [u8]>, Reason> {
        if !self.is_zlib {
            return Ok(Cow::Borrowed(self.payload));
        }
        let mut bytes = Vec::new();
        let inflated = flate2::read::ZlibDecoder::new(self.payload);
        let mut bounded = inflated.take((max_bytes as u64).saturating_add(1));
        let read = bounded.read_to_end(&mut bytes);
        read.map_err(|_| Reason::Schema)?;
        match bytes.len() > max_bytes {
            true => Err(Reason::TooLarge),
            false => Ok(Cow::Owned(bytes)),
        }
    }
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
