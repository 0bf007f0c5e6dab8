//! Expiry: what nothing can join any more leaves, by the clocks alone.

use crate::attribution::Attribution;
use crate::log::NO_ROW;

impl Attribution {
    /// Forgets what nothing can join any more. Clocks are those of joins, but `arrival_ms`: the
    /// arrival clock of the impressions.
    ///
    /// Feedback on a slate's last member may still leave it for a later impression: until both
    /// clocks have passed, its slate is compared as a whole.
    pub fn expire(&mut self, clicks_ms: i64, arrival_ms: i64, slowest_ms: i64) {
        let clock_ms = clicks_ms.min(arrival_ms);
        while self.is_front_past(clock_ms, arrival_ms) {
            self.drop_impression();
        }
        while self.impressions.log.len() > self.rules.max_open {
            self.evict();
        }
        while let Some((_, front)) = self.retained.rows.log.front() {
            if front.event_ms + self.rules.retained_ms >= slowest_ms {
                break;
            }
            let slate = front.slate;
            self.retained.rows.drop_front();
            self.weights.retained.drop_front();
            self.items.retained.drop_front();
            self.slates.release(slate);
        }
        self.slates.expire_probes();
    }

    fn is_front_past(&self, clock_ms: i64, arrival_ms: i64) -> bool {
        let Some((_, front)) = self.impressions.log.front() else {
            return false;
        };
        let reach_ms = self.rules.click_ms + self.rules.lateness_ms;
        match self.slates.get(front.slate) {
            None => front.event_ms + reach_ms < clock_ms,
            Some(slate) => {
                slate.latest_event_ms + reach_ms < clock_ms
                    && slate.latest_arrival_ms + self.rules.window_ms < arrival_ms
            }
        }
    }

    /// Forgets the first impression. Its slate is not graded any more, unless it is retained.
    fn drop_impression(&mut self) {
        let Some((_, front)) = self.impressions.log.front().map(|(row, x)| (row, *x)) else {
            return;
        };
        self.impressions.drop_front();
        self.weights.open.drop_front();
        self.items.open.drop_front();
        match self.retained.get_mut(front.retained) {
            Some(retained) if self.rules.grades_conversions => retained.open = NO_ROW,
            _ if front.is_member() => {
                if let Some(slate) = self.slates.get_mut(front.slate) {
                    slate.is_closed = true;
                }
            }
            _ => {}
        }
        self.slates.release(front.slate);
    }

    /// Beyond the bound the oldest impression leaves before its time: its slates close.
    fn evict(&mut self) {
        let key = self
            .impressions
            .log
            .front()
            .and_then(|(_, front)| self.slates.get(front.slate));
        if let Some(key) = key.map(|slate| slate.key) {
            let slates: Vec<u32> = self.slates.of_key(key).collect();
            for slate in slates {
                if let Some(found) = self.slates.get_mut(slate) {
                    found.is_closed = true;
                }
            }
        }
        self.evicted_early.impressions += 1;
        self.drop_impression();
    }
}
