//! Columns: tables as they are stored, one array a column.

/// The values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    U64(Vec<u64>),
    I64(Vec<i64>),
    I32(Vec<i32>),
    I16(Vec<i16>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
}

/// A column and its name.
pub type Column = (String, Values);

/// Columns of equal length.
#[derive(Clone, Debug, Default)]
pub struct Columns(pub Vec<Column>);

/// Why stored columns cannot be loaded.
pub type LoadError = String;

impl Columns {
    /// Adds a column.
    pub fn add(&mut self, name: &str, values: Values) {
        self.0.push((name.to_owned(), values));
    }

    fn find(&self, name: &str) -> Result<&Values, LoadError> {
        let found = self.0.iter().find(|(other, _)| other == name);
        found
            .map(|(_, values)| values)
            .ok_or_else(|| format!("a stored table has no column {name:?}"))
    }

    pub fn u64(&self, name: &str) -> Result<&[u64], LoadError> {
        match self.find(name)? {
            Values::U64(values) => Ok(values),
            _ => Err(wrong_type(name)),
        }
    }

    pub fn i64(&self, name: &str) -> Result<&[i64], LoadError> {
        match self.find(name)? {
            Values::I64(values) => Ok(values),
            _ => Err(wrong_type(name)),
        }
    }

    pub fn i32(&self, name: &str) -> Result<&[i32], LoadError> {
        match self.find(name)? {
            Values::I32(values) => Ok(values),
            _ => Err(wrong_type(name)),
        }
    }

    pub fn i16(&self, name: &str) -> Result<&[i16], LoadError> {
        match self.find(name)? {
            Values::I16(values) => Ok(values),
            _ => Err(wrong_type(name)),
        }
    }

    pub fn f64(&self, name: &str) -> Result<&[f64], LoadError> {
        match self.find(name)? {
            Values::F64(values) => Ok(values),
            _ => Err(wrong_type(name)),
        }
    }

    pub fn bool(&self, name: &str) -> Result<&[bool], LoadError> {
        match self.find(name)? {
            Values::Bool(values) => Ok(values),
            _ => Err(wrong_type(name)),
        }
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

impl Values {
    fn extend(&mut self, other: &Values) -> Option<()> {
        match (self, other) {
            (Values::U64(mine), Values::U64(theirs)) => mine.extend_from_slice(theirs),
            (Values::I64(mine), Values::I64(theirs)) => mine.extend_from_slice(theirs),
            (Values::I32(mine), Values::I32(theirs)) => mine.extend_from_slice(theirs),
            (Values::I16(mine), Values::I16(theirs)) => mine.extend_from_slice(theirs),
            (Values::F64(mine), Values::F64(theirs)) => mine.extend_from_slice(theirs),
            (Values::Bool(mine), Values::Bool(theirs)) => mine.extend_from_slice(theirs),
            _ => return None,
        }
        Some(())
    }

    fn len(&self) -> usize {
        match self {
            Values::U64(values) => values.len(),
            Values::I64(values) => values.len(),
            Values::I32(values) => values.len(),
            Values::I16(values) => values.len(),
            Values::F64(values) => values.len(),
            Values::Bool(values) => values.len(),
        }
    }
}

fn wrong_type(name: &str) -> LoadError {
    format!("column {name:?} of a stored table has another type")
}
