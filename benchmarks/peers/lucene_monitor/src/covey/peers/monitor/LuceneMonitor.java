package covey.peers.monitor;

import com.fasterxml.jackson.databind.node.ObjectNode;
import covey.peers.Filter;
import covey.peers.Harness;
import covey.peers.Peer;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.lucene.analysis.core.KeywordAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.index.Term;
import org.apache.lucene.monitor.CustomQueryHandler;
import org.apache.lucene.monitor.Monitor;
import org.apache.lucene.monitor.MonitorConfiguration;
import org.apache.lucene.monitor.MonitorQuery;
import org.apache.lucene.monitor.MultiMatchingQueries;
import org.apache.lucene.monitor.MultipassTermFilteredPresearcher;
import org.apache.lucene.monitor.Presearcher;
import org.apache.lucene.monitor.QueryMatch;
import org.apache.lucene.monitor.RegexpQueryHandler;
import org.apache.lucene.monitor.TermFilteredPresearcher;
import org.apache.lucene.monitor.TermWeightor;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.util.Version;

/** Lucene's monitor: an index of queries; a presearcher picks those worth running against a document. */
public final class LuceneMonitor implements Peer {
    /** Registered together: each registration commits the query index. */
    private static final int BUFFER = 5_000;

    private Monitor monitor;
    private final List<MonitorQuery> waiting = new ArrayList<>();
    private Document[] documents;

    public static void main(String[] arguments) {
        Harness.main(new LuceneMonitor(), arguments);
    }

    @Override
    public String name() {
        return "lucene-monitor";
    }

    @Override
    public String version() {
        return Version.LATEST.toString();
    }

    /**
     * The presearcher files a query under one of the terms it requires. A field with many different constants splits the
     * queries best, so its terms weigh most; presence of an attribute tells least.
     */
    @Override
    public void survey(List<Filter> filters) {
        Map<String, Set<Object>> constants = new HashMap<>();
        boolean contains = false;
        for (Filter filter : filters) {
            contains |= survey(filter, constants);
        }
        Map<String, Double> weights = new HashMap<>();
        constants.forEach((field, values) -> weights.put(field, 1.0 + values.size()));
        TermWeightor weightor = (Term term) -> term.field().equals(Queries.PRESENT)
                ? 0.5
                : weights.getOrDefault(term.field(), 1.0);
        // Its n-grams of every term of a document cost time, so only where a query needs them.
        List<CustomQueryHandler> handlers = contains ? List.of(new RegexpQueryHandler()) : List.of();
        // A second pass costs time on each document. It pays where a branch of an Or lacks the telling field and one of
        // its weak terms alone would let too many queries through; conjunctions ran faster without it.
        boolean branches = filters.stream().anyMatch(Filter.Or.class::isInstance);
        Presearcher presearcher = branches
                ? new MultipassTermFilteredPresearcher(2, 0, weightor, handlers, Set.of())
                : new TermFilteredPresearcher(weightor, handlers, Set.of());
        // The default of 1024 is below what the substrings of a text come to.
        IndexSearcher.setMaxClauseCount(8192);
        try {
            monitor = new Monitor(
                    new KeywordAnalyzer(), presearcher, new MonitorConfiguration().setQueryUpdateBufferSize(BUFFER));
        } catch (IOException failure) {
            throw new IllegalStateException(failure);
        }
    }

    private static boolean survey(Filter filter, Map<String, Set<Object>> constants) {
        if (filter instanceof Filter.And and) {
            return and.parts().stream().filter(part -> survey(part, constants)).count() > 0;
        }
        if (filter instanceof Filter.Or or) {
            return or.parts().stream().filter(part -> survey(part, constants)).count() > 0;
        }
        if (filter instanceof Filter.Among among && !among.negated()) {
            constants.computeIfAbsent(among.attribute(), field -> new HashSet<>()).addAll(among.values());
        }
        return filter instanceof Filter.Contains;
    }

    @Override
    public void add(String id, Filter filter) throws IOException {
        waiting.add(new MonitorQuery(id, Queries.query(filter)));
        if (waiting.size() == BUFFER) {
            seal();
        }
    }

    @Override
    public void seal() throws IOException {
        monitor.register(waiting);
        waiting.clear();
    }

    @Override
    public void prepare(List<ObjectNode> events) {
        documents = events.stream().map(Queries::document).toArray(Document[]::new);
    }

    @Override
    public List<Mode> modes() {
        return List.of(
                new Mode("one document a match", 1),
                new Mode("16 documents a match", 16),
                new Mode("128 documents a match", 128),
                new Mode("512 documents a match", 512));
    }

    @Override
    public long match(Mode mode, int from, int to) throws IOException {
        if (mode.batch() == 1) {
            return monitor.match(documents[from], QueryMatch.SIMPLE_MATCHER).getMatchCount();
        }
        Document[] batch = new Document[to - from];
        System.arraycopy(documents, from, batch, 0, batch.length);
        MultiMatchingQueries<QueryMatch> found = monitor.match(batch, QueryMatch.SIMPLE_MATCHER);
        long matches = 0;
        for (int i = 0; i < batch.length; i++) {
            Collection<QueryMatch> one = found.getMatches(i);
            matches += one.size();
        }
        return matches;
    }
}
