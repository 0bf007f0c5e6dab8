//! Values in Avro: read by the schema that they were written with, so that fields which were added
//! or removed need no care.
//!
//! <https://avro.apache.org/docs/1.12.0/specification/#binary-encoding>

use std::collections::HashMap;
use std::io::Write;

use serde_json::{Map, Value};

use super::bytes::{bytes_as_text, zigzag};

/// A schema of the registry. Its types name each other by their indices.
#[derive(Debug)]
pub struct AvroSchema {
    types: Vec<Type>,
    /// That of a whole value.
    root: usize,
    /// Full names of types, by index.
    names: HashMap<usize, String>,
}

#[derive(Debug)]
enum Type {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    Text,
    Fixed(usize),
    Decimal {
        scale: u32,
        /// Bytes of a fixed one.
        size: Option<usize>,
    },
    /// A decimal with a scale of its own.
    BigDecimal,
    /// Months, days and milliseconds.
    Duration,
    /// Its symbols, as JSON.
    Enum(Vec<String>),
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
    /// The names of its fields, as JSON, with their types.
    Record(Vec<(String, usize)>),
}

impl AvroSchema {
    /// A schema from its JSON; `references`: full names and texts of those that it refers to.
    ///
    /// # Errors
    /// Where it is none, in words.
    pub fn new(text: &str, references: &[(String, String)]) -> Result<Self, String> {
        let parse = |text: &str| serde_json::from_str(text).map_err(|error| error.to_string());
        let mut compiler = Compiler::default();
        for (name, text) in references {
            compiler.references.insert(name.clone(), parse(text)?);
        }
        let root = compiler.compile(&parse(text)?, "", MAX_LEVELS)?;
        let names = compiler.indices.into_iter();
        Ok(Self {
            types: compiler.types,
            root,
            names: names.map(|(name, index)| (index, name)).collect(),
        })
    }

    /// The full name of the type that a value is.
    pub fn name(&self, mut payload: &[u8]) -> Option<&str> {
        let index = match &self.types[self.root] {
            Type::Union(variants) => variants.get(usize::try_from(zigzag(&mut payload)?).ok()?)?,
            _ => &self.root,
        };
        self.names.get(index).map(String::as_str)
    }

    /// Writes a value as JSON: the value of a union without its type, times as the numbers and
    /// decimals as the texts of the numbers that they are. Each value of it writes a byte at least,
    /// so the bound of `to` bounds the work, too.
    pub fn write(&self, payload: &[u8], to: &mut impl Write) -> Result<(), ()> {
        let mut transcoder = Transcoder {
            types: &self.types,
            rest: payload,
            to,
        };
        transcoder.value(self.root, MAX_DEPTH).ok_or(())
    }
}

/// Values within values, at most.
const MAX_DEPTH: usize = 64;
/// Digits behind the point of a decimal, at most: as many as 128 bits have.
const MAX_SCALE: u32 = 38;

/// Reads the bytes of a value and writes its JSON. None ends it: they do not fit, or it is too long.
struct Transcoder<'a, W> {
    types: &'a [Type],
    rest: &'a [u8],
    to: &'a mut W,
}

