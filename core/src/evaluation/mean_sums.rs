//! What a mean and its standard error are made of: sums over lists, and sums over users of
//! products, for the lists of a user are not independent.

use ethnum::I256;

/// The values of a user under a mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserSum {
    /// Sum over the user's lists, in units of 1e-9.
    total: i64,
    lists: i64,
}

/// The sums of one user: of all lists, and of each segment that one of them belongs to.
#[derive(Debug)]
pub struct UserMeanSums {
    means: usize,
    segments: Vec<usize>,
    /// `means` a segment.
    sums: Vec<UserSum>,
}

impl UserMeanSums {
    /// Those of no list. `means`: how many values a list has.
    pub fn new(means: usize) -> Self {
        Self {
            means,
            segments: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// Begins another user.
    pub fn clear(&mut self) {
        self.segments.clear();
        self.sums.clear();
    }

    /// Adds the value of a list under a mean.
    pub fn add(&mut self, segment: usize, mean: usize, value: i64) {
        let known = self.segments.iter().position(|known| *known == segment);
        let at = known.unwrap_or_else(|| {
            self.segments.push(segment);
            self.sums
                .resize(self.segments.len() * self.means, UserSum::default());
            self.segments.len() - 1
        });
        let sum = &mut self.sums[at * self.means + mean];
        sum.total += value;
        sum.lists += 1;
    }

    /// The sums of each segment, one a mean.
    pub fn segments(&self) -> impl Iterator<Item = (usize, &[UserSum])> {
        let sums = self.sums.chunks(self.means.max(1));
        self.segments.iter().copied().zip(sums)
    }
}

/// A mean over lists, clustered by user. With x the sum of a user's values and n the user's lists:
#[derive(Clone, Debug, Default)]
pub struct MeanSums {
    pub lists: i64,
    pub users: i64,
    /// Sum of x, in units of 1e-9.
    pub total: I256,
    /// Sum of x².
    pub squares: I256,
    /// Sum of x n.
    pub products: I256,
    /// Sum of n².
    pub sizes: I256,
}

impl MeanSums {
    /// Adds a user; one without lists counts for nothing.
    pub fn add_user(&mut self, user: &UserSum) {
        if user.lists == 0 {
            return;
        }
        self.lists += user.lists;
        self.users += 1;
        // Products of two 64-bit integers fit 128 bits.
        let (x, n) = (i128::from(user.total), i128::from(user.lists));
        self.total += I256::from(x);
        self.squares += I256::from(x * x);
        self.products += I256::from(x * n);
        self.sizes += I256::from(n * n);
    }

    /// Adds the sums of other users.
    pub fn add(&mut self, other: &Self) {
        self.lists += other.lists;
        self.users += other.users;
        self.total += other.total;
        self.squares += other.squares;
        self.products += other.products;
        self.sizes += other.sizes;
    }
}
