use std::collections::{HashMap, HashSet};

use super::fields::Holds;
use super::*;
use crate::hash::NONE;
use crate::kafka::Record;
use crate::kafka::testing::{Dice, rounds};
use crate::kinds::FeedbackKind;
use crate::weights::WeighedItem;

const TS: &str = r#""ts":1700000000000,"user_id":"u","#;

impl Decoder {
    fn decode<'a>(&'a mut self, source: usize, record: &Record<'a>) -> Decoded<'a> {
        let events = self.decode_all(source, std::slice::from_ref(record));
        events.into_iter().next().unwrap().1
    }
}

fn decoder() -> Decoder {
    let names = |kind| {
        if kind == "clicks" {
            r#""item_id": "sku""#
        } else {
            ""
        }
    };
    decoder_of(&EventKind::ALL.map(|kind| {
        let kind = kind.name();
        let names = names(kind);
        format!(
            r#"{{"values": {{"positions_from": 1, "zone": []}},
                "layout": {{"flat": {{"kind": "{kind}", "names": {{{names}}}}}}}}}"#
        )
    }))
}

fn decoder_of(sources: &[String]) -> Decoder {
    let settings = r#"{
        "sources": [SOURCES],
        "limits": {"max_record_bytes": 1000000, "max_depth": 8, "max_refused_schemas": 3, "max_event_ms": 4102444800000,
            "min_seconds": 946684800, "max_seconds": 4102444800, "max_id_bytes": 512,
            "max_label_chars": 128, "max_items": 1000},
        "bounds": {"MAX_POSITION": 10000, "MAX_SCORE": 1e6, "MAX_VALUE": 1e12,
            "MAX_AMOUNT": 1e12, "MAX_DWELL_MS": 86400000},
        "policies": {"max_weight": 10, "policies": [
            {"propensity": "p_new", "estimate": "q_new", "positions": []},
            {"propensity": null, "estimate": null, "positions": [0.5]}]}
    }"#;
    let settings = settings.replace("SOURCES", &sources.join(","));
    let settings: RecordSettings = serde_json::from_str(&settings).unwrap();
    let kinds = ["click".to_owned(), "like".to_owned()];
    Decoder::new(HashKey(1, 2), &["variant", "surface"], &kinds, &settings).unwrap()
}

fn of(value: &[u8]) -> Record<'_> {
    Record {
        value: Some(value),
        ..Record::default()
    }
}

fn reason(kind: EventKind, record: &str) -> Option<&'static str> {
    let mut decoder = decoder();
    let decoded = decoder.decode(kind as usize, &of(record.as_bytes()));
    decoded.err().map(Reason::name)
}

#[test]
fn a_click_with_all_its_fields() {
    let mut decoder = decoder();
    let key = HashKey(1, 2);
    let record = format!(
        r#"{{{TS}"sku":"\u0069","item_id":7,"position":3,"feedback":"like","event_id":"e","end_ts":9,
            "start_ts":2,"type":"click","surface":"h\u006fme","variant":"unknown","x":[{{}}]}}"#
    );
    let event = decoder
        .decode(EventKind::Clicks as usize, &of(record.as_bytes()))
        .unwrap();
    assert_eq!(
        (event.event_ms, event.user),
        (1_700_000_000_000, key.of(b"u"))
    );
    assert_eq!((event.event_id, event.request), (key.of(b"e"), 0));
    assert_eq!(event.dimensions.iter().collect::<Vec<_>>(), ["", "home"]);
    let Body::Click {
        lines: [line],
        kind,
    } = event.body
    else {
        panic!()
    };
    assert_eq!(
        (line.item, line.position, kind),
        (key.of(b"i"), 3, FeedbackKind::Configured(1))
    );
    assert_eq!(line.amounts.dwell_ms, Some(7));
}