impl<'a, W: Write> Transcoder<'a, W> {
    fn value(&mut self, index: usize, depth: usize) -> Option<()> {
        let (types, depth) = (self.types, depth.checked_sub(1)?);
        match &types[index] {
            Type::Null => self.raw(b"null"),
            Type::Boolean => match self.bytes(1)? {
                [0] => self.raw(b"false"),
                [1] => self.raw(b"true"),
                _ => None,
            },
            Type::Int => {
                let number = i32::try_from(self.long()?).ok()?;
                self.json(&number)
            }
            Type::Long => {
                let number = self.long()?;
                self.json(&number)
            }
            Type::Float => {
                let bytes = self.bytes(4)?.try_into().ok()?;
                self.json(&f32::from_le_bytes(bytes))
            }
            Type::Double => {
                let bytes = self.bytes(8)?.try_into().ok()?;
                self.json(&f64::from_le_bytes(bytes))
            }
            Type::Bytes => {
                let bytes = self.sized_bytes()?;
                self.json(&bytes_as_text(bytes))
            }
            Type::Text => self.text(),
            Type::Fixed(size) => {
                let bytes = self.bytes(*size)?;
                self.json(&bytes_as_text(bytes))
            }
            Type::Decimal { scale, size } => {
                let bytes = match size {
                    Some(size) => self.bytes(*size)?,
                    None => self.sized_bytes()?,
                };
                self.json(&decimal(bytes, *scale)?)
            }
            Type::BigDecimal => {
                let mut inner = self.sized_bytes()?;
                let size = usize::try_from(zigzag(&mut inner)?).ok()?;
                let (digits, mut inner) = inner.split_at_checked(size)?;
                let scale = u32::try_from(zigzag(&mut inner)?).ok()?;
                (inner.is_empty() && scale <= MAX_SCALE).then_some(())?;
                self.json(&decimal(digits, scale)?)
            }
            Type::Duration => {
                for name in [r#"{"months":"#, r#","days":"#, r#","milliseconds":"#] {
                    self.raw(name.as_bytes())?;
                    let bytes = self.bytes(4)?.try_into().ok()?;
                    self.json(&u32::from_le_bytes(bytes))?;
                }
                self.raw(b"}")
            }
            Type::Enum(symbols) => {
                let symbol = symbols.get(self.index()?)?;
                self.raw(symbol.as_bytes())
            }
            Type::Array(items) => {
                self.raw(b"[")?;
                self.blocks(|transcoder| transcoder.value(*items, depth))?;
                self.raw(b"]")
            }
            Type::Map(values) => {
                self.raw(b"{")?;
                self.blocks(|transcoder| {
                    transcoder.text()?;
                    transcoder.raw(b":")?;
                    transcoder.value(*values, depth)
                })?;
                self.raw(b"}")
            }
            Type::Union(variants) => {
                let variant = *variants.get(self.index()?)?;
                self.value(variant, depth)
            }
            Type::Record(fields) => {
                self.raw(b"{")?;
                for (number, (name, field)) in fields.iter().enumerate() {
                    self.comma(number == 0)?;
                    self.raw(name.as_bytes())?;
                    self.raw(b":")?;
                    self.value(*field, depth)?;
                }
                self.raw(b"}")
            }
        }
    }

    /// Blocks of elements; a block of none ends them. One of -n says its bytes, too.
    fn blocks(&mut self, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let mut is_first = true;
        loop {
            let count = self.long()?;
            if count < 0 {
                self.long()?;
            }
            if count == 0 {
                return Some(());
            }
            for _ in 0..count.unsigned_abs() {
                self.comma(is_first)?;
                is_first = false;
                element(self)?;
            }
        }
    }

    fn comma(&mut self, is_first: bool) -> Option<()> {
        self.raw(if is_first { b"" } else { b"," })
    }

    fn text(&mut self) -> Option<()> {
        let text = std::str::from_utf8(self.sized_bytes()?).ok()?;
        self.json(text)
    }

    fn sized_bytes(&mut self) -> Option<&'a [u8]> {
        let size = self.index()?;
        self.bytes(size)
    }

    fn bytes(&mut self, size: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(size)?;
        self.rest = rest;
        Some(bytes)
    }

    fn index(&mut self) -> Option<usize> {
        usize::try_from(self.long()?).ok()
    }

    fn long(&mut self) -> Option<i64> {
        zigzag(&mut self.rest)
    }

    fn json<T: serde::Serialize + ?Sized>(&mut self, value: &T) -> Option<()> {
        serde_json::to_writer(&mut *self.to, value).ok()
    }

    fn raw(&mut self, bytes: &[u8]) -> Option<()> {
        self.to.write_all(bytes).ok()
    }
}

/// The text of a decimal: a big-endian integer of at most 16 bytes, with so many digits behind the
/// point.
fn decimal(bytes: &[u8], scale: u32) -> Option<String> {
    let is_negative = bytes.first().is_some_and(|byte| *byte >= 128);
    let mut wide = [if is_negative { 255 } else { 0 }; 16];
    let start = wide.len().checked_sub(bytes.len())?;
    wide[start..].copy_from_slice(bytes);
    let (number, scale) = (i128::from_be_bytes(wide), scale as usize);
    let mut digits = format!("{:0>width$}", number.unsigned_abs(), width = scale + 1);
    if scale > 0 {
        digits.insert(digits.len() - scale, '.');
    }
    Some(if number < 0 {
        format!("-{digits}")
    } else {
        digits
    })
}

/// Levels of a schema with those that it refers to: as many as a JSON parser takes.
const MAX_LEVELS: usize = 128;

/// Makes types of schemas.
#[derive(Default)]
struct Compiler {
    types: Vec<Type>,
    /// Where types with a name are, by full name.
    indices: HashMap<String, usize>,
    /// Schemas that are referred to and not compiled yet, by full name.
    references: HashMap<String, Value>,
}

