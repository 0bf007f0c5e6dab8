package peers;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The job that every contestant does, as job.py tells it, and what a program is called with. */
record Job(String brokers, String suffix, String redis, String prefix) {
    static final long WINDOW_MS = 300_000;
    static final long SLIDE_MS = 5_000;
    static final int THREADS = 2;

    static Job of(String[] arguments) {
        Map<String, String> given = new HashMap<>();
        for (String word : arguments) {
            String[] pair = word.split("=", 2);
            given.put(pair[0], pair[1]);
        }
        return new Job(
                given.get("--brokers"),
                given.get("--suffix"),
                given.get("--redis"),
                given.get("--prefix"));
    }

    List<String> topics() {
        return Arrays.stream(new String[] {"impressions", "clicks", "conversions", "sessions"})
                .map(topic -> topic + suffix)
                .toList();
    }

    /** The prefix, with nothing in it that a name of a topic may not have. */
    String group() {
        return prefix.replaceAll("[^A-Za-z0-9._-]", "");
    }
}
