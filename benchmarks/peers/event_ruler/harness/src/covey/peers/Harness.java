package covey.peers;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.ref.Reference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Loads a workload into a peer, matches its events, prints one JSON line.
 *
 * <p>Both phases run on threads of their own while the main thread watches the clock: a library can stay inside one call
 * for minutes, and the limit has to hold all the same. A line is printed and the process halts, whatever still runs.
 */
public final class Harness {
    private static final int THREADS = 2;
    private static final int PASSES = 3;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Peer peer;
    private final List<String> ids = new ArrayList<>();
    private final List<Filter> filters = new ArrayList<>();
    private final List<ObjectNode> events = new ArrayList<>();
    private final ObjectNode report = JSON.createObjectNode();

    private Harness(Peer peer) {
        this.peer = peer;
        report.put("peer", peer.name());
    }

    public static void main(Peer peer, String[] arguments) {
        Harness harness = new Harness(peer);
        try {
            Path directory = Path.of(arguments[0]);
            double loadLimit = 60;
            double matchLimit = 60;
            for (int i = 1; i + 1 < arguments.length; i += 2) {
                switch (arguments[i]) {
                    case "--load-limit" -> loadLimit = Double.parseDouble(arguments[i + 1]);
                    case "--match-limit" -> matchLimit = Double.parseDouble(arguments[i + 1]);
                    default -> throw new IllegalArgumentException("unknown option " + arguments[i]);
                }
            }
            harness.read(directory);
            harness.load(loadLimit);
            harness.measure(matchLimit);
        } catch (Filter.Inexpressible why) {
            harness.finish("skipped", why.getMessage());
        } catch (Throwable failure) {
            failure.printStackTrace();
            harness.finish("error", failure.toString());
        }
    }

    private void read(Path directory) throws IOException {
        try (BufferedReader lines = Files.newBufferedReader(directory.resolve("subscriptions.jsonl"))) {
            for (String line; (line = lines.readLine()) != null; ) {
                JsonNode subscription = JSON.readTree(line);
                ids.add(subscription.get("id").asText());
                filters.add(Filter.of(subscription.get("tree")));
            }
        }
        try (BufferedReader lines = Files.newBufferedReader(directory.resolve("events.jsonl"))) {
            for (String line; (line = lines.readLine()) != null; ) {
                ObjectNode event = (ObjectNode) JSON.readTree(line);
                // A null is SQL's NULL, so as good as missing; a library may take it for a value.
                for (Iterator<Map.Entry<String, JsonNode>> fields = event.fields(); fields.hasNext(); ) {
                    if (fields.next().getValue().isNull()) {
                        fields.remove();
                    }
                }
                events.add(event);
            }
        }
    }

    private void load(double limit) throws Exception {
        report.put("version", peer.version());
        long before = usedHeap();
        AtomicInteger loaded = new AtomicInteger();
        Throwable[] failure = new Throwable[1];
        long start = System.nanoTime();
        Thread loader = daemon(() -> {
            try {
                peer.survey(filters);
                for (int i = 0; i < ids.size(); i++) {
                    peer.add(ids.get(i), filters.get(i));
                    loaded.set(i + 1);
                }
                peer.seal();
            } catch (Throwable thrown) {
                failure[0] = thrown;
            }
        });
        loader.join(Math.max(1, (long) (limit * 1000)));
        double seconds = secondsSince(start);
        if (loader.isAlive()) {
            finish("error", String.format(
                    "could not load %d subscriptions in %.0f s (loaded %d)", ids.size(), limit, loaded.get()));
        }
        if (failure[0] instanceof OutOfMemoryError) {
            finish("error", String.format(
                    "could not load %d subscriptions in a heap of %d MB (loaded %d in %.1f s)",
                    ids.size(), Runtime.getRuntime().maxMemory() >> 20, loaded.get(), seconds));
        }
        if (failure[0] instanceof Filter.Inexpressible why) {
            throw why;
        }
        if (failure[0] != null) {
            throw new Exception("loading failed after " + loaded.get() + " subscriptions", failure[0]);
        }
        report.put("load_seconds", seconds);
        report.put("rss_bytes", usedHeap() - before);
        // The filters stay reachable until here: were they collected in between, the difference would lack their size.
        Reference.reachabilityFence(filters);
        filters.clear();
    }

