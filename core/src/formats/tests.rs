use super::*;

fn wire(id: u32, payload: &[u8]) -> Vec<u8> {
    [&[CONFLUENT][..], &id.to_be_bytes(), payload].concat()
}

fn text_of(values: &FormatReader, value: &[u8]) -> Result<String, Reason> {
    let mut own = String::new();
    let found = values.text(value, 200, &mut own)?;
    Ok(match found {
        Payload::Here(text) => String::from_utf8(text.to_vec()).unwrap(),
        Payload::Written => own,
    })
}

fn with(format: Format, text: &str, references: &[(&str, &str)]) -> FormatReader {
    let mut values = FormatReader::new(format, 3);
    let references = references.iter();
    let references = references.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    let schema = (text.to_owned(), references.collect());
    assert_eq!(values.set(7, Some(&schema)), Ok(()));
    values
}

#[test]
fn json_is_taken_as_it_is_and_behind_an_id() {
    let plain = FormatReader::new(Format::Json, 3);
    assert_eq!(text_of(&plain, b"{}"), Ok("{}".to_owned()));
    let schema = FormatReader::new(Format::JsonSchema, 3);
    assert_eq!(text_of(&schema, &wire(9, b"{}")), Ok("{}".to_owned()));
    assert_eq!(text_of(&schema, b"{\"a\": 1}"), Err(Reason::Schema));
    assert_eq!(text_of(&schema, b"\0\0\0"), Err(Reason::Schema));
}

#[test]
fn a_schema_that_is_not_known_is_named() {
    let values = with(Format::Avro, "\"string\"", &[]);
    let unknown = |value: &[u8]| {
        values.unknown(&Record {
            value: Some(value),
            ..Record::default()
        })
    };
    assert_eq!(unknown(&wire(8, b"")), Some(8));
    assert_eq!(unknown(&wire(7, b"")), None);
    assert_eq!(unknown(b"{}"), None);
    assert_eq!(text_of(&values, &wire(8, b"\x02a")), Err(Reason::Schema));
}

const AVRO: &str = r#"{"type": "record", "name": "Event", "namespace": "shop", "fields": [
    {"name": "user", "type": ["null", "string"]},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "raw", "type": "bytes"},
    {"name": "items", "type": {"type": "array", "items": {"type": "record", "name": "Item",
        "fields": [{"name": "id", "type": "int"}, {"name": "score", "type": "double"}]}}},
    {"name": "tags", "type": {"type": "map", "values": "boolean"}}]}"#;

#[test]
fn avro_becomes_plain_json() {
    let values = with(Format::Avro, AVRO, &[]);
    // "u", 1000001 us, "ok", one item (5, 0.5), one tag.
    let payload = [
        &b"\x02\x02u\x82\x89\x7a\x04ok\x02\x0a"[..],
        &0.5_f64.to_le_bytes(),
        b"\x00\x02\x02t\x01\x00",
    ]
    .concat();
    assert_eq!(
        text_of(&values, &wire(7, &payload)),
        Ok(
            r#"{"user":"u","at":1000001,"raw":"ok","items":[{"id":5,"score":0.5}],"tags":{"t":true}}"#
                .to_owned()
        )
    );
    // Bytes of no text are hexadecimal digits.
    let with_id = payload
        .iter()
        .copied()
        .map(|byte| if byte == b'k' { 0x1f } else { byte });
    let text = text_of(&values, &wire(7, &with_id.collect::<Vec<u8>>())).unwrap();
    assert!(text.contains(r#""raw":"6f1f""#), "{text}");
    for end in 0..payload.len() {
        let cut = text_of(&values, &wire(7, &payload[..end]));
        assert_eq!(cut, Err(Reason::Schema), "{end}");
    }
}

#[test]
fn avro_schemas_refer_to_others() {
    let event = r#"{"type": "record", "name": "Event", "namespace": "shop", "fields": [
        {"name": "first", "type": "shop.Item"}, {"name": "second", "type": ["null", "Item"]},
        {"name": "place", "type": "Place"}]}"#;
    let item = r#"{"type": "record", "name": "Item", "namespace": "shop",
        "fields": [{"name": "id", "type": "int"}]}"#;
    let place = r#"{"type": "enum", "name": "Place", "symbols": ["HOME", "AWAY"]}"#;
    let values = with(
        Format::Avro,
        event,
        &[("shop.Item", item), ("Place", place)],
    );
    assert_eq!(
        text_of(&values, &wire(7, b"\x02\x02\x04\x02")),
        Ok(r#"{"first":{"id":1},"second":{"id":2},"place":"AWAY"}"#.to_owned())
    );
}

