use std::io::Write;

use super::records::Skipped;
use super::testing::{Batch, CONTROL, TRANSACTIONAL};
use super::*;

fn options(next_offset: i64, aborted: &[(i64, i64)]) -> ReadOptions<'_> {
    ReadOptions {
        next_offset,
        check_crcs: true,
        is_read_committed: true,
        aborted,
        max_inflated_bytes: 1 << 20,
    }
}

type Found = Vec<(i64, i64, Option<Vec<u8>>)>;

fn found(blob: &[u8], options: &ReadOptions) -> (ReadSummary, Found) {
    let mut records = Vec::new();
    let summary = read(blob, options, &mut Scratch::default(), |some| {
        let owned = |r: &Record| (r.offset, r.timestamp_ms, r.value.map(<[u8]>::to_vec));
        records.extend(some.iter().map(owned));
    });
    (summary.unwrap(), records)
}

fn offsets(blob: &[u8], options: &ReadOptions) -> (Vec<i64>, i64, Vec<Skipped>) {
    let (summary, records) = found(blob, options);
    assert_eq!(summary.records, records.len() as u64);
    (
        records.iter().map(|r| r.0).collect(),
        summary.next_offset,
        summary.skipped,
    )
}

fn three(base_offset: i64) -> Batch {
    Batch::new(
        base_offset,
        &[(0, 0, Some(b"a")), (1, 5, None), (2, -7, Some(b""))],
    )
}

#[test]
fn a_control_batch_that_is_empty_moves_on() {
    let empty = Batch {
        attributes: TRANSACTIONAL | CONTROL,
        producer_id: 7,
        ..Batch::new(4, &[])
    };
    let blob = [empty.bytes(), three(5).of(7).bytes()].concat();
    assert_eq!(offsets(&blob, &options(4, &[(7, 0)])), (vec![], 8, vec![]));
}

