//! Cells: values of one dimension, or of two or three together, ranked by how unlike all else the
//! ratio moved in them, by one half of the people.
//!
//! A cell that explains some share of a change had at least as much of the numerator (or has it
//! now), and so have the cells that it is in: those with too little are not looked into (Apriori:
//! Agrawal and Srikant 1994). Nor are two values together that hardly moved: a third is looked for
//! where one of the pairs that it makes has moved.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;

/// Groups of people by hash; those of the first half rank cells, the others measure them.
pub const GROUPS: usize = 64;
/// Expected events, and events then, below which a cell is not looked at.
const LEAST: f64 = 10.0;
/// The rank of two values from which on a third is looked for.
const LEAD: f64 = 1.5;
/// By how much the rank of a cell has to be above that of a larger one that has it within.
const BETTER: f64 = 1.0;
/// Rows by which cells are ranked, at most: of more, fewer groups of people rank them.
const MOST_ROWS: usize = 2_500_000;

/// Sums in both periods: of the numerator then and now, of the denominator then and now.
pub type Sums = [f64; 4];
/// Dimensions, each with the code of its value.
pub type CellCodes = Vec<(usize, u16)>;

/// Columns of equal length: see `ratio_rows`. `codes`: of each dimension, all below `values`.
pub struct RowColumns<'a> {
    pub codes: Vec<&'a [u16]>,
    pub values: Vec<usize>,
    pub person: &'a [u32],
    pub is_now: &'a [bool],
    pub numerator: &'a [f64],
    pub denominator: &'a [f64],
}

/// What is looked for. `is_rise`: a rise; `least`: of the numerator, in a cell; `scale`: the
/// numerator over it is counted.
#[derive(Clone, Copy, Debug)]
pub struct RankRule {
    pub is_rise: bool,
    pub least: f64,
    pub scale: f64,
}

impl RankRule {
    /// How much a cell tells of a whole; none where it is too small to be looked at.
    pub fn rank(&self, cell: &Sums, whole: &Sums) -> Option<f64> {
        let [x0, x1, y0, y1] = cell.map(|sum| sum / self.scale);
        let [rest_x0, rest_x1, rest_y0, rest_y1] =
            std::array::from_fn(|i| (whole[i] - cell[i]) / self.scale);
        let expected = y1 * x0 / y0 * (rest_x1 / rest_y1) / (rest_x0 / rest_y0);
        let noise = 1.0 + expected * (1.0 / x0 + 1.0 / rest_x0 + 1.0 / rest_x1);
        let rank = 2.0 * (x1.max(0.0).sqrt() - expected.sqrt()) / noise.sqrt();
        let is_large = [expected, x0, rest_x0, rest_x1].iter().all(|x| *x >= LEAST);
        let rank = if self.is_rise { rank } else { -rank };
        (is_large && self.has_enough(cell)).then(|| if rank.is_finite() { rank } else { 0.0 })
    }

    fn has_enough(&self, cell: &Sums) -> bool {
        cell[usize::from(self.is_rise)] >= self.least
    }
}

/// What a row adds.
#[derive(Clone, Copy)]
struct Amount {
    x: f32,
    y: f32,
    now: u32,
}

/// The rows of half of the people, or of fewer.
struct Ranked {
    rule: RankRule,
    /// Of each dimension the frequent values, and the number of each row's among them; that of others
    /// is the next one.
    values: Vec<Vec<u16>>,
    number: Vec<Vec<u16>>,
    amounts: Vec<Amount>,
    whole: Sums,
}

/// Ranks of cells that were looked at.
type Ranks = HashMap<CellCodes, f64>;

/// The cell that tells most, without those values without which it tells as much; and how many were
/// looked at.
pub fn first(rows: &RowColumns, rule: RankRule) -> (Option<CellCodes>, usize) {
    let ranked = Ranked::new(rows, rule);
    let width = ranked.values.len();
    let pairs = (0..width).flat_map(|a| (a + 1..width).map(move |b| [a, b]));
    let pairs: Vec<[usize; 2]> = pairs.collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(ranked.alone()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(pair) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let ranks = ranked.together(*pair);
                    if let Ok(mut found) = found.lock() {
                        found.extend(ranks);
                    }
                }
            });
        }
    });
    let ranks = found.into_inner().unwrap_or_default();
    let moved = ranks.iter().filter(|(_, rank)| **rank > 0.0);
    let best = moved.max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
    let best = best.map(|(cell, _)| cell.clone());
    (best.map(|cell| widened(cell, &ranks)), ranks.len())
}

fn widened(mut cell: CellCodes, ranks: &Ranks) -> CellCodes {
    let rank = |cell: &CellCodes| ranks.get(cell).map_or(0.0, |rank| rank.max(0.0));
    while cell.len() > 1 {
        let wider = (0..cell.len()).map(|gone| {
            let mut wider = cell.clone();
            wider.remove(gone);
            wider
        });
        match wider.max_by(|a, b| rank(a).total_cmp(&rank(b))) {
            Some(best) if rank(&best) + BETTER >= rank(&cell) => cell = best,
            _ => break,
        }
    }
    cell
}