#[test]
fn a_list_with_a_reference_and_a_held_out_item() {
    let mut decoder = decoder();
    let record = format!(
        r#"{{{TS}"held_out":"b","items":[{{"item_id":"a","score":0.5}},{{"item_id":"b"}}],
            "reference":["b","c","b","a"]}}"#
    );
    let event = decoder
        .decode(EventKind::Impressions as usize, &of(record.as_bytes()))
        .unwrap();
    let Body::Impressions {
        items,
        is_list: true,
        reference: [b, _, again, a],
        held_out,
        ..
    } = event.body
    else {
        panic!()
    };
    assert_eq!(items.iter().map(|i| i.position).collect::<Vec<_>>(), [1, 2]);
    assert_eq!([*b, *again, held_out], [items[1].item; 3]);
    assert_eq!(*a, items[0].item);
    assert!(items[0].score == 0.5 && items[1].score.is_nan());
    let plain = format!(r#"{{{TS}"item_id":"a"}}"#);
    let event = decoder
        .decode(EventKind::Impressions as usize, &of(plain.as_bytes()))
        .unwrap();
    let Body::Impressions {
        items: [item],
        is_list: false,
        reference,
        held_out,
        ..
    } = event.body
    else {
        panic!()
    };
    assert_eq!(
        (item.position, reference, held_out),
        (0, &[][..], NONE),
        "nothing is left of the event before"
    );
}

