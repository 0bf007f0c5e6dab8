//! How a value of a mapped field is written.

use crate::decode::times::TimeFormat;
use crate::spec::records::{FormSpec, Unit};

/// Of times their unit, their format, and what they count from; of other numbers a factor.
#[derive(Debug)]
pub(in crate::decode) struct Form {
    pub unit: Unit,
    pub format: Option<TimeFormat>,
    /// Epoch ms.
    pub from_ms: Option<i64>,
    pub scale: Option<f64>,
    /// The value that is the time of day, where it stands apart from the day.
    pub time: Option<usize>,
}

impl Form {
    /// As fields are written in our own shape.
    pub const PLAIN: Self = Self {
        unit: Unit::Any,
        format: None,
        from_ms: None,
        scale: None,
        time: None,
    };

    /// An error where the format is none.
    pub fn new(spec: &FormSpec) -> Result<Self, String> {
        Ok(Self {
            unit: spec.unit,
            format: spec.format.as_deref().map(TimeFormat::new).transpose()?,
            from_ms: spec.from_ms,
            scale: spec.scale,
            time: spec.time,
        })
    }
}
