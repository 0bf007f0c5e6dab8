package peers;

import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.state.WindowStore;

/** What both programs of Kafka Streams share: counts by window, settings, and a sink. */
final class KafkaStreamsJob {
    /** Threads run apart by as much as the whole log: the default until it had to be named. */
    static final Duration GRACE = Duration.ofDays(1);

    private static final Duration FLUSH = Duration.ofMillis(100);

    private KafkaStreamsJob() {}

    /** Counts of segments and kinds in windows, again with each commit that finds them changed. */
    static KStream<Windowed<String>, Long> counts(
            StreamsBuilder builder, Job job, TimeWindows windows) {
        Serde<Event> json =
                Serdes.serdeFrom((topic, event) -> null, (topic, text) -> Event.decode(text));
        Consumed<byte[], Event> consumed = Consumed.with(Serdes.ByteArray(), json)
                .withTimestampExtractor((record, before) -> ((Event) record.value()).ts);
        byte[] nothing = {};
        return builder.stream(job.topics(), consumed)
                .filter((key, event) -> event.isCounted())
                .map((key, event) -> KeyValue.pair(event.segment() + ":" + event.kind(), nothing))
                .groupByKey(Grouped.with(Serdes.String(), Serdes.ByteArray()))
                .windowedBy(windows)
                .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>with(
                                Serdes.String(), Serdes.Long())
                        .withStoreType(Materialized.StoreType.IN_MEMORY)
                        .withCachingEnabled())
                .toStream();
    }

    /** Run until stopped. */
    static void run(StreamsBuilder builder, Job job) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, job.group());
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, job.brokers());
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, Job.THREADS);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 1_000);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 256 << 20);
        settings.put(StreamsConfig.BUFFERED_RECORDS_PER_PARTITION_CONFIG, 10_000);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, 10_000);
        settings.put(ProducerConfig.BATCH_SIZE_CONFIG, 256 << 10);
        settings.put(ProducerConfig.LINGER_MS_CONFIG, 50);
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close(Duration.ofSeconds(5));
            streams.cleanUp();
        }));
        streams.start();
    }

    /** A last processor, which writes into Redis and flushes ten times a second. */
    abstract static class Sink
            extends ContextualProcessor<Windowed<String>, Long, Void, Void> {
        private final Job job;
        RedisCounts redis;

        Sink(Job job) {
            this.job = job;
        }

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            super.init(context);
            redis = new RedisCounts(job.redis(), job.prefix());
            context.schedule(FLUSH, PunctuationType.WALL_CLOCK_TIME, now -> flush());
        }

        void flush() {
            redis.flush();
        }

        @Override
        public void close() {
            redis.close();
        }
    }
}
