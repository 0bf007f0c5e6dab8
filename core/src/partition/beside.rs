//! What stands beside rows of stored tables, only where the settings ask for it: weights of
//! impressions, what they show, and custom values of feedback.

use crate::changes::ItemOf;
use crate::columns::{Columns, LoadError, StoredRow};
use crate::custom::Values;
use crate::partition::tables::{ItemRow, custom_column, weight_column};
use crate::weights::{MAX_POLICIES, Weight, Weights};

/// Adds a column for each policy.
pub(super) fn store_weights(columns: &mut Columns, policies: usize, rows: &[&Weights]) {
    for policy in 0..policies {
        let codes = rows.iter().map(|weights| weights[policy].code());
        columns.add(&weight_column(policy), codes.collect());
    }
}

/// Adds what impressions show, where it is kept.
pub(super) fn store_items<'a>(
    columns: &mut Columns,
    is_kept: bool,
    rows: impl Iterator<Item = &'a ItemOf>,
) {
    if is_kept {
        let stored = rows.map(|row| ItemRow {
            item: row.item,
            category: row.category,
        });
        ItemRow::store(stored, columns);
    }
}

/// What impressions show at each place of stored rows; nothing where it is not kept.
pub(super) fn items_reader(
    columns: &Columns,
    is_kept: bool,
) -> Result<impl Fn(usize) -> ItemOf, LoadError> {
    let row_at = is_kept.then(|| ItemRow::reader(columns)).transpose()?;
    Ok(move |at: usize| {
        let stored = row_at.as_ref().map(|row_at| row_at(at));
        stored.map_or_else(ItemOf::default, |row| ItemOf {
            item: row.item,
            category: row.category,
        })
    })
}

/// The weights at each place of stored rows.
pub(super) fn weights_reader(
    columns: &Columns,
    policies: usize,
) -> Result<impl Fn(usize) -> Weights, LoadError> {
    let codes: Vec<&[i32]> = (0..policies)
        .map(|policy| columns.get(&weight_column(policy)))
        .collect::<Result<_, _>>()?;
    Ok(move |at: usize| {
        let mut weights = [Weight::NONE; MAX_POLICIES];
        for (weight, of_policy) in weights.iter_mut().zip(&codes) {
            *weight = Weight::of_code(of_policy[at]);
        }
        weights
    })
}

/// The custom values at each place of stored feedback.
pub(super) fn values_reader<'a>(
    columns: &'a Columns,
    metrics: &[usize],
) -> Result<impl Fn(usize) -> Values + use<'a>, LoadError> {
    let codes: Vec<(usize, &'a [i64])> = metrics
        .iter()
        .map(|metric| Ok((*metric, columns.get(&custom_column(*metric))?)))
        .collect::<Result<_, LoadError>>()?;
    Ok(move |at: usize| {
        let mut values = Values::NONE;
        for (metric, of_metric) in &codes {
            values.set_code(*metric, of_metric[at]);
        }
        values
    })
}