impl Compiler {
    /// The index of a schema within a namespace, which may have so many more levels.
    fn compile(&mut self, schema: &Value, namespace: &str, levels: usize) -> Result<usize, String> {
        let Some(levels) = levels.checked_sub(1) else {
            return Err(format!("it nests more than {MAX_LEVELS} levels"));
        };
        match schema {
            Value::String(name) => self.named(name, &Map::new(), namespace, levels),
            Value::Array(variants) => {
                let variants = variants.iter();
                let variants = variants.map(|variant| self.compile(variant, namespace, levels));
                let variants = variants.collect::<Result<_, _>>()?;
                Ok(self.add(Type::Union(variants)))
            }
            Value::Object(fields) => match fields.get("type") {
                Some(Value::String(name)) => self.named(name, fields, namespace, levels),
                Some(inner) => self.compile(inner, namespace, levels),
                None => Err("a type has no \"type\"".to_owned()),
            },
            other => Err(format!("{other} is no type")),
        }
    }

    fn add(&mut self, made: Type) -> usize {
        self.types.push(made);
        self.types.len() - 1
    }

    /// A type by what its "type" says, and the other properties of it.
    fn named(
        &mut self,
        name: &str,
        fields: &Map<String, Value>,
        namespace: &str,
        levels: usize,
    ) -> Result<usize, String> {
        let get = |key: &str| {
            let missing = || format!("a type {name:?} has no {key:?}");
            fields.get(key).ok_or_else(missing)
        };
        let logical = fields.get("logicalType").and_then(Value::as_str);
        let made = match (name, logical) {
            ("null", _) => Type::Null,
            ("boolean", _) => Type::Boolean,
            ("int", _) => Type::Int,
            ("long", _) => Type::Long,
            ("float", _) => Type::Float,
            ("double", _) => Type::Double,
            ("bytes", Some("decimal")) => Type::Decimal {
                scale: scale_of(fields)?,
                size: None,
            },
            ("bytes", Some("big-decimal")) => Type::BigDecimal,
            ("bytes", _) => Type::Bytes,
            ("string", _) => Type::Text,
            ("array", _) => Type::Array(self.compile(get("items")?, namespace, levels)?),
            ("map", _) => Type::Map(self.compile(get("values")?, namespace, levels)?),
            ("record" | "error" | "enum" | "fixed", _) => {
                return self.define(name, fields, namespace, levels);
            }
            _ => return self.refer(name, namespace, levels),
        };
        Ok(self.add(made))
    }

    /// A type that has a name of its own, which it may itself use.
    fn define(
        &mut self,
        kind: &str,
        fields: &Map<String, Value>,
        namespace: &str,
        levels: usize,
    ) -> Result<usize, String> {
        let name = name_of(fields).ok_or_else(|| format!("a type {kind:?} has no \"name\""))?;
        let namespace = namespace_of(fields, name, namespace);
        let index = self.add(Type::Null);
        let full = full_name(name, &namespace);
        if self.indices.insert(full, index).is_some() {
            return Err(format!("it defines the type {name:?} twice"));
        }
        self.types[index] = match kind {
            "enum" => {
                let symbols = list(fields, "symbols")?.iter();
                Type::Enum(symbols.map(Value::to_string).collect())
            }
            "fixed" => {
                let size = fields.get("size").and_then(Value::as_u64);
                let size = size.and_then(|size| usize::try_from(size).ok());
                let size = size.ok_or_else(|| format!("the type {name:?} has no \"size\""))?;
                match fields.get("logicalType").and_then(Value::as_str) {
                    Some("decimal") => Type::Decimal {
                        scale: scale_of(fields)?,
                        size: Some(size),
                    },
                    Some("duration") if size == 12 => Type::Duration,
                    _ => Type::Fixed(size),
                }
            }
            _ => {
                let mut made = Vec::new();
                for field in list(fields, "fields")? {
                    let (Some(name), Some(schema)) = (field.get("name"), field.get("type")) else {
                        return Err(format!("a field of {name:?} has no \"name\" or \"type\""));
                    };
                    made.push((name.to_string(), self.compile(schema, &namespace, levels)?));
                }
                Type::Record(made)
            }
        };
        Ok(index)
    }

    /// A type that is defined before, or by a schema that is referred to.
    fn refer(&mut self, name: &str, namespace: &str, levels: usize) -> Result<usize, String> {
        let full = full_name(name, namespace);
        for name in [full.as_str(), name] {
            if let Some(index) = self.indices.get(name) {
                return Ok(*index);
            }
            if let Some(other) = self.references.remove(name) {
                return self.compile(&other, "", levels);
            }
        }
        Err(format!(
            "it names the type {name:?} before it says what that is"
        ))
    }
}

