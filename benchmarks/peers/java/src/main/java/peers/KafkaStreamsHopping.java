package peers;

import java.time.Duration;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.api.Record;

/** Kafka Streams with hopping windows, as its documentation has them. */
public final class KafkaStreamsHopping {
    public static void main(String[] arguments) {
        Job job = Job.of(arguments);
        StreamsBuilder builder = new StreamsBuilder();
        Duration size = Duration.ofMillis(Job.WINDOW_MS);
        TimeWindows windows = TimeWindows.ofSizeAndGrace(size, KafkaStreamsJob.GRACE)
                .advanceBy(Duration.ofMillis(Job.SLIDE_MS));
        KafkaStreamsJob.counts(builder, job, windows).process(() -> new ToRedis(job));
        KafkaStreamsJob.run(builder, job);
    }

    private static final class ToRedis extends KafkaStreamsJob.Sink {
        ToRedis(Job job) {
            super(job);
        }

        @Override
        public void process(Record<Windowed<String>, Long> counted) {
            String key = counted.key().key();
            int kind = key.lastIndexOf(':');
            long end = counted.key().window().end();
            redis.put(end, key.substring(0, kind), key.substring(kind + 1), counted.value());
        }
    }
}
