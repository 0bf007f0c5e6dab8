use super::*;

fn verdict(record: &str) -> Result<(), Reason> {
    let mut reader = Reader::new(record, 8);
    reader.skip(0)?;
    if reader.is_at_end() {
        Ok(())
    } else {
        Err(Reason::Json)
    }
}

#[test]
fn what_is_json_and_what_is_not() {
    let good = [
        r#" {"a" : [1, -0, 0.5, 1e400, 1E-7, true, false, null, "x\u00e9\ud83d\ude00\n"]} "#,
        "[]",
        "{}",
        "0",
        r#""""#,
        r#""a text of more than eight bytes \\ and \" more""#,
        "[[[[[[[[]]]]]]]]",
    ];
    for record in good {
        assert_eq!(verdict(record), Ok(()), "{record}");
    }
    let bad = [
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "NaN",
        "tru",
        "nulL",
        "\"",
        "\"\\",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\x\"",
        "\"a\nb\"",
        "\"12345678\u{1}\"",
        "{} {}",
        "[1 2]",
        "{\"a\" 1}",
        "-01",
        "\u{feff}1",
        "'a'",
        "\"\\u+123\"",
    ];
    for record in bad {
        assert_eq!(verdict(record), Err(Reason::Json), "{record}");
    }
    assert_eq!(verdict("[[[[[[[[[]]]]]]]]]"), Err(Reason::TooDeep));
    assert_eq!(verdict(&"[".repeat(900_000)), Err(Reason::TooDeep));
}

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

#[test]
fn brackets_are_counted_outside_of_texts() {
    assert_eq!(depth(br#"[{"]]\"]]": "[[["}]"#), 2);
    assert_eq!(depth(b"]]][["), 0);
    assert_eq!(depth(b"\"[[["), 0);
    assert_eq!(depth(b"[[]][[[\"\\"), 3);
}