#[test]
fn long_texts_are_refused_while_they_are_written() {
    let long = r#"{"type": "array", "items": "null"}"#;
    let values = with(Format::Avro, long, &[]);
    // A million elements of no bytes.
    let found = text_of(&values, &wire(7, b"\x80\x89\x7a\x00"));
    assert_eq!(found, Err(Reason::TooLarge));
    assert_eq!(
        text_of(&values, &wire(7, b"\x02\x00")),
        Ok("[null]".to_owned())
    );
}

const PROTOBUF: &str = r#"syntax = "proto3";
    package shop;
    import "shop/item.proto";
    import "google/protobuf/timestamp.proto";
    import "confluent/meta.proto";
    message Other { string none = 1; }
    message Event {
      enum Kind { UNKNOWN = 0; SHOWN = 1; }
      message Inner { int64 number = 1; }
      Kind kind = 1;
      int64 user_id = 2 [(confluent.field_meta).doc = "who"];
      repeated Item items = 3;
      google.protobuf.Timestamp at = 4;
      optional double score = 5;
    }"#;
const ITEM: &str = r#"syntax = "proto3";
    package shop;
    message Item { string id = 1; uint32 position = 2; }"#;

#[test]
fn protobuf_becomes_plain_json() {
    let values = with(Format::Protobuf, PROTOBUF, &[("shop/item.proto", ITEM)]);
    // Message 1 of the file: kind 1, user 17, an item "a", 1.5 s.
    let event =
        b"\x02\x02\x08\x01\x10\x11\x1a\x03\x0a\x01a\x22\x08\x08\x01\x10\x80\xca\xb5\xee\x01";
    assert_eq!(
        text_of(&values, &wire(7, event)),
        Ok(
            r#"{"kind":"SHOWN","user_id":17,"items":[{"id":"a"}],"at":"1970-01-01T00:00:01.500Z"}"#
                .to_owned()
        )
    );
    // Message 0 is said shortly; message 0 of message 1.
    let first = wire(7, b"\x00\x0a\x01x");
    assert_eq!(text_of(&values, &first), Ok(r#"{"none":"x"}"#.to_owned()));
    let inner = wire(7, b"\x04\x02\x00\x08\x05");
    assert_eq!(text_of(&values, &inner), Ok(r#"{"number":5}"#.to_owned()));
    for broken in [
        &b""[..],
        b"\x02\x09",
        b"\x00\x0a\x05x",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        assert_eq!(text_of(&values, &wire(7, broken)), Err(Reason::Schema));
    }
}

#[test]
fn messages_of_many_fields_cost_what_they_hold() {
    let fields: String = (2..400).map(|n| format!("string f{n} = {n};")).collect();
    let enums: String = (2..400).map(|n| format!("Kind e{n} = {n};")).collect();
    let text = format!(
        r#"syntax = "proto3";
        enum Kind {{ UNKNOWN = 0; }}
        message Wide {{ repeated Wide rows = 1; {fields} }}
        message Listed {{ repeated Listed rows = 1; {enums} }}"#
    );
    let values = with(Format::Protobuf, &text, &[]);
    let of = |message: &[u8], rows: usize| {
        let value = wire(7, &[message, &b"\x0a\x00".repeat(rows)].concat());
        let mut own = String::new();
        values.text(&value, 10_000_000, &mut own).map(|_| own)
    };
    let empty = vec!["{}"; 50_000].join(",");
    assert_eq!(of(b"\x00", 50_000), Ok(format!("{{\"rows\":[{empty}]}}")));
    assert!(
        of(b"\x02\x02", 20)
            .unwrap()
            .contains("\"e399\":\"UNKNOWN\"")
    );
    assert_eq!(of(b"\x02\x02", 1_000), Err(Reason::Schema));
}

#[test]
fn what_is_no_schema_is_said_and_its_records_are_rejected() {
    for (format, text, reason) in [
        (Format::Avro, "{\"type\": \"record\"", ""),
        (Format::Protobuf, "message {", "expected"),
        (Format::Protobuf, "import \"other.proto\";", "other.proto"),
    ] {
        let mut values = FormatReader::new(format, 3);
        let schema = (text.to_owned(), Vec::new());
        let error = values.set(3, Some(&schema)).unwrap_err();
        assert!(error.contains(reason), "{error}");
        assert_eq!(text_of(&values, &wire(3, b"")), Err(Reason::Schema));
    }
    let mut values = FormatReader::new(Format::Avro, 3);
    assert_eq!(values.set(4, None), Ok(()));
    assert_eq!(text_of(&values, &wire(4, b"")), Err(Reason::Schema));
}

#[test]
fn refused_schemas_are_bounded_and_usable_ones_stay() {
    let mut values = FormatReader::new(Format::Avro, 3);
    let text = (r#""string""#.to_owned(), Vec::new());
    values.set(0, Some(&text)).unwrap();
    for id in 1..=3 {
        values.set(id, None).unwrap();
    }
    let is_known = |values: &FormatReader, id: u8| {
        let value = [0, 0, 0, 0, id];
        let record = Record {
            value: Some(&value),
            ..Record::default()
        };
        values.unknown(&record).is_none()
    };
    assert!((0..=3).all(|id| is_known(&values, id)));
    values.set(3, Some(&text)).unwrap(); // it is there now
    values.set(4, None).unwrap();
    assert!((0..=4).all(|id| is_known(&values, id)));
    values.set(5, None).unwrap();
    let known: Vec<u8> = (0..=5).filter(|id| is_known(&values, *id)).collect();
    assert_eq!(known, [0, 3, 5]);
}

#[test]
fn the_schemas_of_a_fetch_are_noted_together() {
    let values = FormatReader::new(Format::Avro, 3);
    let mut unknown = UnknownSchemas::default();
    for id in [7, 8, 7, 9, 10] {
        let value = [0, 0, 0, 0, id];
        let record = Record {
            value: Some(&value),
            ..Record::default()
        };
        assert!(unknown.note(&values, &record));
    }
    assert_eq!(unknown.ids, [7, 8, 9]);
    assert!(!unknown.note(&values, &Record::default()));
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut written = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    io::Write::write_all(&mut written, bytes).unwrap();
    written.finish().unwrap()
}

fn glue(compression: u8, id: SchemaId, payload: &[u8]) -> Vec<u8> {
    [&[GLUE, compression][..], &id.to_be_bytes(), payload].concat()
}

#[test]
fn values_of_glue_are_plain_or_compressed() {
    let mut own = String::new();
    let json = FormatReader::new(Format::JsonSchema, 3);
    let plain = glue(PLAIN, 9, b"{}");
    assert_eq!(json.text(&plain, 9, &mut own), Ok(Payload::Here(b"{}")));
    let packed = glue(ZLIB, 9, &zlib(b"{\"a\": 1}"));
    assert_eq!(text_of(&json, &packed), Ok("{\"a\": 1}".to_owned()));
    assert_eq!(
        (json.plain(&plain), json.plain(&packed)),
        (&b"{}"[..], &b""[..])
    );
    let avro = with(Format::Avro, "\"string\"", &[]);
    let packed = glue(ZLIB, 7, &zlib(b"\x02a"));
    assert_eq!(text_of(&avro, &packed), Ok("\"a\"".to_owned()));
    for (value, reason) in [
        (glue(1, 9, b"{}"), Reason::Schema),
        (glue(ZLIB, 9, b"{}"), Reason::Schema),
        (glue(PLAIN, 9, b"{}")[..17].to_vec(), Reason::Schema),
        (glue(ZLIB, 9, &zlib(&[b' '; 100_000])), Reason::TooLarge),
        (glue(ZLIB, 9, &zlib(b"\xff")), Reason::Json),
    ] {
        assert_eq!(text_of(&json, &value), Err(reason));
    }
    let uuid = 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10;
    let record = Record {
        value: Some(&glue(PLAIN, uuid, b"")),
        ..Record::default()
    };
    assert_eq!(avro.unknown(&record), Some(uuid));
}

#[test]
fn glue_numbers_messages_by_their_names() {
    let text = r#"syntax = "proto3";
        message B {
          message C {}
          message A { message D { string d = 1; } string a = 1; }
          map<string, int32> z = 1;
          string b = 2;
        }
        message AA { string aa = 1; }"#;
    let values = with(Format::Protobuf, text, &[]);
    // AA, B, B.A, B.A.D, B.C, B.ZEntry
    for (place, field, name) in [
        (0, "aa", "AA"),
        (1, "b", "B"),
        (2, "a", "B.A"),
        (3, "d", "B.A.D"),
    ] {
        let tag = if field == "b" { 0x12 } else { 0x0a };
        let value = glue(PLAIN, 7, &[place, tag, 1, b'x']);
        assert_eq!(
            text_of(&values, &value),
            Ok(format!("{{\"{field}\":\"x\"}}"))
        );
        let record = Record {
            value: Some(&value),
            ..Record::default()
        };
        assert_eq!(values.schema_name(&record, 9).as_deref(), Some(name));
    }
    assert_eq!(
        text_of(&values, &glue(ZLIB, 7, &zlib(&[4]))),
        Ok("{}".to_owned())
    );
    for unknown in [6, 127] {
        assert_eq!(
            text_of(&values, &glue(PLAIN, 7, &[unknown])),
            Err(Reason::Schema)
        );
    }
}
