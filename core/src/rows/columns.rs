//! Columns of all types of Arrow, each with what writes one of its values as JSON.

use std::fmt::Display;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrowPrimitiveType, FixedSizeListArray, MapArray, OffsetSizeTrait};
use arrow_array::{StructArray, downcast_integer};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::{DataType, TimeUnit};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::times;

/// Appends the value of a row that is not null by its own bits; false where it is null all the same
/// and nothing was written.
type Write<'a> = Box<dyn Fn(usize, &mut Vec<u8>) -> bool + 'a>;

/// Values of one type.
pub(super) struct Column<'a> {
    nulls: Option<&'a NullBuffer>,
    values: Write<'a>,
}

impl<'a> Column<'a> {
    /// What writes the values of an array; the type that cannot be written where there is one in it.
    pub fn of(array: &'a dyn Array) -> Result<Self, DataType> {
        let (nulls, values) = (array.nulls(), writer_of(array)?);
        Ok(Self { nulls, values })
    }

    /// Appends the value of a row; false where it is null and nothing was written.
    #[inline]
    pub fn write(&self, row: usize, out: &mut Vec<u8>) -> bool {
        !self.nulls.is_some_and(|nulls| nulls.is_null(row)) && (self.values)(row, out)
    }

    fn write_or_null(&self, row: usize, out: &mut Vec<u8>) {
        if !self.write(row, out) {
            out.extend_from_slice(b"null");
        }
    }

    /// Appends a list of some values.
    fn write_list(&self, rows: std::ops::Range<usize>, out: &mut Vec<u8>) {
        out.push(b'[');
        for (place, row) in rows.enumerate() {
            if place > 0 {
                out.push(b',');
            }
            self.write_or_null(row, out);
        }
        out.push(b']');
    }

    /// Appends a value as a name: what is no text by itself becomes one.
    fn write_name(&self, row: usize, out: &mut Vec<u8>) {
        let start = out.len();
        self.write_or_null(row, out);
        if out.get(start) != Some(&b'"') {
            out.insert(start, b'"');
            out.push(b'"');
        }
        out.push(b':');
    }
}

/// A name as it stands in an object.
pub(super) fn name_of(name: &str) -> Vec<u8> {
    let mut found = Vec::new();
    json(name, &mut found);
    found.push(b':');
    found
}

fn json<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    // Numbers and texts can be written, and a vector takes all.
    _ = serde_json::to_writer(out, value);
}

/// Up to here all integers are floats.
const LARGEST_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Appends a float; a whole one as the integer that it may have been: pandas makes floats of a column
/// of integers where a value is missing, and a position or an id of 3.0 is refused.
fn number(value: f64, out: &mut Vec<u8>) {
    if value.fract() == 0.0 && value.abs() < LARGEST_INTEGER {
        json(&(value as i64), out);
    } else {
        json(&value, out);
    }
}

