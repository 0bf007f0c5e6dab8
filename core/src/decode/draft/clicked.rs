//! The click that stands in the record of its impression.

use super::{Click, Draft, EventKind, Field, Head, Kind, Place, Reading, Shown};
use crate::decode::Reason;
use crate::decode::mapping::{Fields, Found};

impl Draft {
    /// Reads what a click has besides its impression, which is read and checked: time, user,
    /// request, item and position are the impression's.
    pub fn read_click(
        &mut self,
        fields: &Fields,
        feedback: Option<Kind>,
        found: &Found,
        reading: &Reading,
    ) -> Result<(), Reason> {
        let [item] = self.items[..] else {
            self.place = Place::value(Field::Items, self.head.list_at as usize);
            return Err(Reason::Items);
        };
        let own = || Box::new(Self::new(0, false, &reading.rules.custom));
        let mut click = self.clicked.take().unwrap_or_else(own);
        click.clear();
        click.head = Head {
            ts: self.head.ts,
            feedback_kind: feedback,
            shown: Shown {
                item: item.item,
                position: item.position,
                ..Shown::default()
            },
            ..Head::default()
        };
        let read = click.read_alone(fields, found, reading);
        if read.is_err() {
            self.place = click.place;
        } else if let Some(line) = click.lines.first() {
            let custom = click.custom.as_ref();
            self.click = Click {
                line: *line,
                kind: click.head.feedback_kind.unwrap_or(Kind::Other),
                dwell_ms: click.head.dwell_ms,
                custom: custom.and_then(|custom| custom.values.first().copied()),
            };
            self.has_click = true;
        }
        self.clicked = Some(click);
        read
    }

    fn read_alone(
        &mut self,
        fields: &Fields,
        found: &Found,
        reading: &Reading,
    ) -> Result<(), Reason> {
        let reading = Reading {
            kind: EventKind::Clicks,
            ..*reading
        };
        let own = fields.fields.iter().filter(|x| x.field.is_of_click_alone());
        for wanted in own {
            self.read_wanted(wanted, found, &reading)?;
        }
        self.check(&reading)
    }
}
