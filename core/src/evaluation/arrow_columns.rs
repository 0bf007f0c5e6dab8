//! Columns of record batches: ids as hashes, labels as texts, numbers as doubles.
//!
//! An id is a text or an integer, and 17 is the id "17", as in events. What cannot be read is an
//! error in words: the column, its type or the row, and what to do.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, BooleanArray, PrimitiveArray, RecordBatch};

use crate::hash::HashKey;

/// Rows of a table at most: they are numbered in 32 bits.
const MAX_ROWS: usize = u32::MAX as usize;
/// Digits of the largest integer, with a sign.
const DIGITS: usize = 21;

/// A batch of a table; `first_row`: rows of the table before it.
#[derive(Clone, Copy)]
pub struct TableBatch<'a> {
    pub table: &'a str,
    pub first_row: usize,
    pub batch: &'a RecordBatch,
}

impl<'a> TableBatch<'a> {
    /// The next batch of a table, of which so many rows were read. An error where it has too many.
    pub fn behind(
        first_row: usize,
        table: &'a str,
        batch: &'a RecordBatch,
    ) -> Result<Self, String> {
        if first_row + batch.num_rows() > MAX_ROWS {
            return Err(format!(
                "{table}: more than {MAX_ROWS} rows: evaluate parts of it"
            ));
        }
        Ok(Self {
            table,
            first_row,
            batch,
        })
    }

    /// The column of a name. An error where there is none.
    pub fn column(&self, name: &'a str) -> Result<TableColumn<'a>, String> {
        let values = self.batch.column_by_name(name).ok_or_else(|| {
            let schema = self.batch.schema();
            let names = schema.fields().iter().map(|field| field.name().as_str());
            let (table, names) = (self.table, names.collect::<Vec<_>>().join(", "));
            format!("{table}: no column {name:?}; it has {names}: name it with columns={{…}}")
        })?;
        Ok(TableColumn {
            table: self.table,
            name,
            first_row: self.first_row,
            values: values.as_ref(),
        })
    }
}

/// A column of a batch, with what errors name: the table, the column and the first row.
#[derive(Clone, Copy)]
pub struct TableColumn<'a> {
    table: &'a str,
    name: &'a str,
    first_row: usize,
    values: &'a dyn Array,
}

impl<'a> TableColumn<'a> {
    /// The hashes of ids. An error where one is missing, or is neither a text nor an integer.
    pub fn hashes(&self, key: &HashKey) -> Result<Vec<u64>, String> {
        let mut hashes = Vec::with_capacity(self.values.len());
        if let Some(values) = self.values.as_any_dictionary_opt() {
            let distinct = self.dictionary(values.values().as_ref());
            let distinct = distinct.every_hash(key)?;
            let keys = values.normalized_keys_of_valid();
            for (row, at) in keys.into_iter().enumerate() {
                let hash = at.and_then(|at| distinct.get(at).copied()).flatten();
                hashes.push(hash.ok_or_else(|| self.missing(row))?);
            }
            return Ok(hashes);
        }
        for (row, hash) in self.every_hash(key)?.into_iter().enumerate() {
            hashes.push(hash.ok_or_else(|| self.missing(row))?);
        }
        Ok(hashes)
    }

    /// The hashes of texts and integers; none where a value is missing or empty.
    fn every_hash(&self, key: &HashKey) -> Result<Vec<Option<u64>>, String> {
        let mut hashes = Vec::with_capacity(self.values.len());
        let mut last: (Vec<u8>, u64) = (Vec::new(), 0);
        let is_read = self.each_text(|text| {
            let text = text.filter(|text| !text.is_empty());
            hashes.push(text.map(|text| {
                if last.0 != text {
                    last.0.clear();
                    last.0.extend_from_slice(text);
                    last.1 = key.of(text);
                }
                last.1
            }));
        });
        match is_read {
            true => Ok(hashes),
            false => Err(self.of_wrong_type("an id is a text or an integer: cast it")),
        }
    }

