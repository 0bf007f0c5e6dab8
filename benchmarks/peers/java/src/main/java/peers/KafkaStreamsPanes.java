package peers;

import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.api.Record;

/** Kafka Streams with tumbling windows of five seconds, merged by hand to those of the job. */
public final class KafkaStreamsPanes {
    public static void main(String[] arguments) {
        Job job = Job.of(arguments);
        StreamsBuilder builder = new StreamsBuilder();
        Duration size = Duration.ofMillis(Job.SLIDE_MS);
        TimeWindows panes = TimeWindows.ofSizeAndGrace(size, KafkaStreamsJob.GRACE);
        KafkaStreamsJob.counts(builder, job, panes).process(() -> new Merge(job));
        KafkaStreamsJob.run(builder, job);
    }

    /** Adds what a pane grew by to all windows that it is in. */
    private static final class Merge extends KafkaStreamsJob.Sink {
        private final Map<String, Map<Long, long[]>> panes = new HashMap<>();
        private final Map<String, Map<Long, long[]>> windows = new HashMap<>();
        private final Map<String, Set<Long>> changed = new HashMap<>();

        Merge(Job job) {
            super(job);
        }

        @Override
        public void process(Record<Windowed<String>, Long> counted) {
            String key = counted.key().key();
            long[] before = at(panes, key, counted.key().window().end());
            long grown = counted.value() - before[0];
            before[0] = counted.value();
            long first = counted.key().window().end();
            Set<Long> ends = changed.computeIfAbsent(key, of -> new HashSet<>());
            for (long end = first; end < first + Job.WINDOW_MS; end += Job.SLIDE_MS) {
                at(windows, key, end)[0] += grown;
                ends.add(end);
            }
        }

        @Override
        void flush() {
            changed.forEach((key, ends) -> {
                int kind = key.lastIndexOf(':');
                for (long end : ends) {
                    long count = at(windows, key, end)[0];
                    redis.put(end, key.substring(0, kind), key.substring(kind + 1), count);
                }
            });
            changed.clear();
            super.flush();
        }

        private static long[] at(Map<String, Map<Long, long[]>> counts, String key, long end) {
            return counts.computeIfAbsent(key, of -> new HashMap<>())
                    .computeIfAbsent(end, of -> new long[1]);
        }
    }
}
