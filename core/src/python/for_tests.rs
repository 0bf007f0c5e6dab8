//! Parts of the core for tests that compare them with a slow recomputation.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::changes::{Member, Probed};
use crate::slates::family::{SlateFamily, SlateValue};
use crate::slates::pairs::PairLosses;
use crate::slates::values::{SlateContext, Tables};
use crate::spec::sums::{FamilySpec, TableSpec};

#[derive(Deserialize)]
struct SlatesSpec {
    tables: TableSpec,
    family: FamilySpec,
}

/// (grade, is_clicked, score, rank in the brute-force list, is_held_out)
type MemberTuple = (u8, bool, f64, u16, bool);
/// Its members, the items that brute force gives, and whether an item was held out.
type SlateTuple = (Vec<MemberTuple>, usize, bool);

/// For each slate the amounts of the family's statistic, then the millionths of each column's value.
/// With `incremental` the losses of pairs come from members that are inserted and flip one by one.
#[pyfunction]
pub fn slate_amounts(
    spec_json: &str,
    slates: Vec<SlateTuple>,
    incremental: bool,
) -> PyResult<Vec<(Vec<i64>, Vec<i64>)>> {
    let spec: SlatesSpec = serde_json::from_str(spec_json).map_err(error)?;
    let tables = Arc::new(Tables::new(spec.tables).map_err(error)?);
    let family = SlateFamily::new(&spec.family).map_err(error)?;
    let columns = spec.family.columns.iter();
    let values: Result<Vec<_>, _> = columns
        .map(|c| SlateValue::new(&c.name, c.k, &c.convention, &c.population))
        .collect();
    let values = values.map_err(error)?;
    let mut context = SlateContext::new(Arc::clone(&tables), true);
    let mut found = Vec::with_capacity(slates.len());
    for (members, reference_size, has_held_out) in slates {
        let members: Vec<Member> = members.into_iter().map(member).collect();
        let probed = Probed {
            reference_size,
            has_held_out,
        };
        let losses = incremental.then(|| stepwise(&members, tables.margin));
        context.read(&members, probed, losses);
        let mut amounts = vec![0; family.width];
        family.amounts(&context, &mut amounts);
        found.push((
            amounts,
            values
                .iter()
                .map(|value| value.millionths(&context))
                .collect(),
        ));
    }
    Ok(found)
}

/// Losses of a slate whose members came one by one, and became relevant and not.
fn stepwise(members: &[Member], margin: f64) -> PairLosses {
    let mut now: Vec<Member> = Vec::new();
    let mut losses = PairLosses::new(margin);
    let grade = |i: usize| u8::from(i.is_multiple_of(3));
    for (i, member) in members.iter().enumerate() {
        let at = (i * 7) % (now.len() + 1);
        now.insert(
            at,
            Member {
                grade: grade(i),
                ..*member
            },
        );
        losses.insert(&now, at);
        if i.is_multiple_of(5) {
            losses.remove(&now, at);
            losses.insert(&now, at);
        }
        let is_relevant = member.grade > 0;
        if is_relevant != (grade(i) > 0) {
            losses.flip(&now, at, is_relevant);
        }
        now[at].grade = member.grade;
    }
    losses
}

fn member((grade, is_clicked, score, listed, is_held_out): MemberTuple) -> Member {
    Member {
        grade,
        is_clicked,
        score,
        listed,
        is_held_out,
    }
}

fn error(message: impl ToString) -> PyErr {
    PyValueError::new_err(message.to_string())
}