#[test]
fn damage_is_a_range_and_reading_goes_on() {
    let skipped = |first, end, reason| vec![Skipped { first, end, reason }];
    let mut flipped = three(3).bytes();
    *flipped.last_mut().unwrap() ^= 1;
    let too_many = Batch {
        count: 9,
        ..three(3)
    };
    let too_few = Batch {
        count: 1,
        ..three(3)
    };
    let beyond = Batch {
        last_offset_delta: 1,
        ..three(3)
    };
    let unknown = Batch {
        attributes: 6,
        ..three(3)
    };
    let backwards = Batch {
        last_offset_delta: -4,
        ..three(3)
    };
    let cases = [
        (flipped, vec![], skipped(3, 6, SkipReason::Crc)),
        (
            too_many.bytes(),
            vec![3, 4, 5],
            skipped(6, 6, SkipReason::Damaged),
        ),
        (too_few.bytes(), vec![3], skipped(4, 6, SkipReason::Damaged)),
        (
            beyond.bytes(),
            vec![3, 4],
            skipped(5, 5, SkipReason::Damaged),
        ),
        (unknown.bytes(), vec![], skipped(3, 6, SkipReason::Codec)),
        (
            backwards.bytes(),
            vec![],
            skipped(3, 4, SkipReason::Damaged),
        ),
    ];
    for (bytes, some, expected) in cases {
        let blob = [three(0).bytes(), bytes, three(6).bytes()].concat();
        let read = [vec![0, 1, 2], some, vec![6, 7, 8]].concat();
        assert_eq!(offsets(&blob, &options(0, &[])), (read, 9, expected));
    }
    let far = Batch {
        last_offset_delta: i32::MAX,
        count: 9,
        ..three(3)
    };
    let blob = [far.bytes(), three(6).bytes()].concat();
    assert_eq!(offsets(&blob, &options(0, &[])).0, [3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_gigabyte_of_nothing_costs_neither_memory_nor_time() {
    let started = std::time::Instant::now();
    let mut encoder = ::zstd::Encoder::new(Vec::new(), 1).unwrap();
    let zeros = vec![0; 1 << 20];
    (0..990).for_each(|_| encoder.write_all(&zeros).unwrap());
    let data = encoder.finish().unwrap();
    let made = started.elapsed();
    let blob = Batch::new(0, &[]).compressed(4, |_| data.clone()).bytes();
    let mut scratch = Scratch::default();
    let wide = ReadOptions {
        max_inflated_bytes: MAX_INFLATED_BYTES,
        ..options(0, &[])
    };
    let summary = read(&blob, &wide, &mut scratch, |_| {}).unwrap();
    assert_eq!(summary.skipped[0].reason, SkipReason::TooLarge);
    assert!(started.elapsed() - made < std::time::Duration::from_secs(2));
    let claim = snap::raw::Encoder::new().compress_vec(b"x").unwrap()[1..].to_vec();
    let huge = [vec![0xff, 0xff, 0xff, 0x0f], claim].concat();
    let blob = Batch::new(0, &[]).compressed(2, |_| huge.clone()).bytes();
    let summary = read(&blob, &wide, &mut scratch, |_| {}).unwrap();
    assert_eq!(summary.skipped[0].reason, SkipReason::Damaged);
}

#[test]
fn a_scan_says_where_reading_ends_without_reading() {
    let compacted = Batch {
        last_offset_delta: 6,
        ..three(10)
    };
    let mut blob = [
        Batch::marker(2, 9, 1).bytes(),
        three(3).bytes(),
        compacted.bytes(),
        Batch::marker(17, 9, 0).bytes(),
    ]
    .concat();
    blob.extend(&three(18).bytes()[..40]);
    for from in [0, 2, 3, 4, 6, 10, 17] {
        let found = scan(&blob, from).unwrap();
        let (summary, records) = self::found(&blob, &options(from, &[]));
        assert_eq!(found.next_offset, summary.next_offset);
        assert!(found.records >= records.len() as u64);
        assert_eq!(found.records == 0, records.is_empty());
    }
    assert_eq!(scan(&blob, 0).unwrap().first_timestamp_ms, 1000);
    let mut old = three(0).bytes();
    old[16] = 1;
    assert_eq!(scan(&old, 0), Err(ReadError::Format { magic: 1 }));
}

#[test]
fn what_arrives_as_it_was_sent_is_whole() {
    let mut blob = [three(3).bytes(), three(9).bytes()].concat();
    assert_eq!(verify(&blob, 4, 12), None);
    assert_eq!(verify(&[], 4, 12), None);
    blob.extend(&three(12).bytes()[..40]);
    assert_eq!(verify(&blob, 3, 15), None);
}

#[test]
fn no_flipped_byte_of_a_batch_goes_unnoticed_but_the_epoch_of_its_leader() {
    let (first, second) = (three(3).bytes(), three(6).bytes());
    let blob = [first.clone(), second, three(9).bytes()].concat();
    let epoch = 12..16;
    let places = (0..2 * first.len()).flat_map(|at| [(at, 0x41), (at, 0x02)]);
    for (at, bits) in places {
        let mut damaged = blob.clone();
        damaged[at] ^= bits;
        let found = verify(&damaged, 3, 12);
        let place = at % first.len();
        if epoch.contains(&place) {
            assert_eq!(found, None, "byte {at}");
            continue;
        }
        if place == 7 && damaged[at] < blob[at] && found.is_none() {
            continue; // as if there was a gap
        }
        // A length may claim more than there is: the rest then looks like a batch that is cut.
        let is_cut = found.is_none() && (8..12).contains(&place) && at > first.len();
        let offset = found.map(|damage| (damage.offset, damage.whole_bytes));
        let expected = [(3, 0), (6, first.len())];
        let is_noticed = offset.is_some_and(|found| expected.contains(&found));
        assert!(is_cut || is_noticed, "byte {at}: {found:?}");
    }
}
