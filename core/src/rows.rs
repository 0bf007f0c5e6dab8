//! Rows of tables as lines of JSON, so that one decoder reads rows and records alike.
//!
//! A row is an object of its columns that have a value. Structs and maps are objects, dictionaries
//! and runs their values; times are texts of RFC 3339 in UTC (without an offset where the column has
//! no time zone), durations of ISO 8601, decimals numbers, bytes texts where they are UTF-8 and base64
//! else; a whole float is an integer, a number that is not finite null.

mod columns;
pub(crate) mod times;

use arrow_array::RecordBatch;
use columns::{Column, name_of};

/// How pandas calls an index without a name, which is no column of its user's.
const INDEX: &str = "__index_level_";

/// The rows of a record batch.
pub struct JsonRows<'a> {
    /// With their names, as they stand in a line.
    columns: Vec<(Vec<u8>, Column<'a>)>,
}

impl<'a> JsonRows<'a> {
    /// The rows of a batch; an error where two columns have one name, or values of a type that cannot
    /// be written.
    pub fn of(batch: &'a RecordBatch) -> Result<Self, String> {
        let schema = batch.schema_ref();
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (place, (field, values)) in schema.fields().iter().zip(batch.columns()).enumerate() {
            let name = field.name();
            if name.starts_with(INDEX) {
                continue;
            }
            if schema.fields()[..place]
                .iter()
                .any(|other| other.name() == name)
            {
                return Err(format!("two columns are called '{name}': rename one"));
            }
            let column = Column::of(values).map_err(|kind| {
                format!(
                    "column '{name}' has the type {kind}, which is not read: cast it, or drop it"
                )
            })?;
            columns.push((name_of(name), column));
        }
        Ok(Self { columns })
    }

    /// Appends a row, without a newline.
    pub fn write(&self, row: usize, out: &mut Vec<u8>) {
        out.push(b'{');
        let mut is_first = true;
        for (name, column) in &self.columns {
            let before = out.len();
            if !is_first {
                out.push(b',');
            }
            out.extend_from_slice(name);
            match column.write(row, out) {
                true => is_first = false,
                false => out.truncate(before),
            }
        }
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{
        ArrayRef, DictionaryArray, Float64Array, Int64Array, NullArray, StringArray,
        TimestampMillisecondArray,
    };

    use super::*;

    fn lines(columns: Vec<(&str, ArrayRef)>) -> Result<Vec<String>, String> {
        let batch = RecordBatch::try_from_iter(columns).expect("columns are equally long");
        let rows = JsonRows::of(&batch)?;
        let line = |row| {
            let mut line = Vec::new();
            rows.write(row, &mut line);
            String::from_utf8(line).expect("JSON is UTF-8")
        };
        Ok((0..batch.num_rows()).map(line).collect())
    }

    #[test]
    fn a_row_has_the_columns_that_have_a_value() {
        let words: DictionaryArray<Int8Type> = [Some("x"), None, Some("x")].into_iter().collect();
        let at = TimestampMillisecondArray::from(vec![Some(-1), None, Some(1_700_000_000_000)]);
        let found = lines(vec![
            ("none", Arc::new(NullArray::new(3))),
            (
                "a\"b",
                Arc::new(Int64Array::from(vec![None, Some(-7), Some(i64::MIN)])),
            ),
            ("word", Arc::new(words)),
            (
                "real",
                Arc::new(Float64Array::from(vec![f64::NAN, 1.0, 1e300])),
            ),
            ("text", Arc::new(StringArray::from(vec!["é\n", "", "\\"]))),
            ("at", Arc::new(at.with_timezone("UTC"))),
        ]);
        let expected = [
            r#"{"word":"x","real":null,"text":"é\n","at":"1969-12-31T23:59:59.999000Z"}"#,
            r#"{"a\"b":-7,"real":1,"text":""}"#,
            r#"{"a\"b":-9223372036854775808,"word":"x","real":1e+300,"text":"\\","at":"2023-11-14T22:13:20Z"}"#,
        ];
        assert_eq!(found, Ok(expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn columns_of_one_name_are_refused() {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let found = lines(vec![
            ("a", column.clone()),
            ("b", column.clone()),
            ("a", column),
        ]);
        assert_eq!(
            found,
            Err("two columns are called 'a': rename one".to_owned())
        );
    }
}