    /**
     * Warm-up and choice of mode, then latency, then throughput, all inside one limit. The shares are small enough to
     * leave most of it to the throughput passes.
     */
    private void measure(double limit) throws Exception {
        peer.prepare(events);
        long end = System.nanoTime() + (long) (limit * 1e9);
        double trial = Math.min(1.0, limit * 0.03);
        Peer.Mode best = null;
        Peer.Mode bestSingle = null;
        double bestRate = 0;
        double bestSingleRate = 0;
        for (Peer.Mode mode : peer.modes()) {
            // A call that takes a whole batch cannot be stopped half way: do not try one that may eat the limit.
            if (mode.batch() > 1 && mode.batch() * THREADS > bestRate * limit * 0.25) {
                continue;
            }
            if (mode.batch() > events.size()) {
                continue;
            }
            run(mode, THREADS, trial, end, true);
            Pass pass = run(mode, THREADS, trial, end, true);
            if (pass.rate() > bestRate || best == null) {
                best = mode;
                bestRate = pass.rate();
            }
            if (mode.batch() == 1 && (pass.rate() > bestSingleRate || bestSingle == null)) {
                bestSingle = mode;
                bestSingleRate = pass.rate();
            }
        }
        Pass latency = run(bestSingle, 1, Math.min(4.0, limit * 0.15), end, false);
        Arrays.sort(latency.nanoseconds());
        Pass fastest = null;
        for (int i = 0; i < PASSES; i++) {
            Pass pass = run(best, THREADS, Double.POSITIVE_INFINITY, end, false);
            boolean complete = pass.events() == events.size();
            if (fastest == null || (complete && pass.seconds() < fastest.seconds())) {
                fastest = pass;
            }
            if (!complete || pass.stuck()) {
                break;
            }
        }
        if (fastest.events() == 0) {
            finish("error", "no event was matched within the limit, after warm-up");
        }
        report.put("events", fastest.events());
        report.put("matches", fastest.matches());
        report.put("seconds", fastest.seconds());
        report.put("events_per_second", fastest.rate());
        report.put("p50_us", percentile(latency.nanoseconds(), 0.50));
        report.put("p99_us", percentile(latency.nanoseconds(), 0.99));
        report.put("note", String.format("throughput: %d threads, %s; latency: %d events, %s",
                THREADS, best.name(), latency.events(), bestSingle.name()));
        print();
    }

    /** What one run over the events gave: the first `events` of them, and the time of each call. */
    private record Pass(int events, long matches, double seconds, long[] nanoseconds, boolean stuck) {
        double rate() {
            return events / seconds;
        }
    }

    /**
     * Matches the events in file order until they, the run's own seconds or the limit are used up. A thread finishes what
     * it has taken, and takes in order, so what is done is always a prefix of the file. If `again`, the run starts over
     * at the end of the file; its totals then mean a rate and nothing else.
     */
    private Pass run(Peer.Mode mode, int threads, double seconds, long end, boolean again) throws Exception {
        int batch = mode.batch();
        int chunks = (events.size() + batch - 1) / batch;
        long start = System.nanoTime();
        long stop = seconds == Double.POSITIVE_INFINITY ? end : Math.min(end, start + (long) (seconds * 1e9));
        AtomicInteger next = new AtomicInteger();
        long[] matches = new long[chunks];
        long[] elapsed = new long[chunks];
        // Written by the worker that has the chunk, read after the join; or, when a worker is stuck, read racily:
        // elapsed is written last and zero means not done.
        Throwable[] failure = new Throwable[1];
        Thread[] workers = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            workers[t] = daemon(() -> {
                try {
                    while (System.nanoTime() < stop) {
                        int taken = next.getAndIncrement();
                        if (taken >= chunks && !again) {
                            return;
                        }
                        int chunk = taken % chunks;
                        int from = chunk * batch;
                        long began = System.nanoTime();
                        matches[chunk] = peer.match(mode, from, Math.min(events.size(), from + batch));
                        elapsed[chunk] = Math.max(1, System.nanoTime() - began);
                    }
                } catch (Throwable thrown) {
                    failure[0] = thrown;
                }
            });
        }
        // A call under way at the limit usually ends soon after, and then counts; one that does not is left behind.
        long patience = end + Math.max(1_000_000_000L, (end - start) / 10);
        boolean stuck = false;
        for (Thread worker : workers) {
            worker.join(Math.max(1, (patience - System.nanoTime()) / 1_000_000));
            stuck |= worker.isAlive();
        }
        double took = secondsSince(start);
        if (failure[0] != null) {
            throw new Exception("matching failed", failure[0]);
        }
        if (again && !stuck) {
            return new Pass(next.get() * batch, 0, took, new long[0], false);
        }
        int done = 0;
        long total = 0;
        while (done < chunks && elapsed[done] != 0) {
            total += matches[done++];
        }
        int first = Math.min(events.size(), done * batch);
        if (again && first == 0) {
            finish("error", "could not match one event within the limit");
        }
        return new Pass(first, total, took, Arrays.copyOf(elapsed, done), stuck);
    }

    private static double percentile(long[] sorted, double share) {
        if (sorted.length == 0) {
            return 0;
        }
        return sorted[(int) Math.min(sorted.length - 1, Math.floor(sorted.length * share))] / 1000.0;
    }

    private static Thread daemon(Runnable task) {
        Thread thread = new Thread(null, task, "harness", 64L << 20);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static double secondsSince(long start) {
        return (System.nanoTime() - start) / 1e9;
    }

    private static long usedHeap() throws InterruptedException {
        Runtime runtime = Runtime.getRuntime();
        // Once is not enough: a first collection may leave what only finalizers and reference queues let go.
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(50);
        }
        return runtime.totalMemory() - runtime.freeMemory();
    }

    private void finish(String key, String why) {
        report.removeAll();
        report.put("peer", peer.name());
        report.put(key, why);
        print();
    }

    /** Halts and does not exit: a library's own threads, or a worker stuck in a call, would hold an exit up. */
    private void print() {
        System.out.println(report);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
