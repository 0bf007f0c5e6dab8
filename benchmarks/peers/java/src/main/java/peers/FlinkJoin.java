package peers;

import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.AbstractDeserializationSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.ProcessJoinFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/** Flink's DataStream: clicks and conversions have the segment of their impression, by a join. */
public final class FlinkJoin {
    private static final Duration LATENESS = Duration.ofSeconds(5);
    private static final Duration JOINED = Duration.ofMinutes(10);
    private static final Duration WINDOW = Duration.ofMillis(Job.WINDOW_MS);
    private static final Duration SLIDE = Duration.ofMillis(Job.SLIDE_MS);

    private static final TypeInformation<Tuple2<String, String>> PAIR =
            Types.TUPLE(Types.STRING, Types.STRING);
    private static final TypeInformation<Tuple2<String, Long>> COUNT =
            Types.TUPLE(Types.STRING, Types.LONG);

    public static void main(String[] arguments) throws Exception {
        Job job = Job.of(arguments);
        StreamExecutionEnvironment environment = FlinkJob.environment();
        WatermarkStrategy<Event> time =
                WatermarkStrategy.<Event>forBoundedOutOfOrderness(LATENESS)
                        .withTimestampAssigner((event, before) -> event.ts);
        DataStream<Event> events =
                environment.fromSource(source(job), time, "events").filter(Event::isCounted);
        DataStream<Tuple2<String, String>> shown = events
                .filter(Event::isImpression)
                .map(event -> Tuple2.of(event.place(), event.segment()), PAIR);
        DataStream<Tuple2<String, String>> done = events
                .filter(event -> !event.isImpression())
                .map(event -> Tuple2.of(event.place(), event.kind()), PAIR);
        DataStream<Tuple2<String, Long>> joined = done
                .keyBy(of -> of.f0)
                .intervalJoin(shown.keyBy(of -> of.f0))
                .between(JOINED.negated(), Duration.ZERO)
                .process(new Label(), COUNT);
        DataStream<Tuple2<String, Long>> impressions =
                shown.map(of -> Tuple2.of(of.f1 + ":impressions", 1L), COUNT);
        windows(impressions.union(joined))
                .sinkTo(new RedisSink<>(job, (of, redis) -> {
                    int kind = of.f1.lastIndexOf(':');
                    redis.put(of.f0, of.f1.substring(0, kind), of.f1.substring(kind + 1), of.f2);
                }));
        environment.execute();
    }

    private static KafkaSource<Event> source(Job job) {
        return KafkaSource.<Event>builder()
                .setBootstrapServers(job.brokers())
                .setGroupId(job.group())
                .setTopics(job.topics())
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setProperty("max.poll.records", "10000")
                .setProperty("max.partition.fetch.bytes", "4194304")
                .setValueOnlyDeserializer(
                        new AbstractDeserializationSchema<Event>(Event.class) {
                            @Override
                            public Event deserialize(byte[] text) {
                                return Event.decode(text);
                            }
                        })
                .build();
    }

    /** Counts of panes of five seconds first: an event is added once, and not sixty times. */
    private static DataStream<Tuple3<Long, String, Long>> windows(
            DataStream<Tuple2<String, Long>> ones) {
        return ones.keyBy(of -> of.f0)
                .window(TumblingEventTimeWindows.of(SLIDE))
                .reduce((a, b) -> Tuple2.of(a.f0, a.f1 + b.f1))
                .keyBy(of -> of.f0)
                .window(SlidingEventTimeWindows.of(WINDOW, SLIDE))
                .reduce((a, b) -> Tuple2.of(a.f0, a.f1 + b.f1), new WithEnd());
    }

    private static final class Label extends ProcessJoinFunction<
            Tuple2<String, String>, Tuple2<String, String>, Tuple2<String, Long>> {
        @Override
        public void processElement(
                Tuple2<String, String> done,
                Tuple2<String, String> shown,
                Context context,
                Collector<Tuple2<String, Long>> out) {
            out.collect(Tuple2.of(shown.f1 + ":" + done.f1, 1L));
        }
    }

    private static final class WithEnd extends ProcessWindowFunction<
            Tuple2<String, Long>, Tuple3<Long, String, Long>, String, TimeWindow> {
        @Override
        public void process(
                String key,
                Context context,
                Iterable<Tuple2<String, Long>> counts,
                Collector<Tuple3<Long, String, Long>> out) {
            counts.forEach(of -> out.collect(Tuple3.of(context.window().getEnd(), key, of.f1)));
        }
    }
}
