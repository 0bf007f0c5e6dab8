//! `cargo test --release --no-default-features -- --ignored --nocapture measured`: what reading
//! costs.

use std::time::Instant;

use super::testing::{Batch, CODECS, Dice};
use super::{MAX_INFLATED_BYTES, ReadOptions, Scratch, read};

const RECORDS: usize = 2000;
const PASSES: usize = 50;

fn event(dice: &mut Dice, i: usize) -> Vec<u8> {
    let (user, item, request) = (dice.below(100_000), dice.below(20_000), dice.below(1 << 31));
    format!(
        r#"{{"ts": {}, "user_id": "user-{user}", "item_id": "item-{item}", "request_id": "{:032x}", "position": {}, "score": 0.{}, "variant": "A", "surface": "home", "event_id": "{:016x}"}}"#,
        1_700_000_000_000 + i as i64 * 7,
        request as u128 * 0x9E37_79B9_7F4A_7C15_1234_5678_9ABC_DEF1 % (1 << 126),
        1 + i % 20,
        dice.below(10_000),
        (request as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15),
    )
    .into_bytes()
}

#[test]
#[ignore = "prints times, asserts nothing"]
fn measured_reading() {
    let mut dice = Dice(5);
    let values: Vec<Vec<u8>> = (0..RECORDS).map(|i| event(&mut dice, i)).collect();
    let records: Vec<_> = (0i64..)
        .zip(&values)
        .map(|(i, v)| (i, i, Some(&v[..])))
        .collect();
    let codecs = CODECS
        .iter()
        .copied()
        .chain([(0, <[u8]>::to_vec as super::testing::Compress)]);
    for (codec, compress) in codecs {
        let blob = Batch::new(0, &records).compressed(codec, compress).bytes();
        for check_crcs in [true, false] {
            let options = ReadOptions {
                next_offset: 0,
                check_crcs,
                is_read_committed: true,
                aborted: &[],
                max_inflated_bytes: MAX_INFLATED_BYTES,
            };
            let mut scratch = Scratch::default();
            let best = (0..PASSES).map(|_| {
                let (started, mut sum) = (Instant::now(), 0);
                let done = read(&blob, &options, &mut scratch, |some| {
                    sum += some
                        .iter()
                        .map(|r| r.value.map_or(0, <[u8]>::len))
                        .sum::<usize>();
                });
                assert_eq!(done.map(|s| s.records), Ok(RECORDS as u64));
                assert!(sum > 100 * RECORDS);
                started.elapsed().as_nanos() as usize / RECORDS
            });
            let best = best.min().unwrap_or(0);
            println!(
                "codec {codec}, crc {check_crcs}: {best} ns a record, {} bytes",
                blob.len()
            );
        }
    }
}
