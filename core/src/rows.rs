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