fn writer_of(array: &dyn Array) -> Result<Write<'_>, DataType> {
    use DataType as T;
    Ok(match array.data_type() {
        T::Null => Box::new(|_, _| false),
        T::Boolean => {
            let values = array.as_boolean();
            written(move |row, out| json(&values.value(row), out))
        }
        T::Float16 => {
            let values = array.as_primitive::<Float16Type>().values();
            written(move |row, out| number(values[row].into(), out))
        }
        T::Float32 => {
            let values = array.as_primitive::<Float32Type>().values();
            written(move |row, out| number(values[row].into(), out))
        }
        T::Float64 => {
            let values = array.as_primitive::<Float64Type>().values();
            written(move |row, out| number(values[row], out))
        }
        T::Decimal32(_, scale) => decimals::<Decimal32Type>(array, *scale),
        T::Decimal64(_, scale) => decimals::<Decimal64Type>(array, *scale),
        T::Decimal128(_, scale) => decimals::<Decimal128Type>(array, *scale),
        T::Decimal256(_, scale) => decimals::<Decimal256Type>(array, *scale),
        T::Date32 => {
            let values = array.as_primitive::<Date32Type>().values();
            written(move |row, out| times::date(values[row].into(), out))
        }
        T::Date64 => {
            let values = array.as_primitive::<Date64Type>().values();
            written(move |row, out| times::date(values[row].div_euclid(times::DAY_MS), out))
        }
        T::Timestamp(unit, zone) => moments(array, *unit, zone.is_some()),
        T::Time32(unit) | T::Time64(unit) => each_time(array, *unit, times::time_of_day),
        T::Duration(unit) => each_time(array, *unit, times::duration),
        T::Utf8 => texts::<Utf8Type>(array),
        T::LargeUtf8 => texts::<LargeUtf8Type>(array),
        T::Binary => texts::<BinaryType>(array),
        T::LargeBinary => texts::<LargeBinaryType>(array),
        T::Utf8View | T::BinaryView | T::FixedSizeBinary(_) => texts_elsewhere(array),
        T::List(_) => lists::<i32>(array)?,
        T::LargeList(_) => lists::<i64>(array)?,
        T::ListView(_) => list_views::<i32>(array)?,
        T::LargeListView(_) => list_views::<i64>(array)?,
        T::FixedSizeList(_, _) => fixed_lists(array.as_fixed_size_list())?,
        T::Struct(_) => structs(array.as_struct())?,
        T::Map(_, _) => maps(array.as_map())?,
        T::Dictionary(keys, _) => {
            macro_rules! of_keys {
                ($keys:ty) => {
                    dictionary::<$keys>(array)?
                };
            }
            downcast_integer! { keys.as_ref() => (of_keys), kind => return Err(kind.clone()) }
        }
        T::RunEndEncoded(ends, _) => match ends.data_type() {
            T::Int16 => runs::<Int16Type>(array)?,
            T::Int32 => runs::<Int32Type>(array)?,
            _ => runs::<Int64Type>(array)?,
        },
        kind => {
            macro_rules! of_integers {
                ($integers:ty) => {
                    plain::<$integers>(array)
                };
            }
            downcast_integer! { kind => (of_integers), kind => return Err(kind.clone()) }
        }
    })
}

/// What writes every value.
fn written<'a>(write: impl Fn(usize, &mut Vec<u8>) + 'a) -> Write<'a> {
    Box::new(move |row, out| {
        write(row, out);
        true
    })
}

fn plain<T: ArrowPrimitiveType<Native: Serialize>>(array: &dyn Array) -> Write<'_> {
    let values = array.as_primitive::<T>().values();
    written(move |row, out| json(&values[row], out))
}

fn decimals<T: ArrowPrimitiveType<Native: Display>>(array: &dyn Array, scale: i8) -> Write<'_> {
    let values = array.as_primitive::<T>().values();
    written(move |row, out| decimal(&values[row].to_string(), scale, out))
}

/// Appends an integer that counts powers of ten.
fn decimal(integer: &str, scale: i8, out: &mut Vec<u8>) {
    let (sign, digits) = integer
        .strip_prefix('-')
        .map_or(("", integer), |digits| ("-", digits));
    out.extend_from_slice(sign.as_bytes());
    let Ok(behind) = usize::try_from(scale) else {
        out.extend_from_slice(format!("{digits}e{}", -i16::from(scale)).as_bytes());
        return;
    };
    let digits = format!("{digits:0>width$}", width = behind + 1);
    let (whole, fraction) = digits.split_at(digits.len() - behind);
    out.extend_from_slice(whole.as_bytes());
    if behind > 0 {
        out.push(b'.');
        out.extend_from_slice(fraction.as_bytes());
    }
}

fn moments(array: &dyn Array, unit: TimeUnit, is_zoned: bool) -> Write<'_> {
    each_time(array, unit, move |value, per_second, out| {
        times::moment(value, per_second, is_zoned, out);
    })
}

/// What writes numbers of seconds, or of parts of them.
fn each_time<'a>(
    array: &'a dyn Array,
    unit: TimeUnit,
    write: impl Fn(i64, i64, &mut Vec<u8>) + 'a,
) -> Write<'a> {
    use DataType as T;
    let per_second = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    macro_rules! of {
        ($type:ty) => {{
            let values = array.as_primitive::<$type>().values();
            written(move |row, out| write(i64::from(values[row]), per_second, out))
        }};
    }
    match (array.data_type(), unit) {
        (T::Time32(_), TimeUnit::Second) => of!(Time32SecondType),
        (T::Time32(_), _) => of!(Time32MillisecondType),
        (T::Time64(_), TimeUnit::Microsecond) => of!(Time64MicrosecondType),
        (T::Time64(_), _) => of!(Time64NanosecondType),
        (T::Duration(_), TimeUnit::Second) => of!(DurationSecondType),
        (T::Duration(_), TimeUnit::Millisecond) => of!(DurationMillisecondType),
        (T::Duration(_), TimeUnit::Microsecond) => of!(DurationMicrosecondType),
        (T::Duration(_), TimeUnit::Nanosecond) => of!(DurationNanosecondType),
        (_, TimeUnit::Second) => of!(TimestampSecondType),
        (_, TimeUnit::Millisecond) => of!(TimestampMillisecondType),
        (_, TimeUnit::Microsecond) => of!(TimestampMicrosecondType),
        (_, TimeUnit::Nanosecond) => of!(TimestampNanosecondType),
    }
}