fn list<'a>(fields: &'a Map<String, Value>, key: &str) -> Result<&'a Vec<Value>, String> {
    let value = fields.get(key).and_then(Value::as_array);
    value.ok_or_else(|| format!("a type has no list of {key:?}"))
}

fn scale_of(fields: &Map<String, Value>) -> Result<u32, String> {
    let scale = fields.get("scale").map_or(Some(0), Value::as_u64);
    let scale = scale.and_then(|scale| u32::try_from(scale).ok());
    scale
        .filter(|scale| *scale <= MAX_SCALE)
        .ok_or_else(|| format!("the scale of a decimal is not from 0 to {MAX_SCALE}"))
}

fn name_of(fields: &Map<String, Value>) -> Option<&str> {
    fields.get("name").and_then(Value::as_str)
}

/// The namespace of a type that is defined within another one.
fn namespace_of(fields: &Map<String, Value>, name: &str, outer: &str) -> String {
    let own = fields.get("namespace").and_then(Value::as_str);
    match name.rsplit_once('.') {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn json(schema: &AvroSchema, payload: &[u8]) -> String {
        let mut text = Vec::new();
        assert_eq!(schema.write(payload, &mut text), Ok(()));
        String::from_utf8(text).unwrap()
    }

    /// Each of so many records has the one before twice.
    fn doubling(levels: usize) -> String {
        let mut inner = r#"{"type": "record", "name": "L0", "fields": []}"#.to_owned();
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
    fn records_within_each_other_end_at_the_bound_of_the_text() {
        let small = AvroSchema::new(&doubling(2), &[]).unwrap();
        assert_eq!(json(&small, b""), r#"{"a":{},"b":{}}"#);
        let large = AvroSchema::new(&doubling(40), &[]).unwrap(); // 2^39 records of no bytes
        let mut text = [0; 1000];
        assert_eq!(large.write(b"", &mut text.as_mut_slice()), Err(()));
        let itself = r#"{"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}"#;
        let itself = AvroSchema::new(itself, &[]).unwrap();
        assert_eq!(itself.write(b"", &mut Vec::new()), Err(()));
    }

    #[test]
    fn a_name_stands_behind_what_it_means() {
        let text = r#"[{"type": "record", "name": "A", "fields": [{"name": "b", "type": "B"}]},
            {"type": "record", "name": "B", "fields": []}]"#;
        let message = AvroSchema::new(text, &[]).unwrap_err();
        assert!(message.contains("names the type \"B\" before"), "{message}");
        let twice = r#"[{"type": "fixed", "name": "A", "size": 1}, {"type": "fixed", "name": "A", "size": 2}]"#;
        let message = AvroSchema::new(twice, &[]).unwrap_err();
        assert!(message.contains("\"A\" twice"), "{message}");
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
        let message = AvroSchema::new(&record(0).1, &references).unwrap_err();
        assert!(message.contains("more than 128 levels"), "{message}");
    }

    #[test]
    fn a_record_may_name_another_one_often_and_itself() {
        let mut fields =
            r#"{"name": "x", "type": {"type": "record", "name": "P", "fields": []}}"#.to_owned();
        for i in 0..2000 {
            fields += &format!(r#", {{"name": "x{i}", "type": ["null", "P", "R"]}}"#);
        }
        let text = format!(r#"{{"type": "record", "name": "R", "fields": [{fields}]}}"#);
        let schema = AvroSchema::new(&text, &[]).unwrap();
        assert_eq!(schema.types.len(), 2002 + 2000);
    }

    #[test]
    fn decimals_are_texts_of_numbers() {
        let schema = |scale: u32| {
            let text = format!(
                r#"{{"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": {scale}}}"#
            );
            AvroSchema::new(&text, &[])
        };
        for (scale, bytes, text) in [
            (2, &b"\x04\x04\xe2"[..], r#""12.50""#),
            (2, b"\x02\xfb", r#""-0.05""#),
            (0, b"\x02\xfb", r#""-5""#),
            (3, b"\x00", r#""0.000""#),
        ] {
            assert_eq!(json(&schema(scale).unwrap(), bytes), text);
        }
        assert!(schema(39).unwrap_err().contains("from 0 to 38"));
        let own = r#"{"type": "bytes", "logicalType": "big-decimal"}"#;
        let own = AvroSchema::new(own, &[]).unwrap();
        assert_eq!(json(&own, b"\x08\x04\x04\xe2\x04"), r#""12.50""#);
        assert_eq!(
            own.write(b"\x0a\x04\x04\xe2\x04\x00", &mut Vec::new()),
            Err(())
        );
    }
}