    /// The texts of labels; none where a value is missing.
    pub fn labels(&self) -> Result<Vec<Option<String>>, String> {
        let mut labels = Vec::with_capacity(self.values.len());
        if let Some(values) = self.values.as_any_dictionary_opt() {
            let distinct = self.dictionary(values.values().as_ref()).labels()?;
            let keys = values.normalized_keys_of_valid().into_iter();
            labels.extend(keys.map(|at| distinct.get(at?).cloned().flatten()));
            return Ok(labels);
        }
        if let Some(values) = self.values.as_boolean_opt() {
            labels.extend(values.iter().map(|value| Some(value?.to_string())));
            return Ok(labels);
        }
        let is_read = self.each_text(|text| {
            let text = text.filter(|text| !text.is_empty());
            labels.push(text.map(|text| String::from_utf8_lossy(text).into_owned()));
        });
        match is_read {
            true => Ok(labels),
            false => Err(self.of_wrong_type("a label is a text, an integer or a truth: cast it")),
        }
    }

    /// The numbers of a column, NaN where one is missing.
    pub fn numbers(&self) -> Result<Vec<f64>, String> {
        fn of<T: ArrowPrimitiveType>(
            values: &PrimitiveArray<T>,
            number: impl Fn(T::Native) -> f64,
        ) -> Vec<f64> {
            let values = values.iter();
            values
                .map(|value| value.map_or(f64::NAN, &number))
                .collect()
        }
        macro_rules! try_types {
            ($($kind:ty => $number:expr),* $(,)?) => {
                $(if let Some(values) = self.values.as_primitive_opt::<$kind>() {
                    return Ok(of(values, $number));
                })*
            };
        }
        try_types!(
            Float64Type => |x| x,
            Int64Type => |x| x as f64,
            Int32Type => f64::from,
            Float32Type => f64::from,
            UInt64Type => |x| x as f64,
            UInt32Type => f64::from,
            Int16Type => f64::from,
            UInt16Type => f64::from,
            Int8Type => f64::from,
            UInt8Type => f64::from,
            Float16Type => f64::from,
        );
        if let Some(values) = self.values.as_primitive_opt::<Decimal128Type>() {
            let unit = 10f64.powi(i32::from(values.scale()));
            return Ok(of(values, |x| x as f64 / unit));
        }
        if let Some(values) = self.values.as_boolean_opt() {
            return Ok(truths(values));
        }
        Err(self.of_wrong_type("a number is needed: cast it"))
    }

    /// Calls `of` with each value as a text; false where values are neither texts nor integers.
    fn each_text(&self, mut of: impl FnMut(Option<&[u8]>)) -> bool {
        macro_rules! try_integers {
            ($($kind:ty),*) => {
                $(if let Some(values) = self.values.as_primitive_opt::<$kind>() {
                    let mut digits = [0u8; DIGITS];
                    for value in values.iter() {
                        of(value.map(|value| decimal(value.into(), &mut digits)));
                    }
                    return true;
                })*
            };
        }
        let bytes = str::as_bytes;
        if let Some(values) = self.values.as_string_opt::<i32>() {
            values.iter().for_each(|value| of(value.map(bytes)));
        } else if let Some(values) = self.values.as_string_opt::<i64>() {
            values.iter().for_each(|value| of(value.map(bytes)));
        } else if let Some(values) = self.values.as_string_view_opt() {
            values.iter().for_each(|value| of(value.map(bytes)));
        } else {
            try_integers!(
                Int64Type, Int32Type, UInt64Type, UInt32Type, Int16Type, UInt16Type, Int8Type,
                UInt8Type
            );
            return false;
        }
        true
    }

    /// The distinct values of a column that is a dictionary.
    fn dictionary<'b>(&self, values: &'b dyn Array) -> TableColumn<'b>
    where
        'a: 'b,
    {
        TableColumn { values, ..*self }
    }

    /// The error of a row of the batch, whose value breaks a rule.
    pub fn wrong(&self, row: usize, rule: &str) -> String {
        let (table, name, row) = (self.table, self.name, self.first_row + row);
        format!("{table}: {name:?} in row {row} (from 0): {rule}")
    }

    fn missing(&self, row: usize) -> String {
        self.wrong(
            row,
            "is missing; every row needs an id: drop the row or fill it",
        )
    }

    fn of_wrong_type(&self, rule: &str) -> String {
        let (table, name, kind) = (self.table, self.name, self.values.data_type());
        format!("{table}: {name:?} has the type {kind}; {rule}")
    }
}

