//! Rows that other settings stored: what their columns are numbered by is found again by name. Names
//! are known to whoever compares the settings; what stands in which column is known here.

use serde::Deserialize;

use super::snapshot::{GONE, kind_of};
use super::tables::{Table, amount_column, code_column, final_column, met_column, weight_column};
use crate::columns::{Columns, LoadError, Value};
use crate::own_sums::NO_VALUE;
use crate::panes::dimensions::UNKNOWN;
use crate::users::time_column;
use crate::weights::Weight;

/// For each of ours its place among those that were stored; none where it is new.
type Places = Vec<Option<usize>>;

/// What the settings that stored the rows were, beside ours.
#[derive(Clone, Debug, Deserialize)]
pub struct TableMigration {
    dimensions: Places,
    policies: Places,
    /// Of own sums.
    amounts: Places,
    conditions: Places,
    /// Configured kinds of feedback.
    kinds: Places,
    /// Kind as stored → its place now.
    kinds_now: Places,
    /// Kinds that users are counted by.
    user_kinds: Places,
    /// Milliseconds of a unit of users' times, as stored and now.
    units_ms: (i64, i64),
    /// Whether impressions keep what they show.
    keeps_items: bool,
}

impl TableMigration {
    /// A blob of a table as ours. An error where columns do not fit.
    pub fn apply(&self, table: Table, columns: &Columns) -> Result<Columns, LoadError> {
        let mut found = columns.clone();
        match table {
            Table::Combinations => {
                put(&mut found, code_column, &self.dimensions, UNKNOWN as i32)?;
            }
            Table::Impressions => self.put_shown(&mut found)?,
            Table::Retained => {
                self.put_shown(&mut found)?;
                let kinds = with_last(&self.kinds, self.kinds_now.len());
                put(&mut found, final_column, &kinds, 0i32)?;
            }
            Table::Feedback => self.put_feedback(&mut found)?,
            Table::UserItems => self.put_times(&mut found)?,
            _ => {}
        }
        Ok(found)
    }

    /// What impressions show: weights of policies, conditions, items.
    fn put_shown(&self, found: &mut Columns) -> Result<(), LoadError> {
        put(found, met_column, &self.conditions, false)?;
        put(found, weight_column, &self.policies, Weight::NONE.code())?;
        if self.keeps_items && !found.has("item") {
            let rows = found.rows()?;
            found.add("item", vec![0u64; rows]);
            found.add("category", vec![0u64; rows]);
        }
        Ok(())
    }

    fn put_feedback(&self, found: &mut Columns) -> Result<(), LoadError> {
        put(found, amount_column, &self.amounts, NO_VALUE)?;
        put(found, met_column, &self.conditions, false)?;
        let kinds = found.get::<i16>("kind")?.to_vec();
        if !found.has("orders") {
            let orders = kinds
                .iter()
                .map(|kind| i16::from(kind_of(*kind).is_conversion()));
            found.add("orders", orders.collect());
            found.add("joins_ms", found.get::<i64>("event_ms")?.to_vec());
            found.add("rating", vec![0i32; kinds.len()]);
            found.add("item_pair", found.get::<u64>("pair")?.to_vec());
        }
        let now = |kind: i16| {
            let place = usize::try_from(kind).ok();
            place.map_or(Ok(kind), |was| match self.kinds_now.get(was) {
                Some(place) => Ok(place.map_or(GONE, |now| now as i16)),
                None => Err("stored feedback has a kind that is not stored".to_owned()),
            })
        };
        let kinds = kinds
            .iter()
            .map(|kind| now(*kind))
            .collect::<Result<Vec<_>, _>>()?;
        found.replace("kind", kinds)
    }

    /// Times of users are units from 1, of impressions and then of each kind; 0: none.
    fn put_times(&self, found: &mut Columns) -> Result<(), LoadError> {
        let after_first = self.user_kinds.iter().map(|place| place.map(|was| was + 1));
        let kinds: Places = std::iter::once(Some(0)).chain(after_first).collect();
        put(found, time_column, &kinds, 0i64)?;
        let (was_ms, now_ms) = self.units_ms;
        for kind in 0..kinds.len() {
            let times: &[i64] = found.get(&time_column(kind))?;
            let unit = |time: &i64| match *time {
                time if time > 0 => (time - 1) * was_ms / now_ms + 1,
                none => none,
            };
            let times = times.iter().map(unit).collect();
            found.replace::<i64>(&time_column(kind), times)?;
        }
        Ok(())
    }
}

/// The places, and that of what comes last on both sides.
fn with_last(places: &Places, last: usize) -> Places {
    places.iter().copied().chain([Some(last)]).collect()
}

