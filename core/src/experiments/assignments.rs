//! What a value of an event says of arms: one arm, or several experiments with an arm each.
//!
//! - a text, a number, true or false: an arm; a text may also be a list `ranker:new,layout:wide`;
//! - an object that names an experiment and an arm: that; another object: arms by experiment, each a
//!   value, or an object that names an arm;
//! - properties of an event some of which are called `$feature/ranker` or `[Experiment] ranker`: those;
//! - a list of objects, of texts `ranker:new`, or of pairs.
//!
//! Names of experiments and arms stand in the fields that experiment tools call them by, as they are
//! or as the key of an object.

use hashbrown::HashSet;

use crate::json::Reader;

/// Fields that name an experiment, the likeliest first.
const EXPERIMENT_FIELDS: &[&str] = &[
    "experiment",
    "experiment_key",
    "experimentKey",
    "experiment_name",
    "experimentName",
    "experiment_id",
    "experimentId",
    "allocatedExperiment",
    "flagKey",
    "flag_key",
    "feature_flag.key",
    "featureFlag",
    "featureName",
    "feature",
    "flag",
    "gate",
    "config",
    "test",
    "key",
    "name",
    "id",
];
/// Fields that name an arm, likewise.
const ARM_FIELDS: &[&str] = &[
    "arm",
    "variant",
    "variation",
    "variationKey",
    "variation_key",
    "variationName",
    "variation_name",
    "feature_flag.result.variant",
    "feature_flag.variant",
    "feature_flag.result.value",
    "experimentGroupName",
    "experiment_group",
    "group",
    "groupName",
    "group_name",
    "bucket",
    "treatment",
    "variationId",
    "variation_id",
    "gateValue",
    "value",
    "ruleID",
];
/// Fields that name an arm where an object stands for an experiment that its field names.
const ARM_OF_NAMED_FIELDS: &[&str] = &["key", "name"];
/// Fields that may hold an experiment or an arm as an object, and those that name it in there.
const EXPERIMENT_OBJECTS: &[&str] = &["experiment", "feature", "flag", "test"];
const ARM_OBJECTS: &[&str] = &[
    "arm",
    "variant",
    "variation",
    "treatment",
    "group",
    "result",
];
const KEY_FIELDS: &[&str] = &["key", "name", "id"];
/// What stands before the experiment in the name of a property: of PostHog, of Amplitude.
const PREFIXES: &[&str] = &["$feature/", "[Experiment] "];
/// In LaunchDarkly's state of all flags: what is known of each beside its value.
const STATE_OF_FLAGS: &str = "$flagsState";
/// What parts assignments in a text, and an experiment from its arm.
const SEPARATORS: &[char] = &[',', ';', '|'];
const COLONS: &[char] = &[':', '='];
const MAX_DEPTH: usize = 64;

/// What a value says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArmAssignment<'a> {
    /// The arm of whatever experiment the value is of.
    Arm(&'a str),
    /// An experiment, and the arm in it.
    Assignment(&'a str, &'a str),
}