/// What writes texts, which nobody has checked, and bytes.
fn texts<T: ByteArrayType>(array: &dyn Array) -> Write<'_> {
    let (array, bytes) = (array.as_bytes::<T>(), array.as_bytes::<T>().value_data());
    let offsets = array.value_offsets();
    written(move |row, out| {
        text(
            &bytes[offsets[row].as_usize()..offsets[row + 1].as_usize()],
            out,
        )
    })
}

/// Likewise where they do not stand one behind another.
fn texts_elsewhere(array: &dyn Array) -> Write<'_> {
    if let Some(array) = array.as_fixed_size_binary_opt() {
        return written(move |row, out| text(array.value(row), out));
    }
    let texts = array.as_string_view_opt();
    let texts = texts.map(|texts| texts.clone().to_binary_view());
    let array = texts.unwrap_or_else(|| array.as_binary_view().clone());
    written(move |row, out| text(array.value(row), out))
}

fn text(bytes: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => json(text, out),
        Err(_) => json(&STANDARD.encode(bytes), out),
    }
}

fn lists<O: OffsetSizeTrait>(array: &dyn Array) -> Result<Write<'_>, DataType> {
    let array = array.as_list::<O>();
    let (values, offsets) = (Column::of(array.values())?, array.value_offsets());
    Ok(written(move |row, out| {
        values.write_list(offsets[row].as_usize()..offsets[row + 1].as_usize(), out);
    }))
}

fn list_views<O: OffsetSizeTrait>(array: &dyn Array) -> Result<Write<'_>, DataType> {
    let array = array.as_list_view::<O>();
    let (values, offsets, sizes) = (Column::of(array.values())?, array.offsets(), array.sizes());
    Ok(written(move |row, out| {
        let start = offsets[row].as_usize();
        values.write_list(start..start + sizes[row].as_usize(), out);
    }))
}

fn fixed_lists(array: &FixedSizeListArray) -> Result<Write<'_>, DataType> {
    let (values, size) = (Column::of(array.values())?, array.value_length().as_usize());
    Ok(written(move |row, out| {
        values.write_list(row * size..(row + 1) * size, out)
    }))
}

fn structs(array: &StructArray) -> Result<Write<'_>, DataType> {
    let mut columns = Vec::new();
    for (field, values) in array.fields().iter().zip(array.columns()) {
        columns.push((name_of(field.name()), Column::of(values)?));
    }
    Ok(written(move |row, out| {
        out.push(b'{');
        for (place, (name, column)) in columns.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            out.extend_from_slice(name);
            column.write_or_null(row, out);
        }
        out.push(b'}');
    }))
}

fn maps(array: &MapArray) -> Result<Write<'_>, DataType> {
    if array.keys().data_type().is_nested() {
        return Err(array.data_type().clone());
    }
    let (keys, values) = (Column::of(array.keys())?, Column::of(array.values())?);
    let offsets = array.value_offsets();
    Ok(written(move |row, out| {
        out.push(b'{');
        for place in offsets[row].as_usize()..offsets[row + 1].as_usize() {
            if place > offsets[row].as_usize() {
                out.push(b',');
            }
            keys.write_name(place, out);
            values.write_or_null(place, out);
        }
        out.push(b'}');
    }))
}

fn dictionary<K: ArrowDictionaryKeyType>(array: &dyn Array) -> Result<Write<'_>, DataType> {
    let array = array.as_dictionary::<K>();
    let (keys, values) = (array.keys().values(), Column::of(array.values())?);
    Ok(Box::new(move |row, out| {
        values.write(keys[row].as_usize(), out)
    }))
}

fn runs<E: RunEndIndexType>(array: &dyn Array) -> Result<Write<'_>, DataType> {
    let array = array.as_run::<E>();
    let values = Column::of(array.values())?;
    Ok(Box::new(move |row, out| {
        values.write(array.get_physical_index(row), out)
    }))
}