#[test]
fn weights_of_each_policy_of_items_in_a_list_and_of_a_single_one() {
    let mut decoder = decoder();
    let mut weights = |record: &str| {
        let record = format!("{{{TS}{record}}}");
        let event = decoder.decode(EventKind::Impressions as usize, &of(record.as_bytes()));
        let Body::Impressions { weights, .. } = event.unwrap().body else {
            panic!()
        };
        let units = |item: &WeighedItem| [item[0].weight.units(), item[1].weight.units()];
        weights.iter().map(units).collect::<Vec<_>>()
    };
    let list = r#""p_new":1,"propensity":1,"items":[
        {"item_id":"a","propensity":0.5,"p_new":0.25},{"item_id":"b","propensity":0.25},
        {"p_new":1,"item_id":"c"}]"#;
    let (half, double) = (Some(500_000), Some(1_000_000));
    assert_eq!(
        weights(list),
        [[half, double], [None, Some(0)], [None, None]]
    );
    assert_eq!(
        weights(r#""item_id":"a","propensity":0.5,"p_new":0.25"#),
        [[half, None]]
    );
    assert_eq!(
        weights(r#""item_id":"a","position":1,"propensity":1,"p_new":0.5,"p_new":null"#),
        [[None, half]]
    );
    assert_eq!(weights(r#""item_id":"a""#), [[None, None]]);
}

#[test]
fn the_last_value_of_a_name_counts_and_each_must_be_right() {
    let click = |more: &str| reason(EventKind::Clicks, &format!(r#"{{{TS}"sku":"i",{more}}}"#));
    assert_eq!(click(r#""position":3,"position":null"#), None);
    assert_eq!(click(r#""position":0,"position":3"#), Some("position"));
    assert_eq!(click(r#""variant":"A","variant":["a b"]"#), None);
    assert_eq!(click(r#""sku":null"#), Some("item_id"));
}

#[test]
fn reasons() {
    let cases = [
        ("", "json"),
        ("[]", "object"),
        ("{}", "ts"),
        (r#"{"ts":1700000000,"user_id":"u","item_id":"i"}"#, "ts"),
        (r#"{"ts":1,"user_id":["u"],"item_id":"i"}"#, "user_id"),
        (r#"{"ts":1,"user_id":"u"}"#, "item_id"),
        (
            r#"{"ts":1,"user_id":"u","item_id":"i","items":[{"item_id":"i"}]}"#,
            "items",
        ),
        (
            r#"{"ts":1,"user_id":"u","items":[{"item_id":"i","position":0}]}"#,
            "items",
        ),
        (r#"{"ts":1,"user_id":"u","item_id":"i"} x"#, "json"),
        (
            r#"{"ts":"x","user_id":"u","deep":[[[[[[[[]]]]]]]]}"#,
            "too_deep",
        ),
        (
            r#"{"ts":1,"user_id":"u","item_id":"i","type":"click"}"#,
            "type",
        ),
        (
            r#"{"ts":1,"user_id":"u","item_id":"i","reference":[]}"#,
            "reference",
        ),
        (
            r#"{"ts":1,"user_id":"u","item_id":"i","p_new":1.5}"#,
            "propensity",
        ),
        (
            r#"{"ts":1,"user_id":"u","item_id":"i","q_new":-1}"#,
            "reward_estimate",
        ),
        (
            r#"{"ts":1,"user_id":"u","item_id":"i","reward_estimate":"x"}"#,
            "reward_estimate",
        ),
        (
            r#"{"ts":1,"user_id":"u","items":[{"item_id":"i","q_new":2}]}"#,
            "items",
        ),
    ];
    for (record, expected) in cases {
        assert_eq!(
            reason(EventKind::Impressions, record),
            Some(expected),
            "{record}"
        );
    }
    assert_eq!(
        decoder().decode(1, &Record::default()).err(),
        Some(Reason::Ignored)
    );
    assert_eq!(
        decoder().decode(1, &of(b"{\"\xff\":1}")).err(),
        Some(Reason::Json)
    );
}

/// Values that a field with such values refuses.
fn wrong_values(holds: Holds) -> &'static [&'static str] {
    match holds {
        Holds::Anything => &[],
        Holds::Id => &["1.5", "true", "[]", "{}"],
        Holds::Ids => &["[]", "7", "[null]", "[1.5]"],
        Holds::ItemList => &["7", "[null]", "[{}]"],
        Holds::Time | Holds::Span => &["true", "\"soon\"", "-1"],
        Holds::KindOfEvent => &["7", "\"view\""],
        Holds::OneAction => &["7", "\"stop\""],
        Holds::Text => &["7", "[]", "true"],
        Holds::Integer(..) => &["\"x\"", "true", "1.5", "-1", "1e300", "99999999999999"],
        Holds::Number(..) | Holds::Above(..) => &["\"x\"", "true", "-1e300", "1e300", "[1]"],
    }
}

#[test]
fn each_field_refuses_what_it_may_not_hold() {
    let mut decoder = decoder();
    let mut tried = 0;
    for kind in EventKind::ALL {
        let sound = [
            ("ts", "1700000000000"),
            ("item_id", "1"),
            ("sku", "1"),
            ("session_id", "1"),
            ("action", "\"view\""),
            ("start_ts", "1700000000000"),
            ("end_ts", "1700000000000"),
        ];
        for field in Field::of_event(kind) {
            let name = match (field, kind) {
                (Field::ItemId, EventKind::Clicks) => "sku",
                _ => field.name(),
            };
            let is_in_list =
                |other: &str| field == Field::Items && ["item_id", "sku"].contains(&other);
            let others = sound
                .iter()
                .filter(|(other, _)| *other != name && !is_in_list(other));
            let others: String = others
                .map(|(other, value)| format!("\"{other}\": {value}, "))
                .collect();
            for value in wrong_values(field.declared().holds) {
                let record = format!("{{{others}\"{name}\": {value}}}");
                let why = decoder.explain(kind as usize, &of(record.as_bytes()));
                let reason = why.reason.map(Reason::name);
                assert_eq!(reason, Some(field.declared().reason), "{record}");
                tried += 1;
            }
        }
    }
    assert!(tried > 150, "{tried}");
}

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
    assert_eq!(texts(EventKind::Clicks), ["item_id", "position"]);
    assert_eq!(texts(EventKind::Conversions), ["item_id", "value"]);
    assert!(texts(EventKind::Sessions).is_empty());
}

fn impression(dice: &mut Dice) -> String {
    format!(
        r#"{{"ts": 1700000{:06}, "user_id": "user-{}", "item_id": "item-{}", "request_id": "{:016x}{:016x}", "position": {}, "score": 0.{:04}, "variant": "A", "surface": "home", "event_id": "{:016x}"}}"#,
        dice.below(1_000_000),
        dice.below(100_000),
        dice.below(20_000),
        dice.below(1 << 31) * 77_777_777,
        dice.below(1 << 31) * 999_999,
        1 + dice.below(20),
        dice.below(10_000),
        dice.below(1 << 31) * 123_456,
    )
}

fn click(dice: &mut Dice) -> String {
    impression(dice)
        .replace("item_id", "sku")
        .replace("\"score\": 0.", "\"dwell_ms\": 1")
}

fn slate(dice: &mut Dice) -> String {
    let mut items = Vec::new();
    for _ in 0..20 {
        items.push(format!(
            r#"{{"item_id": "item-{}", "score": 0.{:04}}}"#,
            dice.below(20_000),
            dice.below(10_000)
        ));
    }
    impression(dice)
        .replace("\"item_id\"", "\"note\"")
        .replace("}", &format!(r#", "items": [{}]}}"#, items.join(", ")))
}

#[test]
fn no_bytes_make_it_panic() {
    let mut dice = Dice(11);
    let mut decoder = decoder();
    let mut events = 0;
    let tries = rounds(20_000);
    for i in 0..tries {
        let make = [impression, click, slate][i % 3];
        let mut record = make(&mut dice).into_bytes();
        for _ in 0..dice.below(4) {
            let at = dice.below(record.len());
            match dice.below(3) {
                0 => record[at] ^= 1 << dice.below(8),
                1 => record[at] = b"{}[]\",:0-eE\\u\n"[dice.below(14)],
                _ => drop(record.remove(at)),
            }
        }
        let topic = EventKind::ALL[dice.below(4)];
        events += usize::from(decoder.decode(topic as usize, &of(&record)).is_ok());
    }
    assert!((tries / 10..tries * 3 / 4).contains(&events), "{events}");
}

// Records of other shapes

/// A decoder of one source with such a mapping.
fn mapped(mapping: &str) -> Decoder {
    decoder_of(&[format!(
        r#"{{"values": {{"positions_from": 1, "zone": [], "whole_ids": true}},
            "layout": {{"mapped": {mapping}}}}}"#
    )])
}

/// FeedbackKind and items of each event of a record, or the reason why it is none.
fn events(decoder: &mut Decoder, record: &str) -> Vec<String> {
    let key = HashKey(1, 2);
    let known: Vec<(u64, String)> = ('a'..='z')
        .map(|c| c.to_string())
        .chain((0..100).map(|n| n.to_string()))
        .map(|text| (key.of(text.as_bytes()), text))
        .collect();
    let name = |item: u64| {
        let found = known.iter().find(|(hash, _)| *hash == item);
        found.map_or("?".to_owned(), |(_, text)| text.clone())
    };
    let decoded = decoder.decode_all(0, &[of(record.as_bytes())]);
    let shown = decoded.iter().map(|(_, event)| match event {
        Err(reason) => reason.name().to_owned(),
        Ok(event) => {
            let ids: Vec<String> = match event.body {
                Body::Impressions { items, .. } => {
                    let of = |i: &event::Item| format!("{}@{}", name(i.item), i.position);
                    items.iter().map(of).collect()
                }
                Body::Click { lines, .. } | Body::Conversion { lines, .. } => {
                    lines.iter().map(|x| name(x.item)).collect()
                }
                Body::Session { .. } | Body::Exposure { .. } => Vec::new(),
            };
            let user = name(event.user);
            format!("{} {user} {}", event.kind().event_type(), ids.join(","))
        }
    });
    shown.collect()
}

const TIME: &str = r#"{"field": "ts", "values": [0]}, {"field": "user_id", "values": [1]}"#;

#[test]
fn a_record_may_be_events_of_several_kinds() {
    let list = |levels: &str, place: usize| {
        format!(
            r#"{{"fields": [{TIME}], "lists": [{{"levels": [{levels}],
                "fields": [{{"field": "item_id", "values": [{place}]}}]}}]}}"#
        )
    };
    let mut decoder = mapped(&format!(
        r#"{{"unfold": [], "beside": [], "each": [], "levels": [
                {{"list": null, "only": [], "paths": [["ts"], ["u"], ["items"]]}},
                {{"list": 2, "only": [], "paths": [["id"]]}},
                {{"list": 2, "only": [{{"values": [5], "test": {{"one_of": ["true", "1"]}}}}],
                  "paths": [["id"], ["hit"]]}}],
            "kind": {{"by": [], "rules": [
                {{"kind": "impressions", "value": null, "when": [], "feedback": null, "action": null}},
                {{"kind": "clicks", "value": null, "when": [], "feedback": null, "action": null}}]}},
            "kinds": {{"impressions": {}, "clicks": {}}}}}"#,
        list("1", 3),
        list("2", 4)
    ));
    let record = |items: &str| format!(r#"{{"ts": 1700000000000, "u": "u", "items": [{items}]}}"#);
    let found = events(
        &mut decoder,
        &record(r#"{"id": "a", "hit": true}, {"id": 7.0}, {"hit": "1", "id": "c"}"#),
    );
    assert_eq!(found, ["impression u a@1,7@2,c@3", "click u a,c"]);
    let found = events(&mut decoder, &record(r#"{"id": "a", "hit": false}"#));
    assert_eq!(
        found,
        ["impression u a@1"],
        "nothing was clicked: there is no click"
    );
    assert_eq!(events(&mut decoder, &record("")), ["impression u "]);
    let found = events(
        &mut decoder,
        &record(r#"{"id": "a", "hit": 1}, {"id": null}"#),
    );
    assert_eq!(found, ["items", "click u a"], "each event is judged alone");
}

#[test]
fn a_record_may_hold_events_in_lists_in_lists() {
    let mut decoder = mapped(
        r#"{"unfold": [{"path": ["in"], "split": []}], "beside": ["timestamp"], "each": [1],
            "levels": [
                {"list": null, "only": [], "paths": [["in", "batch"], ["u"]]},
                {"list": 1, "only": [], "paths": [["what"], ["rows"], ["id"]]},
                {"list": 4, "only": [], "paths": [[]]},
                {"list": 6, "only": [], "paths": [[]]}],
            "kind": {"by": [3], "rules": [
                {"kind": "impressions", "value": "show", "when": [], "feedback": null, "action": null},
                {"kind": "clicks", "value": null, "when": [{"values": [5], "test": {"is": true}}],
                  "feedback": null, "action": null},
                {"kind": null, "value": "page", "when": [], "feedback": null, "action": null}]},
            "kinds": {
                "impressions": {"fields": [{"field": "ts", "values": [0]}, {"field": "user_id", "values": [2]}],
                    "lists": [{"levels": [2, 3], "fields": [{"field": "item_id", "values": [7]}]}]},
                "clicks": {"fields": [{"field": "ts", "values": [0]}, {"field": "user_id", "values": [2]},
                    {"field": "item_id", "values": [5]}], "lists": []}}}"#,
    );
    let batch = r#"{"what": "show", "rows": [["a"], [], ["b", 3]]}, {"what": "page"},
        {"id": "a"}, 5, {"what": "show"}"#;
    let inner = format!(r#"{{"batch": [{batch}]}}"#)
        .replace('"', r#"\""#)
        .replace('\n', " ");
    let record = format!(r#"{{"u": 5, "in": "{inner}"}}"#);
    let value = of(record.as_bytes());
    let kinds: Vec<_> = {
        let at = Record {
            timestamp_ms: 1_700_000_000_000,
            ..value
        };
        let found = decoder.decode_all(0, &[at]);
        let shown = found.iter().map(|(_, event)| match event {
            Ok(event) => event.kind().event_type(),
            Err(reason) => reason.name(),
        });
        shown.collect()
    };
    assert_eq!(kinds, ["impression", "ignored", "click", "kind", "item_id"]);
    let explained = decoder.explain(0, &value);
    assert_eq!(
        explained.reason,
        Some(Reason::Kind),
        "the first that is wrong"
    );
    for other in [r#"{"u": 5}"#, r#"{"in": {"batch": 5}}"#] {
        assert_eq!(events(&mut decoder, other), ["items"], "{other}");
    }
    assert_eq!(
        events(&mut decoder, r#"{"in": {"batch": []}}"#),
        ["ignored"]
    );
}