/// Puts numbered columns in our order; `missing`: the value of new ones.
fn put<T: Value>(
    found: &mut Columns,
    name: fn(usize) -> String,
    places: &Places,
    missing: T,
) -> Result<(), LoadError> {
    let rows = found.rows()?;
    let ours = places.iter().map(|place| match place {
        Some(was) if found.has(&name(*was)) => Ok(found.get(&name(*was))?.to_vec()),
        _ => Ok(vec![missing; rows]),
    });
    let ours = ours.collect::<Result<Vec<Vec<T>>, LoadError>>()?;
    let prefix = name(0).trim_end_matches('0').to_owned();
    found.0.retain(|(other, _)| !other.starts_with(&prefix));
    for (place, values) in ours.into_iter().enumerate() {
        found.add(&name(place), values);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::ColumnValues;

    /// Stored: kinds click, like, star; policies p, q; amounts depth, height; two conditions; units of a second.
    /// Now: click, star, share; q, another p; height, width; units of five seconds.
    fn migration() -> TableMigration {
        TableMigration {
            dimensions: vec![Some(1), None],
            policies: vec![Some(1), None],
            amounts: vec![Some(1), None],
            conditions: vec![Some(1), None],
            kinds: vec![Some(0), Some(2), None],
            kinds_now: vec![Some(0), None, Some(1)],
            user_kinds: vec![Some(0), Some(2), None],
            units_ms: (1_000, 5_000),
            keeps_items: true,
        }
    }

    fn applied(table: Table, columns: &[(&str, ColumnValues)]) -> Columns {
        let named = columns
            .iter()
            .map(|(name, values)| ((*name).to_owned(), values.clone()));
        migration()
            .apply(table, &Columns(named.collect()))
            .expect("columns fit")
    }

    #[test]
    fn combinations_have_values_of_our_dimensions() {
        let codes = ["code_0", "code_1"].map(|name| (name, ColumnValues::I32(vec![2, 3])));
        let found = applied(Table::Combinations, &codes);
        let of = |at| found.get::<i32>(&code_column(at)).map(<[i32]>::to_vec);
        assert_eq!([of(0), of(1)], [Ok(vec![2, 3]), Ok(vec![0, 0])]);
    }

    #[test]
    fn feedback_keeps_its_kind_and_values_by_name() {
        let found = applied(
            Table::Feedback,
            &[
                ("kind", ColumnValues::I16(vec![0, 1, 2, -1, -2, -3])),
                ("event_ms", ColumnValues::I64((20..26).collect())),
                ("pair", ColumnValues::U64((30..36).collect())),
                ("amount_0", ColumnValues::I64((0..6).collect())),
                ("amount_1", ColumnValues::I64((10..16).collect())),
                (
                    "met_1",
                    ColumnValues::Bool(vec![true, false, true, true, true, true]),
                ),
            ],
        );
        assert_eq!(
            found.get::<i16>("kind"),
            Ok([0, GONE, 1, -1, -2, GONE].as_slice())
        );
        assert_eq!(
            found.get::<i64>("amount_0"),
            Ok([10, 11, 12, 13, 14, 15].as_slice())
        );
        assert_eq!(
            found.get::<i16>("orders"),
            Ok([0, 0, 0, 0, 1, 0].as_slice())
        );
        assert_eq!(found.get::<i64>("joins_ms"), found.get::<i64>("event_ms"));
        assert_eq!(found.get::<u64>("item_pair"), found.get::<u64>("pair"));
        assert_eq!(found.get::<i64>("amount_1"), Ok([NO_VALUE; 6].as_slice()));
        let met = [true, false, true, true, true, true];
        assert_eq!(found.get::<bool>("met_0"), Ok(met.as_slice()));
        assert_eq!(found.get::<bool>("met_1"), Ok([false; 6].as_slice()));
        let mut unknown = Columns(vec![("kind".to_owned(), ColumnValues::I16(vec![3]))]);
        unknown.add("event_ms", vec![0i64]);
        unknown.add("pair", vec![0u64]);
        assert!(migration().apply(Table::Feedback, &unknown).is_err());
    }

    #[test]
    fn impressions_keep_weights_by_policy_and_get_items() {
        let weights = [("weight_0", vec![1]), ("weight_1", vec![2])];
        let weights = weights.map(|(name, codes)| (name, ColumnValues::I32(codes)));
        let found = applied(Table::Impressions, &weights);
        assert_eq!(found.get::<i32>("weight_0"), Ok([2].as_slice()));
        assert_eq!(found.get::<i32>("weight_1"), Ok([-1].as_slice()));
        assert_eq!(found.get::<u64>("category"), Ok([0].as_slice()));
    }

    #[test]
    fn final_feedback_is_counted_by_kind_and_conversions_come_last() {
        let counts = ["final_0", "final_1", "final_2", "final_3"];
        let counts = [0, 1, 2, 3].map(|i| (counts[i], ColumnValues::I32(vec![i as i32 + 1])));
        let found = applied(Table::Retained, &counts);
        let of = |kind| found.get::<i32>(&final_column(kind)).map(<[i32]>::to_vec);
        assert_eq!(
            [0, 1, 2, 3].map(of),
            [1, 3, 0, 4].map(|count| Ok(vec![count]))
        );
    }

    #[test]
    fn times_of_users_have_another_unit() {
        let times = ["time_0", "time_1", "time_2", "time_3"];
        let times =
            [0, 1, 2, 3].map(|i| (times[i], ColumnValues::I64(vec![0, 1, 15, 16 + i as i64])));
        let found = applied(Table::UserItems, &times);
        // Units 0, 14 and 15 of a second are 0, 2 and 3 of five seconds; star was the third kind.
        for (kind, expected) in [(0, [0, 1, 3, 4]), (2, [0, 1, 3, 4]), (3, [0, 0, 0, 0])] {
            assert_eq!(
                found.get::<i64>(&time_column(kind)),
                Ok(expected.as_slice())
            );
        }
    }
}
