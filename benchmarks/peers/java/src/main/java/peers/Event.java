package peers;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.io.UncheckedIOException;

/** An event: of its fields, those that a job needs. */
public final class Event {
    private static final JsonFactory JSON = new JsonFactory();

    public String type;
    public long ts;
    public String variant;
    public String surface;
    public String requestId;
    public String itemId;

    static Event decode(byte[] text) {
        Event event = new Event();
        try (JsonParser parser = JSON.createParser(text)) {
            parser.nextToken();
            String name;
            while ((name = parser.nextFieldName()) != null) {
                JsonToken value = parser.nextToken();
                switch (name) {
                    case "type" -> event.type = parser.getText();
                    case "ts" -> event.ts = parser.getLongValue();
                    case "variant" -> event.variant = parser.getText();
                    case "surface" -> event.surface = parser.getText();
                    case "request_id" -> event.requestId = parser.getText();
                    case "item_id" -> event.itemId = parser.getText();
                    default -> {
                        if (value.isStructStart()) {
                            parser.skipChildren();
                        }
                    }
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return event;
    }

    boolean isCounted() {
        return !type.equals("session");
    }

    boolean isImpression() {
        return type.equals("impression");
    }

    /** What clicks and conversions share with their impression. */
    String place() {
        return requestId + ":" + itemId;
    }

    /** The field of a segment's hash that counts it. */
    String kind() {
        return type + "s";
    }

    /** As in a key of Redis. */
    String segment() {
        return variant + ":" + surface;
    }
}
