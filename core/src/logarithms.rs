//! Logarithms from sums, products and quotients of IEEE doubles alone, which are alike on every
//! machine, so that a loss is retracted exactly as it was emitted.

const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
const PER_LN2: f64 = std::f64::consts::LOG2_E;
const MANTISSA_BITS: u32 = 52;
const MANTISSA: u64 = (1 << MANTISSA_BITS) - 1;
const BIAS: i64 = 1023;
/// The bits of 1.0.
const ONE: u64 = (BIAS as u64) << MANTISSA_BITS;
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

/// -ln(p) of a normal number 0 < p <= 1; absolute error below 1e-14.
pub fn minus_log(p: f64) -> f64 {
    let exponent = ((p.to_bits() >> MANTISSA_BITS) as i64) - BIAS;
    let mantissa = f64::from_bits((p.to_bits() & MANTISSA) | ONE);
    let twos = -exponent as f64;
    (twos * LN2_HIGH - log_one_plus(mantissa - 1.0)) + twos * LN2_LOW
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
    #[test]
    fn it_is_the_logarithm_of_a_probability() {
        for step in 1..10_000 {
            let p = f64::from(step) / 10_000.0;
            assert!((minus_log(p) + p.ln()).abs() < 1e-14, "{p}");
        }
        assert_eq!(minus_log(1.0), 0.0);
        assert!((minus_log(1e-15) - 34.538_776_394_910_684).abs() < 1e-13);
    }
}
