use super::*;

fn dimension(max_values: usize) -> spec::Dimension {
    spec::Dimension {
        name: "variant".into(),
        values: vec!["A".into()],
        max_values,
    }
}

#[test]
fn the_smallest_hashes_are_kept_in_any_order() {
    let texts: Vec<String> = (0..500).map(|i| format!("value-{i}")).collect();
    let mut kept = Vec::new();
    for order in [texts.clone(), texts.iter().rev().cloned().collect()] {
        let mut dimensions = Dimensions::new(HashKey(1, 2), &[dimension(10)], 20_000);
        for text in &order {
            dimensions.segment_of([text.as_str()].into_iter());
        }
        dimensions.segment_of(["A"].into_iter());
        assert_eq!(dimensions.values[0].kept().len(), 11);
        let others = dimensions.values[0].events[OTHER as usize];
        assert_eq!(others, 490);
        kept.push(dimensions.values[0].kept().join(","));
    }
    assert_eq!(kept[0], kept[1]);
}

#[test]
fn unknown_values_are_filled() {
    let two = [dimension(10), dimension(10)];
    let mut dimensions = Dimensions::new(HashKey(1, 2), &two, 20_000);
    let (full, own) = (
        dimensions.segment_of(["A", "x"].into_iter()),
        dimensions.segment_of(["", "y"].into_iter()),
    );
    assert!(dimensions.is_complete(full) && !dimensions.is_complete(own));
    let filled = dimensions.filled(own, full);
    assert_eq!(dimensions.codes(filled), &[2, 3]);
}

#[test]
fn segments_beyond_the_bound_are_other() {
    let mut dimensions = Dimensions::new(HashKey(1, 2), &[dimension(100)], 3);
    let segments: Vec<Segment> = ["a", "b", "c", "d", "e"]
        .iter()
        .map(|text| dimensions.segment_of([*text].into_iter()))
        .collect();
    assert_eq!(segments, [0, 1, 2, 3, 3]);
    assert_eq!(dimensions.overflowed, 2);
}
