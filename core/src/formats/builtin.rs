//! Files that Protobuf schemas import without naming them as references, besides Google's own: the
//! registry's clients know them.

/// Names and texts.
pub const FILES: [(&str, &str); 2] = [
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
