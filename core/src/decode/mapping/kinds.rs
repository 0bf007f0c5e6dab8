//! What a record is: which kinds of events, by its values.

use super::scope::Scope;
use crate::decode::fields::Field;
use crate::decode::names::Names;
use crate::decode::reading::Place;
use crate::decode::reason::Reason;
use crate::kinds::{Action, EventKind, FeedbackKind, KINDS};
use crate::spec::records::{ConditionSpec, KindRuleSpec, KindSpec, TestSpec};

/// What follows from a rule that is met.
#[derive(Clone, Copy, Debug)]
pub(in crate::decode) struct KindRule {
    pub feedback: Option<FeedbackKind>,
    pub action: Option<Action>,
    pub is_refund: bool,
}

/// The rule that is met for each kind, in the order of `EventKind::ALL`.
type RulesByKind = [Option<KindRule>; KINDS];

/// Something that may be true of a record or an element.
#[derive(Debug)]
pub(super) struct Condition {
    values: Vec<usize>,
    test: TestSpec,
}

impl Condition {
    pub fn new(spec: &ConditionSpec) -> Self {
        Self {
            values: spec.values.clone(),
            test: spec.test.clone(),
        }
    }

    pub fn holds(&self, scope: &mut Scope) -> bool {
        let at = scope.first(&self.values);
        match &self.test {
            TestSpec::Is(wanted) => at.is_some() == *wanted,
            TestSpec::OneOf(texts) => at
                .and_then(|(_, at)| scope.text_at(at).ok())
                .is_some_and(|text| texts.iter().any(|each| each == text)),
        }
    }
}

#[derive(Debug)]
pub(super) struct Kinds {
    by: Vec<usize>,
    /// Text → the kinds that it says; none of them where it is ignored.
    known: Names<RulesByKind>,
    /// Rules that look at other values, too.
    others: Vec<(Vec<Condition>, Rule)>,
}

/// What follows from conditions; no kind: the record is ignored.
type Rule = Option<(EventKind, KindRule)>;

impl Kinds {
    pub fn new(spec: &KindSpec, feedback: &[String]) -> Result<Self, String> {
        let mut known: Vec<(&str, RulesByKind)> = Vec::new();
        let mut others = Vec::new();
        for rule in &spec.rules {
            let made = said_by(rule, feedback)?;
            match &rule.value {
                Some(text) if rule.when.is_empty() => {
                    let place = known.iter().position(|(other, _)| *other == text);
                    let place = place.unwrap_or_else(|| {
                        known.push((text, [None; KINDS]));
                        known.len() - 1
                    });
                    if let Some((kind, made)) = made {
                        known[place].1[kind as usize].get_or_insert(made);
                    }
                }
                text => {
                    let of_value = text.iter().map(|text| Condition {
                        values: spec.by.clone(),
                        test: TestSpec::OneOf(vec![(*text).clone()]),
                    });
                    let when = rule.when.iter().map(Condition::new);
                    others.push((of_value.chain(when).collect(), made));
                }
            }
        }
        Ok(Self {
            by: spec.by.clone(),
            known: Names::new(known),
            others,
        })
    }

    /// The text that says what a record is.
    pub fn text_of(&self, scope: &mut Scope) -> Option<String> {
        let (_, at) = scope.first(&self.by)?;
        scope.text_at(at).ok().map(str::to_owned)
    }

    /// The rules that a record, or an element of one, meets.
    ///
    /// # Errors
    /// Where there are none: whether it is ignored, and where the value stands that says so.
    pub fn of(&self, scope: &mut Scope) -> Result<RulesByKind, (Reason, Place)> {
        let (mut said, mut is_ignored): (RulesByKind, bool) = ([None; KINDS], false);
        for (conditions, rule) in &self.others {
            let is_open = rule.is_none_or(|(kind, _)| said[kind as usize].is_none());
            if is_open && conditions.iter().all(|each| each.holds(scope)) {
                match rule {
                    Some((kind, rule)) => said[*kind as usize] = Some(*rule),
                    None => is_ignored = true,
                }
            }
        }
        let mut place = Place::missing(Field::Type);
        if let Some((_, at)) = scope.first(&self.by) {
            place = Place::value(Field::Type, at);
            let text = scope.text_at(at).map_err(|reason| (reason, place))?;
            let by_text = self.known.get(text);
            is_ignored |= by_text.is_some_and(|rules| rules.iter().all(Option::is_none));
            for (own, rule) in said.iter_mut().zip(by_text.unwrap_or_default()) {
                *own = own.or(rule);
            }
        }
        match (said.iter().any(Option::is_some), is_ignored) {
            (true, _) => Ok(said),
            (false, true) => Err((Reason::Ignored, place)),
            (false, false) => Err((Reason::Kind, place)),
        }
    }
}

fn said_by(spec: &KindRuleSpec, feedback: &[String]) -> Result<Rule, String> {
    let Some(kind) = &spec.kind else {
        return Ok(None);
    };
    let place = |name: &String| feedback.iter().position(|other| other == name);
    let kind_of =
        |name| place(name).map_or(FeedbackKind::Other, |i| FeedbackKind::Configured(i as u8));
    let rule = KindRule {
        feedback: spec.feedback.as_ref().map(kind_of),
        action: spec.action.as_deref().and_then(Action::of),
        is_refund: spec.refund,
    };
    Ok(Some((EventKind::named(kind)?, rule)))
}
