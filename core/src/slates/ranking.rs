//! Ranking: how well a slate puts what its user responds to first. A value is one function of a
//! slate, a cut-off k (0: none) and a convention; formulas, sources and names stand in
//! `streamer/metrics/ranking.py`.

use crate::slates::values::{
    Convention, SlateContext, TABLE_BITS, UNIT, from_table, quotient, rounded,
};

/// k of the values of slates with a held-out item.
const SAMPLED_CUTOFF: i64 = 10;

/// h(k) / k; shown: / min(k, n).
pub fn precision(slate: &SlateContext, k: i64, convention: Convention) -> i64 {
    let places = if convention == Convention::Shown {
        slate.size.min(k)
    } else {
        k
    };
    quotient(slate.hits_within(k), places)
}

/// h(k) / r.
pub fn recall(slate: &SlateContext, k: i64, _: Convention) -> i64 {
    quotient(slate.hits_within(k), slate.relevant_count())
}

/// 1 if h(k) > 0.
pub fn hit(slate: &SlateContext, k: i64, _: Convention) -> i64 {
    if slate.relevant_within(k).is_empty() {
        0
    } else {
        UNIT
    }
}

/// 1 / rank of the first relevant item; with a cut-off, 0 beyond it.
pub fn reciprocal_rank(slate: &SlateContext, k: i64, _: Convention) -> i64 {
    let first = slate.relevant.first();
    first
        .filter(|member| k == 0 || member.rank <= k)
        .map_or(0, |member| quotient(1, member.rank))
}

/// Sum over relevant i <= k of 1 / i.
pub fn reciprocal_hits(slate: &SlateContext, k: i64, _: Convention) -> i64 {
    let hits = slate.relevant_within(k).iter();
    from_table(
        hits.map(|member| slate.tables.reciprocal(member.rank))
            .sum(),
    )
}

/// What the average of precisions or recalls is taken over.
fn divisor(slate: &SlateContext, k: i64, convention: Convention) -> i64 {
    match convention {
        Convention::Primer => slate.hits_within(k),
        Convention::Jurity => slate.relevant_count().min(k),
        _ => slate.relevant_count(),
    }
}

/// Sum over relevant i <= k of h(i) / i, / r; jurity: / min(k, r); primer: / h(k).
pub fn average_precision(slate: &SlateContext, k: i64, convention: Convention) -> i64 {
    let hits = (1..).zip(slate.relevant_within(k));
    let total: i64 = hits
        .map(|(h, member)| h * slate.tables.reciprocal(member.rank))
        .sum();
    let divisor = divisor(slate, k, convention) << TABLE_BITS;
    if divisor > 0 {
        (2 * total + divisor) / (2 * divisor)
    } else {
        0
    }
}

/// Sum over relevant i <= k of h(i) / r, divided as `average_precision` is.
pub fn average_recall(slate: &SlateContext, k: i64, convention: Convention) -> i64 {
    let hits = slate.hits_within(k);
    let below = slate.relevant_count() * divisor(slate, k, convention);
    quotient(hits * (hits + 1) / 2, below)
}

/// Sum over i <= k of the gain.
pub fn cumulative_gain(slate: &SlateContext, k: i64, _: Convention) -> i64 {
    rounded(slate.gained(k, &slate.tables.gains, |_| 1))
}

/// Sum over i <= k of gain / log2(i + 1).
pub fn discounted_gain(slate: &SlateContext, k: i64, _: Convention) -> i64 {
    let found = slate.gained(k, &slate.tables.gains, |rank| slate.tables.discount(rank));
    (found / f64::from(1 << TABLE_BITS) + 0.5).floor() as i64
}

/// dcg(k) / dcg(k) of the best order; jurity: which is not cut; exponential: of 2^gain - 1.
pub fn normalized_gain(slate: &SlateContext, k: i64, convention: Convention) -> i64 {
    let tables = &slate.tables;
    let is_exponential = convention == Convention::Exponential;
    let gains = if is_exponential {
        &tables.exponential_gains
    } else {
        &tables.gains
    };
    let cut = if convention == Convention::Jurity {
        slate.best_size()
    } else {
        k
    };
    let ideal = slate.ideally_discounted(cut, gains);
    let found = slate.gained(k, gains, |rank| tables.discount(rank));
    if ideal > 0.0 {
        rounded(found / ideal)
    } else {
        0
    }
}

/// Concordant pairs / pairs of items of different grade.
pub fn concordance(slate: &SlateContext, _: i64, _: Convention) -> i64 {
    quotient(slate.concordant, slate.concordant + slate.discordant)
}

/// (concordant - discordant) / pairs; `tau_b` leaves pairs of equal grade out as usual.
pub fn kendall(slate: &SlateContext, _: i64, convention: Convention) -> i64 {
    let pairs = slate.size * (slate.size - 1) / 2;
    let above = slate.concordant - slate.discordant;
    if convention != Convention::TauB {
        return quotient(above, pairs);
    }
    let below = ((pairs * (slate.concordant + slate.discordant)) as f64).sqrt();
    if below > 0.0 {
        rounded(above as f64 / below)
    } else {
        0
    }
}

/// Pearson's correlation of ranks, equal grades sharing their mean rank.
pub fn spearman(slate: &SlateContext, _: i64, _: Convention) -> i64 {
    let n = slate.size;
    let (mut above, mut below, mut lower) = (0i64, 0i64, 0i64);
    for (equal, order) in slate.orders() {
        let centred = 2 * lower + equal - n;
        above += centred * order;
        below += equal * centred * centred;
        lower += equal;
    }
    let root = ((below * (n * (n * n - 1) / 3)) as f64).sqrt();
    if root > 0.0 {
        rounded(above as f64 / root)
    } else {
        0
    }
}

/// 1 if the held-out item stands in the first 10.
pub fn sampled_hit(slate: &SlateContext, _: i64, _: Convention) -> i64 {
    if slate.held_out_rank <= SAMPLED_CUTOFF {
        UNIT
    } else {
        0
    }
}

/// 1 / log2(rank of the held-out item + 1) if it stands in the first 10.
pub fn sampled_gain(slate: &SlateContext, _: i64, _: Convention) -> i64 {
    let rank = slate.held_out_rank;
    if rank <= SAMPLED_CUTOFF {
        from_table(slate.tables.discount(rank))
    } else {
        0
    }
}

/// |first k of the index in the first k of brute force| / min(k, items that brute force gives).
pub fn index_recall(slate: &SlateContext, k: i64, _: Convention) -> i64 {
    quotient(slate.listed_within(k), k.min(slate.reference_size))
}
