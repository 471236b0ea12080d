package covey.peers;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/** What the harness asks of a library. `match` is called from several threads at once, after `seal`. */
public interface Peer {
    /** One way to hand events over: a name for the note, and how many events a call takes. */
    record Mode(String name, int batch) {}

    String name();

    String version();

    /** Sees all subscriptions before the first `add`, for a library that is tuned by what they look like. */
    default void survey(List<Filter> filters) {}

    void add(String id, Filter filter) throws Exception;

    /** Makes everything added so far visible to `match`. */
    default void seal() throws Exception {}

    /** Turns events into the library's own form, outside the timing. */
    void prepare(List<ObjectNode> events) throws Exception;

    /** The ways to match; the first takes one event a call. The harness keeps the fastest. */
    List<Mode> modes();

    /** How many (event, subscription) pairs match among the events from, from + 1, ..., to - 1. */
    long match(Mode mode, int from, int to) throws Exception;
}