impl Ranked {
    fn new(rows: &RowColumns, mut rule: RankRule) -> Self {
        let (n, mut groups) = (rows.person.len(), GROUPS / 2);
        while n / GROUPS * groups > MOST_ROWS && groups > 1 {
            groups -= 1;
        }
        rule.least *= groups as f64 / GROUPS as f64;
        let ranks = |row: &usize| rows.person[*row] as usize % GROUPS < groups;
        let every: Vec<usize> = (0..n).filter(ranks).collect();
        let amount = |row: &usize| Amount {
            x: rows.numerator[*row] as f32,
            y: rows.denominator[*row] as f32,
            now: u32::from(rows.is_now[*row]),
        };
        let mut found = Self {
            rule,
            values: Vec::new(),
            number: Vec::new(),
            amounts: every.iter().map(amount).collect(),
            whole: Sums::default(),
        };
        let whole = found.sums(every.iter().map(|_| 0), 1);
        found.whole = whole[0];
        for (codes, count) in rows.codes.iter().zip(&rows.values) {
            let codes = every.iter().map(|row| codes[*row]);
            let sums = found.sums(codes.clone().map(usize::from), *count);
            let frequent = (0..=u16::MAX)
                .zip(&sums)
                .filter(|(_, sums)| rule.has_enough(sums));
            let values: Vec<u16> = frequent.map(|(code, _)| code).collect();
            let mut number = vec![values.len() as u16; *count];
            for (i, code) in (0..).zip(&values) {
                number[usize::from(*code)] = i;
            }
            found
                .number
                .push(codes.map(|code| number[usize::from(code)]).collect());
            found.values.push(values);
        }
        found
    }

    /// Sums by place; `places`: of all rows.
    fn sums(&self, places: impl Iterator<Item = usize>, count: usize) -> Vec<Sums> {
        let mut sums = vec![Sums::default(); count];
        for (place, amount) in places.zip(&self.amounts) {
            add(&mut sums[place], amount);
        }
        sums
    }

    /// Numbers of a dimension's values.
    fn width(&self, at: usize) -> usize {
        self.values[at].len() + 1
    }

    /// Ranks of some cells with each value of one more dimension, by their sums.
    fn ranks(&self, cells: &[CellCodes], at: usize, sums: &[Sums]) -> Ranks {
        let width = self.width(at);
        let of = |(place, sums): (usize, &Sums)| {
            let mut cell = cells.get(place / width)?.clone();
            cell.push((at, *self.values[at].get(place % width)?));
            let rank = self.rule.rank(sums, &self.whole)?;
            cell.sort_unstable();
            Some((cell, rank))
        };
        sums.iter().enumerate().filter_map(of).collect()
    }

    fn alone(&self) -> Ranks {
        let mut found = Ranks::new();
        for (at, number) in self.number.iter().enumerate() {
            let places = number.iter().map(|number| usize::from(*number));
            let sums = self.sums(places, self.width(at));
            found.extend(self.ranks(&[Vec::new()], at, &sums));
        }
        found
    }

    /// Ranks of two dimensions together, and with each third one where they moved.
    fn together(&self, [a, b]: [usize; 2]) -> Ranks {
        let width = self.width(b);
        let pairs = self.number[a].iter().zip(&self.number[b]);
        let place =
            |(first, second): (&u16, &u16)| usize::from(*first) * width + usize::from(*second);
        let places = pairs.map(place);
        let sums = self.sums(places.clone(), self.width(a) * width);
        let alone: Vec<CellCodes> = self.values[a]
            .iter()
            .map(|value| vec![(a, *value)])
            .collect();
        let mut found = self.ranks(&alone, b, &sums);
        let leads = found.iter().filter(|(_, rank)| **rank >= LEAD);
        let leads: Vec<CellCodes> = leads.map(|(cell, _)| cell.clone()).collect();
        let number_of = |at: usize, code| self.values[at].binary_search(&code).unwrap_or(0);
        let mut lead_at = vec![u32::MAX; sums.len()];
        for (lead, cell) in (0..).zip(&leads) {
            lead_at[number_of(a, cell[0].1) * width + number_of(b, cell[1].1)] = lead;
        }
        let leading = (0_u32..).zip(places.map(|place| lead_at[place]));
        let leading: Vec<(u32, u32)> = leading.filter(|(_, lead)| *lead != u32::MAX).collect();
        for at in (0..self.values.len()).filter(|at| *at != a && *at != b) {
            let (numbers, width) = (&self.number[at], self.width(at));
            let mut sums = vec![Sums::default(); leads.len() * width];
            for (row, lead) in &leading {
                let place = *lead as usize * width + usize::from(numbers[*row as usize]);
                add(&mut sums[place], &self.amounts[*row as usize]);
            }
            found.extend(self.ranks(&leads, at, &sums));
        }
        found
    }
}

#[inline]
fn add(sums: &mut Sums, amount: &Amount) {
    let now = (amount.now & 1) as usize;
    sums[now] += f64::from(amount.x);
    sums[2 + now] += f64::from(amount.y);
}
