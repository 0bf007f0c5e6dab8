//! Batches made by hand, for the tests.

/// A record: offset delta, timestamp delta, value.
pub(super) type Given<'a> = (i64, i64, Option<&'a [u8]>);

pub(super) const TRANSACTIONAL: i16 = 0x10;
pub(super) const CONTROL: i16 = 0x20;

pub(crate) struct Batch {
    pub base_offset: i64,
    pub attributes: i16,
    pub last_offset_delta: i32,
    pub producer_id: i64,
    pub count: i32,
    pub body: Vec<u8>,
}

impl Batch {
    pub fn new(base_offset: i64, records: &[Given]) -> Self {
        let mut body = Vec::new();
        for &(offset, time, value) in records {
            put_record(&mut body, offset, time, None, value);
        }
        let last_offset_delta = records.last().map_or(0, |r| r.0) as i32;
        let count = records.len() as i32;
        Self {
            base_offset,
            attributes: 0,
            last_offset_delta,
            producer_id: -1,
            count,
            body,
        }
    }

    pub fn marker(base_offset: i64, producer_id: i64, kind: u8) -> Self {
        let mut batch = Self::new(base_offset, &[]);
        put_record(&mut batch.body, 0, 0, Some(&[0, 0, 0, kind]), Some(&[0; 6]));
        Self {
            attributes: TRANSACTIONAL | CONTROL,
            producer_id,
            count: 1,
            ..batch
        }
    }

    pub fn of(self, producer_id: i64) -> Self {
        Self {
            producer_id,
            attributes: TRANSACTIONAL,
            ..self
        }
    }

    pub fn compressed(self, codec: i16, compress: impl Fn(&[u8]) -> Vec<u8>) -> Self {
        Self {
            attributes: codec,
            body: compress(&self.body),
            ..self
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut checked = self.attributes.to_be_bytes().to_vec();
        checked.extend(self.last_offset_delta.to_be_bytes());
        checked.extend(1_000i64.to_be_bytes());
        checked.extend(9_000i64.to_be_bytes());
        checked.extend(self.producer_id.to_be_bytes());
        checked.extend([0; 6]);
        checked.extend(self.count.to_be_bytes());
        checked.extend(&self.body);
        let mut bytes = self.base_offset.to_be_bytes().to_vec();
        bytes.extend((checked.len() as i32 + 9).to_be_bytes());
        bytes.extend([0, 0, 0, 0, 2]);
        bytes.extend(crc32c::crc32c(&checked).to_be_bytes());
        bytes.extend(checked);
        bytes
    }
}

fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn put_bytes(out: &mut Vec<u8>, value: Option<&[u8]>) {
    put_varint(out, value.map_or(-1, |v| v.len() as i64));
    out.extend(value.unwrap_or_default());
}

fn put_record(out: &mut Vec<u8>, offset: i64, time: i64, key: Option<&[u8]>, value: Option<&[u8]>) {
    let mut record = vec![0];
    put_varint(&mut record, time);
    put_varint(&mut record, offset);
    put_bytes(&mut record, key);
    put_bytes(&mut record, value);
    put_varint(&mut record, 1);
    put_bytes(&mut record, Some(b"header"));
    put_bytes(&mut record, None);
    put_varint(out, record.len() as i64);
    out.extend(record);
}

/// A small generator: the same sequence on every machine.
pub(crate) struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}