/// The places of a dictionary's values, none where a value is missing.
trait ValidKeys {
    fn normalized_keys_of_valid(&self) -> Vec<Option<usize>>;
}

impl ValidKeys for dyn arrow_array::AnyDictionaryArray + '_ {
    fn normalized_keys_of_valid(&self) -> Vec<Option<usize>> {
        if self.values().is_empty() {
            return vec![None; self.len()];
        }
        let keys = self.normalized_keys().into_iter().enumerate();
        keys.map(|(row, at)| self.keys().is_valid(row).then_some(at))
            .collect()
    }
}

fn truths(values: &BooleanArray) -> Vec<f64> {
    let number = |value: Option<bool>| value.map_or(f64::NAN, |value| f64::from(u8::from(value)));
    values.iter().map(number).collect()
}

/// An integer as decimal digits, at the end of a buffer.
fn decimal(value: i128, digits: &mut [u8; DIGITS]) -> &[u8] {
    let mut rest = value.unsigned_abs() as u64;
    let mut at = DIGITS;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    &digits[at..]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, DictionaryArray, Float64Array, Int64Array, StringArray, StringViewArray,
        UInt8Array,
    };

    use super::*;

    fn batch(values: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable([("id", values, true)]).unwrap()
    }

    fn of(batch: &RecordBatch) -> TableBatch<'_> {
        TableBatch {
            table: "shown",
            first_row: 100,
            batch,
        }
    }

    fn hashes(values: ArrayRef) -> Result<Vec<u64>, String> {
        of(&batch(values)).column("id")?.hashes(&HashKey(1, 2))
    }

    #[test]
    fn an_id_is_the_same_as_a_text_and_as_an_integer() {
        let expected = hashes(Arc::new(StringArray::from(vec!["17", "-3", "17"]))).unwrap();
        assert!(expected[0] == expected[2] && expected[0] != expected[1]);
        let dictionary: DictionaryArray<Int8Type> = ["17", "-3", "17"].into_iter().collect();
        for values in [
            Arc::new(Int64Array::from(vec![17, -3, 17])) as ArrayRef,
            Arc::new(StringViewArray::from(vec!["17", "-3", "17"])),
            Arc::new(dictionary),
        ] {
            assert_eq!(hashes(values).unwrap(), expected);
        }
        let key = HashKey(1, 2);
        let largest = hashes(Arc::new(Int64Array::from(vec![i64::MIN]))).unwrap();
        assert_eq!(largest, [key.of(i64::MIN.to_string().as_bytes())]);
    }

    #[test]
    fn what_is_no_id_is_an_error_in_words() {
        let dictionary: DictionaryArray<Int8Type> = [Some("17"), None].into_iter().collect();
        for (values, said) in [
            (
                Arc::new(Int64Array::from(vec![Some(1), None])) as ArrayRef,
                "row 101",
            ),
            (Arc::new(StringArray::from(vec!["a", ""])), "row 101"),
            (Arc::new(dictionary), "row 101"),
            (Arc::new(Float64Array::from(vec![1.0])), "Float64; an id is"),
        ] {
            let error = hashes(values).unwrap_err();
            assert!(
                error.starts_with("shown: \"id\"") && error.contains(said),
                "{error}"
            );
        }
        let batch = batch(Arc::new(UInt8Array::from(vec![1])));
        let error = of(&batch).column("sku").err().unwrap();
        assert!(error.contains("no column \"sku\"; it has id"), "{error}");
    }

    #[test]
    fn numbers_and_labels_are_of_many_types() {
        let batch = batch(Arc::new(UInt8Array::from(vec![Some(7), None])));
        let column = of(&batch).column("id").unwrap();
        let numbers = column.numbers().unwrap();
        assert!(numbers[0] == 7.0 && numbers[1].is_nan());
        assert_eq!(column.labels().unwrap(), [Some("7".to_owned()), None]);
    }
}
