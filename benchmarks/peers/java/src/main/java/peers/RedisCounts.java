package peers;

import java.net.URI;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;

/** Writes counts of windows into Redis, many at once. */
final class RedisCounts implements AutoCloseable {
    private static final int BATCH = 1_000;

    private final String prefix;
    private final Jedis redis;
    private final Pipeline pipeline;
    private int waiting;

    RedisCounts(String url, String prefix) {
        this.prefix = prefix;
        redis = new Jedis(URI.create(url));
        pipeline = redis.pipelined();
    }

    void put(long end, String segment, String kind, long count) {
        pipeline.hset(prefix + ":" + end + ":" + segment, kind, Long.toString(count));
        if (++waiting >= BATCH) {
            flush();
        }
    }

    void flush() {
        if (waiting > 0) {
            pipeline.sync();
            waiting = 0;
        }
    }

    @Override
    public void close() {
        flush();
        redis.close();
    }
}
