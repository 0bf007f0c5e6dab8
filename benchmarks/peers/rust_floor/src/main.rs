//! The floor in Rust: librdkafka fetches, sonic-rs decodes into typed structs, and that is all.

use std::borrow::Cow;
use std::collections::HashMap;
use std::env;
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::slice;
use std::time::Duration;

use rdkafka::bindings::{
    rd_kafka_consume_batch_queue, rd_kafka_message_destroy, rd_kafka_message_t,
    rd_kafka_queue_destroy, rd_kafka_queue_get_consumer,
};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::types::RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR;
use serde::Deserialize;

const TOPICS: [&str; 4] = ["impressions", "clicks", "conversions", "sessions"];
const BATCH: usize = 1_000;
const WAIT_MS: i32 = 20;

/// All fields of the log.
#[derive(Deserialize)]
#[allow(dead_code)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    ts: i64,
    #[serde(borrow)]
    event_id: Cow<'a, str>,
    #[serde(borrow)]
    user_id: Cow<'a, str>,
    #[serde(borrow)]
    variant: Cow<'a, str>,
    #[serde(borrow)]
    surface: Cow<'a, str>,
    #[serde(borrow)]
    request_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    item_id: Option<Cow<'a, str>>,
    position: Option<u32>,
    score: Option<f64>,
    propensity: Option<f64>,
    dwell_ms: Option<u64>,
    value: Option<f64>,
    #[serde(borrow)]
    session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    action: Option<Cow<'a, str>>,
}

fn main() {
    let arguments: HashMap<String, String> = env::args()
        .skip(1)
        .filter_map(|word| {
            word.split_once('=')
                .map(|(name, of)| (name.into(), of.into()))
        })
        .collect();
    let events: usize = arguments["--events"].parse().expect("a number of events");
    let decoded = read(&arguments, events);
    let key = format!("{}:done", arguments["--prefix"]);
    tell(&arguments["--redis"], &key, &decoded.to_string());
}

/// Read so many events; how many could be decoded.
fn read(arguments: &HashMap<String, String>, events: usize) -> usize {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", &arguments["--brokers"])
        .set("group.id", &arguments["--prefix"])
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false") // its answers would be in the queue of messages
        .set("check.crcs", "true")
        .set("queued.min.messages", "100000")
        .set("queued.max.messages.kbytes", "16384") // more of them leaves the caches
        .set("fetch.message.max.bytes", "1048576")
        .set("fetch.queue.backoff.ms", "5") // with its default, a second, a full queue runs dry
        .create()
        .expect("a consumer");
    let topics = TOPICS.map(|topic| topic.to_owned() + &arguments["--suffix"]);
    let names = topics.each_ref().map(String::as_str);
    consumer.subscribe(&names).expect("the topics");
    let first = loop {
        // the group gives this consumer its partitions in here
        if let Some(message) = consumer.poll(Duration::from_secs(1)) {
            break message.expect("a message");
        }
    };
    let mut decoded = usize::from(decode(first.payload().unwrap_or_default()));
    let mut left = events - 1;
    let mut batch = Vec::with_capacity(BATCH);
    while left > 0 {
        decoded += decode_batch(&consumer, &mut batch);
        left -= batch.len();
    }
    decoded
}

/// The next messages; how many of them could be decoded.
fn decode_batch(consumer: &BaseConsumer, batch: &mut Vec<*mut rd_kafka_message_t>) -> usize {
    let mut decoded = 0;
    // SAFETY: as documented, the call writes at most BATCH pointers, to messages that are ours
    // until they are destroyed, and a payload is as long as it says.
    unsafe {
        let queue = rd_kafka_queue_get_consumer(consumer.client().native_ptr());
        let got = rd_kafka_consume_batch_queue(queue, WAIT_MS, batch.as_mut_ptr(), BATCH);
        rd_kafka_queue_destroy(queue);
        batch.set_len(usize::try_from(got).expect("a number of messages"));
        for &message in batch.iter() {
            let of = &*message;
            assert_eq!(of.err, RD_KAFKA_RESP_ERR_NO_ERROR);
            decoded += usize::from(decode(slice::from_raw_parts(of.payload.cast(), of.len)));
            rd_kafka_message_destroy(message);
        }
    }
    decoded
}

/// One event, whole; whether it is one.
fn decode(payload: &[u8]) -> bool {
    let event: Result<Event, _> = sonic_rs::from_slice(payload);
    black_box(event).is_ok()
}

/// Set a key of Redis.
fn tell(url: &str, key: &str, value: &str) {
    let address = url
        .trim_start_matches("redis://")
        .split('/')
        .next()
        .expect("host:port");
    let mut redis = TcpStream::connect(address).expect("Redis");
    redis
        .write_all(format!("SET {key} {value}\r\n").as_bytes())
        .expect("a command");
    let mut answer = [0; 5];
    redis.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"+OK\r\n");
}
