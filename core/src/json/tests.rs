use super::*;

#[test]
fn numbers_are_the_nearest_doubles() {
    let double = |text: &str| Reader::new(text, 1).number().ok().and_then(|n| n.double());
    let integer = |text: &str| Reader::new(text, 1).number().ok().and_then(|n| n.integer());
    for text in [
        "0.1",
        "123456789012345",
        "-0.0",
        "1e22",
        "9007199254740993",
        "4.9e-324",
        "19.99",
    ] {
        let expected: f64 = text.parse().unwrap();
        assert_eq!(
            double(text).map(f64::to_bits),
            Some(expected.to_bits()),
            "{text}"
        );
    }
    assert_eq!((double("1e400"), double(&"9".repeat(400))), (None, None));
    assert_eq!(double("1e-400"), Some(0.0));
    assert_eq!(
        double("-0").map(f64::to_bits),
        Some(0),
        "an integer has no negative zero"
    );
    assert_eq!(
        (
            integer("-0"),
            integer("-17"),
            integer("1.0"),
            integer("1e2")
        ),
        (Some(0), Some(-17), None, None)
    );
    assert_eq!(integer("9223372036854775807"), Some(i64::MAX));
    assert_eq!(
        (integer("9223372036854775808"), integer(&"1".repeat(5000))),
        (None, None)
    );
}
