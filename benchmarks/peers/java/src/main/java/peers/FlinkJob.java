package peers;

import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.configuration.StateBackendOptions;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** What both programs of Flink share: a cluster in this JVM, at its fastest settings. */
final class FlinkJob {
    private FlinkJob() {}

    static StreamExecutionEnvironment environment() {
        Configuration settings = new Configuration();
        settings.set(PipelineOptions.OBJECT_REUSE, true);
        settings.set(StateBackendOptions.STATE_BACKEND, "hashmap");
        return StreamExecutionEnvironment.createLocalEnvironment(Job.THREADS, settings);
    }
}
