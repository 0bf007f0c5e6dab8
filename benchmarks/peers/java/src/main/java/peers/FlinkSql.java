package peers;

import java.time.LocalDateTime;
import java.time.ZoneOffset;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/** Flink SQL: hopping windows of a table that is all topics. */
public final class FlinkSql {
    private static final String EVENTS = """
            CREATE TABLE events (
              type STRING, ts BIGINT, `variant` STRING, surface STRING,
              event_time AS TO_TIMESTAMP_LTZ(ts, 3),
              WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND
            ) WITH (
              'connector' = 'kafka',
              'topic' = '%s',
              'properties.bootstrap.servers' = '%s',
              'properties.group.id' = '%s',
              'properties.max.poll.records' = '10000',
              'properties.max.partition.fetch.bytes' = '4194304',
              'scan.startup.mode' = 'earliest-offset',
              'format' = 'json'
            )""";

    private static final String COUNTS = """
            SELECT
              window_end,
              `variant` || ':' || surface AS segment,
              COUNT(*) FILTER (WHERE type = 'impression') AS impressions,
              COUNT(*) FILTER (WHERE type = 'click') AS clicks,
              COUNT(*) FILTER (WHERE type = 'conversion') AS conversions
            FROM TABLE(HOP(
              TABLE events, DESCRIPTOR(event_time), INTERVAL '5' SECOND, INTERVAL '5' MINUTE))
            WHERE type <> 'session'
            GROUP BY window_start, window_end, `variant`, surface""";

    public static void main(String[] arguments) throws Exception {
        Job job = Job.of(arguments);
        StreamExecutionEnvironment environment = FlinkJob.environment();
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        tables.getConfig().setLocalTimeZone(ZoneOffset.UTC);
        tables.executeSql(
                EVENTS.formatted(String.join(";", job.topics()), job.brokers(), job.group()));
        Table counts = tables.sqlQuery(COUNTS);
        tables.toDataStream(counts).sinkTo(new RedisSink<>(job, FlinkSql::put));
        environment.execute();
    }

    private static void put(Row row, RedisCounts redis) {
        LocalDateTime end = row.getFieldAs("window_end");
        long endMs = end.toInstant(ZoneOffset.UTC).toEpochMilli();
        for (String kind : new String[] {"impressions", "clicks", "conversions"}) {
            redis.put(endMs, row.getFieldAs("segment"), kind, row.getFieldAs(kind));
        }
    }
}
