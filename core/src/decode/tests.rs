use std::collections::{HashMap, HashSet};

use super::*;

#[test]
fn a_field_is_declared_once() {
    let names: HashSet<&str> = Field::ALL
        .iter()
        .map(|field| field.declared().name)
        .collect();
    assert_eq!(names.len(), Field::ALL.len());
    let bounds = HashMap::from([("MAX_POSITION".to_owned(), 10.0)]);
    assert!(fields::Ranges::new(&bounds).is_err());
    let texts = |kind| Field::of_element(kind).map(Field::name).collect::<Vec<_>>();
    assert_eq!(
        texts(EventKind::Clicks),
        ["item_id", "impression_id", "position", "rating"]
    );
    assert_eq!(
        texts(EventKind::Conversions),
        ["item_id", "impression_id", "value"]
    );
    assert!(texts(EventKind::Sessions).is_empty());
}