/// Visits what a value says. `json`: the value as it stands in a record that was read.
pub fn each(json: &str, mut visit: impl FnMut(ArmAssignment<'_>)) {
    let mut unescaped = String::new();
    match json.as_bytes().first() {
        Some(b'{') => of_object(json, &mut visit),
        Some(b'[') => of_list(json, &mut visit),
        Some(_) => {
            if let Some(text) = scalar(json, &mut unescaped) {
                of_text(text, true, &mut visit);
            }
        }
        None => {}
    }
}

fn of_text(text: &str, is_arm: bool, visit: &mut impl FnMut(ArmAssignment<'_>)) {
    if text.is_empty() {
        return;
    }
    if is_arm {
        visit(ArmAssignment::Arm(text));
    }
    for part in text.split(SEPARATORS) {
        if let Some((experiment, arm)) = part.rsplit_once(COLONS) {
            let (experiment, arm) = (experiment.trim(), arm.trim());
            if !experiment.is_empty() && !arm.is_empty() {
                visit(ArmAssignment::Assignment(experiment, arm));
            }
        }
    }
}

fn of_object(json: &str, visit: &mut impl FnMut(ArmAssignment<'_>)) {
    let fields = fields_of(json);
    if of_properties(&fields, visit) || of_flags(&fields, visit) {
        return;
    }
    if let Some((experiment, arm)) = assignment(&fields) {
        return visit(ArmAssignment::Assignment(&experiment, &arm));
    }
    let mut arms = Vec::new();
    for (name, value) in &fields {
        let mut unescaped = String::new();
        let arm = match value.as_bytes().first() {
            Some(b'{') => {
                let of_value = fields_of(value);
                let arm = named(&of_value, ARM_FIELDS);
                arm.or_else(|| named(&of_value, ARM_OF_NAMED_FIELDS))
            }
            Some(b'[') | None => None,
            Some(_) => scalar(value, &mut unescaped).map(str::to_owned),
        };
        arms.extend(arm.map(|arm| (name, arm)));
    }
    for (name, arm) in &arms {
        visit(ArmAssignment::Assignment(name, arm));
    }
    if let Some(arm) = named(&fields, ARM_FIELDS) {
        visit(ArmAssignment::Arm(&arm));
    }
}

/// Whether some are properties that are called like experiments of a tool; visits those.
fn of_properties(fields: &[(String, &str)], visit: &mut impl FnMut(ArmAssignment<'_>)) -> bool {
    let mut is_any = false;
    for (name, value) in fields {
        let mut experiments = PREFIXES.iter().filter_map(|each| name.strip_prefix(each));
        let Some(experiment) = experiments.next() else {
            continue;
        };
        is_any = true;
        let mut unescaped = String::new();
        if let Some(arm) = scalar(value, &mut unescaped).filter(|arm| !arm.is_empty()) {
            visit(ArmAssignment::Assignment(experiment, arm));
        }
    }
    is_any
}

/// Whether it is the state of all flags; visits their values, or the numbers of variations where
/// values are objects or lists.
fn of_flags(fields: &[(String, &str)], visit: &mut impl FnMut(ArmAssignment<'_>)) -> bool {
    let Some((_, states)) = fields.iter().find(|(name, _)| name == STATE_OF_FLAGS) else {
        return false;
    };
    for (flag, state) in fields_of(states) {
        let own = [flag.as_str()];
        let arm = named(fields, &own).or_else(|| named(&fields_of(state), &["variation"]));
        if let Some(arm) = arm {
            visit(ArmAssignment::Assignment(&flag, &arm));
        }
    }
    true
}

fn of_list(json: &str, visit: &mut impl FnMut(ArmAssignment<'_>)) {
    for element in elements_of(json) {
        let mut unescaped = String::new();
        match element.as_bytes().first() {
            Some(b'{') => {
                if let Some((experiment, arm)) = assignment(&fields_of(element)) {
                    visit(ArmAssignment::Assignment(&experiment, &arm));
                }
            }
            Some(b'[') => {
                let (mut first, mut second) = (String::new(), String::new());
                if let [experiment, arm] = *elements_of(element)
                    && let Some(experiment) = scalar(experiment, &mut first)
                    && let Some(arm) = scalar(arm, &mut second)
                {
                    visit(ArmAssignment::Assignment(experiment, arm));
                }
            }
            _ => {
                if let Some(text) = scalar(element, &mut unescaped) {
                    of_text(text, false, visit);
                }
            }
        }
    }
}

/// The value of the first of some fields that is there and no list, object or null.
fn named(fields: &[(String, &str)], names: &[&str]) -> Option<String> {
    let value = |name: &&str| {
        let (_, value) = fields.iter().find(|(field, _)| field == name)?;
        let mut unescaped = String::new();
        scalar(value, &mut unescaped)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    names.iter().find_map(value)
}

/// An experiment and the arm in it, where fields name both.
fn assignment(fields: &[(String, &str)]) -> Option<(String, String)> {
    let experiment = named(fields, EXPERIMENT_FIELDS).or_else(|| key(fields, EXPERIMENT_OBJECTS));
    let arm = named(fields, ARM_FIELDS).or_else(|| key(fields, ARM_OBJECTS));
    Some((experiment?, arm?))
}

/// The key of the first of some fields that holds an object with one.
fn key(fields: &[(String, &str)], names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| {
        let (_, value) = fields.iter().rev().find(|(field, _)| field == name)?;
        let object = value.starts_with('{').then(|| fields_of(value))?;
        named(&object, KEY_FIELDS)
    })
}

/// Names and values of an object, of equal names the last one; none where it is broken.
fn fields_of(json: &str) -> Vec<(String, &str)> {
    let mut reader = Reader::new(json, MAX_DEPTH);
    let mut state = (Vec::new(), String::new());
    let walked = reader.object(
        &mut state,
        |reader, (_, unescaped)| reader.text(unescaped),
        |reader, (fields, unescaped), name| {
            let name = name.of(json, unescaped).to_owned();
            reader.peek();
            let start = reader.at();
            reader.skip(1)?;
            fields.push((name, reader.raw_since(start).of(json, "")));
            Ok(())
        },
    );
    if walked.is_err() {
        return Vec::new();
    }
    let (mut fields, mut names) = (state.0, HashSet::new());
    fields.reverse();
    fields.retain(|(name, _)| names.insert(name.clone()));
    fields.reverse();
    fields
}

/// The elements of a list; none where it is broken.
fn elements_of(json: &str) -> Vec<&str> {
    let (mut reader, mut found) = (Reader::new(json, MAX_DEPTH), Vec::new());
    let walked = reader.list(|reader, _| {
        reader.peek();
        let start = reader.at();
        reader.skip(1)?;
        found.push(reader.raw_since(start).of(json, ""));
        Ok(())
    });
    match walked {
        Ok(_) => found,
        Err(_) => Vec::new(),
    }
}

/// A text, or a number, true or false as it is written; None of anything else.
fn scalar<'a>(json: &'a str, unescaped: &'a mut String) -> Option<&'a str> {
    match json.as_bytes().first()? {
        b'"' => {
            let text = Reader::new(json, MAX_DEPTH).text(unescaped).ok()?;
            Some(text.of(json, unescaped))
        }
        b'{' | b'[' | b'n' => None,
        _ => Some(json),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(json: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        each(json, |said| {
            if let ArmAssignment::Assignment(experiment, arm) = said {
                found.push((experiment.to_owned(), arm.to_owned()));
            }
        });
        found
    }

    fn arms(json: &str) -> Vec<String> {
        let mut found = Vec::new();
        each(json, |said| {
            if let ArmAssignment::Arm(arm) = said {
                found.push(arm.to_owned());
            }
        });
        found
    }

    fn pair(experiment: &str, arm: &str) -> (String, String) {
        (experiment.to_owned(), arm.to_owned())
    }

    #[test]
    fn a_value_alone_is_an_arm() {
        assert_eq!(arms(r#""new""#), ["new"]);
        assert_eq!(arms(r#""n\u0065w""#), ["new"]);
        assert_eq!(arms("true"), ["true"]);
        assert_eq!(arms("3"), ["3"]);
        assert_eq!(arms(r#"{"variant": "new", "enabled": true}"#), ["new"]);
        for none in ["\"\"", "null", "[]", "{}", "[1, {}]", ""] {
            assert!(arms(none).is_empty() && assigned(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn assignments_are_found_in_every_form() {
        let both = [pair("ranker", "new"), pair("layout", "wide")];
        for form in [
            r#"{"ranker": "new", "layout": "wide"}"#,
            r#"{"ranker": {"value": "new"}, "layout": {"variant": "wide", "value": 7}}"#,
            r#"{"ranker": {"key": "new"}, "layout": {"name": "wide", "enabled": true}}"#,
            r#"[{"name": "ranker", "arm": "new"}, {"name": "layout", "arm": "wide"}]"#,
            r#"[{"flagKey": "ranker", "variant": "new"}, {"key": "layout", "value": "wide"}]"#,
            r#"[{"experiment": "ranker", "group": "new"}, {"test": "layout", "bucket": "wide"}]"#,
            r#"["ranker:new", "layout=wide"]"#,
            r#"[["ranker", "new"], ["layout", "wide"]]"#,
            r#""ranker:new,layout:wide""#,
            r#""ranker=new; layout=wide""#,
        ] {
            assert_eq!(assigned(form), both, "{form}");
        }
        for form in [
            r#"{"$feature/ranker": "new", "name": "Home", "value": 3, "$feature/layout": "wide"}"#,
            r#"{"[Experiment] ranker": "new", "[Experiment] layout": "wide", "plan": "free"}"#,
            r#"{"ranker": "new", "layout": ["wide"], "$valid": true, "$flagsState":
                {"ranker": {"variation": 1, "version": 3}, "layout": {"variation": "wide"}}}"#,
            r#"[{"gate": "ranker", "gateValue": "new", "ruleID": "4Sau"},
                {"config": "layout", "ruleID": "wide", "reason": "Network"}]"#,
            r#"[{"feature_flag.key": "ranker", "feature_flag.result.variant": "new"},
                {"feature_flag.key": "layout", "feature_flag.result.value": "wide"}]"#,
            r#"[{"experiment": {"id": "10", "key": "ranker"}, "variation": {"key": "new"}},
                {"experiment": {"key": "layout"}, "result": {"key": "wide", "variationId": 1}}]"#,
            r#"[{"featureName": "ranker", "variant": {"name": "new", "enabled": true}},
                {"config": "layout", "allocatedExperiment": "layout",
                 "experimentGroupName": "wide"}]"#,
        ] {
            assert_eq!(assigned(form), both, "{form}");
        }
        let one = r#"{"experiment_id": "ranker", "variation_id": 1}"#;
        assert_eq!(assigned(one), [pair("ranker", "1")]);
        assert_eq!(assigned(r#"{"ranker": true}"#), [pair("ranker", "true")]);
        for none in [
            r#"{"$feature/ranker": null, "name": "Home", "value": 3}"#,
            r#"{"$flagsState": 1, "$valid": true}"#,
            r#"[{"experiment": {"key": ["ranker"]}, "variation": {"name": null}}]"#,
        ] {
            assert_eq!(assigned(none), [], "{none}");
        }
        let twice = r#"{"ranker": "old", "layout": "wide", "ranker": "new"}"#;
        assert_eq!(
            assigned(twice),
            [pair("layout", "wide"), pair("ranker", "new")]
        );
        let twice = r#"{"experiment": "layout", "arm": "new", "experiment": "ranker"}"#;
        assert_eq!(assigned(twice), [pair("ranker", "new")]);
    }
}
