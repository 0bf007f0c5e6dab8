//! Values in Protobuf: behind the id of the schema stands which of its messages a value is.

use std::io::Write;

use prost_reflect::{
    DescriptorPool, DynamicMessage, FileDescriptor, MessageDescriptor, SerializeOptions,
};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use protox::{Compiler, Error};

use super::builtin;

/// What the file of a schema is called: no import has such a name.
const MAIN: &str = "streamer/schema.proto";
/// Messages within messages, at most.
const MAX_LEVELS: usize = 32;

/// A schema of the registry: all messages of its file.
#[derive(Debug)]
pub struct Schema(FileDescriptor);

impl Schema {
    /// A schema from the text of its file; `references`: by the names that it imports them by.
    ///
    /// # Errors
    /// Where it is none, in words.
    pub fn new(text: &str, references: &[(String, String)]) -> Result<Self, String> {
        let mut files = Texts(vec![(MAIN.to_owned(), text.to_owned())]);
        files.0.extend(references.iter().cloned());
        let known = builtin::FILES;
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
        Ok(Self(file.ok_or("the schema has no file")?))
    }

    /// Writes a value as JSON by Protobuf's own mapping, but with the names of the schema, integers
    /// as numbers, and fields that are at their defaults where they are always there.
    pub fn write(&self, payload: &[u8], to: &mut impl Write) -> Result<(), ()> {
        let (message, payload) = self.message(payload).ok_or(())?;
        let value = DynamicMessage::decode(message, payload).map_err(|_| ())?;
        let options = SerializeOptions::new()
            .stringify_64_bit_integers(false)
            .use_proto_field_name(true)
            .skip_default_fields(false);
        let mut json = serde_json::Serializer::new(to);
        value
            .serialize_with_options(&mut json, &options)
            .map_err(|_| ())
    }

    /// Which message a value is, and its bytes.
    fn message<'a>(&self, payload: &'a [u8]) -> Option<(MessageDescriptor, &'a [u8])> {
        let mut rest = payload;
        let levels = usize::try_from(varint(&mut rest)?).ok()?;
        if levels == 0 {
            return Some((self.0.messages().next()?, rest));
        }
        if levels > MAX_LEVELS {
            return None;
        }
        let mut message: Option<MessageDescriptor> = None;
        for _ in 0..levels {
            let place = usize::try_from(varint(&mut rest)?).ok()?;
            message = match message {
                None => self.0.messages().nth(place),
                Some(outer) => outer.child_messages().nth(place),
            };
            message.as_ref()?;
        }
        Some((message?, rest))
    }
}

/// The next zigzag varint.
fn varint(rest: &mut &[u8]) -> Option<i64> {
    let (mut value, mut shift) = (0_u64, 0);
    loop {
        let (byte, more) = rest.split_first()?;
        *rest = more;
        value |= u64::from(byte & 127) << shift;
        if byte & 128 == 0 {
            return Some((value >> 1) as i64 ^ -((value & 1) as i64));
        }
        shift += 7;
        if shift > 56 {
            return None;
        }
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
