//! Columns: tables as they are stored, one array a column, and the rows that they are made of.

/// Why stored columns cannot be loaded.
pub type LoadError = String;

/// A type that values of a column can have.
pub trait Value: Copy {
    fn column(values: Vec<Self>) -> ColumnValues;
    fn of(values: &ColumnValues) -> Option<&[Self]>;
}

macro_rules! value_types {
    ($($variant:ident($type:ident)),*) => {
        /// The values of one column.
        #[derive(Clone, Debug, PartialEq)]
        pub enum ColumnValues {
            $($variant(Vec<$type>)),*
        }

        $(impl Value for $type {
            fn column(values: Vec<Self>) -> ColumnValues {
                ColumnValues::$variant(values)
            }

            fn of(values: &ColumnValues) -> Option<&[Self]> {
                match values {
                    ColumnValues::$variant(values) => Some(values),
                    _ => None,
                }
            }
        })*

        impl ColumnValues {
            fn extend(&mut self, other: &ColumnValues) -> Option<()> {
                match (self, other) {
                    $((ColumnValues::$variant(mine), ColumnValues::$variant(theirs)) => {
                        mine.extend_from_slice(theirs);
                    })*
                    _ => return None,
                }
                Some(())
            }

            fn taken(&self, rows: &[usize]) -> Self {
                match self {
                    $(ColumnValues::$variant(values) => {
                        ColumnValues::$variant(rows.iter().map(|row| values[*row]).collect())
                    })*
                }
            }

            fn len(&self) -> usize {
                match self {
                    $(ColumnValues::$variant(values) => values.len()),*
                }
            }
        }
    };
}

value_types!(U64(u64), I64(i64), I32(i32), I16(i16), F64(f64), Bool(bool));

/// A type that fields of stored rows can have, and how it stands in a column.
pub trait Stored: Copy {
    type Value: Value;

    fn stored(self) -> Self::Value;
    fn loaded(value: Self::Value) -> Self;
}

macro_rules! stored_types {
    ($($type:ident as $value:ident),*) => {
        $(impl Stored for $type {
            type Value = $value;

            fn stored(self) -> $value {
                self as $value
            }

            fn loaded(value: $value) -> Self {
                value as Self
            }
        })*
    };
}

stored_types!(
    u64 as u64, i64 as i64, u32 as i32, i32 as i32, u16 as i16, i16 as i16, f64 as f64
);
stored_types!(bool as bool);

/// A number that is not below 0, or that is missing: -1.
impl Stored for Option<i64> {
    type Value = i64;

    fn stored(self) -> i64 {
        self.unwrap_or(-1)
    }

    fn loaded(value: i64) -> Self {
        (value >= 0).then_some(value)
    }
}

/// Columns of equal length, by name.
#[derive(Clone, Debug, Default)]
pub struct Columns(pub Vec<(String, ColumnValues)>);

impl Columns {
    /// Adds a column.
    pub fn add<T: Value>(&mut self, name: &str, values: Vec<T>) {
        self.0.push((name.to_owned(), T::column(values)));
    }

    /// Puts other values in place of a column's. An error where there is none.
    pub fn replace<T: Value>(&mut self, name: &str, values: Vec<T>) -> Result<(), LoadError> {
        let found = self.0.iter_mut().find(|(other, _)| other == name);
        let (_, old) = found.ok_or_else(|| missing(name))?;
        *old = T::column(values);
        Ok(())
    }

    /// Whether there is a column of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(other, _)| other == name)
    }

    /// The values of a column. An error where there is none, or of another type.
    pub fn get<T: Value>(&self, name: &str) -> Result<&[T], LoadError> {
        T::of(self.find(name)?).ok_or_else(|| wrong_type(name))
    }

    fn find(&self, name: &str) -> Result<&ColumnValues, LoadError> {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map(|(_, values)| values).ok_or_else(|| missing(name))
    }

    /// The largest value of a column; 0 without rows.
    pub fn largest(&self, name: &str) -> Result<i64, LoadError> {
        Ok(self.get(name)?.iter().copied().max().unwrap_or(0))
    }

    /// The rows of several blobs of one table, one after another.
    pub fn joined(blobs: &[Columns]) -> Result<Columns, LoadError> {
        let Some((first, others)) = blobs.split_first() else {
            return Ok(Columns::default());
        };
        let mut joined = first.clone();
        for (name, values) in &mut joined.0 {
            for other in others {
                values
                    .extend(other.find(name)?)
                    .ok_or_else(|| wrong_type(name))?;
            }
        }
        joined.rows()?;
        Ok(joined)
    }

    /// Some of the rows, by their places.
    pub fn taken(&self, rows: &[usize]) -> Columns {
        let taken = |(name, values): &(String, ColumnValues)| (name.clone(), values.taken(rows));
        Columns(self.0.iter().map(taken).collect())
    }

    /// Number of rows; an error where columns differ.
    pub fn rows(&self) -> Result<usize, LoadError> {
        let mut lengths = self.0.iter().map(|(_, values)| values.len());
        let first = lengths.next().unwrap_or(0);
        if lengths.all(|length| length == first) {
            Ok(first)
        } else {
            Err("columns of a stored table have different lengths".to_owned())
        }
    }
}

fn missing(name: &str) -> LoadError {
    format!("a stored table has no column {name:?}")
}

fn wrong_type(name: &str) -> LoadError {
    format!("column {name:?} of a stored table has another type")
}

/// A row of a stored table, whose fields are its columns: see `stored_row!`.
pub trait StoredRow: Sized {
    /// Adds a column for each field, whose names begin with a prefix.
    fn store(prefix: &str, rows: impl Iterator<Item = Self>, columns: &mut Columns);

    /// The row at a place. An error where a column is missing, or has another type.
    fn reader(prefix: &str, columns: &Columns) -> Result<impl Fn(usize) -> Self, LoadError>;

    /// The columns of rows.
    fn columns(rows: impl Iterator<Item = Self>) -> Columns {
        let mut columns = Columns::default();
        Self::store("", rows, &mut columns);
        columns
    }

    /// All rows, in order.
    fn rows(columns: &Columns) -> Result<impl Iterator<Item = Self>, LoadError> {
        Ok((0..columns.rows()?).map(Self::reader("", columns)?))
    }
}

/// Declares a row of a stored table: names and types of its columns, for storing and for loading.
macro_rules! stored_row {
    ($(#[$doc:meta])* $visibility:vis struct $name:ident {
        $($(#[$about:meta])* $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        $visibility struct $name {
            $($(#[$about])* pub $field: $type),*
        }

        impl $crate::columns::StoredRow for $name {
            fn store(
                prefix: &str,
                rows: impl Iterator<Item = Self>,
                columns: &mut $crate::columns::Columns,
            ) {
                $(let mut $field = Vec::with_capacity(rows.size_hint().0);)*
                for row in rows {
                    $($field.push($crate::columns::Stored::stored(row.$field));)*
                }
                $(columns.add(&format!("{prefix}{}", stringify!($field)), $field);)*
            }

            fn reader(
                prefix: &str,
                columns: &$crate::columns::Columns,
            ) -> Result<impl Fn(usize) -> Self, $crate::columns::LoadError> {
                $(
                    let name = format!("{prefix}{}", stringify!($field));
                    let $field: &[<$type as $crate::columns::Stored>::Value] =
                        columns.get(&name)?;
                )*
                Ok(move |at: usize| Self {
                    $($field: $crate::columns::Stored::loaded($field[at])),*
                })
            }
        }
    };
}

pub(crate) use stored_row;
