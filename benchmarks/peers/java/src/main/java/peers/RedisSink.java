package peers;

import java.io.Serializable;
import org.apache.flink.api.common.operators.ProcessingTimeService;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;

/** Flink's way into Redis: it flushes ten times a second, with each checkpoint and at the end. */
final class RedisSink<T> implements Sink<T> {
    private static final long FLUSH_MS = 100;

    /** Puts what one record counts. */
    interface Put<T> extends Serializable {
        void put(T record, RedisCounts redis);
    }

    private final String url;
    private final String prefix;
    private final Put<T> put;

    RedisSink(Job job, Put<T> put) {
        this.url = job.redis();
        this.prefix = job.prefix();
        this.put = put;
    }

    @Override
    public SinkWriter<T> createWriter(WriterInitContext context) {
        RedisCounts redis = new RedisCounts(url, prefix);
        flushLater(redis, context.getProcessingTimeService());
        return new SinkWriter<>() {
            @Override
            public void write(T record, Context at) {
                put.put(record, redis);
            }

            @Override
            public void flush(boolean endOfInput) {
                redis.flush();
            }

            @Override
            public void close() {
                redis.close();
            }
        };
    }

    private static void flushLater(RedisCounts redis, ProcessingTimeService clock) {
        long next = clock.getCurrentProcessingTime() + FLUSH_MS;
        clock.registerTimer(next, now -> {
            redis.flush();
            flushLater(redis, clock);
        });
    }
}
