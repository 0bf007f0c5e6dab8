//! softplus(x) = ln(1 + e^x) from sums, products and quotients of IEEE doubles alone, which are
//! alike on every machine, so that a loss is retracted exactly as it was emitted.

const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
const PER_LN2: f64 = std::f64::consts::LOG2_E;
/// e^-745 is the least double above 0.
const NOTHING: f64 = 745.0;
/// 1 / i!, each the one before it divided by i.
const EXP: [f64; 15] = {
    let mut found = [1.0; 15];
    let mut i = 1;
    while i < found.len() {
        found[i] = found[i - 1] / i as f64;
        i += 1;
    }
    found
};
/// 1 / (2 i + 1).
const LOG: [f64; 19] = {
    let mut found = [1.0; 19];
    let mut i = 0;
    while i < found.len() {
        found[i] = 1.0 / (2 * i + 1) as f64;
        i += 1;
    }
    found
};

/// ln(1 + e^x) of a finite number; relative error below 1e-14.
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + log_one_plus(exp_minus(x.abs().min(NOTHING)))
}

/// e^-a of 0 <= a <= 745: by Taylor's series after taking out powers of two.
fn exp_minus(a: f64) -> f64 {
    let twos = (a * PER_LN2 + 0.5) as u64 as f64;
    let rest = (a - twos * LN2_HIGH) - twos * LN2_LOW;
    halved(horner(-rest, &EXP), twos as u64)
}

/// ln(1 + y) of 0 <= y <= 1: twice the inverse hyperbolic tangent of y / (2 + y).
fn log_one_plus(y: f64) -> f64 {
    let z = y / (2.0 + y);
    2.0 * z * horner(z * z, &LOG)
}

/// value / 2^times of a value near 1, rounded once at most: only the second product can leave the
/// normal numbers.
fn halved(value: f64, times: u64) -> f64 {
    let first = times.min(1000);
    value * inverse_power(first) * inverse_power((times - first).min(1000))
}

/// 2^-n of n <= 1022.
fn inverse_power(n: u64) -> f64 {
    f64::from_bits((1023 - n) << 52)
}

fn horner(x: f64, coefficients: &[f64]) -> f64 {
    coefficients
        .iter()
        .rev()
        .copied()
        .reduce(|value, next| value * x + next)
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_logarithm_of_one_plus_the_exponential() {
        for step in -4000..4000 {
            let x = f64::from(step) / 100.0;
            let expected = x.max(0.0) + (-x.abs()).exp().ln_1p();
            assert!((softplus(x) / expected - 1.0).abs() < 1e-14, "{x}");
        }
        assert_eq!(softplus(800.0), 800.0);
        assert!(softplus(-700.0) > 0.0);
        assert_eq!(softplus(-800.0), 0.0);
    }
}
