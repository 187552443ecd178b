//! When things are due: backoff and jitter, as pure functions.

use std::time::Duration;

/// `first * factor^attempt`, at most `max`; attempt 0 gives `first`. Never overflows.
pub fn backoff(first: Duration, factor: u64, max: Duration, attempt: u32) -> Duration {
    let factor = u32::try_from(factor).unwrap_or(u32::MAX);
    let mut wait = first;
    for _ in 0..attempt {
        if wait >= max {
            break;
        }
        wait = wait.saturating_mul(factor);
    }
    wait.min(max)
}

/// A share of `spread` that depends on `seed` and `round` only: the same agent spreads its polls the same way at
/// every run, and different agents differ.
pub fn jitter(spread: Duration, seed: &str, round: u64) -> Duration {
    let digest = pintle_model::Digest::of_parts([seed.as_bytes(), &round.to_be_bytes()]);
    let share = u32::from_be_bytes([
        digest.as_bytes()[0],
        digest.as_bytes()[1],
        digest.as_bytes()[2],
        digest.as_bytes()[3],
    ]);
    spread.mul_f64(f64::from(share) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_to_its_cap_and_never_overflows() {
        let wait = |attempt| backoff(Duration::from_secs(2), 3, Duration::from_mins(5), attempt).as_secs();
        assert_eq!([wait(0), wait(1), wait(2), wait(4), wait(5), wait(u32::MAX)], [2, 6, 18, 162, 300, 300]);
    }

    #[test]
    fn jitter_is_steady_and_within_its_spread() {
        let spread = Duration::from_secs(30);
        for round in 0..100 {
            let one = jitter(spread, "shop-0042", round);
            assert!(one <= spread);
            assert_eq!(one, jitter(spread, "shop-0042", round));
        }
        assert_ne!(jitter(spread, "a", 1), jitter(spread, "b", 1));
    }
}
