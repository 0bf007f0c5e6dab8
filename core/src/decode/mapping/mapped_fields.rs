//! Which fields of a kind of events are read, and from where.

use crate::decode::draft::Form;
use crate::decode::fields::Field;
use crate::json::push_json;
use crate::kinds::EventKind;
use crate::spec::records::{FieldSpec, FieldsSpec};

/// The fields of events of one kind.
#[derive(Debug)]
pub(in crate::decode) struct Fields {
    pub fields: Vec<MappedField>,
    pub lists: Vec<MappedList>,
}

/// A list of items: its levels from the event inwards.
#[derive(Debug)]
pub(in crate::decode) struct MappedList {
    pub levels: Vec<usize>,
    pub fields: Vec<MappedField>,
}

/// A field that is read, and from where.
#[derive(Debug)]
pub(in crate::decode) struct MappedField {
    pub field: Field,
    /// `,"name":` with our name, as events in our shape have it.
    pub key: String,
    pub values: Vec<usize>,
    pub times: Vec<usize>,
    pub forms: Vec<Form>,
}

impl Fields {
    pub(super) fn new(
        kind: EventKind,
        spec: &FieldsSpec,
        field_of: &impl Fn(EventKind, &str) -> Option<Field>,
    ) -> Result<Self, String> {
        let wanted = |specs: &[FieldSpec]| {
            let made = specs.iter().map(|spec| {
                let field = field_of(kind, &spec.field)
                    .ok_or_else(|| format!("{} have no field {:?}", kind.name(), spec.field))?;
                let mut key = String::from(",");
                push_json(&spec.field, &mut key);
                key.push(':');
                let forms = spec.forms.iter().map(Form::new);
                Ok::<_, String>(MappedField {
                    field,
                    key,
                    values: spec.values.clone(),
                    times: spec.times.clone(),
                    forms: forms.collect::<Result<_, _>>()?,
                })
            });
            made.collect::<Result<Vec<_>, _>>()
        };
        let lists = spec.lists.iter().map(|list| {
            Ok::<_, String>(MappedList {
                levels: list.levels.clone(),
                fields: wanted(&list.fields)?,
            })
        });
        Ok(Self {
            fields: wanted(&spec.fields)?,
            lists: lists.collect::<Result<_, _>>()?,
        })
    }
}

impl MappedField {
    /// How one of its values is written.
    pub fn form(&self, i: usize) -> &Form {
        self.forms.get(i).unwrap_or(&Form::PLAIN)
    }
}
