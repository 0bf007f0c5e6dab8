//! What slates are ranked by: their members, and what they are compared with.

/// A shown item of a slate that is ranked; they stand in the order shown.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// 0: no feedback with a gain; else a place among the gains, from 1.
    pub grade: u8,
    pub is_clicked: bool,
    /// What the model predicted; NaN: nothing.
    pub score: f64,
    /// Its rank in the brute-force list of the slate; 0: it is not in it.
    pub listed: u16,
    pub is_held_out: bool,
}

/// What a slate is compared with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Probed {
    /// Items that brute force gives; 0: there is no list.
    pub reference_size: usize,
    /// Whether an item was held out among sampled ones.
    pub has_held_out: bool,
}
